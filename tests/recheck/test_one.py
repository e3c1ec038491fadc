"""One printed number, and the rules of rounding, against decimal arithmetic and against whole studies."""

import math
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np
import pandas as pd
import pytest
from made_study import measures, published, rows

from recheck.judge.compare import Comparer
from recheck.judge.measures import estimate
from recheck.judge.one import Design, judge_one
from recheck.judge.printed import region
from recheck.judge.verdicts import judge

DECIMALS = {"half-up": ROUND_HALF_UP, "half-even": ROUND_HALF_EVEN, "truncated": ROUND_DOWN}


@pytest.mark.parametrize("printed", ["0.12", "0.13", "-0.12", "-99", "0.0", "1.4e-3", "25", "0.10"])
@pytest.mark.parametrize("rule", [*DECIMALS, "unknown"])
def test_the_region_ends_where_another_number_is_printed(printed, rule):
    """Decimal arithmetic rounds the ends and their neighbours; both are exact."""
    low, high = region(printed, rule)
    number = Decimal(printed)
    rules = [DECIMALS[rule]] if rule in DECIMALS else list(DECIMALS.values())

    def prints(value):
        return any(Decimal(value).quantize(number, rounding=one) == number for one in rules)

    assert prints(low) and prints(high) and prints((low + high) / 2)
    assert not prints(math.nextafter(low, -math.inf)) and not prints(math.nextafter(high, math.inf))


@pytest.mark.parametrize(
    ("printed", "ours", "rounding", "verdict"),
    [
        # GRIM: no mean of 28 whole numbers is 5.19; 145/28 = 5.1786 and 146/28 = 5.2143
        ("5.18", 145 / 28, "half-up", "agrees"),
        ("5.19", 145 / 28, "unknown", "differs"),
        ("5.19", 146 / 28, "unknown", "differs"),
        ("5.17", 145 / 28, "truncated", "agrees"),
        ("5.17", 145 / 28, "unknown", "agrees"),
        ("5.17", 145 / 28, "half-up", "differs"),
        # a tie
        ("0.13", 0.125, "half-up", "agrees"),
        ("0.13", 0.125, "half-even", "differs"),
        ("0.12", 0.125, "half-even", "agrees"),
    ],
)
def test_an_exact_number_agrees_if_it_prints_so(printed, ours, rounding, verdict):
    assert judge_one(printed, ours, rounding=rounding, exact=True).verdict == verdict


def test_it_is_the_verdict_of_a_study_with_one_cell(tmp_path):
    values = np.exp(0.2 * np.random.default_rng(3).standard_normal((8, 3)))
    for cell in (
        {"printed": "1.2", "units": 4, "runs": 2},
        {"printed": "1.2", "bracket": "0.1", "bracket_kind": "standard error", "units": 50},
    ):
        study = published(tmp_path, [{"id": "printed", **cell}])
        frame = measures(rows("printed", values))
        row = judge(frame, estimate(frame), study, 1).frame.iloc[0]
        design = Design(cell["units"], cell.get("runs", 1))
        found = judge_one("1.2", values, bracket=cell.get("bracket"), design=design)
        # the half-up region lacks its upper end: nothing but the last bit of a float
        assert found.verdict == row["verdict"]
        assert [found.low, found.high, found.p] == pytest.approx(
            row[["low", "high", "p"]], rel=1e-3
        )
    assert "agrees within a factor of 2: printed 1.2" in str(
        judge_one("1.2", values, design=(4, 2))
    )


@pytest.mark.parametrize("rounding", ["truncated", "unknown"])
def test_false_alarms_of_numbers_that_were_truncated(tmp_path, rounding):
    """200 numbers of one digit that were truncated.

    At most 5 % of p-values may be below .05: 22 of 200 or more have a probability of 5e-4 then. Judged as if they
    were rounded, they raise more.
    """
    rng, cells, parts = np.random.default_rng(5), [], []
    for k in range(200):
        true = rng.uniform(3, 4)  # the last digit is uniform
        ours, theirs = (
            true + 0.05 * rng.standard_normal((6, 1)),
            true + 0.05 * rng.standard_normal(),
        )
        printed = str(Decimal(theirs).quantize(Decimal("1"), rounding=ROUND_DOWN))
        for name, rule in (("a", rounding), ("naive", "half-up")):
            cells.append({"id": f"{name}{k}/x", "printed": printed, "rounded": rule})
            parts.append(rows(f"{name}{k}/x", ours))
    comparer = Comparer(measures(*parts), published(tmp_path, cells), 1)
    p = {name: [comparer.cell(f"{name}{k}/x", {}).p for k in range(200)] for name in ("a", "naive")}
    alarms, naive = (int((np.array(p[name]) <= 0.05).sum()) for name in ("a", "naive"))
    assert alarms < 22 <= naive


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"printed": 0.12}, "printed: needed is text"),
        ({"printed": "a"}, "printed: needed is a number"),
        ({"ours": []}, "ours: needed is a number"),
        ({"ours": 0.12}, "ours: one number is either exact.*exact=True.*or one run"),
        ({"ours": {"a": 0.12}}, "ours: needed is a list of numbers, given was a dict"),
        ({"ours": [True, False]}, "ours: needed is a number"),
        (
            {"ours": np.ma.masked_array([0.1, 0.2], [0, 1])},
            "ours: needed are numbers without a mask",
        ),
        ({"ours": pd.DataFrame({"a": [0.1, 0.2]})}, "ours: needed is a list .* a DataFrame"),
        ({"ours": [1e308, 1.0]}, "ours: needed are numbers between"),
        ({"exact": True}, "exact: needed is one number"),
        ({"printed": "1e400"}, "printed: needed is a number of at most"),
        ({"ours": [[1.0], []]}, "ours: needed is a number"),
        ({"ours": ["x"]}, "ours: needed is a number"),
        ({"ours": [1.0, math.nan]}, "ours: needed are finite"),
        ({"ours": [-1.0, 2.0]}, "ours: a ratio needs positive"),
        ({"scale": "ratio"}, "scale: needed is"),
        ({"scale": "linear"}, "margin: needed is the difference"),
        ({"margin": 0.5}, "margin: needed is a number above 1"),
        ({"margin": "2"}, "margin: needed is a number above 1"),
        ({"design": (0, 1)}, "design: needed are"),
        ({"design": 5}, "design: needed are"),
        ({"rounding": "up"}, "rounding: needed is one of"),
        ({"bracket": "", "design": (2, 1)}, "bracket: needed is a standard error"),
        (
            {"bracket": "x", "design": (2, 1)},
            "bracket: needed is a number such as .* given was 'x'",
        ),
        (
            {"bracket": "-0.02", "design": (2, 1)},
            "bracket: needed is .* not negative, given was '-0.02'",
        ),
        ({"bracket": 0.06, "design": (2, 1)}, "bracket: needed is text"),
        ({"bracket": "0.06"}, "design: a bracket needs units of 2 or more.*say how many"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        judge_one(**{"printed": "0.12", "ours": [0.1, 0.12, 0.13]} | change)


def test_what_no_rule_can_promise_is_said_in_the_verdict():
    """A fifth of the runs fails, and none of three did: without assumptions nothing differs, else the note says so."""
    values, design = [0.91, 0.9, 0.905], Design(units=5)
    usual = judge_one("0.74", values, design=design)
    assert usual.verdict == "differs" and "63% of runs could fail unseen" in usual.note
    free = judge_one("0.74", values, design=design, distribution="any")
    assert free.verdict == "undecided" and free.detectable == math.inf


def test_values_that_coincide_are_no_proof():
    found = judge_one("0.96", [0.99, 0.99, 0.99], design=Design(units=5))
    assert found.verdict == "undecided" and "ours do not vary" in found.note
    assert judge_one("0.992", [0.99, 0.99, 0.99], design=Design(units=5)).p > 0.9


def test_a_factor_of_a_hundred_is_a_word_about_percent():
    assert "is one in percent?" in judge_one("96.7", [0.93, 0.95, 0.96]).note
