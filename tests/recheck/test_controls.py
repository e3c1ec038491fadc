import numpy as np
import pytest
from made_study import measures, published, rows

from recheck.judge.controls import COLUMNS, controls
from recheck.judge.measures import estimate
from recheck.judge.verdicts import judge


def study_of(folder, columns=8):
    """A study whose published numbers are drawn as ours are: data sets common to the two cells of a column."""
    rng, cells, parts = np.random.default_rng(2), [], []
    for n in range(columns):
        data = np.exp(0.1 * rng.standard_normal((21, 1)))
        for c in range(2):
            values = 10.0**-c * data * np.exp(0.03 * rng.standard_normal((21, 1)))
            cells.append({"id": f"t{n}/c{c}", "printed": f"{values[20, 0]:.3e}"})
            parts.append(rows(f"t{n}/c{c}", values[:20]))
    return published(folder, cells), measures(*parts)


@pytest.fixture
def table(tmp_path):
    study, frame = study_of(tmp_path)
    verdicts = judge(frame, estimate(frame), study, 1).frame
    assert not (verdicts["verdict"] == "differs").any()
    return controls(frame, verdicts, study, 1).set_index("control")


def test_planted_faults_are_found_as_often_as_expected(table):
    assert [*table.reset_index().columns] == COLUMNS
    assert table["as_expected"].all(), table.to_string()
    one = table.loc["shifted cell, detectable"]
    assert one["trials"] == 8 and one["expected"] == pytest.approx(6.4, abs=0.1)
    assert table.loc["shifted cell, half", "expected"] < 2
    assert table.loc["swapped pair", "found"] == 8
    assert table.loc["biased truth", "trials"] == 8


def test_a_dropped_row_is_always_refused(table):
    row = table.loc["dropped row"]
    assert row["found"] == row["trials"] == 11


def test_a_judge_that_finds_nothing_is_noticed(tmp_path, monkeypatch):
    study, frame = study_of(tmp_path)
    verdicts = judge(frame, estimate(frame), study, 1).frame
    monkeypatch.setattr("recheck.judge.controls.holm", lambda p: np.ones_like(p))
    found = controls(frame, verdicts, study, 1).set_index("control")
    assert not found.loc[
        ["shifted cell, detectable", "swapped pair", "biased truth"], "as_expected"
    ].any()
