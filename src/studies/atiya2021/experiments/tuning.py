"""Experiment 5, second part: searches for the hyperparameters that climb the evidence (section 6.5)."""

from __future__ import annotations

from studies.atiya2021.methods import MODULES
from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds of a replicate, about.
_SECONDS = 5.0


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem, method and replicate."""
    given = config.atiya2021.experiment5.tuning
    climb = {"evaluations": given.evaluations, "few": given.few}
    lines: list[Line] = []
    for problem in sorted(given.problems):
        for name, method in given.methods.items():
            for replicate in range(method.replicates or 1):
                line = {
                    "row": f"problem{problem}/{name}/replicate{replicate}",
                    "problem": problem,
                    "method": name,
                    "replicate": replicate,
                    "seconds": _SECONDS,
                    "stage": "search",
                    "climb": climb | method.model_dump(include={"method", "options", "final"}),
                    "judge": judge(config, problem),
                    "modules": [MODULES[method.method], MODULES[given.judge.method]],
                }
                if method.replicates:
                    path = ("tuning", name, f"replicate{replicate}")
                    line["seed"] = seed(config.seed, "experiment5", f"problem{problem}", *path)
                lines.append(line)
    return planned(lines)


def judge(config: Configuration, problem: int) -> Line:
    """Return what judges all choices on a problem: method, options and seed."""
    path = seed(config.seed, "experiment5", f"problem{problem}", "tuning", "judge")
    return config.atiya2021.experiment5.tuning.judge.model_dump() | {"path": path}


def run(row: Row, inputs: Inputs) -> Result:
    """Search once: ``problem``, ``method``, ``replicate``, and what `studies.atiya2021.tuning.tuned` returns."""
    from studies.atiya2021.methods import METHODS
    from studies.atiya2021.problems import Problem
    from studies.atiya2021.tuning import Climb, Judge, tuned

    given = row["judge"]
    judging = METHODS[given["method"]](**given["options"])
    problem = Problem(**inputs["problem"])
    found = tuned(Judge(problem, judging, given["path"]), Climb(**row["climb"]), row.get("seed"))
    names = ("problem", "method", "replicate", "seed")
    key = {name: row[name] for name in names if name in row}
    return found._replace(lines=[key | line for line in found.lines])
