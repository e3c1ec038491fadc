"""Others' material: published tables beside public re-runs, and reported tests whose p-value can be computed again."""

import csv
import sys
from pathlib import Path

import pytest
from scipy.special import chdtrc, fdtrc, ndtr, stdtr

from recheck.judge.one import judge_one
from recheck.judge.printed import region

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import judged  # noqa: E402

TABLES = judged.tables()


@pytest.mark.parametrize("entry", TABLES, ids=[entry["title"][:30] for entry in TABLES])
def test_a_table_of_the_gallery_has_the_verdicts_that_its_text_is_about(entry, tmp_path):
    _, frame = judged.judged(entry, tmp_path)
    verdicts = frame.set_index("id")["verdict"]
    assert {id: verdicts[id] for id in entry["verdicts"]} == entry["verdicts"]
    assert entry["source"] and entry["conclude"]


def test_the_gallery_is_no_selection_of_agreements():
    assert len(TABLES) >= 8
    assert {verdict for entry in TABLES for verdict in entry["verdicts"].values()} == {
        *("agrees", "differs", "undecided", "not comparable")
    }


def p_values(row):
    """The p-values of all statistics that print as this one."""
    first, second = (float(row[name]) if row[name] else None for name in ("df1", "df2"))
    for value in region(row["value"], "half-up"):
        size = max(value, 0.0)
        if row["test"] == "t":
            yield 2 * float(stdtr(first or second, -size))
        elif row["test"] == "F":
            yield float(fdtrc(first, second, size))
        elif row["test"] == "z":
            yield 2 * float(ndtr(-size))
        else:
            yield float(chdtrc(first, size))


def fits(row):
    """Whether a reported p-value fits its statistic: some statistic that prints so has a p-value that prints so."""
    high, low = p_values(row)
    printed = row["relation"] + row["p"]
    if any(judge_one(printed, p, exact=True).verdict == "agrees" for p in (low, high)):
        return True
    ends = region(row["p"], "half-up")
    return not row["relation"] and low <= ends[1] and ends[0] <= high


def test_reported_tests_fit_as_they_were_coded_by_hand():
    """Values of 199 tests in eight papers, coded for statcheck (github.com/MicheleNuijten/statcheck, 2025).

    Coders marked errors in one paper: all four are found, and none of those that they found right. In all, 187 fit.
    """
    with Path(__file__).with_name("statcheck.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    found = [fits(row) for row in rows]
    assert [fit for fit, row in zip(found, rows, strict=True) if row["error"] == "1"] == [False] * 4
    coded = [fit for fit, row in zip(found, rows, strict=True) if row["error"] == "0"]
    assert all(coded) and len(coded) >= 15
    assert (len(found), sum(found)) == (199, 187)
