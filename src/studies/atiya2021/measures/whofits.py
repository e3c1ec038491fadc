"""Real data sets that are fitted: by how much an evidence is off, and whether that matters to who fits.

A fit is a data set, a split and a kernel. The judge is twisted EP. A fit counts if the judge's weights pass their
diagnostics at the optima of both methods and at the place that its own gradient leads to, and if no standard error
there exceeds `RESOLVED`; errors and scores are of such fits alone. The judge's weights come from EP and tend to fail
where EP is poor, so that this selection favours EP; ``apart`` has the other fits. By the judge, the best of the three
places is where the evidence is highest; what an optimum loses is the evidence there less that at the optimum. No search
looks elsewhere, so that an optimum loses at least that much. Splits of one data set share patterns, so that the spread
over splits is too small for another sample; over data sets, which are the units there, nothing is shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, join_sources
from studies.atiya2021.experiments.whofits import KERNELS
from studies.atiya2021.measures.common import Known, Row, combine, estimate, estimates, table
from studies.common.measuring import Rows

#: Nats: a judge with a larger standard error does not resolve what methods lose.
RESOLVED = 0.1
#: Nats: who loses less has lost little.
LITTLE = 0.1
#: A variance from which on the evidence is that of the limit of no noise: no bound is wide enough there.
LIMIT = 1e6
#: A variance from which on the kernel counts as large, as in `variances`.
LARGE = 100.0
#: Standard errors within which two evidences are not told apart.
WIDTH = 2.0
#: Nats: errors of EP's evidence are smaller, so that a gap of that size or less could be lost in them.
CLOSE = 2.0
#: Methods that are climbed, and the point of the judge.
METHODS, JUDGE = ("ep", "laplace"), "twisted-ep"

_KEYS = ["data", "split", "kernel"]
_SCORES = ["log_loss", "error_rate", "binned_error", "slope", "intercept"]
_NUMBERS = ["log_evidence", "log_evidence_se", "above_ep", "above_ep_se", "own", "log_variance"]
_NUMBERS += ["evaluations"]
_NUMBERS += [*_SCORES, *(f"judge_{name}" for name in _SCORES), "distance", "other_class"]
_COLUMNS = [*_KEYS, "point", "status", "N", "inputs", "test", "variance_at_bound", *_NUMBERS]


def measure(given: Rows) -> pd.DataFrame:
    """All measures of data sets that are fitted."""
    lines = table(given, "whofits", ["row", *_KEYS, "point", "status"], optional=_COLUMNS)
    if lines.empty:
        return combine()
    fits = fits_of(_with_seconds(lines, given.timing("whofits")))
    return combine(_data_sets(fits), _choices(choices(fits)), _over_all(fits), _scores(fits))


def _with_seconds(lines: pd.DataFrame, timing: pd.DataFrame) -> pd.DataFrame:
    """Lines with the CPU seconds of their searches, which a row has in the same order."""
    timing = timing.reindex(columns=["row", "cpu_seconds"])
    lines, timing = (one.assign(place=one.groupby("row").cumcount()) for one in (lines, timing))
    return lines.merge(timing, on=["row", "place"], how="left", validate="one_to_one")


def fits_of(lines: pd.DataFrame) -> pd.DataFrame:
    """Return a line a fit, in the order of the lines.

    Columns: the key, ``N``, ``inputs`` and ``test``; ``counted``; ``climbs``, how often the judge's gradient was
    climbed; of each method ``off``, its evidence less the judge's at its own optimum, with ``off_se``, ``lost`` in nats
    with ``lost_se``, ``own`` and the scores of its predictions there; ``lost_twisted-ep``, which is zero where the
    judge's gradient leads to the best place; ``best``, the judge's evidence there, with ``best_se``; the scores of the
    judge's predictions; ``variance``, EP's, and ``at_bound``, whether it is; and ``source``.
    """
    lines = lines.assign(**{name: lines[name].astype(float) for name in _NUMBERS})
    return pd.DataFrame([_fit(key, group) for key, group in lines.groupby(_KEYS, sort=False)])


def _fit(key: Any, group: pd.DataFrame) -> dict[str, Any]:
    at = group.set_index("point")
    ep, judged = at.loc["ep"], at.loc[JUDGE]
    best = at["above_ep"].idxmax()
    # a place without an evidence is the best of nothing
    best = best if isinstance(best, str) else "ep"
    passed = (at["status"] == OK) & (at["log_evidence_se"] <= RESOLVED)
    line = dict(zip(_KEYS, key, strict=True)) | {name: ep[name] for name in ("N", "inputs", "test")}
    line |= {"counted": bool(passed.all()), "best": at.loc[best, "log_evidence"]}
    line |= {"best_se": at.loc[best, "log_evidence_se"]}
    line |= {
        "at_bound": str(ep["variance_at_bound"]) == "True",
        "source": join_sources(group["source"]),
    }
    line |= {"variance": float(np.exp(ep["log_variance"])), "climbs": judged["evaluations"]}
    for point, own in at.iterrows():
        # differences from EP's optimum have its random numbers; of two others the errors are put together
        error = np.hypot(at.loc[best, "above_ep_se"], own["above_ep_se"])
        line |= {f"lost_{point}": at.loc[best, "above_ep"] - own["above_ep"]}
        line |= {f"lost_{point}_se": 0.0 if point == best else error}
    for method in METHODS:
        own = at.loc[method]
        line |= {f"own_{method}": own["own"], f"off_{method}": own["own"] - own["log_evidence"]}
        line |= {f"off_{method}_se": own["log_evidence_se"]}
        line |= {f"{name}_{method}": own[name] for name in [*_SCORES, "distance", "other_class"]}
        line |= {f"seconds_{method}": own.get("cpu_seconds", np.nan)}
        line |= {f"judge_{name}_{method}": own[f"judge_{name}"] for name in _SCORES}
    return line | {f"{name}_{JUDGE}": judged[f"judge_{name}"] for name in _SCORES}


def choices(fits: pd.DataFrame) -> pd.DataFrame:
    """Return which kernel each method prefers: a line a data set and split that has both.

    Columns: ``data``, ``split``, ``counted``; ``judge``, the best evidence of the kernel with a length scale for each
    input less that of the other, by the judge, with ``judge_se``; ``told``, whether that exceeds `WIDTH` standard
    errors; ``loss``, the same difference of EP's held-out log loss; the difference by each method's own evidence; and
    of each method ``agrees``, whether it prefers the same kernel; a method that prefers neither does not.
    """
    found = []
    one, other = KERNELS
    for (data, split), group in fits.groupby(["data", "split"], sort=False):
        by = group.set_index("kernel")
        if not {*KERNELS} <= {*by.index}:
            continue
        line: dict[str, Any] = {"data": data, "split": split, "counted": bool(by["counted"].all())}
        line |= {"judge": by.loc[other, "best"] - by.loc[one, "best"]}
        line |= {"judge_se": float(np.hypot(by.loc[other, "best_se"], by.loc[one, "best_se"]))}
        line |= {"told": bool(abs(line["judge"]) > WIDTH * line["judge_se"])}
        line |= {"loss": by.loc[other, "log_loss_ep"] - by.loc[one, "log_loss_ep"]}
        line |= {"source": join_sources(group["source"])}
        for method in METHODS:
            line[method] = by.loc[other, f"own_{method}"] - by.loc[one, f"own_{method}"]
            line[f"agrees_{method}"] = bool(line[method] * line["judge"] > 0.0)
        found.append(line)
    columns = ["data", "split", "counted", "judge", "judge_se", "told", "loss", *METHODS]
    columns += [*(f"agrees_{method}" for method in METHODS), "source"]
    return pd.DataFrame(found, columns=columns)


def mean(values: pd.Series) -> Known:
    """Return the mean of what there is, with the standard error of units that share nothing; one unit has none."""
    there = values.astype(float).dropna()
    if len(there) < 2:
        return Known(float(there.mean()) if len(there) else np.nan)
    return Known(float(there.mean()), float(there.sem()), len(there) - 1.0)


def _data_sets(fits: pd.DataFrame) -> Iterator[Row]:
    """By data set and kernel: the means over splits."""
    for (data, kernel), group in fits.groupby(["data", "kernel"], sort=False):
        path, source = f"whofits/{data}/{kernel}/", join_sources(group["source"])
        for name in ("N", "inputs", "test"):
            yield estimate(f"{path}{name}", group[name].iloc[0], source)
        counted = group[group["counted"]]
        yield estimate(f"{path}counted", len(counted), source)
        yield estimate(f"{path}at-bound", group["at_bound"].sum(), source)
        yield estimate(f"{path}at-limit", (group["variance"] > LIMIT).sum(), source)
        for method in METHODS:
            for name in ("off", "lost"):
                yield estimate(f"{path}{name}-{method}", mean(counted[f"{name}_{method}"]), source)
        for method in METHODS:
            # both are at the same hyperparameters, so that it is the error of the approximation alone
            away = counted[f"distance_{method}"]
            yield estimate(f"{path}distance-{method}", mean(away), source)
        for name in _SCORES:
            said = name.replace("_", "-")
            for method in (*METHODS, JUDGE):
                yield estimate(f"{path}{said}-{method}", mean(counted[f"{name}_{method}"]), source)
            for method in ("laplace", JUDGE):
                more = counted[f"{name}_{method}"] - counted[f"{name}_ep"]
                yield estimate(f"{path}{said}-more-{method}", mean(more), source)


def _choices(chosen: pd.DataFrame) -> Iterator[Row]:
    """How often each method prefers the judge's kernel, where the judge tells the two apart."""
    source = join_sources(chosen["source"])
    told = chosen[chosen["counted"] & chosen["told"]]
    yield estimate("whofits/choice/counted", chosen["counted"].sum(), source)
    yield estimate("whofits/choice/told", len(told), source)
    yield estimate("whofits/choice/ard", (told["judge"] > 0.0).sum(), source)
    gaps = told["judge"].abs()
    yield estimate("whofits/choice/smallest", gaps.min() if len(gaps) else np.nan, source)
    yield estimate("whofits/choice/close", (gaps <= CLOSE).sum(), source)
    # what is more likely need not predict better
    yield estimate("whofits/choice/predicts", (told["judge"] * told["loss"] < 0.0).sum(), source)
    for method in METHODS:
        agrees = told[f"agrees_{method}"].astype(bool)
        yield estimate(f"whofits/choice/{method}/same", agrees.sum(), source)
        # what the other kernel loses, where a method prefers it
        lost = told.loc[~agrees, "judge"].abs()
        yield estimate(f"whofits/choice/{method}/largest", lost.max() if len(lost) else 0.0, source)
    for data, group in chosen.groupby("data", sort=False):
        path, where = f"whofits/{data}/choice/", join_sources(group["source"])
        own = group[group["counted"]]
        yield estimate(f"{path}judge", mean(own["judge"]), where)
        yield estimate(f"{path}log-loss", mean(group["loss"]), where)
        for method in METHODS:
            yield estimate(f"{path}{method}", mean(own[method]), where)


def _over_all(fits: pd.DataFrame) -> Iterator[Row]:
    """Over all fits, and those of each kernel: errors of the evidence, what they lose, and how many fits count."""
    for kernel, group in _by_kernel(fits):
        path, source = f"whofits/all/{kernel}/", join_sources(group["source"])
        counted, rest = group[group["counted"]], group[~group["counted"]]
        most = group["climbs"].astype(float)
        for name, found in {
            "fits": len(group),
            "counted": len(counted),
            "at-bound": group["at_bound"].sum(),
            "at-limit": (group["variance"] > LIMIT).sum(),
            "climbs-spent": (most == most.max()).sum(),
            "apart/fits": len(rest),
            "apart/at-limit": (rest["variance"] > LIMIT).sum(),
            "data-sets": group["data"].nunique(),
            "data-sets-counted": counted["data"].nunique(),
            "least-patterns": group["N"].astype(float).min(),
            "most-patterns": group["N"].astype(float).max(),
            "judge/se-largest": counted[[f"off_{name}_se" for name in METHODS]].max(axis=None),
            "tests": counted["test"].astype(float).sum(),
        }.items():
            yield estimate(f"{path}{name}", found, source)
        for method in METHODS:
            off, lost = counted[f"off_{method}"].abs(), counted[f"lost_{method}"]
            away = counted.assign(value=counted[f"distance_{method}"])
            yield estimate(f"{path}{method}/distance", mean(_by_data(away)), source)
            for name, least in {"large": LARGE, "limit": LIMIT}.items():
                own = counted[counted["variance"] > least]
                found = {"fits": len(own), "distance": own[f"distance_{method}"].mean()}
                yield from estimates(f"{path}{method}/{name}/", found, source)
            yield estimate(
                f"{path}{method}/apart/distance", rest[f"distance_{method}"].mean(), source
            )
            other = {"other-class": f"other_class_{method}", "tests": "test"}
            for name, column in other.items():
                yield estimate(
                    f"{path}{method}/apart/{name}", rest[column].astype(float).sum(), source
                )
            below = counted[f"off_{method}"] < -WIDTH * counted[f"off_{method}_se"]
            for name, value in {
                "off-median": off.median(),
                "off-largest": off.max(),
                "off-below": below.sum(),
                "lost-median": lost.median(),
                "lost-largest": lost.max(),
                "lost-little": (lost <= LITTLE).sum(),
                "distance-largest": _by_data(away).max(),
                "other-class": counted[f"other_class_{method}"].sum(),
                "seconds": group[f"seconds_{method}"].median(),
                "lost-most": (lost > WIDTH * counted[f"lost_{method}_se"]).sum(),
            }.items():
                yield estimate(f"{path}{method}/{name}", value, source)
            # a search that ends in a local maximum may do so where the judge has not converged
            every = group[f"lost_{method}"].dropna()
            found = {"largest": every.max(), "over-a-nat": (every > 1.0).sum()}
            # whether the error of the value is certainly too small to have hidden it
            more = group[f"lost_{method}"] - group[f"off_{method}"].abs()
            error = np.hypot(group[f"lost_{method}_se"], group[f"off_{method}_se"])
            found |= {
                "over-its-error": ((more > WIDTH * error) & (group[f"lost_{method}"] > 1.0)).sum()
            }
            yield from estimates(f"{path}{method}/lost-any/", found, source)


def _scores(fits: pd.DataFrame) -> Iterator[Row]:
    """Over data sets, each the mean of its splits: scores of the methods, and how these differ from EP's."""
    for kernel, group in _by_kernel(fits):
        path, source = f"whofits/all/{kernel}/", join_sources(group["source"])
        own = group[group["counted"]]

        def over_data(values: pd.Series, own: pd.DataFrame = own) -> pd.Series:
            return _by_data(own.assign(value=values))

        for name in _SCORES:
            said = name.replace("_", "-")
            for method in (*METHODS, JUDGE):
                values = own[f"{name}_{method}"]
                yield estimate(f"{path}{method}/{said}", mean(over_data(values)), source)
                if method != "ep":
                    more = over_data(values - own[f"{name}_ep"])
                    yield estimate(f"{path}{method}/{said}-more", mean(more), source)
                    yield estimate(f"{path}{method}/{said}-lower", (more < 0.0).sum(), source)
        for method in (*METHODS, JUDGE):
            slopes = over_data(own[f"slope_{method}"])
            yield estimate(f"{path}{method}/slope-away", mean((slopes - 1.0).abs()), source)
            # a few data sets have very large ones
            yield estimate(f"{path}{method}/slope-median", slopes.median(), source)
            gap = over_data(own[f"slope_{method}"] - own["slope_ep"])
            yield estimate(f"{path}{method}/slope-higher", (gap > 0.0).sum(), source)
        # what the place of the optimum does to the judge's own predictions, and what EP's approximation does there
        moved = over_data(own["judge_log_loss_laplace"] - own["judge_log_loss_ep"])
        yield estimate(f"{path}laplace/log-loss-moved", mean(moved), source)
        here = over_data(own["log_loss_ep"] - own["judge_log_loss_ep"])
        yield estimate(f"{path}ep/log-loss-approximate", mean(here), source)


def _by_kernel(fits: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    yield "both", fits
    for kernel in KERNELS:
        if (own := fits["kernel"] == kernel).any():
            yield kernel, fits[own]


def _by_data(fits: pd.DataFrame) -> pd.Series:
    """Means of ``value`` by data set."""
    found: pd.Series = fits.groupby("data", sort=False)["value"].mean()
    return found
