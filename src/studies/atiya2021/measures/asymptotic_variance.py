"""The variance of the sampler that is foretold without a sample, beside the errors of its runs.

A run with M samples should have errors of variance sigma^2 / M, where that is well below one: ``below`` has the runs
with at most `SMALL`, ``between`` those up to one, and ``above`` those with more, which should miss by more than a nat.
Of the soft count sigma^2 is what dependence adds, the larger part of it where the sampler errs.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.special import chdtri

from recheck.judge.measures import join_sources
from studies.atiya2021.experiments.scaling import CURVE, REFERENCES
from studies.atiya2021.measures.common import (
    Known,
    Row,
    combine,
    each,
    estimate,
    estimates,
    table,
    timed,
)
from studies.atiya2021.measures.long_runs import DATA, scored, truths
from studies.common.measuring import Rows

#: Largest variance of a run whose errors are nearly normal.
SMALL = 0.1
#: The sampler's runs that are looked at, and whether their count is the hard one.
METHODS = {"sampler": False, "sampler-hard": True, "million": True}

_PATH = "asymptotic-variance/"
_NUMBERS = ["independent", "coupling", "largest", "information"]
_RUNS = ["row", *DATA, "method", "inference", "status"]
_SAID = ["log_evidence", "log_evidence_se", "samples"]


def measure(given: Rows) -> pd.DataFrame:
    """How the variance grows with the number of patterns, and what it says of the errors."""
    foretold = table(given, "asymptotic_variance", [*DATA, *_NUMBERS], finite=_NUMBERS)
    if foretold.empty:
        return combine()
    foretold[_NUMBERS] = foretold[_NUMBERS].astype(float)
    rows = timed(given, "scaling", _RUNS, optional=_SAID)
    rows[_SAID] = rows[_SAID].astype(float)
    long = rows["method"].isin([*REFERENCES.values()])
    own = rows["method"].isin([*METHODS]) & ~rows["method"].str.contains(CURVE)
    runs = scored(rows[own].reset_index(drop=True), truths(rows[long]))
    runs = runs.merge(foretold[[*DATA, *_NUMBERS, "source"]], on=DATA, suffixes=("", "_foretold"))
    first = runs["independent"].where(runs["method"].map(METHODS), 0.0)
    sources = zip(runs["source_foretold"], runs["error_source"], strict=True)
    runs = runs.assign(
        variance=(first + runs["coupling"]) / runs["samples"],
        source=[join_sources(pair) for pair in sources],
    )
    return combine(_growth(foretold), _cells(runs), _check(runs[runs["truth_sound"]]))


def _growth(foretold: pd.DataFrame) -> Iterator[Row]:
    """Samples for a relative standard deviation of one, as a power of ten, in the mean over data sets.

    Beside it are the log of the largest 1 + c_i^2, and what the two parts of v tell of one another, both in nats.
    ``share`` is the former over the latter. ``exponent`` is that of N: from one number of patterns to the next, and
    from the first to the last.
    """
    frame = foretold.assign(power=np.log10(foretold["independent"] + foretold["coupling"]))
    quantities = {"power": ("power", "mean"), "largest": ("largest", "mean")}
    quantities |= {"information": ("information", "mean")}
    yield from each(frame, ["kernel", "N"], f"{_PATH}{{kernel}}/N{{N}}/{{quantity}}", quantities)
    share = frame["largest"] / frame["information"]
    found = {"least": share.min(), "median": share.median(), "most": share.max()}
    found |= {
        "rows": len(frame),
        "smallest": frame["largest"].min(),
        "largest": frame["largest"].max(),
    }
    yield from estimates(f"{_PATH}share/", found, join_sources(frame["source"]))
    for kernel, own in frame.groupby("kernel", sort=False):
        powers = own.groupby("N")["power"].mean()
        sizes, source = [*powers.index], join_sources(own["source"])
        steps = {f"{a}-{b}": (a, b) for a, b in pairwise(sizes)}
        if len(sizes) > 1:
            steps["all"] = sizes[0], sizes[-1]
        for name, (a, b) in steps.items():
            slope = (powers[b] - powers[a]) / np.log10(b / a)
            yield estimate(f"{_PATH}{kernel}/exponent/{name}", slope, source)


def _cells(runs: pd.DataFrame) -> Iterator[Row]:
    """Root mean square of the foretold standard deviation and of the error, by kernel, N and method."""
    there = runs[runs["difference"].notna()].assign(square=runs["difference"] ** 2)
    quantities = {
        "foretold": lambda group: float(np.sqrt(group["variance"].mean())),
        "error": lambda group: float(np.sqrt(group["square"].mean())),
    }
    path = f"{_PATH}{{kernel}}/N{{N}}/{{method}}/{{quantity}}"
    yield from each(there, ["kernel", "N", "method"], path, quantities)


def _check(runs: pd.DataFrame) -> Iterator[Row]:
    """Errors over foretold standard deviations, reported ones over these, and how many runs miss, by the variance.

    ``rms`` is the root mean square of errors, with the truth's own variance added to the foretold one; ``low`` and
    ``high`` are the ends of its 95 % interval for normal errors. ``reported`` is the geometric mean of the ratio.
    """
    groups = {"": runs} | {f"{name}/": own for name, own in runs.groupby("method", sort=False)}
    for path, own in groups.items():
        variance = own["variance"]
        kinds = {"below": variance <= SMALL, "between": (variance > SMALL) & (variance <= 1.0)}
        kinds |= {"at-most-one": variance <= 1.0, "above": variance > 1.0}
        for kind, chosen in kinds.items():
            group = own[chosen]
            source = join_sources(group["source"] if len(group) else own["source"])
            found: dict[str, Known | float] = {"runs": len(group), "missed": group["wrong"].sum()}
            found |= {"right": group["right"].sum()}
            if kind in ("below", "between") and len(group):
                found |= _ratio(group)
            yield from estimates(f"{_PATH}check/{path}{kind}/", found, source)


def _ratio(group: pd.DataFrame) -> dict[str, Known | float]:
    """Errors, and reported standard errors, over what is foretold."""
    squares = group["difference"] ** 2 / (group["variance"] + group["truth_se"] ** 2)
    n, total = len(squares), float(squares.sum())
    rms = np.sqrt(total / n)
    told = 0.5 * np.log(group["log_evidence_se"] ** 2 / group["variance"])
    return {
        "rms": Known(rms, rms / np.sqrt(2.0 * n), float(n)),
        "low": float(np.sqrt(total / chdtri(n, 0.025))),
        "high": float(np.sqrt(total / chdtri(n, 0.975))),
        "reported": float(np.exp(told.mean())),
    }
