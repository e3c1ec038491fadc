"""Experiment 3: errors against CPU seconds for every method and size, CPU seconds for an error, and the paper's claims.

All runs are on data sets of Problem 3 of Experiment 2. Points and curves are of the first one, which all methods have.
A claim is judged on every data set that both of its methods have: errors and seconds are means over them, and the
standard error leaves out one data set at a time, the same of both methods. On a single data set it is that over runs.

CPU seconds for an error are read off fitted curves (`studies.atiya2021.measures.crossings`); where a method's own error
is the target, it is that of its curve. Bounds and extrapolations say what they are: a bound has the status "at least"
or "at most", and beside a claim stands the factor by which the longest runs were extrapolated.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, join_sources, reading_text, with_fields
from recheck.judge.measures import estimate as summarise
from studies.atiya2021.measures.common import (
    READINGS,
    Known,
    Row,
    combine,
    estimate,
    estimates,
    measured,
    statuses,
    timed,
)
from studies.atiya2021.measures.crossings import FARTHEST, Crossing, Curve, joint
from studies.common.measuring import Rows

_KEYS = ["method", "dataset", "size", "run"]
_POINT = ["method", "size"]
_UNIT = "experiment2/P3/dataset{dataset}"
#: What is measured of a run, and its column.
_QUANTITIES = {
    "mae": "probability_mae",
    "mape": "ape_percent",
    "nats": "nats",
    "seconds": "cpu_seconds",
}
#: Columns of the errors of a prediction, by the ways to read a chain of the toolbox.
_READ = {reading: f"probability_mae_{reading}" for reading in READINGS}

#: Rows of the configuration with the annealed runs of re-engineered chains, which give the evidence.
ANNEALED = {"ess": "ess-ais", "hmc": "hmc-ais"}
#: Methods whose errors do not fall as the inverse square root of time without end.
BIASED = ("ess-gpml", "hmc-gpml", "laplace", "ep")
#: What the name of a row ends with, by form of its chains: the toolbox's, the same without its four defects, and these
#: with 32 annealed runs that move once at each of many temperatures. Those of ours have two rows each.
FORMS = {
    "as-distributed": "-gpml",
    "repaired": "-repaired",
    "scheduled": "-scheduled",
    "re-engineered": "",
}
SAMPLER = "orthant"
#: Importance sampling from expectation propagation, whose weights may warn.
WEIGHTED = "importance-ep"
#: Errors by what they are errors of, and their columns.
ERRORS = {"evidence": "ape_percent", "probability": "probability_mae"}
#: Operating points that section 6.3 quotes: CPU seconds, and natural log of the MAPE in percent.
QUOTED = {"new": (525.0, -4.52), "ess": (5350.0, -4.70)}
QUOTED_SOURCE = "paper, section 6.3"
#: Log MAPE near which the paper compares the two.
TARGET = -4.5

#: Claims of section 6.3 by chain and error, and where each is compared. ``target``: at the quoted log MAPE. ``high``,
#: ``moderate``: at the error of the chain's last or first size.
CLAIMS = {
    ("ess", "evidence"): {"evidence-ten": "target", "evidence-ess": "high"},
    ("hmc", "evidence"): {"evidence-hmc": "high"},
    ("hmc", "probability"): {"probability-hmc": "high"},
    ("ess", "probability"): {"probability-tie": "moderate", "probability-ess": "high"},
}
#: Levels of the reading ``chain`` that claims are judged under.
CHAINS = {name: FORMS[name] for name in ("as-distributed", "re-engineered")}


def measure(given: Rows) -> pd.DataFrame:
    """All measures of Experiment 3, and what follows from them about CPU time."""
    optional = ["log_evidence_error", "log_evidence_se", "seed", "scheme", "effective_eves"]
    optional += [*ERRORS.values(), *_READ.values()]
    rows = timed(given, "experiment3", [*_KEYS, "status"], optional=optional)
    rows["status"] = statuses(rows)
    rows["nats"] = rows["log_evidence_error"].astype(float).abs()
    first = Curves(rows[rows["dataset"] == 0])
    return combine(
        _points(first.rows),
        _times(first),
        _both(first),
        _claims(rows),
        _settings(rows),
        _weights(first.rows),
        _pooled(first.rows),
    )


def _pooled(rows: pd.DataFrame) -> Iterator[Row]:
    """Squared error of log L times CPU seconds, of a chain's longest runs over the sampler's runs of all sizes.

    The product does not depend on the size of an unbiased method that has no start. The runs of all sizes are more than
    those of one, of which a few large errors may make a bad size. A chain has a start; ``all-sizes`` has its shorter
    runs as well. Chains of the toolbox are biased.
    """
    rows = rows.dropna(subset=["nats"])
    rows = rows.assign(work=rows["nats"] ** 2 * rows["cpu_seconds"].astype(float))
    sampler = rows[rows["method"] == SAMPLER]
    over, over_se = sampler["work"].mean(), sampler["work"].sem()
    for name, row in ANNEALED.items():
        for method in (row, f"{name}{FORMS['scheduled']}"):
            every = rows[rows["method"] == method]
            if every.empty or sampler.empty:
                continue
            longest = every[every["size"] == every["size"].max()]
            for end, own in {"": longest, "/all-sizes": every}.items():
                mean = own["work"].mean()
                errors = own["work"].sem() / mean, over_se / over
                se, df = joint(errors, [len(own) - 1.0, len(sampler) - 1.0])
                known = Known(mean / over, mean / over * se, df)
                source = join_sources([*own["source"], *sampler["source"]])
                yield estimate(f"time/pooled/{method}{end}", known, source, scale="log")


def _weights(rows: pd.DataFrame) -> Iterator[Row]:
    """Whether the standard errors of importance sampling hold: of the runs whose weights warn, and of those that pass.

    ``mean-z`` and ``rms-z`` are of error over standard error; the truth is exact.
    """
    own = rows[(rows["method"] == WEIGHTED) & rows["log_evidence_error"].notna()]
    error = own["log_evidence_error"].astype(float)
    own = own.assign(error=error.abs(), z=error / own["log_evidence_se"].astype(float))
    for name, group in own.groupby(np.where(own["status"] == OK, "passed", "warned")):
        z, n, path = group["z"], len(group), f"experiment3/weights/{name}/"
        rms = math.sqrt((z**2).mean())
        found = {"runs": Known(n, 0.0), "error": Known(group["error"].mean())}
        found |= {"mean-z": Known(z.mean(), z.std() / math.sqrt(n), n - 1.0)}
        found |= {"rms-z": Known(rms, rms / math.sqrt(2.0 * n), float(n))}
        yield from estimates(path, found, join_sources(group["source"]))


def _states(rows: pd.DataFrame) -> pd.Series:
    """Statuses of runs, or of a size that does not count how many of its runs have converged, as "1 of 10".

    A size counts if half of its runs, and at least two, have converged. A method that draws nothing has one run.
    """
    good = rows["status"] == OK
    groups = [rows[key] for key in _POINT]
    exact, known = rows["seed"].isna().groupby(groups), good.groupby(groups)
    converged, n = known.transform("sum"), known.transform("size")
    counts = converged >= np.where(exact.transform("all"), n, np.maximum(2, n / 2))
    return rows["status"].where(counts, converged.astype(str) + " of " + n.astype(str))


def _points(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Errors and seconds of every size. Runs that did not converge stand apart: no average mixes the two."""
    apart = rows[rows["state"].str.contains(" of ") & (rows["status"] != OK)].assign(state=OK)
    given = {"unit": _UNIT, "run": "run", "status": "state"}
    for quantity, column in _QUANTITIES.items():
        for base, part in (("", rows), ("/unconverged", apart)):
            template = f"experiment3/{{method}}/size{{size}}{base}/{quantity}"
            yield measured(part.dropna(subset=column), template, column, **given)


def row_of(method: str, error: str) -> str:
    """The row of the configuration that gives an error of a method."""
    return ANNEALED.get(method, method) if error == "evidence" else method


class Curves:
    """Errors against CPU seconds of every method: means over the data sets that the runs are on."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.rows = rows.assign(state=_states(rows))
        given = {"unit": _UNIT, "run": "run", "status": "state"}
        found = combine(
            measured(
                self.rows.dropna(subset=column), f"{{method}}/{{size}}/{column}", column, **given
            )
            for column in (*ERRORS.values(), "cpu_seconds")
        )
        wide = with_fields(summarise(found), "{method}/{size}/{column}").astype({"size": int})
        seconds = wide[wide["column"] == "cpu_seconds"]
        line = wide.merge(seconds, on=_POINT, suffixes=("", "_seconds")).sort_values("size")
        timed = (line["value"] > 0) & (line["value_seconds"] > 0)
        counts, exact = (line["status"] == OK) & timed, line["seed"] == ""
        sources = zip(line["source"], line["source_seconds"], strict=True)
        self.points = line.assign(
            status=line["status"].mask((line["status"] == OK) & ~timed, "not timed"),
            seconds=line["value_seconds"],
            log_error=np.log(line["value"].where(counts)),
            log_error_se=(line["se"] / line["value"]).where(counts & ~exact).fillna(0.0),
            df=line["df"].clip(lower=1.0),
            exact=exact,
            source=[join_sources(pair) for pair in sources],
        )

    def every(self, method: str, error: str) -> pd.DataFrame:
        """All sizes of a method with an error, in order."""
        of_row = self.points["method"] == row_of(method, error)
        return self.points[of_row & (self.points["column"] == ERRORS[error])]

    def line(self, method: str, error: str) -> pd.DataFrame:
        """The sizes that count."""
        return self.every(method, error).query("status == @OK")

    def curve(self, method: str, error: str) -> Curve:
        """The curve through the sizes that count."""
        return Curve(self.line(method, error), converges=method not in BIASED)

    def needed(self, method: str, error: str, target: float) -> Crossing:
        """CPU seconds that a method needs for a log error."""
        every, found = self.every(method, error), self.curve(method, error).crossing(target)
        if found.status == "not run" and len(every):
            return Crossing(math.nan, status=str(every["status"].iloc[-1]))
        return found

    def claim(self, method: str, error: str, where: str) -> tuple[Crossing, float]:
        """Ratio of CPU seconds to those of the sampler, and the log error at which they are compared."""
        every, line = self.every(method, error), self.line(method, error)
        point = every.iloc[0] if where == "moderate" else (line if len(line) else every).iloc[-1]
        if where == "moderate" and len(line) == 1:
            return Crossing(math.nan, status="one size only"), math.nan
        if point["status"] != OK:
            found = Crossing(math.nan, status=f"{point['status']} runs converged")
            return found, TARGET if where == "target" else math.nan
        if where == "target":
            found = self.needed(method, error, TARGET)
            return found.over(self.needed(SAMPLER, error, TARGET)), TARGET
        target, se, df = self.curve(method, error).error(0 if where == "moderate" else -1)
        needed = self.curve(SAMPLER, error).crossing(target, se, df)
        return Crossing(math.log(point["seconds"])).over(needed), target


def _times(curves: Curves) -> Iterator[Row]:
    """CPU seconds of methods for an error: all for one target, the sampler also for that of deterministic methods.

    The target of the evidence is the quoted one, that of probabilities the least of the sampler, rounded up to halves.
    """
    for name, (seconds, log) in QUOTED.items():
        yield estimate(f"experiment3/quoted/{name}/seconds", seconds, QUOTED_SOURCE)
        yield estimate(f"experiment3/quoted/{name}/log-mape", log, QUOTED_SOURCE)
    named = {row: method for method, row in ANNEALED.items()}
    for error, column in ERRORS.items():
        there = curves.points.loc[curves.points["column"] == column, "method"]
        line, sampler = curves.line(SAMPLER, error), curves.curve(SAMPLER, error)
        path, least = f"time/{error}", np.ceil(2.0 * sampler.log_error.min(initial=np.inf)) / 2.0
        target = TARGET if error == "evidence" else float(least)
        for method in dict.fromkeys(there.replace(named)):
            every = curves.every(method, error)
            source = join_sources(every["source"])
            for point in curves.line(method, error).query("exact").to_dict("records"):
                found = sampler.crossing(point["log_error"])
                if found.status == "at least":  # the bound is where extrapolation stops
                    found = replace(found, log=found.log + math.log(FARTHEST))
                both = join_sources([*line["source"], source])
                yield found.row(f"{path}/{method}/sampler-seconds", both)
            if math.isfinite(target):
                found = curves.needed(method, error, target)
                yield found.row(f"{path}/{method}/seconds", source)
                if method != SAMPLER:
                    ratio = found.over(curves.needed(SAMPLER, error, target))
                    yield ratio.row(f"{path}/{method}/ratio", source)


def _both(curves: Curves) -> Iterator[Row]:
    """CPU seconds for both errors of the sampler's runs over those of these runs, which give both, by their size.

    Chains of the toolbox give both outputs, too, repaired or not, and need the longer of two times. Re-engineered ones
    need their sum: their annealed runs, which give the evidence, and their long chains are rows of their own.
    """
    for size, points in curves.points[curves.points["method"] == SAMPLER].groupby("size"):
        own = points.set_index("column")
        if not (own["status"].reindex([*ERRORS.values()]) == OK).all():
            continue
        spent = float(own["seconds"].iloc[0])
        for sampler, suffix in product(ANNEALED, FORMS.values()):
            method = sampler + suffix
            needed = []
            for error in ERRORS:
                place = curves.line(SAMPLER, error)["size"].tolist().index(size)
                target, *_ = curves.curve(SAMPLER, error).error(place)
                needed.append(curves.needed(method, error, target))
            unknown = [one.status for one in needed if one.status != OK]
            seconds = [math.exp(one.log) for one in needed]
            total = max(seconds) if suffix else sum(seconds)
            source = join_sources(curves.every(method, "evidence")["source"])
            path = f"time/both/{method}/size{size}"
            known = Known(total / spent, status=unknown[0] if unknown else OK)
            yield estimate(f"{path}/ratio", known, source, scale="log")
            for error, one, value in zip(ERRORS, needed, seconds, strict=True):
                share = Known(value / spent, status=one.status)
                yield estimate(f"{path}/{error}", share, source, scale="log")


def _shared(rows: pd.DataFrame, given: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """The runs of methods, each with an error, on the data sets that all of them have."""
    wanted = [(row_of(method, error), ERRORS[error]) for method, error in given]
    own = rows[rows["method"].isin([row for row, _ in wanted])]
    there = [own[(own["method"] == row) & own[column].notna()] for row, column in wanted]
    return own[own["dataset"].isin(set.intersection(*(set(one["dataset"]) for one in there)))]


def _over_data_sets(runs: pd.DataFrame, ratio: Callable[[Curves], Crossing]) -> Crossing:
    """A ratio of means over data sets; its standard error leaves out one at a time, if there are several."""
    found, data_sets = ratio(Curves(runs)), runs["dataset"].unique()
    if len(data_sets) < 2:
        return found
    left = (Curves(runs[runs["dataset"] != one]) for one in data_sets)
    return found.jackknifed([ratio(one).log for one in left])


def _claims(rows: pd.DataFrame) -> Iterator[Row]:
    """The claims under each level of their readings, and where they are judged under ``time/claims``.

    A claim on several data sets is shown for the first alone, too, which has the most runs and is all that others have.
    """
    for ((method, error), claims), (chain, suffix) in product(CLAIMS.items(), CHAINS.items()):
        name = method + suffix
        row = row_of(name, error)
        pair = _shared(rows, [(SAMPLER, error), (name, error)])
        for levels, runs in _readings(pair, row, error):
            curves, first = Curves(runs), runs[runs["dataset"] == 0]
            if curves.line(SAMPLER, error).empty:
                continue
            source = join_sources(curves.every(name, error)["source"])
            given = {"source": source, "reading": reading_text({"chain": chain} | levels)}
            for claim, where in claims.items():
                compared = name, error, where

                def ratio(one: Curves, compared: tuple[str, str, str] = compared) -> Crossing:
                    return one.claim(*compared)[0]

                found = _over_data_sets(runs, ratio)
                if len(first) < len(runs):
                    alone = ratio(Curves(first))
                    yield alone.row(f"time/claims/{claim}/first-data-set", **given)
                yield found.row(f"claim/time/{claim}", **given)
                target = curves.claim(*compared)[1]
                beyond = math.exp(found.beyond) if math.isfinite(found.log) else math.nan
                for place, value in (("log-error", target), ("extrapolation", beyond)):
                    if math.isfinite(value):
                        yield estimate(f"time/claims/{claim}/{place}", value, **given)


def _settings(rows: pd.DataFrame) -> Iterator[Row]:
    """Claims that set times of chains beside one another, with the variance counted once.

    CPU seconds of slice sampling as distributed over re-engineered, for the quoted error of the evidence, and those of
    repaired chains over scheduled ones, which differ in their settings alone (``time/settings``); and the ratio of HMC
    to the sampler for the evidence over that for probabilities.
    """
    once = rows.assign(probability_mae=rows[_READ["once"]].fillna(rows["probability_mae"]))
    for chain, suffix in CHAINS.items():
        name = f"hmc{suffix}"
        runs = _shared(once, [(one, error) for one in (SAMPLER, name) for error in ERRORS])

        def margin(one: Curves, name: str = name) -> Crossing:
            evidence, probability = (one.claim(name, error, "high")[0] for error in ERRORS)
            return evidence.over(probability)

        if len(runs):
            source = join_sources(Curves(runs).every(name, "evidence")["source"])
            found = _over_data_sets(runs, margin)
            yield found.row("claim/time/margin", source, reading=f"chain={chain}")
    yield from _slower(once, "ess-gpml", "ess", "claim/chain/settings")
    for sampler in ANNEALED:
        yield from _slower(
            once, f"{sampler}-repaired", f"{sampler}-scheduled", f"time/settings/{sampler}"
        )


def _slower(rows: pd.DataFrame, slow: str, fast: str, name: str) -> Iterator[Row]:
    """CPU seconds of one chain over those of another, for the quoted error of the evidence."""
    runs = _shared(rows, [(slow, "evidence"), (fast, "evidence")])
    if len(runs):
        source = join_sources(
            source
            for one in (fast, slow)
            for source in Curves(runs).every(one, "evidence")["source"]
        )

        def ratio(one: Curves) -> Crossing:
            over, under = (one.needed(method, "evidence", TARGET) for method in (slow, fast))
            return over.over(under)

        yield _over_data_sets(runs, ratio).row(name, source)


def _readings(
    runs: pd.DataFrame, row: str, error: str
) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Runs of two methods under each way to read the predictions of one, where it has more than one."""
    if error == "evidence" or row not in BIASED:
        yield {}, runs
        return
    for reading, column in _READ.items():
        own = (runs["method"] == row) & runs[column].notna()
        read = runs["probability_mae"].mask(own, runs[column])
        yield {"variance": reading}, runs.assign(probability_mae=read)
