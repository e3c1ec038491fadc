"""Counts, grids, orders, bounds and deviations, against truths that the judge did not make."""

import math

import numpy as np
import pytest
from scipy import stats

from recheck.judge.one import judge_one
from recheck.judge.replay import Ranks
from recheck.judge.shares import counted, grid, printed_counts, shares


@pytest.mark.parametrize(
    ("ours", "theirs"), [((18, 20), (19, 20)), ((3, 40), (30, 60)), ((0, 5), (5, 5))]
)
def test_one_share_behind_two_counts_is_tested_as_fisher_does(ours, theirs):
    (k, n), (j, m) = ours, theirs
    found = shares(ours, j / m - 1e-9, j / m + 1e-9, m, "linear")
    assert found.theirs == theirs
    assert found.p == pytest.approx(stats.fisher_exact([[k, n - k], [j, m - j]]).pvalue, rel=1e-6)


def test_an_interval_of_a_difference_covers_it_and_agreement_is_no_weaker():
    """Of 300 pairs of counts with shares .9 and .8, 90 % of intervals contain .1; fewer than 82 % have p < 1e-5."""
    rng = np.random.default_rng(4)
    inside = agreed = 0
    for _ in range(300):
        k, j = rng.binomial(80, 0.9), rng.binomial(60, 0.8)
        found = shares((int(k), 80), j / 60 - 1e-9, j / 60 + 1e-9, 60, "linear")
        low, high = found.interval(0.9)
        inside += low <= 0.1 <= high
        agreed += found.p_agree(0.1) <= 0.05
    assert inside >= 0.82 * 300
    assert agreed <= 0.05 * 300 + 3.5 * math.sqrt(300 * 0.05 * 0.95)


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0.99, 0.99, 0.99], 2),
        ([0.9733, 0.9767], 4),
        ([97.33, 97.67], 2),
        ([0.5, 0.5], 1),
        ([12.5, 87.5], 1),
    ],
)
def test_the_grid_of_shares_is_the_coarsest_whose_shares_print_so(values, decimals):
    """Found by trying every number of items, with the rounding of Python."""
    whole = 1.0 if max(values) <= 1 else 100.0

    def has(items, value):
        near = round(value / whole * items)
        places = (k * whole / items for k in (near - 1, near, near + 1))
        return any(abs(one - value) <= 0.5 * 10**-decimals * 1.0000001 for one in places)

    items = next(n for n in range(1, 10_000) if all(has(n, value) for value in values))
    assert grid(np.array(values)) == pytest.approx(max(whole / items, 10**-decimals))


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.97, 0.9733333333333334], 1 / 300),
        ([12.3, 150.0], 0.1),
        ([3.0, 5.0, 104.0], 1.0),
        ([0.1234567890123, 0.2345678901234], 0.0),
        ([-0.5, 1e-7], 1e-7),
    ],
)
def test_grids_of_other_values_are_their_decimals(values, step):
    assert grid(np.array(values)) == pytest.approx(step)


def test_items_are_counted_and_runs_are_not():
    assert counted([np.array([1.0]), np.array([0.0]), np.array([1.0])]) == (2, 3)
    assert counted([np.array([1.0]), np.array([0.5])]) is None
    assert counted([np.array([1.0, 0.0])]) is None
    assert printed_counts(0.945, 0.955, 20) == [19, 19] or printed_counts(0.945, 0.955, 20) == [19]
    assert printed_counts(0.925, 0.935, 20) == [18, 19]  # no count prints as 0.93: the nearest ones


def test_orders_hold_for_any_distribution():
    """The published value is one of 20 that are drawn alike, with heavy tails: 2 of 20 places have p = .1."""
    rng, alarms = np.random.default_rng(2), 0
    for _ in range(1000):
        values = rng.pareto(0.5, 20)
        order = Ranks.of(values[1:], values[0], values[0], 1, logs=True)
        alarms += order.p <= 0.1
    assert alarms / 1000 == pytest.approx(0.1, abs=3.5 * math.sqrt(0.09 / 1000))


@pytest.mark.parametrize("seed", range(40))
def test_an_interval_contains_its_effect(seed):
    rng = np.random.default_rng(seed)
    n, scale = int(rng.integers(2, 9)), ["log", "linear"][seed % 2]
    values = np.round(np.exp(rng.normal(0, 0.5, n)), int(rng.integers(1, 5))) + 0.01
    bracket = [None, f"{rng.uniform(0.01, 0.3):.2f}"][seed % 3 == 0]
    design = (int(rng.integers(2, 9)), 1)
    found = judge_one(
        f"{rng.uniform(0.3, 3):.2f}",
        values,
        bracket=bracket,
        design=design,
        scale=scale,
        margin=1.5,
    )
    assert found.low <= found.effect <= found.high


@pytest.mark.parametrize("seed", range(5))
def test_a_difference_beside_a_printed_error_is_welchs(seed):
    """With many units on both sides Behrens and Fisher's problem has the answer of Welch's test."""
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(5, 1, 40), rng.normal(5.3, 2, 60)
    printed, error = f"{theirs.mean():.6f}", f"{theirs.std(ddof=1) / math.sqrt(60):.6f}"
    found = judge_one(printed, ours, bracket=error, design=(60, 1), scale="linear", margin=1.0)
    assert found.p == pytest.approx(stats.ttest_ind(ours, theirs, equal_var=False).pvalue, abs=0.01)
    assert found.effect == pytest.approx(ours.mean() - theirs.mean(), abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "factor"),
    [("standard deviation", math.sqrt(10)), ("interval 95%", stats.t.ppf(0.975, 9))],
)
def test_kinds_of_brackets_are_one_error(kind, factor):
    values = np.random.default_rng(1).normal(1, 0.1, 8)
    one = judge_one("1.00", values, bracket="0.02000", design=(10, 1))
    other = judge_one(
        "1.00", values, bracket=f"{0.02 * factor:.9f}", bracket_kind=kind, design=(10, 1)
    )
    assert other.p == pytest.approx(one.p, rel=1e-4)
