"""Figures and tables of Experiments 4 and 5: of a small run, and of none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_experiments45 import Study, tune

from recheck.judge.measures import COLUMNS, ESTIMATES, estimate
from recheck.judge.published import read_cells, read_published
from recheck.report import style
from recheck.report.book import Book
from recheck.report.layout import read_layout
from recheck.report.tables import write_tables
from studies.atiya2021 import figures

FIGURES = {
    name: figures.FIGURES[name]
    for name in ("reliability", "accuracy", "benchmark", "replay", "table4")
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
    choices = read_published(study.published).readings
    defaults = {name: choice.default for name, choice in choices.items()}
    small = Book(estimate(rows), rows, cells, defaults=defaults)
    return {"small": small, "none": Book(*empty, cells)}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("which", ["small", "none"])
def test_every_figure_can_be_read(books, name, which):
    with style.style():
        drawn = FIGURES[name](books[which])
        drawn.draw_without_rendering()
    texts = list(drawn.findobj(lambda one: hasattr(one, "get_fontsize")))
    assert min(text.get_fontsize() for text in texts) >= 8
    assert drawn.get_size_inches()[0] <= 166 / 25.4


def test_table_4_is_drawn_under_its_readings(books):
    cell = {"id": "table4/P2/new/mae-med", "kind": "cell", "scale": "log", "published": 1.0}
    cell |= {"low": 0.4, "high": 0.6, "effect": np.log(0.5)}
    rows = [cell | {"reading": f"count={count};hmc=20;variance=once"} for count in ("a", "b")]
    rows += [cell | {"reading": "count=a;hmc=200;variance=twice", "effect": np.nan}]
    rows += [cell | {"reading": "count=a;hmc=200;variance=twice", "effect": np.log(3.0)}]
    pair = {"id": "contrast/table4/P2/ess-new/mae-post", "kind": "contrast", "scale": "linear"}
    pair |= {"published": 0.001, "ours": 0.003, "effect": 0.002, "low": -0.004, "high": 0.004}
    rows += [pair | {"reading": "variance=once"}]
    tables = books["none"].estimates, books["none"].measures, books["none"].cells
    defaults = {"count": "a", "hmc": "200", "variance": "once"}
    book = Book(*tables, defaults=defaults, outcomes=pd.DataFrame(rows))
    drawn = FIGURES["table4"](book)
    ratios = [line.get_xdata() for line in drawn.axes[0].lines if line.get_marker() != "None"]
    assert [float(x[0]) for x in ratios] == pytest.approx([3.0, 0.5]), "HMC of 20 once, no default"
    lines = [tuple(np.round(line.get_xdata(), 3)) for line in drawn.axes[4].lines]
    assert lines == [(-0.3, 0.5), (0.3,), (0.1,)], "the interval, ours, the printed one"


def test_two_cells_are_replayed(books):
    rows = [
        {"id": f"{table}/P2/M10000", "published": 0.004, "detectable": 2.0}
        | dict(
            zip(
                ("q05", "q25", "q50", "q75", "q95"),
                (0.002, 0.003, 0.004, 0.005, 0.006),
                strict=True,
            )
        )
        for table in ("table2", "table3")
    ]
    tables = books["none"].estimates, books["none"].measures, books["none"].cells
    axes = FIGURES["replay"](Book(*tables, pd.DataFrame(rows))).axes[0]
    shifts = sorted(line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--")
    assert shifts == pytest.approx([0.002, 0.008])
    assert axes.get_xlim() == pytest.approx((0.0005, 0.032))


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
