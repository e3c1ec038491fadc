import numpy as np
import pandas as pd
import pytest
from made_study import measures, rows

from recheck.judge import measures as m


def test_an_estimate_is_the_mean_over_units_of_the_means_over_runs():
    values = np.array([[1.0, 3.0], [4.0, 6.0], [7.0, 9.0]])
    frame = m.estimate(measures(rows("t/a", values)))
    (row,) = frame.to_dict("records")
    assert row["value"] == pytest.approx(5.0)
    assert row["se"] == pytest.approx(np.std([2.0, 5.0, 8.0], ddof=1) / np.sqrt(3))
    assert (row["df"], row["units"], row["runs"]) == (2, 3, 6)


def test_units_count_alike_whatever_their_runs():
    frame = measures(
        rows("t/a", [[1.0, 1.0, 1.0]]),
        [{"id": "t/a", "unit": "x", "run": 0, "value": 3.0, "scale": "log"}],
    )
    assert m.estimate(frame)["value"].iloc[0] == pytest.approx(2.0)


def test_one_unit_has_the_error_of_its_runs():
    (row,) = m.estimate(measures(rows("t/a", [[1.0, 2.0, 3.0, 4.0]]))).to_dict("records")
    assert row["se"] == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2) and row["df"] == 3


def test_own_standard_errors_pass_through():
    given = [
        {"id": "slope", "value": -0.5, "se": 0.02, "df": 7, "scale": "linear", "status": "at most"}
    ]
    (row,) = m.estimate(measures(given)).to_dict("records")
    assert (row["value"], row["se"], row["df"], row["status"]) == (-0.5, 0.02, 7, "at most")


@pytest.mark.parametrize(
    ("region", "value"),
    [(None, 3.0), ((-np.inf, 1.0), 3.0), ((2.0, np.inf), -4.0), ((-9.0, 5.0), 3.0),
     ((-5.0, 9.0), -4.0), ((np.nan, np.nan), 3.0)],
)  # fmt: skip
def test_of_several_own_estimates_the_one_furthest_outside_is_shown(region, value):
    given = [
        {"id": "claim/c", "unit": str(n), "value": v, "se": abs(v) / 10, "df": n, "scale": "linear"}
        for n, v in enumerate([0.5, 3.0, -4.0])
    ]
    (row,) = m.estimate(measures(given), region and {"claim/c": region}).to_dict("records")
    assert (row["value"], row["se"]) == (value, pytest.approx(abs(value) / 10))
    assert (row["df"], row["units"]) == (1 if value == 3.0 else 2, 3)


def test_rows_that_do_not_count_are_left_out_and_named():
    lost = [{"id": "t/b", "scale": "log", "status": "data not available"}]
    bad = [{"id": "t/a", "unit": "y", "run": 0, "scale": "log", "status": "not converged"}]
    frame = m.estimate(measures(rows("t/a", [[2.0], [4.0]]), bad, lost)).set_index("id")
    assert frame.loc["t/a", "value"] == 3.0 and frame.loc["t/a", "units"] == 2
    assert frame.loc["t/b", "status"] == "data not available" and np.isnan(
        frame.loc["t/b", "value"]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": np.nan}, "no finite value"),
        ({"scale": "ratio"}, "scale other than"),
        ({"value": -1.0}, "negative"),
        ({"se": -1.0}, "negative standard error"),
        ({"run": 1}, "comes twice"),
        ({"se": 0.1}, "with and without"),
    ],
)
def test_measures_that_cannot_be_judged_are_refused_by_id(change, message):
    wrong = rows("t/a", [[1.0, 2.0]])
    wrong[0] |= change
    with pytest.raises(ValueError, match=message) as error:
        measures(wrong)
    assert "t/a" in str(error.value)


def test_unknown_columns_are_refused():
    with pytest.raises(ValueError, match="vlaue"):
        m.as_measures([{"id": "a", "vlaue": 1.0}])


def test_sources_are_merged():
    assert (
        m.join_sources(["a.csv:3", "a.csv:2", "b.csv:7", "a.csv:9", ""]) == "a.csv:2-3,9; b.csv:7"
    )
    assert m.join_sources(["a.csv:2-4; b.csv", "a.csv:5"]) == "a.csv:2-5; b.csv"


def test_templates_have_fields():
    frame = pd.DataFrame({"id": ["t/N50/M10", "t/N50/x/M10", "u/N50/M10"]})
    found = m.with_fields(frame, "t/{N}/M{m}")
    assert found[["N", "m"]].to_numpy().tolist() == [["N50", "10"]]
    with pytest.raises(ValueError, match="template"):
        m.pattern("t/{N}/{N}")


def test_readings_are_text_in_alphabetical_order():
    assert m.reading_text({"b": "1", "a": "2"}) == "a=2;b=1"
    assert m.levels_of("a=2;b=1") == {"a": "2", "b": "1"} and m.levels_of("") == {}


def test_sources_of_many_lines_take_no_memory():
    assert (
        m.join_sources(["x.csv:1-100000000000", "x.csv:100000000001; y:3,2"])
        == "x.csv:1-100000000001; y:2-3"
    )


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("t/{0}", "needed are fields in braces"),
        (
            "t/{a}{b}{c}{d}{e}{f}{g}{h}",
            "at most three fields",
        ),  # an id of 190 letters would take years
        ("t/{a}-{b}-{c}-{d}", "at most three fields"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(template, message):
    with pytest.raises(ValueError, match=message):
        m.pattern(template)
    assert m.pattern("{s}/t{a}-{b}-{c}").fullmatch("s/t1-2-3")
