"""The proposals that all chains of a problem share."""

from __future__ import annotations

import pandas as pd

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.filippone2014.config import Configuration, Pilot
from studies.filippone2014.problems import data_path, real_path


def plan(config: Configuration) -> pd.DataFrame:
    """Return a row a data set and kernel: with EP's estimates for simulated data, with Laplace's for real ones."""
    study, lines = config.filippone2014, []
    for one in study.chains.problems:
        for number in range(one.sets):
            data = f"n{one.n}_d{one.d}_set{number}"
            path = data_path(config.seed, "table1", one.n, one.d, number)
            lines += [_line(kernel, data, "ep", study.chains.pilot, path) for kernel in one.kernels]
    for given in study.real:
        for name in given.data:
            path = real_path(config.seed, name, given.cases)
            line = _line("isotropic", name, "laplace", given.pilot, path)
            lines.append({**line, "cases": given.cases})
    return planned(lines)


def _line(kernel: str, data: str, method: str, given: Pilot, path: str) -> Line:
    key = {"row": f"{kernel}/{data}", "kernel": kernel, "data": data, "method": method}
    return {**key, **given.model_dump(), "seed": path}


def run(row: Row, inputs: Inputs) -> Result:
    """Find a proposal: a standard deviation a line, and its root (1 + k, 1 + k) under the name of the row."""
    import numpy as np

    from studies.common.seeds import generator, seed
    from studies.filippone2014.simulated import problem
    from studies.filippone2014.tuned_chains import pilot

    model = problem(inputs["data"], row["kernel"], row.get("cases"))
    given = {key: row[key] for key in ("burn_in", "iterations", "method")}
    root = pilot(model, rng=generator(seed(row["seed"], row["kernel"], "pilot")), **given)
    deviations = np.sqrt((root**2).sum(axis=1)).tolist()
    lines = [
        {"hyperparameter": k, "deviation": value, "seed": row["seed"]}
        for k, value in enumerate(deviations)
    ]
    return Result(lines, {row["row"]: root})
