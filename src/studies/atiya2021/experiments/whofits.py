"""Real data sets, fitted by EP and by Laplace's method: by how much the evidence is off, and whether it matters.

Does the error move the optimum, the choice between kernels, or held-out predictions? Twisted EP decides.
"""

from __future__ import annotations

from studies.atiya2021.methods import MODULES, seconds
from studies.atiya2021.settings import Configuration, WhoFits
from studies.atiya2021.whofits.names import DATA_SETS, DataSet
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: Kernels by name, and whether each input has a length scale.
KERNELS = {"isotropic": False, "ard": True}


def plan(config: Configuration) -> list[Line]:
    """Return a row a split, data set and kernel: a run that is cut short has all data sets."""
    given = config.atiya2021.whofits
    judge = given.judge.model_dump()
    return planned(
        {
            "row": f"{data}/split{split}/{kernel}",
            "data": data,
            "split": split,
            "kernel": kernel,
            "judge": judge,
            "climb": given.climb.model_dump(),
            "seed": seed(config.seed, "whofits", data, f"split{split}", kernel),
            "seconds": _seconds(given, DATA_SETS[data], relevance),
            "modules": sorted({MODULES[name] for name in ("ep", "laplace", "twisted-ep")}),
        }
        for split in range(given.splits)
        for data in given.data_sets
        for kernel, relevance in KERNELS.items()
    )


def _seconds(given: WhoFits, data: DataSet, relevance: bool) -> float:
    """About how many CPU seconds a row takes: the judge at three points or four, and the searches."""
    judged = 4 * seconds("twisted-ep", given.judge.model_dump(), data.training)
    evaluations = 200 + (15 * data.inputs if relevance else 0)
    return judged + evaluations * (0.02 + 1.5e-10 * data.training**3)


def run(row: Row, inputs: Inputs) -> Result:
    """Fit and judge once: the key of the row, and what `studies.atiya2021.whofits.runs.fit` found."""
    from gpcmc.rectangle.classification import Twisted
    from studies.atiya2021.problems import Problem
    from studies.atiya2021.whofits.runs import fit

    problem = Problem(**inputs["problem"])
    n, features = problem.X_train.shape
    line = {key: row[key] for key in ("data", "split", "kernel", "seed")}
    line |= {"N": n, "inputs": features, "test": len(problem.y_test)}
    climbs = row["climb"]["points"], row["climb"]["steps"]
    found = fit(problem, KERNELS[row["kernel"]], Twisted(**row["judge"]), climbs, row["seed"])
    arrays = {f"{row['row']}/{name}": array for name, array in found.arrays.items()}
    return Result([line | own for own in found.lines], arrays, found.timing)
