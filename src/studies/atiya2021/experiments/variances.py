"""Class probabilities at large variances of the kernel, where Gibbs sampling gives the truth.

Kernels that are fitted to classes that separate have variances without end, and twisted EP, the judge of `whofits`,
mostly fails its diagnostics there. On few patterns in two inputs a sampler that shares nothing with any of the methods
says how far each of them is off.
"""

from __future__ import annotations

from studies.atiya2021.methods import MODULES
from studies.atiya2021.settings import Configuration, Gibbs
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed


def plan(config: Configuration) -> list[Line]:
    """Return a row a law of labels, number of patterns, data set and variance: a data set has all variances."""
    given = config.atiya2021.variances
    methods = {name: [row.method, row.options] for name, row in given.methods.items()}
    modules = sorted({MODULES[row.method] for row in given.methods.values()})
    found = []
    for labels in given.labels:
        for size in given.sizes:
            for dataset in range(size.data_sets):
                own = [labels, f"N{size.patterns}", f"dataset{dataset}"]
                data = seed(config.seed, "variances", *own)
                for beta in given.betas:
                    name = f"beta{beta:g}"
                    found.append(
                        {
                            "row": "/".join([*own, name]),
                            "labels": labels,
                            "N": size.patterns,
                            "dataset": dataset,
                            "alpha": given.alpha,
                            "beta": float(beta),
                            "test": given.test,
                            "truth": given.truth.model_dump(),
                            "methods": methods,
                            "data": data,
                            "seed": seed(data, name),
                            "seconds": 0.5 + _seconds(given.truth, size.patterns),
                            "modules": modules,
                        }
                    )
    return planned(found)


def _seconds(given: Gibbs, patterns: int) -> float:
    """About how many CPU seconds the truth takes: two halves, and as many steps a sweep as there are patterns."""
    steps = 2 * (given.burn_in + given.sweeps) * patterns
    return steps * (3e-5 + given.chains * (2.5e-7 + 3e-9 * patterns))


def run(row: Row, inputs: Inputs) -> Result:
    """Judge every method once: the key of the row, and what `studies.atiya2021.variances.judged` found."""
    from studies.atiya2021.variances import judged

    kernel, paths = (row["alpha"], row["beta"]), (row["data"], row["seed"])
    found = judged(
        row["labels"], row["N"], kernel, row["test"], row["truth"], row["methods"], paths
    )
    key = {name: row[name] for name in ("labels", "N", "dataset", "alpha", "beta", "seed", "test")}
    return Result([key | line for line in found])
