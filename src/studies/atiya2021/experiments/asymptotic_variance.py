"""The asymptotic variance of the sampler on the data sets of the study of scaling, foretold by expectation propagation.

No sample is drawn. The measures set it beside the errors of the sampler's runs on the same data sets.
"""

from __future__ import annotations

from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed


def plan(config: Configuration) -> list[Line]:
    """Return a row a kernel, number of patterns and data set of the study of scaling."""
    given, lines = config.atiya2021.scaling, []
    for size in given.sizes:
        for kernel in size.kernels or [*given.kernels]:
            law = given.kernels[kernel]
            for dataset in range(size.data_sets):
                where = [f"N{size.patterns}", f"dataset{dataset}"]
                shared = f"inputs{law.inputs}" if law.law == "normals" else kernel
                line: Line = {
                    "row": "/".join([kernel, *where]),
                    "kernel": kernel,
                    "N": size.patterns,
                    "dataset": dataset,
                    **law.model_dump(),
                    "data": seed(config.seed, "scaling", shared, *where),
                    "seconds": 1.5 * (size.patterns / 500) ** 2.5,
                }
                lines.append(line)
    return planned(lines)


def run(row: Row, inputs: Inputs) -> Result:
    """Foretell the variance: the fields of `Variance`; and ``information``, as `shared_information` has it."""
    from functools import partial

    from gpcmc.covariance.kernels import orthant_covariance, rbf
    from studies.atiya2021.asymptotic_variance import asymptotic_variance, shared_information
    from studies.atiya2021.scaling import from_process, two_normals

    kernel = {name: row[name] for name in ("alpha", "beta")}
    drawn = partial(from_process, **kernel) if row["law"] == "model" else two_normals
    X, y = drawn(row["inputs"], row["N"], row["data"])  # type: ignore[call-arg]
    R = orthant_covariance(rbf(**kernel)(X), y)
    found = asymptotic_variance(R)._asdict() | {"information": shared_information(R)}
    names = ("kernel", "N", "dataset", "law", "inputs", "alpha", "beta", "data")
    return Result([{name: row[name] for name in names} | found])
