"""Twenty binary data sets with fitted hyperparameters: every method, what its error changes, and the rule for users.

As in `scaling`, two long runs of methods that share little stand for the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from studies.atiya2021.methods import DETERMINISTIC, MODULES, seconds
from studies.atiya2021.packaged.names import DATA_SETS
from studies.atiya2021.settings import Configuration, Packaged
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: Rows that stand for the truth, by the method that makes them.
REFERENCES = {name: f"reference-{name}" for name in ("twisted-ep", "minimax-tilting")}
#: Methods by which hyperparameters are fitted. All others are set at the optimum of the first.
FITTED = ("ep", "laplace")
#: Where methods choose: a grid about the optimum, and the optimum of Laplace's method.
POINTS = (*(f"grid{k}" for k in range(9)), "laplace")
#: Times the CPU seconds that a run is expected to take: there are test patterns, and 256 features.
_MARGIN = 2.0


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set and fit, method, point of the grid, or run of the rule."""
    return planned(_lines(config.atiya2021.packaged, config.seed))


def _lines(given: Packaged, root: int) -> Iterator[Line]:
    for data in given.data_sets:
        for line in _lines_of(given, data, root):
            where = {"row": f"{data}/{line.pop('name')}", "data": data}
            each = _MARGIN * seconds(line["inference"], line["options"], DATA_SETS[data].training)
            yield {**where, "seconds": each, **line}


def _lines_of(given: Packaged, data: str, root: int) -> Iterator[Line]:
    for name in FITTED:
        yield _line("fit", FITTED[0], f"fit-{name}", name, {}) | {"point": name}
    for name, method, options in _methods(given):
        line = _line("optimum", FITTED[0], name, method, options)
        yield _seeded(line, seed(root, "packaged", data, name))
    for name in given.grid:
        row = given.methods[name]
        for point in POINTS:
            line = _line("grid", point, name, row.method, row.options)
            line["name"] = f"{point}/{name}"
            # the same random numbers at all points, as in a search
            yield _seeded(line, seed(root, "packaged", data, "grid", name))
    for tolerance in given.rule.tolerances:
        for replicate in range(given.rule.replicates):
            name = f"rule-{tolerance:g}"
            line = _line("rule", FITTED[0], name, "twisted-ep", {})
            line["name"] = f"{name}/replicate{replicate}"
            line["modules"] = [MODULES[method] for method in ("ep", "importance", "twisted-ep")]
            line |= {"tolerance": tolerance, "replicate": replicate}
            yield line | {"seed": seed(root, "packaged", data, name, f"replicate{replicate}")}


def _methods(given: Packaged) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, method and options of all rows at the optimum."""
    for name, row in given.methods.items():
        yield name, row.method, row.options
    for method, points in given.references.items():
        yield REFERENCES[method], method, points.model_dump()


def _line(stage: str, point: str, name: str, method: str, options: dict[str, Any]) -> Line:
    """A line; whatever it is, its hyperparameters are fitted by EP or Laplace's method."""
    modules = sorted({MODULES[one] for one in (*FITTED, method)})
    line: Line = {"name": name, "stage": stage, "point": point, "method": name}
    return line | {"inference": method, "options": options, "modules": modules}


def _seeded(line: Line, path: str) -> Line:
    return line if line["inference"] in DETERMINISTIC else line | {"seed": path}


def run(row: Row, inputs: Inputs) -> Result:
    """Run a row once: its key and options, and what a function of `studies.atiya2021.packaged.runs` found."""
    from studies.atiya2021.methods import METHODS
    from studies.atiya2021.packaged import runs as packaged
    from studies.atiya2021.problems import Problem

    problem = Problem(**inputs["problem"])
    keys = ("data", "stage", "point", "method", "inference", "tolerance", "replicate", "seed")
    line = {key: row[key] for key in keys if key in row}
    n, features = problem.X_train.shape
    line |= {"N": n, "inputs": features, "test": len(problem.y_test)}
    if row["stage"] == "fit":
        found = packaged.fit(problem, row["point"])
    elif row["stage"] == "rule":
        found = packaged.follow(problem, row["point"], row["tolerance"], row["seed"])
    else:
        method = METHODS[row["inference"]](**row["options"])
        found = packaged.estimate(problem, row["point"], method, row.get("seed"))
    (own,) = found.lines
    arrays = {f"{row['data']}/{name}": array for name, array in found.arrays.items()}
    return Result([line | row["options"] | own], arrays, found.timing)
