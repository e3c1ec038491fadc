"""Figure 2: how the estimates of the evidence spread."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.filippone2014.config import Configuration
from studies.filippone2014.problems import INPUTS, data_path

#: CPU seconds of a value of log tau, by the case.
SECONDS = 4.5e-3


def plan(config: Configuration) -> list[Line]:
    """Return a row a number of cases and data set: one random stream goes over all values of log tau."""
    given = config.filippone2014.spread
    return planned(
        {
            "row": f"n{n}/set{number}",
            "seconds": SECONDS * n * given.values,
            "set": number,
            "n": n,
            "d": INPUTS,
            **given.model_dump(exclude={"n", "sets"}),
            "seed": data_path(config.seed, "figure2", n, INPUTS, number),
        }
        for n in given.n
        for number in range(given.sets)
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Repeat the estimates: a line a method, number of samples and value of log tau, as of `estimates.spread`."""
    from studies.filippone2014.estimates import spread

    given = {key: row[key] for key in ("n", "d", "samples", "repetitions", "values")}
    key = {"set": row["set"], "n": row["n"]}
    lines = spread(row["seed"], **given)
    return Result([{**key, **line, "seed": row["seed"]} for line in lines])
