"""How each method scales: error of log L, what it says of itself, and CPU seconds, by patterns, kernel and law of data.

At one number of patterns some methods have further counts, which give curves of error against seconds.

The truth is not known. Two long runs of methods that share little stand for it: of the sampler that expectation
propagation twists, and of minimax tilting. They are rows like the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from studies.atiya2021.methods import DETERMINISTIC, MODULES, seconds
from studies.atiya2021.settings import Configuration, Scaling, Size
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: Rows that stand for the truth, by the method that makes them.
REFERENCES = {name: f"reference-{name}" for name in ("twisted-ep", "minimax-tilting")}
#: Between a method and a count of its curve, in the name of a method.
CURVE = "-with-"


def plan(config: Configuration) -> list[Line]:
    """Return a row a kernel, number of patterns, data set, method and count.

    Kernels that are laid over two normal classes of as many inputs share their data sets.
    """
    return planned(_lines(config.atiya2021.scaling, config.seed))


def _lines(given: Scaling, root: int) -> Iterator[Line]:
    for size in given.sizes:
        for name, method, options, own in _methods(given, size):
            each = 0.7 * seconds(method, options, size.patterns)
            for dataset in range(size.data_sets):
                for kernel in own:
                    law = given.kernels[kernel]
                    where = [f"N{size.patterns}", f"dataset{dataset}"]
                    shared = f"inputs{law.inputs}" if law.law == "normals" else kernel
                    line: Line = {
                        "row": "/".join([kernel, *where, name]),
                        "kernel": kernel,
                        "N": size.patterns,
                        "dataset": dataset,
                        "method": name,
                        "seconds": each,
                        "modules": [MODULES[method]],
                        **law.model_dump(),
                        "inference": method,
                        "options": options,
                        "data": seed(root, "scaling", shared, *where),
                    }
                    if method not in DETERMINISTIC:
                        line["seed"] = seed(root, "scaling", kernel, *where, name)
                    yield line


def _methods(given: Scaling, size: Size) -> Iterator[tuple[str, str, dict[str, Any], list[str]]]:
    """Name, method, options and kernels of all rows at a number of patterns."""
    kernels, curve = size.kernels or [*given.kernels], given.curve
    for name, row in given.methods.items():
        if row.smallest <= size.patterns <= row.largest:
            own = [kernel for kernel in kernels if kernel in (row.kernels or kernels)]
            yield name, row.method, row.options, own
            counts = curve.counts.get(name, {}) if size.patterns == curve.patterns else {}
            for option, values in counts.items():
                for value in values:
                    there = [kernel for kernel in own if kernel in curve.kernels]
                    yield f"{name}{CURVE}{value}", row.method, row.options | {option: value}, there
    for method, points in given.references.items():
        yield REFERENCES[method], method, points.model_dump(), kernels


def run(row: Row, inputs: Inputs) -> Result:
    """Run a method once: its status and, unless it failed, ``log_evidence``, its standard error, and diagnostics."""
    from studies.atiya2021.methods import METHODS
    from studies.atiya2021.scaling import columns, from_process, run_once, two_normals

    keys = ("kernel", "N", "dataset", "method", "law", "inputs", "alpha", "beta", "inference")
    method = METHODS[row["inference"]](**row["options"])
    kernel = {name: row[name] for name in ("alpha", "beta")}
    drawn = partial(from_process, **kernel) if row["law"] == "model" else two_normals
    data = drawn(row["inputs"], row["N"], row["data"])  # type: ignore[call-arg]
    made = run_once(data, **kernel, method=method, seed=row.get("seed"))
    line = {key: row[key] for key in keys} | {"data": row["data"]}
    line |= {"seed": row["seed"]} if "seed" in row else {}
    timing: list[Line] = [{"cpu_seconds": made.seconds}]
    return Result([line | row["options"] | columns(made)], timing=timing)
