"""Counts that give the rows of Experiment 4 equal CPU seconds (paper, section 6.4).

The paper gave every method the CPU time that control variables took on hyperparameter set 1. Here too;
but the seconds of one day become counts in the configuration, so that results do not depend on the speed
of another day.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcmc.experiments.classification import Problem
from gpcmc.experiments.seeds import generator, seed
from gpcmc.experiments.timing import import_late
from gpcmc.gp import prior, rbf
from gpcmc.inference import METHODS, infer

#: The row whose time on hyperparameter set 1 is everyone's budget.
BUDGET = "control-variables"

#: Of each method, the options that grow with the budget: their shares, and the least value of the first.
SIZES: dict[str, tuple[dict[str, float], int]] = {
    "orthant": ({"samples": 1.0}, 2000),
    "best": ({"points": 1.0}, 16),
    "minimax-tilting": ({"points": 1.0}, 16),
    "importance": ({"samples": 1.0}, 256),
    "ess": ({"samples": 1.0, "burn_in": 1 / 160, "temperatures": 1 / 80}, 1600),
    "hmc": ({"samples": 1.0, "burn_in": 1 / 80, "temperatures": 1 / 40}, 800),
    "gpml": ({"samples": 1.0}, 8),
}
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
        Hyperparameter set 1.
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
    counts = {}
    for name, row in rows.items():
        method = row["method"]
        if method not in SIZES or set(SIZES[method][0]) & set(row["options"]):
            continue  # the configuration fixes its counts
        first = next(iter(SIZES[method][0]))
        counts[name] = sizes(method, SIZES[method][1])
        size, taken = counts[name][first], seconds(name, counts[name])
        # small runs are dearer or cheaper a sample than large ones (fixed costs, caches): the line that is
        # followed goes through two times near the budget, or through long ones
        while taken < budget:
            before, size = (size, taken), 4 * size
            taken = seconds(name, sizes(method, size))
            if taken > before[1]:
                slope = (taken - before[1]) / (size - before[0])
                counts[name] = sizes(method, size + (budget - taken) / slope)
                if taken >= min(budget / 2.0, LONG):
                    break
    return budget, counts


def as_lists(
    found: Sequence[Mapping[str, Mapping[str, int]]],
) -> dict[str, dict[str, list[int]]]:
    """Put the nine problems' counts into lists, as the configuration wants them."""
    return {
        name: {option: [counts[name][option] for counts in found] for option in found[0][name]}
        for name in found[0]
    }
