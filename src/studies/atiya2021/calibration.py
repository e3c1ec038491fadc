"""Counts that give the rows of Experiment 4 equal CPU seconds (paper, section 6.4).

The paper gave every method the CPU time that control variables took on hyperparameter setting 1. Here too, but the
seconds of one day become counts in the configuration, so that results do not depend on the speed of another day.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import yaml

from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import prior
from studies.atiya2021.methods import METHODS, SIZES
from studies.atiya2021.problems import Problem
from studies.atiya2021.runs import infer
from studies.atiya2021.settings import Row
from studies.common.seeds import generator, seed
from studies.common.timing import import_late

#: The row whose time on hyperparameter setting 1 is everyone's budget.
BUDGET = "control-variables"

#: Runs whose shortest time counts, while they are short.
REPEATS = 3
#: CPU seconds that are long: all fixed costs are small beside them.
LONG = 5.0
#: Sobol' points come in powers of two.
POWERS_OF_TWO = ("points",)


def sizes(method: str, size: float) -> dict[str, int]:
    """Return a method's counts at a size, rounded to what one writes in a configuration.

    Raises
    ------
    KeyError
        If the method has no counts that grow.
    """
    shares, least = SIZES[method]
    size = max(size, least)
    return {
        option: 2 ** round(np.log2(size * share))
        if option in POWERS_OF_TWO
        else _two_digits(size * share)
        for option, share in shares.items()
    }


def _two_digits(count: float) -> int:
    unit = 10 ** max(int(np.log10(count)) - 1, 0)
    return max(round(count / unit) * unit, 2)


def calibrate(
    problem: Problem,
    rows: Mapping[str, Mapping[str, Any]],
    *,
    root: int,
    alpha: float,
    beta: float,
    budget: float | None = None,
) -> tuple[float, dict[str, dict[str, int]]]:
    """Return the budget and every row's counts for it.

    Parameters
    ----------
    problem : Problem
    rows : mapping
        By name: ``method``, ``options``.
    root : int
        Root of the random streams.
    alpha, beta : float
        Hyperparameter setting 1.
    budget : float, optional
        CPU seconds; by default what the row `BUDGET` takes.

    Returns
    -------
    budget : float
        CPU seconds.
    counts : dict
        By row: option and count. Rows whose cost is fixed are left out.
    """
    gp = prior(rbf(alpha, beta), problem.X_train, problem.X_test)

    def seconds(name: str, options: Mapping[str, Any]) -> float:
        method = METHODS[rows[name]["method"]](**(dict(rows[name]["options"]) | dict(options)))
        taken: list[float] = []
        while len(taken) < REPEATS and sum(taken) < LONG:
            rng = generator(seed(root, "calibration", name))
            start = time.process_time()
            infer(method, gp, problem.y_train, rng=rng)
            taken.append(time.process_time() - start)
        return min(taken)  # whatever else the machine does can only add

    import_late()
    if budget is None:
        budget = seconds(BUDGET, {})
    counts = {
        name: _counts(row["method"], budget, partial(seconds, name))
        for name, row in rows.items()
        # the configuration fixes the counts of the other rows
        if row["method"] in SIZES and not set(SIZES[row["method"]][0]) & set(row["options"])
    }
    return budget, counts


def _counts(
    method: str, budget: float, seconds: Callable[[Mapping[str, Any]], float]
) -> dict[str, int]:
    """Return the counts of a method for a budget; `seconds` times it with given counts.

    Small runs are dearer or cheaper a sample than large ones (fixed costs, caches): the line that is followed goes
    through two times near the budget, or through long ones.
    """
    first = next(iter(SIZES[method][0]))
    counts = sizes(method, SIZES[method][1])
    size, taken = counts[first], seconds(counts)
    while taken < budget:
        before, size = (size, taken), 4 * size
        taken = seconds(sizes(method, size))
        if taken > before[1]:
            slope = (taken - before[1]) / (size - before[0])
            counts = sizes(method, size + (budget - taken) / slope)
            if taken >= min(budget / 2.0, LONG):
                break
    return counts


def as_lists(
    found: Sequence[Mapping[str, Mapping[str, int]]],
) -> dict[str, dict[str, list[int]]]:
    """Put the nine problems' counts into lists, as the configuration wants them."""
    return {
        name: {option: [counts[name][option] for counts in found] for option in found[0][name]}
        for name in found[0]
    }


def calibrate_all(
    problems: Mapping[int, Problem | None],
    methods: Mapping[str, Row],
    *,
    root: int,
    alpha: float,
    beta: float,
) -> str:
    """Find the counts of every row on all nine problems, as text for the configuration.

    Parameters
    ----------
    problems : mapping
        First data sets by number, 1 to 9.
    methods : mapping
        ``experiment4.methods`` of the configuration. Counts that it has as a list of nine are those that an earlier
        calibration found; they are ignored and found anew. A single number is somebody's choice and stays.
    root : int
        Root of the random streams.
    alpha, beta : float
        Hyperparameter setting 1.

    Returns
    -------
    str
        YAML, with the seconds in a comment.

    Raises
    ------
    ValueError
        If a problem has no data.
    """
    found: list[dict[str, dict[str, int]]] = []
    budgets: list[float] = []
    for number, problem in sorted(problems.items()):
        if problem is None:
            raise ValueError(
                f"problem {number} must have data: place the file that data_check.csv names"
            )
        # control variables do not finish on USPS: its budget is that of Problem 6
        fixed = budgets[5] if number == 9 else None
        rows = {name: uncalibrated(row, number) for name, row in methods.items()}
        budget, counts = calibrate(problem, rows, root=root, alpha=alpha, beta=beta, budget=fixed)
        found.append(counts)
        budgets.append(budget)
    lists = yaml.safe_dump(
        {"atiya2021": {"experiment4": {"methods": as_lists(found)}}},
        default_flow_style=None,
        width=110,
    )
    seconds = ", ".join(f"{budget:.2g}" for budget in budgets)
    return (
        "# Made by `snakemake calibrate`: counts that give every row the CPU seconds of control variables on\n"
        f"# hyperparameter setting 1. On the machine that made them, the nine problems: {seconds}.\n{lists}"
    )


def uncalibrated(row: Row, number: int) -> dict[str, Any]:
    """Return method and options of a row on a problem, without the counts that a calibration found."""
    grow = SIZES.get(row.method, ({}, 0))[0]
    counted = {key for key, value in row.options.items() if key in grow and isinstance(value, list)}
    options = {k: v for k, v in row.options_on(number).items() if k not in counted}
    return {"method": row.method, "options": options}
