"""The abstract's claim: predictions that integrate over hyperparameters, against others."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.filippone2014.config import Configuration

METHODS = ("fitted", "mode", "integrated", "svm")


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set, number of training cases, training set and method."""
    given = config.filippone2014.prediction
    chain = {"integrated": {"chain": given.chain.model_dump()}}
    return planned(
        {
            "row": f"{data}/n{n}/split{split}/{method}",
            "data": data,
            "n": n,
            "split": split,
            "method": method,
            "seconds": 0.2 * n if method == "integrated" else 0.02 * n,
            **chain.get(method, {}),
            "seed": split_path(config.seed, data, n, split),
        }
        for data in given.data
        for n in given.sizes
        for split in range(given.splits)
        for method in METHODS
    )


def split_path(root: int, data: str, n: int, split: int) -> str:
    """Return the path of the stream that draws a training set; those of the methods are below it."""
    return seed(root, "filippone2014", "prediction", data, f"n{n}", f"split{split}")


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
