"""A number is looked up by its id, with its study in front or without, and the rows behind it are chosen."""

import pandas as pd
import pytest
from small import ROOT

from studies.common.number import Asked, asked
from studies.common.plan import studies

STUDIES = ["atiya2021", *(one for one in studies() if one != "atiya2021")]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    ("key", "study", "experiment"),
    [
        ("table1/N50/M10000", "atiya2021", "experiment1"),
        ("neal1997:exact/1997-gaussian/rho", "neal1997", "exact"),
        ("neal1997/exact/1997-gaussian/rho", "neal1997", "exact"),
        # points that are only drawn, with the study in front or without
        ("figure5/1997-gaussian/-1.65", "neal1997", "outliers"),
        (
            "rasmussen2006/picture/figure3.5/probability/l0.3/3204/x0.833333/y0.366667",
            "rasmussen2006",
            "pictures",
        ),
        ("tables/table1", "atiya2021", "experiment1"),
        ("count:agrees/table1", "atiya2021", None),
    ],
)
def test_numbers_of_all_kinds_are_found(key, study, experiment):
    found = asked(key, STUDIES, 60.0)
    assert found.study == study and found.facts
    assert experiment is None or found.rows[experiment]
    assert all("nan" not in value for _, value in found.facts)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "An id that ends in / lists those below:"),
        ("table1/", "table1/N50/M10000"),
        ("nothing/", "nothing/: no id begins so"),
        ("table1/N50/M1000", "close are ['table1/N50/M10000'"),
        ("tables/table99", "tables/table99: there are the tables ['table1'"),
    ],
)
def test_what_is_no_number_is_answered_by_those_that_there_are(key, said):
    with pytest.raises(KeyError) as error:
        asked(key, STUDIES, 60.0)
    assert said in error.value.args[0]


def test_of_a_figure_it_is_said_what_it_is_drawn_from():
    found = asked("figures/accuracy", STUDIES, 60.0)
    text = found.report(pd.DataFrame())
    assert "drawn from:" in text and "experiment4" in text and "figures/" in text
    assert "rows:" not in text


def test_a_reading_that_is_none_is_refused():
    with pytest.raises(ValueError, match="needed is <choice>=<level>, given was 'once'"):
        asked("table4/P7/new/mae-med@once", STUDIES, 60.0)


def test_the_rows_of_the_number_itself_are_run_first_then_the_cheapest():
    rows = {"e": {"own": (2, 30.0), "cheap": (3, 1.0), "dear": (4, 50.0)}, "f": {"gone": (2, 0.1)}}
    found = Asked("s", [], rows, {("e", "own")}, seconds=40.0)
    plans = {"e": ["own", "cheap", "dear"], "f": []}
    assert found.again(plans) == {"e": ["own", "cheap"]}
    assert Asked("s", [], rows, (), seconds=0.1).again(plans) == {"e": ["cheap"]}, "at least one"
