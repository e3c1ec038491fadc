"""Figures of Experiments 1 to 3: complete, legible in print, drawn also if nothing was run."""

from __future__ import annotations

import made_raw
import matplotlib.text
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from recheck.judge.measures import as_measures, estimate
from recheck.judge.published import read_cells
from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.figures import FIGURES

NAMES = ("floor", "figure1", "figure2")
SMALLEST = 8.0  # points
PANELS = {"floor": 3, "figure1": 1, "figure2": 1}


def book_of(root, reference):
    rows = [made_raw.measure(part, root, reference) for part in made_raw.PARTS]
    measures = as_measures(pd.concat(rows, ignore_index=True))
    return Book(estimate(measures), measures, read_cells(made_raw.CELLS / "cells.csv"))


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """A book with something of everything, and one of a run that did nothing."""
    root, reference = made_raw.everything(tmp_path_factory.mktemp("made"))
    return {"made": book_of(root, reference), "nothing": book_of(reference, reference)}


def draw(name, book):
    with style.style():
        figure = FIGURES[name](book)
        FigureCanvasAgg(figure).draw()
    return figure


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["made", "nothing"])
def test_texts_are_large_enough_and_inside(books, name, which):
    figure = draw(name, books[which])
    assert len(figure.axes) == PANELS[name]
    width, height = figure.canvas.get_width_height()
    for text in figure.findobj(matplotlib.text.Text):
        if not (text.get_text() and text.get_visible()):
            continue
        assert text.get_fontsize() >= SMALLEST, text
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height, name


def test_a_figure_without_data_says_so(books):
    figure = draw("figure1", books["nothing"])
    texts = [text.get_text() for text in figure.findobj(matplotlib.text.Text)]
    assert any("not run" in text for text in texts)


def test_runs_that_did_not_converge_are_hollow(books):
    figure = draw("figure1", books["made"])
    (axes,) = figure.axes
    hollow = [
        line
        for line in axes.lines
        if line.get_markerfacecolor() == "white" and len(line.get_xdata())
    ]
    assert sorted(line.get_xdata()[0] for line in hollow) == [1.0, 50.0]
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert "HMC (as distributed) (not converged)" in labels and "sampler (soft)" in labels


def test_published_points_are_all_there(books):
    for axes in draw("floor", books["nothing"]).axes:
        assert [len(line.get_xdata()) for line in axes.lines if line.get_marker() == "s"] == [6]


def test_layout_has_a_caption_for_every_figure():
    from recheck.report.layout import read_layout

    folder = made_raw.CELLS.parents[2] / "src/studies/atiya2021"
    layout = read_layout(folder / "layout.yaml")
    for name in NAMES:
        assert layout.figures[name].caption.endswith("."), name
        assert set(layout.figures[name].reads) <= set(made_raw.PARTS)
