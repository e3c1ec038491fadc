"""Experiment 5, first part: Markov chains over the hyperparameters, whose posterior `experiment5` summarises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from studies.atiya2021.methods import MODULES
from studies.atiya2021.names import TRAINING
from studies.atiya2021.settings import Configuration, on_problem
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds of an iteration with 50 training patterns, about; they grow with the patterns.
_SECONDS = {"twisted-ep": 0.04, "ep": 0.012, "ancillary": 0.0005, "surrogate": 0.0008}


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem, method and pair of chains, which run side by side."""
    return planned(line for posterior in posteriors(config) for line in _pairs(posterior))


def posteriors(config: Configuration) -> Iterator[dict[str, Any]]:
    """Return what is set for each posterior: a problem and a method."""
    given = config.atiya2021.experiment5.posterior
    for problem in sorted(given.problems):
        for name, method in given.methods.items():
            yield {
                "problem": problem,
                "method": name,
                "seed": seed(config.seed, "experiment5", f"problem{problem}", name),
                "algorithm": method.method,
                "options": method.options_on(problem),
                "chains": given.settings.chains,
                "iterations": on_problem(method.iterations, problem),
                "burn_in": on_problem(method.burn_in, problem),
            }


def row_of(posterior: Row, pair: int) -> str:
    """Return the name of the row that runs a pair of chains of a posterior."""
    return f"problem{posterior['problem']}/{posterior['method']}/pair{pair}"


def _pairs(posterior: Row) -> Iterator[Line]:
    lengths = {name: posterior[name] for name in ("iterations", "burn_in")}
    of_iteration = _SECONDS.get(posterior["algorithm"], 0.002) * TRAINING[posterior["problem"]] / 50
    for k in range(posterior["chains"] // 2):
        yield {
            "row": row_of(posterior, k),
            "problem": posterior["problem"],
            "method": posterior["method"],
            "seconds": 2 * sum(lengths.values()) * of_iteration,
            "pair": k,
            "chain": {"method": posterior["algorithm"], **posterior["options"], **lengths},
            "modules": [MODULES["twisted-ep"]],
            "seed": seed(posterior["seed"], f"pair{k}"),
        }


def run(row: Row, inputs: Inputs) -> Result:
    """Run two chains: ``problem``, ``method``, ``pair``, ``seed`` and counts of work; their moves as arrays.

    The arrays have the name of the row in front, because each row has as many moves as its chains made.
    """
    from studies.atiya2021.experiment5 import moves, pair
    from studies.atiya2021.problems import Problem

    settings = {name: value for name, value in row["chain"].items() if name != "method"}
    problem = Problem(**inputs["problem"])
    draws, work, seconds = pair(problem, row["chain"]["method"], settings, row["seed"])
    line = {name: row[name] for name in ("problem", "method", "pair", "seed")} | work
    arrays = {f"{row['row']}/{name}": array for name, array in moves(draws).items()}
    return Result([line], arrays, [{"cpu_seconds": seconds}])
