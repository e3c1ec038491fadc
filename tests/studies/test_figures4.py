"""Figures and tables of Experiments 4 and 5: of a small run, and of none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_experiments45 import Study, tune

from recheck import style
from recheck.book import Book
from recheck.layout import read_layout
from recheck.measures import COLUMNS, ESTIMATES, estimate
from recheck.published import default_levels, read_cells
from recheck.tables import write_tables
from studies.atiya2021 import figures

FIGURES = {
    name: figures.FIGURES[name]
    for name in ("reliability", "evidence", "accuracy", "benchmark", "posterior")
}
LAYOUT = f"{figures.__path__[0]}/../layout.yaml"


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """Books of a small run and of none."""
    study = Study(tmp_path_factory.mktemp("study"))
    tune(study.root)
    parts = [study.measures(part) for part in ("experiment4", "experiment5")]
    rows = pd.concat(parts, ignore_index=True)
    cells = read_cells(study.published / "cells.csv")
    empty = pd.DataFrame(columns=ESTIMATES), pd.DataFrame(columns=COLUMNS)
    defaults = default_levels(study.published / "readings.yaml")
    small = Book(estimate(rows), rows, cells, defaults=defaults)
    return {"small": small, "none": Book(*empty, cells)}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("which", ["small", "none"])
def test_every_figure_can_be_read(books, name, which):
    with style.style():
        drawn = FIGURES[name](books[which])
        drawn.draw_without_rendering()
    texts = list(drawn.findobj(lambda one: hasattr(one, "get_fontsize")))
    assert min(text.get_fontsize() for text in texts) >= 8
    assert drawn.get_size_inches()[0] <= 166 / 25.4


def test_partial_averages_are_hollow(books):
    rows = books["small"].measures
    mine = rows["id"] == "experiment4/P1/certified/orthant/mae-reference"
    rows = rows.assign(status=rows["status"].mask(mine, "5 of 6"))
    book = Book(books["small"].estimates, rows, books["small"].cells.reset_index(drop=True))
    drawn = FIGURES["accuracy"](book)
    faces = [line.get_markerfacecolor() for line in drawn.axes[0].lines]
    assert faces.count("white") == 1


def test_tables_have_numbers(books, tmp_path):
    layout = read_layout(LAYOUT)
    names = [
        name
        for name, entry in layout.tables.items()
        if {"experiment4", "experiment5"} & set(entry.reads)
    ]
    assert {"table4", "readings", "chains", "tuning"} <= set(names)
    write_tables(layout, books["small"], names, tmp_path)
    for name in names:
        table = pd.read_csv(tmp_path / f"{name}.csv")
        assert np.isfinite(table["value"]).any(), name
    write_tables(layout, books["none"], names, tmp_path)
