"""Experiment 5, second part: the same searches with gradients, on the problems and with the judge of `tuning`."""

from __future__ import annotations

from studies.atiya2021.experiments.tuning import judge
from studies.atiya2021.methods import MODULES
from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem and method."""
    given = config.atiya2021.experiment5
    return planned(
        {
            "row": f"problem{problem}/{name}",
            "problem": problem,
            "method": name,
            "replicate": 0,
            "stage": "gradient",
            "climb": method.model_dump(),
            "judge": judge(config, problem),
            "modules": [MODULES[method.method], MODULES[given.tuning.judge.method]],
        }
        for problem in sorted(given.tuning.problems)
        for name, method in given.gradient.items()
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Search once: its key, and what `studies.atiya2021.tuning_gradient.tuned_by_gradient` returns."""
    from studies.atiya2021.methods import METHODS
    from studies.atiya2021.problems import Problem
    from studies.atiya2021.tuning import Judge
    from studies.atiya2021.tuning_gradient import tuned_by_gradient

    given = row["judge"]
    judging = METHODS[given["method"]](**given["options"])
    found = tuned_by_gradient(
        Judge(Problem(**inputs["problem"]), judging, given["path"]), **row["climb"]
    )
    (line,) = found.lines
    key = {name: row[name] for name in ("problem", "method", "replicate", "stage")}
    arrays = {f"{row['row']}/{name}": array for name, array in found.arrays.items()}
    return Result([key | line], arrays, found.timing)
