"""How each method scales: its error by patterns, kernel and law of data, what it says of itself, and CPU seconds.

What stands for the truth, and how an error is judged by it: `studies.atiya2021.measures.long_runs`.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, join_sources
from recheck.judge.published import read_published
from studies.atiya2021.experiments.scaling import CURVE, REFERENCES
from studies.atiya2021.measures.common import (
    EVES,
    Known,
    Row,
    by_eves,
    combine,
    each,
    estimate,
    estimates,
    measured,
    timed,
)
from studies.atiya2021.measures.long_runs import (
    DATA,
    FIRST,
    NUMBERS,
    SECOND,
    scored,
    truths,
)
from studies.common.measuring import Rows

SAMPLER = "sampler"
#: Dimensions that the paper names (section 6.5). There the sampler has the number of samples that the paper states.
NAMED, NAMED_FOR = 2000, "million"
#: What shares no orthant with the long runs.
WITNESS = "latent"
#: Pairs of methods whose errors are set beside one another: how often the first one is closer.
_PAIRS = [(name, SAMPLER) for name in ("ep", "hmc-annealed", "ess-annealed")]
_PAIRS += [("importance-ep", SECOND), ("importance-ep", FIRST)]
_PAIRS += [("ep", "hmc-annealed"), (SECOND, FIRST), (SAMPLER, "sampler-hard")]
#: Patterns from which most runs of the sampler on rough kernels are off.
_LARGE_N = 500
#: Patterns up to which both long runs are all but exact.
_SMALL_N = 50
#: Ranges of effective eves in which errors are set beside the inverse root of their number.
_RANGES = (10, 20), (20, 50)
#: Effective eves below which a run may be off by more than a nat.
_FEW = 20
#: Degrees of freedom of the standard error of the truth: two long runs have 15 each, or one of them more.
_DF = 15.0

_COLUMNS = ["row", *DATA, "law", "method", "inference", "status"]
#: The length of a run of `FIRST` or `SECOND`.
LENGTH = ["points", "randomizations"]
_UNIT = "scaling/{kernel}/N{N}/dataset{dataset}"
_PATH = "scaling/{kernel}/N{N}/{method}/"
_CURVE = "scaling/curve/{kernel}/N{N}/{method}/{count}/{quantity}"


def measure(given: Rows) -> pd.DataFrame:
    """All measures of the study of scaling."""
    rows = timed(given, "scaling", _COLUMNS, optional=[*NUMBERS, *LENGTH, EVES, "seed", "data"])
    numbers = [*NUMBERS, *LENGTH, EVES, "cpu_seconds"]
    rows[numbers] = rows[numbers].astype(float)
    long = rows["method"].isin([*REFERENCES.values()])
    known = truths(rows[long])
    every = _apart(scored(rows[~long].reset_index(drop=True), known), known)
    further = every["method"].str.contains(CURVE)
    runs = every[~further].reset_index(drop=True)
    return combine(
        _runs(runs),
        _cells(runs),
        _curve(every[further]),
        _calibration(runs),
        _references(known, rows[long]),
        _alone(known, runs),
        _claim(runs, given.published),
        _closer(runs),
        _dearer(runs, every[further], rows[long]),
        _eves(runs),
    )


def _apart(runs: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Runs of `FIRST` with their distance from its own long run, which has other random numbers; of others none.

    ``apart_z`` has it in joint standard errors, and ``apart_source`` where both are from.
    """
    own = runs["inference"] == FIRST
    names = [f"{name}_{FIRST}" for name in ("value", "se", "source")]
    long = known[names].reindex(pd.MultiIndex.from_frame(runs[DATA])).set_index(runs.index)
    value, se, source = (long[name] for name in names)
    apart = (runs["log_evidence"] - value).abs().where(own)
    joint = np.hypot(runs["log_evidence_se"], se)
    pairs = zip(runs["source"], source.fillna(""), strict=True)
    both = pd.Series([join_sources(pair) for pair in pairs], index=runs.index, dtype=object)
    return runs.assign(apart=apart, apart_z=apart / joint.where(joint > 0), apart_source=both)


def _eves(runs: pd.DataFrame) -> Iterator[Row]:
    """Effective eves of runs that are off by more than a nat, that are not, and that are off and fall short.

    ``rms-10-20`` is the root mean square of error times the root of the eves, of runs with ten to twenty.
    Of the sampler, and (``variants``) of its other count, its other orders of patterns, and the adapted one together.
    ``reported`` has the reported standard error times the root of the eves, by the way of counting: of all runs, and of
    those with few eves.
    """
    large = runs[(runs["method"] == SAMPLER) & (runs["N"] >= _LARGE_N)]
    kinds = {"all": large["log_evidence"].notna(), "right": large["right"]}
    yield from by_eves("scaling/eves/large/", large, kinds)
    varied = runs["method"].str.startswith(f"{SAMPLER}-") | (runs["method"] == "adapted")
    groups = {"": runs[runs["method"] == SAMPLER], "variants/": runs[varied]}
    for path, own in groups.items():
        kinds = {"off": own["wrong"], "right": own["right"]}
        kinds |= {"short": own["wrong"] & (own["difference"] < 0)}
        yield from by_eves(f"scaling/eves/{path}", own, kinds)
        for low, high in _RANGES:
            there = own[own["truth_sound"] & own[EVES].between(low, high, inclusive="left")]
            z = there["difference"] * np.sqrt(there[EVES])
            source = join_sources(there["error_source"])
            yield estimate(f"scaling/eves/{path}rms-{low}-{high}", _rms(z), source)
    for count, method in {"hard": f"{SAMPLER}-hard", "soft": SAMPLER}.items():
        own = runs[(runs["method"] == method) & runs[EVES].notna()]
        for end, group in {"": own, "few/": own[own[EVES] < _FEW]}.items():
            ratio = group["log_evidence_se"] * np.sqrt(group[EVES])
            if len(group):
                extremes = {"least": ratio.min(), "largest": ratio.max()}
                source = join_sources(group["source"])
                yield from estimates(f"scaling/eves/reported-{count}/{end}", extremes, source)


def _runs(runs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """What is measured of each run. Its error and what it reports have the status that it gives itself."""
    with_error = runs.assign(source=runs["error_source"])
    status = runs["status"].mask((runs["status"] == OK) & runs["bound"], "at most")
    status = status.mask(~runs["failed"] & runs["error"].isna(), "no reference")
    yield measured(with_error, f"{_PATH}error", "error", unit=_UNIT, status=status)
    # a deterministic method reports an error of zero
    stochastic = runs[runs["log_evidence_se"] != 0]
    yield measured(stochastic, f"{_PATH}se", "log_evidence_se", unit=_UNIT, status="status")
    worked = runs["status"].where(runs["failed"], OK)
    yield measured(runs, f"{_PATH}seconds", "cpu_seconds", unit=_UNIT, status=worked)
    for name in ("failed", "flagged"):
        yield measured(runs, f"{_PATH}{name}", name, unit=_UNIT, scale="linear")
    judged = runs.assign(source=runs["truth_source"])[runs["error"].notna()]
    yield measured(judged, f"{_PATH}truth-se", "truth_se", unit=_UNIT)


def _cells(runs: pd.DataFrame) -> Iterator[Row]:
    """Median and largest error of all runs with a number, flagged or not, and how many were flagged, failed or off.

    Of `FIRST` also the median distance from its own long run (``apart``), and of `NAMED_FOR` the least error.
    """
    there = runs.assign(source=runs["error_source"])[runs["error"].notna()]
    keys = ["kernel", "N", "method"]
    errors = {"median": _median, "largest": _largest}
    yield from each(there, keys, f"{_PATH}{{quantity}}", errors)
    counts: dict[str, Any] = {"runs": len}
    counts |= {f"{name}-runs": (name, "sum") for name in ("flagged", "failed", "wrong")}
    yield from each(runs, keys, f"{_PATH}{{quantity}}", counts)
    own = there.assign(source=there["apart_source"])[there["apart"].notna()]
    yield from each(own, keys, f"{_PATH}{{quantity}}", {"apart": ("apart", "median")})
    named = there[there["method"] == NAMED_FOR]
    yield from each(named, keys, f"{_PATH}{{quantity}}", {"least": _least})


def _curve(runs: pd.DataFrame) -> Iterator[Row]:
    """Median error, mean seconds and flagged share of methods with further counts; ``apart`` as in `_cells`."""
    if runs.empty:
        return
    names = runs["method"].str.partition(CURVE)
    there = runs.assign(method=names[0], count=names[2], source=runs["error_source"])
    there = there[there["error"].notna()]
    keys = ["kernel", "N", "method", "count"]
    found: dict[str, Any] = {"median": _median, "seconds": ("cpu_seconds", "mean")}
    found |= {"flagged": ("flagged", "mean")}
    yield from each(there, keys, _CURVE, found)
    own = there.assign(source=there["apart_source"])[there["apart"].notna()]
    yield from each(own, keys, _CURVE, {"apart": ("apart", "median")})


def _median(group: pd.DataFrame) -> Known:
    """The median error; a bound where half of the errors are."""
    if group.empty:
        return Known(status="none")
    status = "at most" if group["bound"].mean() >= 0.5 else OK
    return Known(float(group["error"].median()), 0.0, status=status)


def _largest(group: pd.DataFrame) -> Known:
    """The largest error; a bound where that one is."""
    return _one(group.nlargest(1, "error"))


def _least(group: pd.DataFrame) -> Known:
    """The least error, as `_largest`."""
    return _one(group.nsmallest(1, "error"))


def _one(group: pd.DataFrame) -> Known:
    if group.empty:
        return Known(status="none")
    row = group.iloc[0]
    return Known(float(row["error"]), 0.0, status="at most" if row["bound"] else OK)


def _calibration(runs: pd.DataFrame) -> Iterator[Row]:
    """How far a method is off, and whether it knows, over all kernels and data sets.

    ``flagged`` counts the runs that warn, ``wrong`` those that are certainly off by more than a nat, ``right`` those
    that certainly are not; ``wrong-flagged`` and ``right-flagged`` are the shares of either that warn. ``rms`` is the
    root mean square of error over standard error, of runs whose status is "ok" (``ok`` counts them): the variance of
    the truth is added to the reported one. ``rms-alone`` leaves the truth's out, and ``truth-share`` is the median
    share of the truth's in the sum. Each is given for every number of patterns and law of data, too, and of many
    patterns (``large``) for every law and kernel. Of `FIRST`, whose errors are too small for its truth, ``apart-rms``
    is of so many distances from its long run (``apart``) over joint standard errors.
    """
    quantities: dict[str, Any] = {
        "runs": len,
        "failed": ("failed", "sum"),
        "flagged": ("flagged", "sum"),
        "wrong": ("wrong", "sum"),
        "wrong-flagged": lambda group: _share(group[group["wrong"]]),
        "right": ("right", "sum"),
        "right-flagged": lambda group: _share(group[group["right"]]),
        "ok": ("z", "count"),
        "rms": lambda group: _rms(group["z"].dropna()),
        "rms-alone": lambda group: _rms(group["alone"].dropna()),
        "truth-share": ("share", "median"),
        "median": lambda group: _median(group.dropna(subset="error")),
        "largest": lambda group: _largest(group.dropna(subset="error")),
    }
    rows, path = _over_reported(runs), "scaling/calibration/{method}/"
    large = rows[rows["N"] >= _LARGE_N]
    groups = {
        "": rows,
        "N{N}/": rows,
        "{law}/": rows,
        "large/{law}/": large,
        "large/{kernel}/": large,
    }
    for own, frame in groups.items():
        by = ["method", *re.findall(r"{(\w+)}", own)]
        yield from each(frame, by, f"{path}{own}{{quantity}}", quantities)
    own = rows.assign(source=rows["apart_source"])[rows["passed_apart"].notna()]
    apart: dict[str, Any] = {"apart": len, "apart-rms": lambda group: _rms(group["passed_apart"])}
    yield from each(own, "method", f"{path}{{quantity}}", apart)


def _over_reported(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs with their errors over what is reported, of those whose status is "ok" and whose error is known.

    ``z`` is over the joint standard error of run and truth, ``alone`` over the run's; ``share`` is the truth's in the
    joint variance. ``passed_apart`` has the ``apart_z`` of those whose status is "ok".
    """
    passed = (runs["status"] == OK) & (runs["log_evidence_se"] > 0)
    apart = runs["apart_z"].where(passed)
    passed &= runs["difference"].notna() & runs["truth_sound"]
    own = runs["log_evidence_se"].where(passed)
    joint = np.hypot(own, runs["truth_se"])
    error = runs["difference"]
    more = {"z": error / joint, "alone": error / own, "share": (runs["truth_se"] / joint) ** 2}
    return runs.assign(source=runs["error_source"], passed_apart=apart, **more)


def _closer(runs: pd.DataFrame) -> Iterator[Row]:
    """On how many data sets a method is closer to the truth than another, and in how many of its seconds, by N.

    ``closer`` counts the data sets, of ``data-sets`` on which both have a number; ``seconds`` is the median ratio. Each
    is given by kernel, too.
    """
    by = {str(name): group for name, group in runs.groupby("method", sort=False)}
    counts = {"data-sets": len, "closer": ("closer", "sum"), "seconds": ("seconds", "median")}
    for first, second in _PAIRS:
        if not {first, second} <= by.keys():
            continue
        pairs = by[first].merge(by[second], on=DATA, suffixes=("", "_other"))
        pairs = pairs[pairs["difference"].notna() & pairs["difference_other"].notna()]
        sources = zip(pairs["error_source"], pairs["error_source_other"], strict=True)
        frame = pairs.assign(
            closer=pairs["difference"].abs() < pairs["difference_other"].abs(),
            seconds=pairs["cpu_seconds"] / pairs["cpu_seconds_other"],
            source=[join_sources(two) for two in sources],
        )
        path = f"scaling/closer/{first}/{second}/N{{N}}/"
        yield from each(frame.sort_values("N", kind="stable"), "N", f"{path}{{quantity}}", counts)
        yield from each(frame, ["N", "kernel"], f"{path}{{kernel}}/{{quantity}}", counts)


def seconds_at(error: pd.Series, short: pd.DataFrame, long: pd.DataFrame) -> pd.Series:
    """Return the CPU seconds that a method would take to report another standard error, by data set.

    Two lengths of the method tell what a point takes, and what comes before the first one (its EP, its Newton steps, a
    factorisation), which no smaller number of points saves. The variance falls as the inverse of the points. It is that
    of the longer run.

    Parameters
    ----------
    error : (n,) Series
        Standard errors; those that are zero need no end of points.
    short, long : (n, ...) DataFrame
        Runs of two lengths: ``points``, ``randomizations``, ``cpu_seconds``, ``log_evidence_se``.
    """
    points, more = (of["points"] * of["randomizations"] for of in (short, long))
    each = ((long["cpu_seconds"] - short["cpu_seconds"]) / (more - points)).clip(lower=0.0)
    before = (short["cpu_seconds"] - each * points).clip(lower=0.0)
    return before + each * more * (long["log_evidence_se"] / error) ** 2


def _dearer(runs: pd.DataFrame, further: pd.DataFrame, long: pd.DataFrame) -> Iterator[Row]:
    """CPU seconds of a method over those of twisted EP at the method's own standard error: medians by N and kernel.

    Where twisted EP ran with several numbers of points: those with the fewest and with the default tell what a point
    takes. A long run of twice as many points is too near the default to tell what comes before the first one.
    Minimax tilting's long runs are compared as well (``minimax-tilting-long``): how much of twisted EP's time its start
    takes depends on the error.
    """
    by = {str(name): group.set_index(DATA) for name, group in runs.groupby("method", sort=False)}
    few = further[further["inference"] == FIRST]
    if FIRST not in by or few.empty:
        return
    few = few[few["points"] == few["points"].min()].set_index(DATA)
    compared = {name: by[name] for name in (SECOND, "importance-ep") if name in by}
    compared[f"{SECOND}-long"] = long[long["method"] == REFERENCES[SECOND]].set_index(DATA)
    for method, own in compared.items():
        own = own[own["log_evidence_se"] > 0]
        here = own.index.intersection(few.index).intersection(by[FIRST].index)
        own, short, default = (one.loc[here] for one in (own, few, by[FIRST]))
        lines = zip(own["source"], short["source"], default["source"], strict=True)
        frame = own.assign(
            ratio=own["cpu_seconds"] / seconds_at(own["log_evidence_se"], short, default),
            source=[join_sources(three) for three in lines],
        )
        of_kernels = {"ratio": ("ratio", "median")}
        for n, group in frame.groupby("N"):
            yield from each(group, "kernel", f"scaling/dearer/{method}/N{n}/{{kernel}}", of_kernels)


def _claim(runs: pd.DataFrame, published: Path) -> Iterator[Any]:
    """How far the sampler's runs are off at the largest dimension that the paper names: it says that it worked there.

    The paper names no kernel, so that each of ``readings.yaml`` is a reading.
    The error of a finished run is no random quantity, and is judged by the standard error of the truth.
    """
    there = runs[(runs["N"] == NAMED) & (runs["method"] == NAMED_FOR) & runs["truth_sound"]]
    choice = read_published(published).readings.get("kernel")
    there = there[
        there["difference"].notna() & there["kernel"].isin(choice.levels if choice else ())
    ]
    path, reading = "claim/works/dimension", "kernel=" + there["kernel"]
    if there.empty:
        yield estimate(path, Known(status="not comparable"), "")
        return
    there = there.assign(off=there["difference"].abs(), source=there["error_source"])
    rows = measured(there, path, "off", unit=_UNIT, scale="linear", reading=reading)
    yield rows.assign(se=there["truth_se"], df=_DF)


def _share(group: pd.DataFrame) -> Known:
    """The share of runs that their own status flags; of none, there is none to be had."""
    if group.empty:
        return Known(status="none")
    return Known(float(group["flagged"].mean()), 0.0)


def _rms(z: pd.Series) -> Known:
    """Root mean square, with the standard error that it has where z is normal."""
    if z.empty:
        return Known(status="none")
    value = math.sqrt(float(np.mean(z.astype(float) ** 2)))
    return Known(value, value / math.sqrt(2.0 * len(z)), float(len(z)))


def _alone(known: pd.DataFrame, runs: pd.DataFrame) -> Iterator[Row]:
    """What else there is where the long run of minimax tilting fails, and that of twisted EP stands alone.

    The largest distance of either method from it (``apart``); that of minimax tilting in joint standard errors too, the
    root mean square of these, and each of them (``z``), negative where minimax tilting lies below. The ``least``
    distance of EP and of the sampler from either, whichever is right. How many runs of importance sampling from EP pass
    there, of so many ``pairs`` of a data set and a kernel. How far a third method (``witness``), which uses no orthant,
    is from twisted EP, and how many of its runs pass.
    """
    alone = known[known[f"sound_{FIRST}"] & ~known[f"sound_{SECOND}"]]
    if alone.empty:
        return
    path, source = "scaling/reference/alone/", join_sources(alone["source_combined"])
    long, z = alone[[f"value_{name}" for name in (FIRST, SECOND)]], alone["z"]
    found = {"pairs": len(alone), "apart": long.diff(axis="columns").abs().max(axis=None)}
    found |= {"largest-z": z.abs().max(), "rms-z": _rms(z)}
    found |= {"z/{}/N{}/dataset{}".format(*key): -of for key, of in z.items()}
    by = {name: own.set_index(DATA).reindex(alone.index) for name, own in runs.groupby("method")}
    for name in [name for name in ("ep", SAMPLER) if name in by]:
        least = long.sub(by[name]["log_evidence"], axis="index").abs().min(axis=None)
        both = join_sources([source, *by[name]["source"].dropna()])
        yield estimate(f"{path}{name}/least", least, both)
    if (own := by.get("importance-ep")) is not None:
        distance = (own["log_evidence"] - alone[f"value_{FIRST}"]).abs()
        found |= {"importance-ep/passed": (own["status"] == OK).sum()}
        found |= {"importance-ep/apart": distance.max()}
    yield from estimates(path, found, source)
    if (own := by.get(WITNESS)) is not None:
        gap = own["log_evidence"] - alone[f"value_{FIRST}"]
        z = gap / np.hypot(own["log_evidence_se"], alone[f"se_{FIRST}"])
        both = join_sources([source, *own["source"].dropna()])
        found = {"pairs": gap.notna().sum(), "passed": (own["status"] == OK).sum()}
        found |= {"apart": gap.abs().max(), "largest-z": z.abs().max(), "rms-z": _rms(z.dropna())}
        yield from estimates(f"{path}witness/", found, both)


def _references(known: pd.DataFrame, long: pd.DataFrame) -> Iterator[Any]:
    """How far the two long runs are apart, by pair of a data set and a kernel and over all; how many data sets.

    Of pairs where both pass and patterns are many, on how many twisted EP's is ``above``, and their ``gap`` in the
    median; from `_LARGE_N` patterns on its share of the truth (``weight``), in the median.
    """
    if known.empty:
        return
    source = join_sources(long["source"])
    yield estimate("scaling/data-sets", long["data"].nunique(), source)
    for law, own in long.groupby("law", sort=False):
        yield estimate(f"scaling/data-sets/{law}", own["data"].nunique(), source)
    frame = known.reset_index().assign(source=known["source_combined"].to_numpy())
    path = "scaling/{kernel}/N{N}/reference/"
    compared = frame[frame["z"].notna()]
    yield measured(compared, f"{path}z", "z", unit=_UNIT, scale="linear")
    for name in ("agree", "sound"):
        yield measured(frame, f"{path}{name}", name, unit=_UNIT, scale="linear")
    for name in (FIRST, SECOND):
        there = frame[frame[f"se_{name}"].notna()]
        yield measured(there, f"{path}se-{name}", f"se_{name}", unit=_UNIT)
        passed, own = f"sound_{name}", join_sources(frame[f"source_{name}"])
        yield estimate(f"scaling/reference/sound-{name}", frame[passed].sum(), own)
    found = {"data-sets": len(frame), "agree": frame["agree"].sum(), "sound": frame["sound"].sum()}
    if len(sound := frame[frame["sound"] & frame["z"].notna()]):
        found |= {"rms-z": _rms(sound["z"]), "largest-z": sound["z"].abs().max()}
        # on small problems both are exact but for rounding
        gap = (sound[f"value_{FIRST}"] - sound[f"value_{SECOND}"])[sound["N"] > _SMALL_N]
        found |= {"compared": len(gap), "above": (gap > 0.0).sum(), "gap": gap.median()}
    yield from estimates("scaling/reference/", found, join_sources(frame["source"]))
    weight = 1.0 - (frame["se_combined"] / frame[f"se_{SECOND}"]) ** 2
    large = frame.assign(weight=weight)[frame["agree"] & (frame["N"] >= _LARGE_N)]
    if len(large):
        yield estimate("scaling/reference/weight", large["weight"].median(), source)
