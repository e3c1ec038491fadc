"""Class probabilities at large variances of the kernel: how far each method is from a truth by Gibbs sampling.

A case is a data set and a variance. Means over data sets have the standard error of units that share nothing; the cases
of one data set at several variances do. ``all`` stands for both laws of labels, or for all numbers of patterns. Halves
of the truth that share no random number give its standard error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, join_sources
from studies.atiya2021.measures.common import Known, Row, combine, estimates, table
from studies.common.measuring import Rows

#: A variance from which on the kernel counts as large.
LARGE = 100.0
#: Of probabilities: a mean error below it is small.
SMALL = 0.001

_NUMBERS = ["error", "largest", "square", "entropy", "bolder", "other_class"]
_COLUMNS = ["row", "labels", "N", "dataset", "beta", "method", "status", "test"]
_COLUMNS += ["truth_se", "truth_spread"]


def measure(given: Rows) -> pd.DataFrame:
    """All measures of the experiment."""
    lines = table(given, "variances", _COLUMNS, optional=_NUMBERS)
    if lines.empty:
        return combine()
    numbers = [*_NUMBERS, "beta", "N", "test", "truth_se", "truth_spread"]
    lines = lines.assign(**{name: lines[name].astype(float) for name in numbers})
    return combine(_truth(lines), _methods(lines))


def _truth(lines: pd.DataFrame) -> Iterator[Row]:
    """Standard errors of the truth in root mean square and at most; ``ratio`` is to those by the chains' spread."""
    own = lines.drop_duplicates("row")
    error, spread = (
        float(np.sqrt((own[f"truth_{name}"] ** 2).mean())) for name in ("se", "spread")
    )
    found = {"cases": len(own), "se": error, "se-largest": own["truth_se"].max()}
    found |= {"ratio": error / spread}
    yield from estimates("variances/truth/", found, join_sources(own["source"]))


def _methods(lines: pd.DataFrame) -> Iterator[Row]:
    """Errors of each method by labels, patterns and variance; ``large`` is all variances from `LARGE` on."""
    laws = {"all": lines, **dict(iter(lines.groupby("labels", sort=False)))}
    for law, one in laws.items():
        sizes = {"all": one} | {f"N{n:.0f}": own for n, own in one.groupby("N")}
        for size, two in sizes.items():
            betas = {f"beta{_plain(float(str(beta)))}": own for beta, own in two.groupby("beta")}
            betas["large"] = two[two["beta"] >= LARGE]
            for beta, three in betas.items():
                for method, own in three.groupby("method", sort=False):
                    path = f"variances/{law}/{size}/{beta}/{method}/"
                    yield from estimates(path, _of(own), join_sources(own["source"]))


def _plain(value: float) -> str:
    """A number without an exponent."""
    return f"{value:f}".rstrip("0").rstrip(".")


def _of(own: pd.DataFrame) -> dict[str, Known | float]:
    """What is said of the runs of a method.

    ``cautious`` is by how much probabilities are closer to 1/2 than true ones; ``rms`` is without the noise of the
    truth. ``small`` counts the cases whose mean error is below `SMALL`, and ``flagged`` those whose status is not "ok".
    """
    units = own.groupby(["labels", "N", "dataset"], sort=False)
    found: dict[str, Known | float] = {"cases": len(own)}
    for name, column in {"error": "error", "entropy": "entropy", "cautious": "bolder"}.items():
        means = units[column].mean() * (-1.0 if name == "cautious" else 1.0)
        error = float(means.sem()) if len(means) > 1 else np.nan
        found[name] = Known(float(means.mean()), error, len(means) - 1.0)
    found |= {"largest-error": own["error"].max(), "largest": own["largest"].max()}
    found |= {"rms": float(np.sqrt(max(0.0, own["square"].mean())))}
    found |= {"small": (own["error"] < SMALL).sum()}
    found |= {"flagged": (own["status"] != OK).sum()}
    return found | {"other-class": own["other_class"].sum(), "tests": own["test"].sum()}
