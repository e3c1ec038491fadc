"""The advice for the marginal likelihood: twisted EP with a tolerance, beside EP and twisted EP at its defaults.

The problems are twenty real data sets, with hyperparameters fitted by EP, and data sets of `scaling` whose labels come
from the model. A longer run of twisted EP, of other random numbers, stands for the truth. On the real data sets there
are further methods, and, as in `scaling`, two long runs of methods that share little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from studies.atiya2021.advice.names import DATA_SETS
from studies.atiya2021.experiments.scaling import REFERENCES
from studies.atiya2021.methods import DETERMINISTIC, MODULES, seconds
from studies.atiya2021.settings import Advice, Configuration, Scaling
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: The kernel of data sets whose hyperparameters are fitted.
FITTED = "fitted"
#: The rows of the fit and of the longer run that the rule is judged by, and the method of the latter two.
FIT, TRUTH, RULE = "fit-ep", "truth", "twisted-ep"
#: Times the CPU seconds that a run is expected to take: there are test patterns, and 256 features.
_MARGIN = 2.0


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem and fit, method, or run of the rule."""
    study = config.atiya2021
    return planned(
        [*_real(study.advice, config.seed), *_simulated(study.advice, study.scaling, config.seed)]
    )


def _real(given: Advice, root: int) -> Iterator[Line]:
    for data in given.data_sets:
        about = {"data": data, "kernel": FITTED, "N": DATA_SETS[data].training, "dataset": 0}
        about["patterns"] = f"advice/{data}"
        # the word of an earlier name of the experiment keeps the random numbers
        yield from _lines(about, [(FIT, "ep", {})], [root, "packaged", data])
        methods = [(name, row.method, row.options) for name, row in given.methods.items()]
        for method, points in given.references.items():
            methods.append((REFERENCES[method], method, points.model_dump()))
        yield from _lines(about, methods, [root, "packaged", data])
        yield from _rule(about, given, [root, "advice", data])


def _simulated(given: Advice, scaling: Scaling, root: int) -> Iterator[Line]:
    for kernel in given.simulated.kernels:
        law = scaling.kernels[kernel]
        for size in given.simulated.sizes:
            for dataset in range(size.data_sets):
                where = [f"N{size.patterns}", f"dataset{dataset}"]
                about = {"data": "/".join([kernel, *where]), "kernel": kernel, "N": size.patterns}
                about |= {"dataset": dataset, "patterns": ""}
                about |= {name: getattr(law, name) for name in ("inputs", "alpha", "beta")}
                about["drawn"] = seed(root, "scaling", kernel, *where)
                methods = [
                    (name, given.methods[name].method, given.methods[name].options)
                    for name in given.simulated.methods
                ]
                yield from _lines(about, methods, [root, "advice", kernel, *where])
                yield from _rule(about, given, [root, "advice", kernel, *where])


def _rule(about: Line, given: Advice, path: list[Any]) -> Iterator[Line]:
    """The longer run, and the rule with each tolerance and seed."""
    yield from _lines(about, [(TRUTH, RULE, given.truth.model_dump())], path)
    for tolerance in given.rule.tolerances:
        options = {"points": given.rule.points, "tolerance": tolerance}
        for replicate in range(given.rule.replicates):
            own = [(f"rule-{tolerance:g}", RULE, options)]
            yield from _lines(about, own, path, replicate)


def _lines(
    about: Line,
    methods: list[tuple[str, str, dict[str, Any]]],
    path: list[Any],
    replicate: int | None = None,
) -> Iterator[Line]:
    """Rows of methods, given by name, method and options, on one problem."""
    for name, method, options in methods:
        several = [] if replicate is None else [f"replicate{replicate}"]
        sized = options | ({"points": 256} if "tolerance" in options else {})
        line: Line = {
            "row": "/".join([about["data"], name, *several]),
            "seconds": _MARGIN * seconds(method, sized, about["N"]),
            "modules": sorted({MODULES[one] for one in ("ep", method)}),
            **about,
            "method": name,
            "inference": method,
            "options": options,
        }
        if replicate is not None:
            line["replicate"] = replicate
        if method not in DETERMINISTIC:
            line["seed"] = seed(*path, name, *several)
        yield line


def run(row: Row, inputs: Inputs) -> Result:
    """Run a row once: its key and options, and what a function of `studies.atiya2021.advice.runs` found."""
    import numpy as np

    from studies.atiya2021.advice import runs
    from studies.atiya2021.methods import METHODS
    from studies.atiya2021.problems import Problem
    from studies.atiya2021.scaling import from_process

    if row["patterns"]:
        problem = Problem(**inputs["problem"])
    else:
        law = {name: row[name] for name in ("alpha", "beta")}
        none = np.empty((0, row["inputs"]))
        X, y = from_process(row["inputs"], row["N"], row["drawn"], **law)
        problem = Problem(X, y, none, np.empty(0), np.empty(0))
    keys = ("data", "kernel", "N", "dataset", "method", "inference", "replicate", "seed")
    line = {key: row[key] for key in keys if key in row}
    line |= {"inputs": problem.X_train.shape[1], "test": len(problem.y_test)}
    if row["method"] == FIT:
        found = runs.fit(problem)
    else:
        kernel = (row["alpha"], row["beta"]) if "alpha" in row else runs.hyperparameters(problem)
        method = METHODS[row["inference"]](**row["options"])
        found = runs.estimate(problem, kernel, method, row.get("seed"))
    (own,) = found.lines
    arrays = {f"{row['data']}/{name}": array for name, array in found.arrays.items()}
    return Result([line | row["options"] | own], arrays, found.timing)
