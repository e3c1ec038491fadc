"""The rule of one law: its rate of false alarms, and what it finds. Seeds are fixed; rates are given at each test."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from recheck.judge.law import RATE, Pair, of_errors, of_replicates, others, score

GROUPS, ROWS = 6, 10


def drawn(rng, *, degrees=7, bias=0.0, alternating=False, scale=1.0):
    """Rows of six methods, each with three correlated numbers, their errors estimated; of method 0 found with a bias.

    A bias is in standard errors of one estimate.
    """
    pairs = []
    for group in range(GROUPS):
        for row in range(ROWS):
            error = math.exp(rng.normal())
            shared = rng.standard_normal(2)
            for _ in range(3):
                own = 0.8 * shared + 0.6 * rng.standard_normal(2)
                kept, found = error * own
                if group == 0:
                    sign = (-1) ** row if alternating else 1
                    found = scale * found + sign * bias * error
                stated = error * np.sqrt(rng.chisquare(degrees, 2) / degrees)
                pairs.append(
                    of_errors(f"m{group}/{row}", f"m{group}", (kept, stated[0]), (found, stated[1]))
                )
    return pairs


@pytest.mark.parametrize("degrees", [7, 100])
def test_other_random_numbers_alone_are_no_other_law(degrees):
    """Of 400 draws: more than binomial(400, RATE) allows at 1e-4 would be a rate that is not as stated."""
    rng = np.random.default_rng(degrees)
    alarms = sum(bool(others(drawn(rng, degrees=degrees))) for _ in range(400))
    assert alarms <= binom.ppf(1 - 1e-4, 400, RATE)


def test_a_bias_of_three_standard_errors_is_found_over_the_rows_drawn():
    """In each of 100 draws of ten rows, and no other method is blamed more often than the rate."""
    rng = np.random.default_rng(1)
    blamed = [{row.split("/")[0] for row in others(drawn(rng, bias=3.0))} for _ in range(100)]
    assert all("m0" in found for found in blamed)
    assert sum(len(found) > 1 for found in blamed) <= binom.ppf(1 - 1e-4, 100, RATE)
    found = others(drawn(rng, bias=3.0))
    assert len([row for row in found if row.startswith("m0/")]) == ROWS
    assert "errors" in found["m0/0"] and "m0" in found["m0/0"]


@pytest.mark.parametrize(
    "fault", [{"bias": 5.0, "alternating": True}, {"scale": 10.0}, {"bias": -3.0}], ids=str
)
def test_rows_that_are_off_either_way_are_found(fault):
    rng = np.random.default_rng(2)
    found = [{row.split("/")[0] for row in others(drawn(rng, **fault))} for _ in range(50)]
    assert sum("m0" in one for one in found) >= 49


def test_one_row_far_off_is_named_alone():
    pairs = [Pair(f"r{k}", "evidence", 1.0, 1.0 + 0.1 * (-1) ** k, 0.2) for k in range(20)]
    assert others(pairs) == {}
    wrong = Pair("r7", "evidence", 1.0, 9.0, 0.2, 30.0)
    (only,) = others([*pairs[:7], wrong, *pairs[8:]]).keys() & {"r7"}
    found = others([wrong, Pair("s", "loss", 0.0, 0.1, 0.2)])
    assert only == "r7" and found == {"r7": "evidence: 1 kept, 9 here, 40 errors apart"}
    assert others([]) == {}


def test_scores_are_those_of_students_t():
    assert score(Pair("r", "g", 1.0, 1.0, 0.5)) == 0.0
    assert score(Pair("r", "g", 0.0, 1.959963984540054, 1.0, 1e9)) == pytest.approx(1.95996, 1e-5)
    assert score(Pair("r", "g", 2.36462, 0.0, 1.0, 7.0)) == pytest.approx(-1.95996, 1e-5)
    for broken in (math.nan, math.inf):
        assert score(Pair("r", "g", 1.0, broken, 1.0)) == math.inf
    assert score(Pair("r", "g", -math.inf, -math.inf, 1.0)) == 0.0


def test_errors_and_replicates_make_pairs_where_they_can():
    assert of_errors("r", "g", (1.0, 3.0), (2.0, 4.0)) == Pair("r", "g", 1.0, 2.0, 5.0)
    for kept, found in ((0.0, 0.0), (math.inf, 1.0), (1.0, math.nan)):
        assert of_errors("r", "g", (1.0, kept), (2.0, found)) is None
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    pair = of_replicates("r", "g", 1.0, 2.0, values)
    assert pair.error == pytest.approx(math.sqrt(5.0)) and pair.degrees == 4.0
    for few in (values[:3], [2.0] * 9, [*values, math.nan]):
        assert of_replicates("r", "g", 1.0, 2.0, few) is None
