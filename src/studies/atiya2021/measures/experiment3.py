"""Experiment 3: errors against CPU seconds for every method and size, CPU seconds for an error, and the paper's claims.

All runs are on Problem 3 of Experiment 2. Curves of log error against log CPU seconds are interpolated between sizes.
Bounds and extrapolations say what they are: a bound has the status "at least" or "at most", and beside a claim stands
the factor by which the longest runs were extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import stdtr

from recheck.measures import OK, join_sources, with_fields
from recheck.measures import estimate as summarise
from studies.atiya2021.measures.common import (
    Known,
    Row,
    combine,
    each,
    estimate,
    measured,
    timed_rows,
)

_KEYS = ["method", "dataset", "size", "run"]
#: What is measured of a run, and its column.
_QUANTITIES = {
    "mae": "probability_mae",
    "mape": "ape_percent",
    "nats": "nats",
    "seconds": "cpu_seconds",
}
#: Counts that may make the sizes of a method.
_COUNTS = ["temperatures", "points", "samples"]
_UNIT = "experiment2/P3/dataset0"

#: Rows of the configuration that give the two errors of a method. Of the corrected chains one row has the chain alone
#: and one the annealed runs.
SERIES = {"ess": ("ess", "ess-ais"), "hmc": ("hmc", "hmc-ais")}
#: Methods whose errors do not fall as the inverse square root of time without end.
BIASED = ("ess-gpml", "hmc-gpml", "laplace", "ep")
SAMPLER = "orthant"
#: Errors by what they are errors of: the last part of their ids.
ERRORS = {"evidence": "mape", "probability": "mae"}
#: Operating points that section 6.3 quotes: CPU seconds, and natural log of the MAPE in percent.
QUOTED = {"new": (525.0, -4.52), "ess": (5350.0, -4.70)}
QUOTED_SOURCE = "paper, section 6.3"
#: Log MAPE near which the paper compares the two.
TARGET = -4.5
#: Curves are extrapolated to so many times their longest CPU seconds, and not further.
FARTHEST = 100.0
#: A claim rests on no bound that noise alone makes with a larger probability than this.
DOUBT = 0.025

#: Claims of section 6.3: which sampler, which error, and where it is compared. ``target``: at the quoted log MAPE.
#: ``high``, ``moderate``: at the error of the sampler's last or first size.
CLAIMS = {
    "evidence-ten": ("ess", "evidence", "target"),
    "evidence-ess": ("ess", "evidence", "high"),
    "evidence-hmc": ("hmc", "evidence", "high"),
    "probability-hmc": ("hmc", "probability", "high"),
    "probability-tie": ("ess", "probability", "moderate"),
    "probability-ess": ("ess", "probability", "high"),
}
#: Levels of the reading ``chain``, and what the name of a sampler then ends with.
CHAINS = {"as-distributed": "-gpml", "corrected": ""}


def measure(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures of Experiment 3, and what follows from them about CPU time.

    A size counts if half of its runs, and at least two, have converged. Otherwise its status says how many have, as
    "1 of 10", and what the other runs gave stands under ``unconverged``: no average mixes the two.
    """
    optional = ["probability_mae", "ape_percent", "log_evidence_error", "seed", *_COUNTS]
    rows = timed_rows(root, "experiment3/*", _KEYS, optional)
    rows = rows[rows["dataset"] == 0]
    rows["nats"] = rows["log_evidence_error"].astype(float).abs()
    found = [part for _, group in rows.groupby(["method", "size"]) for part in _point(group)]
    measures = combine(*found, _counts(rows))
    return combine(measures, times(measures))


def _point(group: pd.DataFrame) -> Iterator[pd.DataFrame]:
    good = group["status"] == OK
    exact = bool(group["seed"].isna().all())  # a method that draws nothing has one run
    counts = good.all() if exact else good.sum() >= max(2, len(group) / 2)
    shown = group["status"] if counts else f"{good.sum()} of {len(group)}"
    states = {"": group.assign(status=shown)}
    states |= {} if counts else {"/unconverged": group[~good].assign(status=OK)}
    for quantity, column in _QUANTITIES.items():
        for state, part in states.items():
            known = part[part[column].notna()]
            template = f"experiment3/{{method}}/size{{size}}{state}/{quantity}"
            given = {"unit": _UNIT, "run": known["run"], "status": known["status"]}
            yield measured(known, template, known[column], **given)


def _counts(rows: pd.DataFrame) -> Iterator[Row]:
    """The count that makes the sizes of a method: the one that varies most, else the first that is there."""
    for _, mine in rows.groupby("method"):
        counts = mine[_COUNTS].apply(pd.to_numeric, errors="coerce").dropna(axis="columns")
        if len(counts.columns):
            mine = mine.assign(made=counts[counts.nunique().idxmax()])
            template = "experiment3/{method}/size{size}/{quantity}"
            quantities = {"count": lambda group: group["made"].iloc[0]}
            yield from each(mine, ["method", "size"], template, quantities)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Natural log of CPU seconds, or of a ratio of them, with its standard error and the degrees of freedom of that.

    The status is ``ok``, ``at least``, ``at most``, or why there is no value. `beyond` is the log of the factor by
    which the longest CPU seconds were extrapolated. `doubt` is the probability that noise alone made a bound of it.
    """

    log: float
    se: float = 0.0
    df: float = math.inf
    status: str = OK
    beyond: float = 0.0
    doubt: float = 0.0

    def over(self, other: Crossing) -> Crossing:
        """The ratio of this to the other, in logs."""
        turned = {"at most": "at least", "at least": "at most"}.get(other.status, other.status)
        statuses = {self.status, turned}
        if unknown := sorted(statuses - {OK, "at least", "at most"}):
            return Crossing(math.nan, status=unknown[0])
        if {"at least", "at most"} <= statuses:
            return Crossing(math.nan, status="not comparable")
        return Crossing(
            self.log - other.log,
            math.hypot(self.se, other.se),
            _joint([self.se, other.se], [self.df, other.df])[1],
            next((status for status in ("at most", "at least") if status in statuses), OK),
            max(self.beyond, other.beyond),
            min(1.0, self.doubt + other.doubt),
        )

    def row(self, name: str, source: str, reading: str = "") -> Row:
        """As a row of measures: the factor itself, with its standard error. A claim rests on no doubtful bound."""
        doubtful = name.startswith("claim/") and self.doubt > DOUBT
        value, status = math.exp(self.log), "not comparable" if doubtful else self.status
        known = Known(value, value * self.se, self.df, status)
        return estimate(name, known, source, scale="log", reading=reading)


def _joint(errors: Sequence[float], dfs: Sequence[float]) -> tuple[float, float]:
    """Standard error of a sum of independent terms, and its degrees of freedom by Welch and Satterthwaite."""
    variances = np.square(np.asarray(errors, dtype=float))
    spent = float((variances**2 / np.asarray(dfs, dtype=float)).sum())
    total = float(variances.sum())
    return math.sqrt(total), total**2 / spent if spent > 0 else math.inf


def _doubt(margin: float, errors: Sequence[float], dfs: Sequence[float]) -> float:
    """Probability of the tail beyond a margin; zero without an error."""
    se, df = _joint(errors, dfs)
    return float(stdtr(min(df, 1e12), -margin / se)) if se > 0 else 0.0


def crossing(
    line: pd.DataFrame,
    target: float,
    target_se: float = 0.0,
    target_df: float = math.inf,
    *,
    converges: bool = True,
) -> Crossing:
    """CPU seconds that a method needs for a log error, by interpolation on logarithmic axes.

    They lie between the last size with a larger error and the next one. If no size has a larger error, they are at most
    the seconds of the first size. If the last one has, they are at least its seconds; of a method that `converges` the
    error goes on to fall with the square root of time, to at most `FARTHEST` times the seconds.

    `line` has the sizes of one method that count: ``seconds``, ``log_error``, ``log_error_se``, ``df``, ``exact``.
    """
    if line.empty or not math.isfinite(target):
        return Crossing(math.nan, status="not run")
    line = line.sort_values("seconds")
    names = ["seconds", "log_error", "log_error_se", "df"]
    x, e, s, df = (line[name].to_numpy(dtype=float) for name in names)
    x, above = np.log(x), np.flatnonzero(e > target)
    if not len(above):
        doubt = _doubt(target - e[0], [s[0], target_se], [df[0], target_df])
        return Crossing(float(x[0]), status="at most", doubt=doubt)
    i = int(above[-1])
    if i == len(e) - 1:
        if line["exact"].all():
            return Crossing(math.nan, status="not reached")
        further = 2.0 * (e[i] - target)
        if not converges or further > math.log(FARTHEST):
            doubt = _doubt(e[i] - target, [s[i], target_se], [df[i], target_df])
            return Crossing(float(x[i]), status="at least", doubt=doubt)
        se, freedom = _joint([2.0 * s[i], 2.0 * target_se], [df[i], target_df])
        return Crossing(float(x[i] + further), se, freedom, beyond=float(further))
    slope = (x[i + 1] - x[i]) / (e[i] - e[i + 1])
    share = (e[i] - target) / (e[i] - e[i + 1])
    errors = [slope * (1 - share) * s[i], slope * share * s[i + 1], slope * target_se]
    se, freedom = _joint(errors, [df[i], df[i + 1], target_df])
    return Crossing(float(x[i] + share * (x[i + 1] - x[i])), se, freedom)


class _Curves:
    """Errors against CPU seconds of every method, from the estimates of its points."""

    def __init__(self, measures: pd.DataFrame) -> None:
        wide = with_fields(summarise(measures), "experiment3/{method}/size{size}/{quantity}")
        wide["size"] = wide["size"].astype(int)
        seconds = wide[wide["quantity"] == "seconds"]
        frames = []
        for error, quantity in ERRORS.items():
            of_error = wide[wide["quantity"] == quantity].assign(error=error)
            frames.append(of_error.merge(seconds, on=["method", "size"], suffixes=("", "_seconds")))
        both = pd.concat(frames, ignore_index=True)
        timed = (both["value"] > 0) & (both["value_seconds"] > 0)
        counts, exact = (both["status"] == OK) & timed, both["seed"] == ""
        sources = zip(both["source"], both["source_seconds"], strict=True)
        self.points = both.assign(
            status=both["status"].mask((both["status"] == OK) & ~timed, "not timed"),
            seconds=both["value_seconds"],
            log_error=np.log(both["value"].where(counts)),
            log_error_se=(both["se"] / both["value"]).where(counts & ~exact).fillna(0.0),
            df=(both["runs"] - 1.0).clip(lower=1.0),
            exact=exact,
            source=[join_sources(pair) for pair in sources],
        ).sort_values(["method", "size"])

    def line(self, method: str, error: str, *, every: bool = False) -> pd.DataFrame:
        """The sizes of a series that count, or every size, in the order of sizes."""
        rows = dict(
            zip(("probability", "evidence"), SERIES.get(method, (method,) * 2), strict=True)
        )
        points = self.points
        line = points[(points["method"] == rows[error]) & (points["error"] == error)]
        return line if every else line[line["status"] == OK]

    def needed(self, method: str, error: str, target: float) -> Crossing:
        """CPU seconds that a method needs for a log error."""
        found = crossing(self.line(method, error), target, converges=method not in BIASED)
        every = self.line(method, error, every=True)
        if found.status == "not run" and len(every):
            return Crossing(math.nan, status=str(every["status"].iloc[-1]))
        return found

    def against(self, point: pd.Series) -> Crossing:
        """CPU seconds of a point over those that the sampler needs for the same error."""
        sampler = self.line(SAMPLER, point["error"])
        needed = crossing(sampler, point["log_error"], point["log_error_se"], point["df"])
        return Crossing(math.log(point["seconds"])).over(needed)

    def targets(self) -> dict[str, float]:
        """Log errors at which all methods are compared.

        Of the evidence it is the quoted one, of probabilities the least of the sampler, rounded up to halves.
        """
        least = self.line(SAMPLER, "probability")["log_error"].min()
        rounded = math.ceil(2.0 * least) / 2.0 if math.isfinite(least) else math.nan
        return {"evidence": TARGET, "probability": rounded}


def times(measures: pd.DataFrame) -> Iterator[Row]:
    """CPU seconds for an error, ratios of them, and the paper's claims, from the points of Experiment 3."""
    for name, (seconds, log) in QUOTED.items():
        yield estimate(f"experiment3/quoted/{name}/seconds", seconds, QUOTED_SOURCE)
        yield estimate(f"experiment3/quoted/{name}/log-mape", log, QUOTED_SOURCE)
    curves = _Curves(measures)
    for _, point in curves.points[curves.points["status"] == OK].iterrows():
        if point["method"] != SAMPLER:
            name = f"experiment3/{point['method']}/size{point['size']}/{point['error']}-ratio"
            yield curves.against(point).row(name, str(point["source"]))
            if point["exact"]:
                yield from _match(curves, point)
    for error, target in curves.targets().items():
        yield from _at_target(curves, error, target)
    yield from _claims(curves)


def _match(curves: _Curves, point: pd.Series) -> Iterator[Row]:
    """CPU seconds that the sampler needs for the error of a deterministic method."""
    line = curves.line(SAMPLER, point["error"])
    if line.empty:
        return
    found = crossing(line, point["log_error"])
    if found.status == "at least":  # the bound is where extrapolation stops
        found = Crossing(found.log + math.log(FARTHEST), status="at least", doubt=found.doubt)
    name = f"time/{point['error']}/{point['method']}/sampler-seconds"
    yield found.row(name, join_sources([*line["source"], point["source"]]))


def _at_target(curves: _Curves, error: str, target: float) -> Iterator[Row]:
    there = curves.points["method"][curves.points["error"] == error]
    if not math.isfinite(target) or there.empty:
        return
    series = {row: name for name, pair in SERIES.items() for row in pair}
    sampler = curves.needed(SAMPLER, error, target)
    for method in dict.fromkeys(series.get(method, method) for method in there):
        source = join_sources(curves.line(method, error, every=True)["source"])
        found = curves.needed(method, error, target)
        yield found.row(f"time/{error}/{method}/seconds", source)
        if method != SAMPLER:
            yield found.over(sampler).row(f"time/{error}/{method}/ratio", source)


def _claims(curves: _Curves) -> Iterator[Row]:
    """The claims under each level of the reading ``chain``, and where they are judged under ``time/claims``."""
    for claim, (method, error, where) in CLAIMS.items():
        for chain, suffix in CHAINS.items():
            every = curves.line(method + suffix, error, every=True).sort_values("size")
            if every.empty or curves.line(SAMPLER, error).empty:
                continue
            line = every[every["status"] == OK]
            last = line if len(line) else every
            point = every.iloc[0] if where == "moderate" else last.iloc[-1]
            target = TARGET if where == "target" else float(point["log_error"])
            if where == "moderate" and len(line) == 1:
                found = Crossing(math.nan, status="one size only")
            elif point["status"] != OK:
                found = Crossing(math.nan, status=f"{point['status']} runs converged")
            elif where == "target":
                found = curves.needed(method + suffix, error, TARGET)
                found = found.over(curves.needed(SAMPLER, error, TARGET))
            else:
                found = curves.against(point)
            source, reading = join_sources(every["source"]), f"chain={chain}"
            yield found.row(f"claim/time/{claim}", source, reading)
            yield from _where(claim, target, found, source, reading)


def _where(claim: str, target: float, found: Crossing, source: str, reading: str) -> Iterator[Row]:
    """At which error a claim is judged, and by which factor the longest CPU seconds were extrapolated."""
    name, beyond = f"time/claims/{claim}", math.exp(found.beyond)
    if math.isfinite(target):
        yield estimate(f"{name}/log-error", target, source, reading=reading)
    if math.isfinite(found.log):
        yield estimate(f"{name}/extrapolation", beyond, source, reading=reading)
