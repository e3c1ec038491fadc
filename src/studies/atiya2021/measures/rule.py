"""The rule for users: on the rows that its thresholds are from, and on packaged data sets, which were not used.

A stated error covers if the error is no larger, but for two standard errors of the truth; the largest error and ratios
of the two leave out as much. ``blind`` counts the runs in which this allowance is larger than the stated error: that
they cover says little. A tolerance is in thousandths of a nat in the ids. On the rows of the study of scaling the long
run of importance sampling stands for the pilot.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import join_sources
from studies.atiya2021.experiments.scaling import CURVE, REFERENCES
from studies.atiya2021.measures.common import Known, Row, combine, estimate, estimates, timed
from studies.atiya2021.measures.long_runs import DATA, FIRST, SECOND, WIDTH, scored, truths
from studies.atiya2021.measures.packaged import SMALL, optima, read
from studies.atiya2021.rule import MIN_EVES, Pilot, advise, sampler_samples
from studies.atiya2021.rule import WIDTH as WIDTH_OF_STATED
from studies.common.measuring import Rows

#: Estimates that the rule chooses among, and how a table names them.
CHOICES = {"ep": "EP", "importance-ep": "importance", "twisted-ep": "twisted EP"}

#: Effective eves below which a run of the sampler may be off by more than a nat.
SURE_EVES = 20

#: Data sets on which the rule was tried while it was made.
TRIED = ("linnerud", "iris-1-2", "digits-3-5", "diabetes")

_SCALING = ["row", *DATA, "method", "inference", "status"]
_SAID = ["log_evidence", "log_evidence_se", "effective_samples", "k_hat", "samples"]
_SAID += ["effective_eves"]


def measure(given: Rows) -> pd.DataFrame:
    """How often the rule is right, on the rows that it is from and on those that test it; and what it costs."""
    rows = read(given)
    parts: list[Any] = [_made(given)]
    if len(rows):
        runs, known = optima(rows)
        followed = rows[rows["stage"] == "rule"].reset_index(drop=True)
        followed = followed.assign(inference=followed["chosen"])
        parts += [_tested(scored(followed, known), runs), _sampler(runs)]
    return combine(*parts)


def _covers(frame: pd.DataFrame) -> pd.Series:
    """Whether errors are within the stated ones, but for the error of the truth."""
    return frame["difference"].abs() <= frame["stated_error"] + WIDTH * frame["truth_se"]


def _made(given: Rows) -> Iterator[Row]:
    """The rule on the rows of the study of scaling."""
    rows = timed(given, "scaling", _SCALING, optional=_SAID)
    rows[_SAID] = rows[_SAID].astype(float)
    rows = rows[~rows["method"].str.contains(CURVE)]
    long = rows["method"].isin([*REFERENCES.values()])
    runs = scored(rows[~long].reset_index(drop=True), truths(rows[long]))
    by = {name: group.set_index(DATA) for name, group in runs.groupby("method")}
    if not {*CHOICES} <= by.keys():
        return
    for tolerance in (0.1, 0.03, 0.01):
        taken = []
        for key, row in by["importance-ep"].iterrows():
            k_hat = None if np.isnan(row["k_hat"]) else row["k_hat"]
            said = (row["log_evidence"], row["log_evidence_se"], row["effective_samples"])
            pilot = Pilot(by["ep"].loc[key, "log_evidence"], *said, int(row["samples"]), k_hat)
            found = advise(pilot, tolerance)
            run = by[found.estimate].loc[key]
            stated = (
                WIDTH_OF_STATED * run["log_evidence_se"] if found.error is None else found.error
            )
            taken.append(run.to_dict() | {"stated_error": stated, "chosen": found.estimate})
        yield from _coverage(pd.DataFrame(taken), tolerance, f"rule/made/{_name(tolerance)}/")
    for method, path in {"sampler-hard": "eves", "sampler": "eves-soft"}.items():
        own = runs[(runs["method"] == method) & runs["effective_eves"].notna()]
        for end, group in {"": own, "few/": own[own["effective_eves"] < SURE_EVES]}.items():
            if group.empty:
                continue
            ratio = group["log_evidence_se"] * np.sqrt(group["effective_eves"])
            source = join_sources(group["source"])
            extremes = {"least": ratio.min(), "largest": ratio.max()}
            yield from estimates(f"rule/made/{path}/{end}", extremes, source)


def _name(tolerance: float) -> str:
    return f"tolerance-{1000 * tolerance:.0f}"


def _coverage(runs: pd.DataFrame, tolerance: float, path: str) -> Iterator[Row]:
    """How often the stated error covers, and the error and the choice are what was asked for."""
    source = join_sources(runs["error_source"])
    size = runs["difference"].abs()
    sure = (size - WIDTH * runs["truth_se"]).clip(lower=0.0)
    found: dict[str, float] = {"runs": len(runs), "covered": _covers(runs).sum()}
    found |= {"within": (sure <= tolerance).sum()}
    found |= {"largest": sure.max(), "largest-ratio": (sure / runs["stated_error"]).max()}
    found |= {"blind": (WIDTH * runs["truth_se"] > runs["stated_error"]).sum()}
    found |= {name: (runs["chosen"] == name).sum() for name in CHOICES}
    yield from estimates(path, found, source)


def _tested(followed: pd.DataFrame, runs: pd.DataFrame) -> Iterator[Row]:
    """The rule on packaged data sets, and its CPU seconds beside those of twisted EP on each."""
    by = {name: group.set_index("data") for name, group in runs.groupby("method")}
    for tolerance, group in followed.groupby("tolerance"):
        path = f"rule/tested/{_name(float(str(tolerance)))}/"
        yield from _coverage(group, float(str(tolerance)), path)
        fresh = group[~group["data"].isin(TRIED)]
        if len(fresh):
            yield from _coverage(fresh, float(str(tolerance)), f"{path}fresh/")
        stated = (group["stated_error"] <= tolerance).sum()
        source = join_sources(group["error_source"])
        yield estimate(f"{path}stated", stated, source)
        spent = group.groupby("data")["cpu_seconds"].mean()
        if FIRST in by:
            always = by[FIRST]["cpu_seconds"].reindex(spent.index)
            yield estimate(f"{path}seconds-share", spent.sum() / always.sum(), source)
            if "ep" in by:  # which the pilot runs again
                once = spent.sum() - by["ep"]["cpu_seconds"].reindex(spent.index).sum()
                yield estimate(f"{path}once/seconds-share", once / always.sum(), source)
        for method, name in {FIRST: "twisted", SECOND: "minimax"}.items():
            if method in by:
                close = WIDTH_OF_STATED * by[method]["log_evidence_se"] <= tolerance
                alone = join_sources(by[method]["source"])
                yield estimate(f"{path}{name}-enough", close.sum(), alone)
        for data, own in group.groupby("data", sort=False):
            yield _choice(f"packaged/{data}/choice-{1000 * float(str(tolerance)):.0f}", own)
            worst = own.loc[own["error"].idxmax()]
            known = Known(worst["error"], 0.0, status="at most" if worst["bound"] else "ok")
            name = f"packaged/{data}/error-rule-{1000 * float(str(tolerance)):.0f}"
            yield estimate(name, known, worst["error_source"])
    if "ep" in by:
        small = by["ep"]["difference"].abs() + WIDTH * by["ep"]["truth_se"] <= SMALL
        source = join_sources(by["ep"]["error_source"])
        yield estimate("rule/tested/ep-enough", small.sum(), source)
        yield estimate("rule/tested/data-sets", len(small), source)


def _choice(name: str, own: pd.DataFrame) -> Row:
    """What was chosen, in words: a number would not say it."""
    words = " or ".join(CHOICES[one] for one in CHOICES if (own["chosen"] == one).any())
    return estimate(name, Known(status=words), join_sources(own["source"]))


def _sampler(runs: pd.DataFrame) -> Iterator[Row]:
    """How well a pilot of the sampler foretells the errors of a longer run, and what that says of its cost."""
    pilot, long = (
        runs[runs["method"] == name].set_index("data") for name in ("sampler-pilot", "sampler")
    )
    if pilot.empty or long.empty:
        return
    source = join_sources([*pilot["source"], *long["error_source"]])
    told = pilot["effective_eves"] >= MIN_EVES
    times = long["samples"] / pilot["samples"]
    foretold = (pilot["effective_eves"] * times) ** -0.5
    z = (long["difference"] / np.hypot(foretold, long["truth_se"]))[told]
    ratio = (long["log_evidence_se"] / foretold)[told]
    found: dict[str, float] = {"pilots": len(pilot), "told": told.sum()}
    if told.any():
        target = SMALL / WIDTH_OF_STATED
        asked = zip(pilot.loc[told, "samples"], pilot.loc[told, "effective_eves"], strict=True)
        needed = [sampler_samples(int(samples), eves, target) or 0 for samples, eves in asked]
        found |= {"rms": np.sqrt((z**2).mean()), "largest": z.abs().max()}
        found |= {"least-ratio": ratio.min(), "largest-ratio": ratio.max()}
        more = long["effective_eves"] / pilot["effective_eves"]
        found |= {"growth": more[told].median()}
        found |= {"median-needed": np.median(needed), "most-needed": max(needed)}
    yield from estimates("rule/tested/eves/", found, source)
