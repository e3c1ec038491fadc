"""The abstract's claim: predictions that integrate over hyperparameters, against others."""

from __future__ import annotations

from collections.abc import Iterator

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.filippone2014.config import Configuration

METHODS = ("fitted", "mode", "integrated", "svm")


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set, number of training cases, training set and method."""
    chain = {"integrated": {"chain": config.filippone2014.prediction.chain.model_dump()}}
    return planned(
        {
            **line,
            "row": f"{line['row']}/{method}",
            "method": method,
            "seconds": line["n"] * (0.2 if method == "integrated" else 0.02),
            **chain.get(method, {}),
        }
        for line in splits(config)
        for method in METHODS
    )


def splits(config: Configuration) -> Iterator[Line]:
    """Yield a line a training set, with the path of the stream that draws it; those of methods are below it."""
    given = config.filippone2014.prediction
    for data in given.data:
        for n in given.sizes:
            for split in range(given.splits):
                path = seed(
                    config.seed, "filippone2014", "prediction", data, f"n{n}", f"split{split}"
                )
                row = f"{data}/n{n}/split{split}"
                yield {"row": row, "data": data, "n": n, "split": split, "seed": path}


def run(row: Row, inputs: Inputs) -> Result:
    """Predict the test cases: scores; ``at_bound`` of fitted hyperparameters, and ``ess`` of chains."""
    from studies.common.seeds import generator
    from studies.filippone2014 import prediction

    task = prediction.task_of(inputs["data"], row["n"], row["seed"])
    method, rng = row["method"], generator(seed(row["seed"], row["method"]))
    p, facts = prediction.METHODS[method](task, row.get("chain", {}), rng)
    line = {key: row[key] for key in ("data", "n", "split", "method")}
    line |= prediction.scores(p, task.y_star)
    more = {"at_bound": facts.get("at_bound"), "seed": row["seed"], "ess": facts.get("ess")}
    return Result([line | more])
