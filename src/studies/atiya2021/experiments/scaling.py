"""How each method scales: error of log L, what it says of itself, and CPU seconds, by patterns, roughness and inputs.

The truth is not known. Two long runs of methods that share little stand for it: of the sampler that expectation
propagation twists, and of minimax tilting. They are rows like the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from studies.atiya2021.methods import DETERMINISTIC, MODULES, seconds
from studies.atiya2021.settings import Configuration, Scaling
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: Rows that stand for the truth, by the method that makes them.
REFERENCES = {name: f"reference-{name}" for name in ("twisted-ep", "minimax-tilting")}


def plan(config: Configuration) -> list[Line]:
    """Return a row a kernel, number of patterns, data set and method.

    Kernels with as many inputs share their data sets. A job runs a method at one number of patterns, with all kernels.
    """
    return planned(_lines(config.atiya2021.scaling, config.seed))


def _lines(given: Scaling, root: int) -> Iterator[Line]:
    for size in given.sizes:
        for name, method, options in _methods(given, size.patterns):
            each = 0.7 * seconds(method, options, size.patterns)
            for dataset in range(size.data_sets):
                for kernel, law in given.kernels.items():
                    where = [kernel, f"N{size.patterns}", f"dataset{dataset}"]
                    line: Line = {
                        "row": "/".join([*where, name]),
                        "kernel": kernel,
                        "N": size.patterns,
                        "dataset": dataset,
                        "method": name,
                        "seconds": each,
                        "modules": [MODULES[method]],
                        **law.model_dump(),
                        "inference": method,
                        "options": options,
                        "data": seed(root, "scaling", f"inputs{law.inputs}", *where[1:]),
                    }
                    if method not in DETERMINISTIC:
                        line["seed"] = seed(root, "scaling", *where, name)
                    yield line


def _methods(given: Scaling, patterns: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, method and options of all rows at a number of patterns."""
    for name, row in given.methods.items():
        if row.smallest <= patterns <= row.largest:
            yield name, row.method, row.options
    for method, points in given.references.items():
        yield REFERENCES[method], method, points.model_dump()


def run(row: Row, inputs: Inputs) -> Result:
    """Run a method once: its status and, unless it failed, ``log_evidence``, its standard error, and diagnostics."""
    from studies.atiya2021.methods import METHODS
    from studies.atiya2021.scaling import columns, patterns, run_once

    keys = ("kernel", "N", "dataset", "method", "inputs", "alpha", "beta", "inference")
    method = METHODS[row["inference"]](**row["options"])
    data = patterns(row["inputs"], row["N"], row["data"])
    made = run_once(data, row["alpha"], row["beta"], method, row.get("seed"))
    line = {key: row[key] for key in keys} | {"data": row["data"]}
    line |= {"seed": row["seed"]} if "seed" in row else {}
    timing: list[Line] = [{"cpu_seconds": made.seconds}]
    return Result([line | row["options"] | columns(made)], timing=timing)
