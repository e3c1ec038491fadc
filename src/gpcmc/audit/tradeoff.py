r"""Summaries of Experiment 3: operating points, CPU seconds for an error, and the paper's statements about them.

An error is the mean over runs, and its logarithm, natural, is taken after averaging. A size at which
fewer than half of the runs have converged has the numbers of those that have not, and says so: no
converged run is averaged with one that has not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtr

from gpcmc.audit.compare import welch_satterthwaite
from gpcmc.audit.results import ResultFiles, mean_and_error, read
from gpcmc.inference.interface import OK

__all__ = [
    "CLAIMS",
    "FARTHEST",
    "FORMS",
    "MEASURES",
    "NOTHING",
    "PUBLISHED",
    "SERIES",
    "Crossing",
    "against",
    "claims",
    "crossing",
    "line_of",
    "needed",
    "points",
    "series_of",
    "targets",
]

# ---------------------------------------------------------------------------------------------------------------------
# Experiment 3: operating points


@dataclass(frozen=True, slots=True)
class Series:
    """A method of Experiment 3 as it is printed.

    Attributes
    ----------
    label : str
    probability, evidence : str
        Rows of the configuration that give each: of the chains done properly one row has the chain
        alone and one the annealed runs.
    converges : bool
        Whether errors fall without end as the square root of time: not of deterministic methods, nor of
        the toolbox as shipped.
    """

    label: str
    probability: str
    evidence: str
    converges: bool = True


#: In the order of tables and legends.
SERIES: dict[str, Series] = {
    "orthant": Series("orthant (soft)", "orthant", "orthant"),
    "orthant-adapted": Series("orthant (adapted)", "orthant-adapted", "orthant-adapted"),
    "best": Series("twisted (best)", "best", "best"),
    "minimax-tilting": Series("minimax tilting", "minimax-tilting", "minimax-tilting"),
    "importance-ep": Series("EP importance", "importance-ep", "importance-ep"),
    "ess": Series("ESS (proper)", "ess", "ess-ais"),
    "ess-gpml": Series("ESS as shipped", "ess-gpml", "ess-gpml", converges=False),
    "hmc": Series("HMC (proper)", "hmc", "hmc-ais"),
    "hmc-gpml": Series("HMC as shipped", "hmc-gpml", "hmc-gpml", converges=False),
    "laplace": Series("Laplace", "laplace", "laplace", converges=False),
    "ep": Series("EP", "ep", "ep", converges=False),
}

MEASURES = {"probability": "probability_mae", "evidence": "ape_percent"}

#: Operating points that the text of section 6.3 quotes: CPU seconds and natural log of MAPE in percent.
PUBLISHED = {"new": ("NEW", 525.0, -4.52), "ess": ("ESS", 5350.0, -4.70)}
#: Log MAPE near which the paper compares the two.
TARGET = -4.5

#: Extrapolation goes so far in CPU seconds and not further.
FARTHEST = 100.0


def series_of(methods: Iterable[str]) -> dict[str, Series]:
    """The known series, and one for each row of results that belongs to none of them."""
    known = {row for one in SERIES.values() for row in (one.probability, one.evidence)}
    further = sorted(set(methods) - known)
    return SERIES | {name: Series(name, name, name) for name in further}


def points(files: ResultFiles) -> pd.DataFrame:
    """Operating points of Experiment 3: one row a measure, series and size.

    Returns
    -------
    DataFrame
        ``measure``, ``series``, ``method`` (the row of the configuration), ``size`` (place in the grid),
        ``setting`` (what it was: "3000 samples"), ``runs``, ``ok`` (those that have converged),
        ``status`` (of the others), ``deterministic``, ``full`` (whether the numbers are of converged runs),
        ``averaged`` (runs behind the numbers), ``cpu_seconds`` (mean), ``error`` (mean; MAPE in percent)
        with ``error_se``, its natural ``log_error`` with ``log_error_se``, and for the evidence
        ``nats`` (mean absolute error), ``nats_se``, ``bias`` (mean error, nats) and ``bias_se``.
    """
    keys = ["method", "size", "run"]
    rows = read(files.experiment3, [*keys, "status"])
    timing = read(files.experiment3_timing, [*keys, "cpu_seconds"])
    rows = rows.merge(timing[[*keys, "cpu_seconds"]], on=keys, how="left")
    for name in ("ape_percent", "probability_mae", "log_evidence_error", "seed"):
        if name not in rows:
            rows[name] = math.nan
    found = []
    by_method = dict(list(rows.groupby("method")))
    for measure, column in MEASURES.items():
        for name, series in series_of(by_method).items():
            part = by_method.get(getattr(series, measure))
            if part is None:
                continue
            what = _what_varies(part)
            for size, group in part.groupby("size"):
                found.append(
                    {
                        "measure": measure,
                        "series": name,
                        "method": getattr(series, measure),
                        "size": int(size),
                        "setting": _setting(group, what),
                        **_point(group, column),
                    }
                )
    columns = ["measure", "series", "method", "size", "setting", "runs", "ok", "status"]
    columns += ["deterministic", "full", "averaged", "cpu_seconds", "error", "error_se"]
    columns += ["log_error", "log_error_se", "nats", "nats_se", "bias", "bias_se"]
    return pd.DataFrame(found, columns=columns)


def _what_varies(rows: pd.DataFrame) -> str | None:
    """The count that makes the sizes of a method: one that varies, else one that is there."""
    there = {}
    for name in ("temperatures", "points", "samples"):
        counts = pd.to_numeric(rows[name], errors="coerce") if name in rows else pd.Series([0.0])
        if (counts > 0).all():
            there[name] = counts.nunique()
    return next((name for name, sizes in there.items() if sizes > 1), next(iter(there), None))


def _setting(group: pd.DataFrame, what: str | None) -> str:
    return "" if what is None else f"{int(pd.to_numeric(group[what].iloc[0]))} {what}"


def _point(group: pd.DataFrame, column: str) -> dict[str, object]:
    deterministic = bool(group["seed"].isna().all())
    good = group["status"] == OK
    ok, runs = int(good.sum()), len(group)
    full = ok == runs if deterministic else ok >= max(2, runs / 2)
    chosen = group[good == full].dropna(subset=column)
    error, error_se = mean_and_error(chosen[column])
    log, log_se = (math.log(error), error_se / error) if error > 0 else (math.nan, math.nan)
    row = {
        "runs": runs,
        "ok": ok,
        "status": OK if full else group.loc[~good, "status"].mode().iloc[0],
        "deterministic": deterministic,
        "full": full,
        "averaged": len(chosen),
        "cpu_seconds": mean_and_error(chosen["cpu_seconds"].dropna())[0],
        "error": error,
        "error_se": error_se,
        "log_error": log,
        "log_error_se": log_se,
    }
    if column == MEASURES["evidence"]:
        signed = chosen["log_evidence_error"].astype(float)
        row["nats"], row["nats_se"] = mean_and_error(signed.abs())
        row["bias"], row["bias_se"] = mean_and_error(signed)
    return row


# ---------------------------------------------------------------------------------------------------------------------
# Experiment 3: CPU seconds for an error


@dataclass(frozen=True, slots=True)
class Crossing:
    """Log of CPU seconds, or of a ratio of them.

    Attributes
    ----------
    log : float
        Natural log; NaN if there is none.
    se : float
        Its standard error; of a bound that of what else was measured, zero if there is nothing else.
    kind : str
        ``measured``, ``extrapolated``, ``at most``, ``at least``, or ``none``.
    df : float
        Degrees of freedom of the standard error, by Welch and Satterthwaite.
    doubt : float
        Of a bound: the tail of Student's t beyond the margin in log error by which it is one, in units of
        the margin's own standard error. One half is a bound that noise alone has made.
    """

    log: float
    se: float
    kind: str
    df: float = math.inf
    doubt: float = 0.0

    def over(self, other: Crossing) -> Crossing:
        """The ratio of this to the other, in logs."""
        kinds = {
            self.kind,
            {"at most": "at least", "at least": "at most"}.get(other.kind, other.kind),
        }
        if "none" in kinds or {"at most", "at least"} <= kinds:
            return NOTHING
        order = ("at most", "at least", "extrapolated", "measured")
        kind = next(kind for kind in order if kind in kinds)
        return Crossing(
            self.log - other.log,
            math.hypot(self.se, other.se),
            kind,
            welch_satterthwaite([self.se**2, other.se**2], [self.df, other.df]),
            min(1.0, self.doubt + other.doubt),
        )


NOTHING = Crossing(math.nan, math.nan, "none")


def crossing(
    line: pd.DataFrame,
    target: float,
    target_se: float = 0.0,
    target_df: float = math.inf,
    *,
    converges: bool = True,
) -> Crossing:
    """CPU seconds for an error, by interpolation between two sizes on logarithmic axes.

    Parameters
    ----------
    line : DataFrame
        Points of one series and measure; those that are not full are passed over.
    target, target_se, target_df : float
        Natural log of the error, its standard error, and the degrees of freedom of that.
    converges : bool
        Whether to go on from the last size as error falls with the square root of time, to at most
        a hundred times its seconds.

    Returns
    -------
    Crossing
        Between the last size with a larger error and the one after it. Without a larger error, at most the seconds
        of the first size; with a larger error at the last size, extrapolated or at least its seconds; none
        of a deterministic method.
    """
    line = line[line["full"].astype(bool)].dropna(subset=["cpu_seconds", "log_error"])
    line = line.sort_values("cpu_seconds")
    if line.empty or not math.isfinite(target):
        return NOTHING
    x = np.log(line["cpu_seconds"].to_numpy(dtype=float))
    e = line["log_error"].to_numpy(dtype=float)
    s = np.nan_to_num(line["log_error_se"].to_numpy(dtype=float))  # none: deterministic
    df = np.maximum(line["averaged"].to_numpy(dtype=float) - 1.0, 1.0)
    above = np.flatnonzero(e > target)
    if not len(above):
        doubt = _doubt(target - e[0], [s[0], target_se], [df[0], target_df])
        return Crossing(float(x[0]), 0.0, "at most", doubt=doubt)
    i = int(above[-1])
    if i == len(e) - 1:
        if line["deterministic"].all():
            return NOTHING  # no time will do
        further = 2.0 * (e[i] - target)
        if not converges or further > math.log(FARTHEST):
            doubt = _doubt(e[i] - target, [s[i], target_se], [df[i], target_df])
            return Crossing(float(x[i]), 0.0, "at least", doubt=doubt)
        se, freedom = _joint([2.0 * s[i], 2.0 * target_se], [df[i], target_df])
        return Crossing(float(x[i] + further), se, "extrapolated", freedom)
    across, fall = x[i + 1] - x[i], e[i] - e[i + 1]
    share = (e[i] - target) / fall
    slope = across / fall
    errors = slope * np.array([(1 - share) * s[i], share * s[i + 1], target_se])
    se, freedom = _joint(errors, [df[i], df[i + 1], target_df])
    return Crossing(float(x[i] + share * across), se, "measured", freedom)


def _joint(errors: ArrayLike, dfs: ArrayLike) -> tuple[float, float]:
    """Standard error of a sum of independent terms, and its degrees of freedom."""
    variances = np.square(errors)
    return math.sqrt(variances.sum()), welch_satterthwaite(variances, dfs)


def _doubt(margin: float, errors: ArrayLike, dfs: ArrayLike) -> float:
    """The tail beyond a margin; of one without error nothing."""
    se, df = _joint(errors, dfs)
    return float(stdtr(df, -margin / se)) if se > 0 else 0.0


def line_of(frame: pd.DataFrame, measure: str, series: str) -> pd.DataFrame:
    """The points of one measure and series."""
    return frame[(frame["measure"] == measure) & (frame["series"] == series)]


def against(frame: pd.DataFrame, point: pd.Series) -> Crossing:
    """CPU seconds of a point over those that the orthant sampler needs for the same error."""
    if point["series"] == "orthant" or not (point["cpu_seconds"] > 0):
        return NOTHING
    se = 0.0 if point["deterministic"] else float(point["log_error_se"])
    df = max(float(point["averaged"]) - 1.0, 1.0)
    line = line_of(frame, point["measure"], "orthant")
    orthant = crossing(line, point["log_error"], 0.0 if math.isnan(se) else se, df)
    return Crossing(math.log(point["cpu_seconds"]), 0.0, "measured").over(orthant)


def mae_target(frame: pd.DataFrame) -> float:
    """Log MAE at which methods are compared: the least of the orthant sampler, rounded up to halves."""
    line = line_of(frame, "probability", "orthant")
    least = line.loc[line["full"].astype(bool), "log_error"].astype(float).min()
    return math.ceil(2.0 * least) / 2.0 if math.isfinite(least) else math.nan


def targets(frame: pd.DataFrame) -> dict[str, float]:
    """Log errors by measure at which all methods are compared."""
    return {"evidence": TARGET, "probability": mae_target(frame)}


def needed(frame: pd.DataFrame, measure: str, series: str, target: float) -> Crossing:
    """CPU seconds that a series needs for a log error."""
    converges = SERIES[series].converges if series in SERIES else True
    return crossing(line_of(frame, measure, series), target, converges=converges)


# ---------------------------------------------------------------------------------------------------------------------
# Experiment 3: the paper's statements


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of section 6.3 about one sampler.

    Attributes
    ----------
    words : str
    sampler : str
        ``ess`` or ``hmc``.
    measure : str
    where : str
        ``target``: at the quoted log MAPE. ``high``: at the error of the sampler's last size that counts.
        ``moderate``: at that of its first size, which has to count and not to be the last one too.
    """

    words: str
    sampler: str
    measure: str
    where: str


CLAIMS: dict[str, Claim] = {
    "evidence-ten": Claim("ESS needs ten times as long", "ess", "evidence", "target"),
    "evidence-ess": Claim("ESS is slower", "ess", "evidence", "high"),
    "evidence-hmc": Claim("HMC is slower", "hmc", "evidence", "high"),
    "probability-hmc": Claim("HMC is slower", "hmc", "probability", "high"),
    "probability-tie": Claim("ESS ties at moderate accuracy", "ess", "probability", "moderate"),
    "probability-ess": Claim("ESS is faster at high accuracy", "ess", "probability", "high"),
}
#: The two forms of a sampler, as the suffix of its series.
FORMS = {"shipped": "-gpml", "proper": ""}


def claims(frame: pd.DataFrame) -> pd.DataFrame:
    """The paper's statements: one row a statement and form of the sampler. `judge_claims` judges them.

    Returns
    -------
    DataFrame
        ``claim``, ``statement``, ``measure``, ``form``, ``log_error`` (where it is judged), ``log_ratio``
        of CPU seconds over the orthant sampler's, ``log_ratio_se``, ``log_ratio_df``, ``kind``, ``doubt``
        (`Crossing`), and ``status``: "ok", or where no run has converged what they say of themselves.
    """
    rows = []
    for key, claim in CLAIMS.items():
        for form, suffix in FORMS.items():
            # first and last by size: seconds of short runs are noise
            line = line_of(frame, claim.measure, claim.sampler + suffix).sort_values("size")
            full = line[line["full"].astype(bool)].dropna(subset=["cpu_seconds", "log_error"])
            trusted, said = not full.empty, line["status"]
            if claim.where == "moderate" and trusted:
                trusted, said = bool(line["full"].iloc[0]), said[:1]
            if not trusted:  # at face value
                full = line.assign(full=True).dropna(subset=["cpu_seconds", "log_error"])
            ratio, where, status = NOTHING, math.nan, "not run"
            if claim.where == "moderate" and len(full) == 1:
                status = "one size only"  # it is the high accuracy already
            elif not full.empty:
                status = OK if trusted else str(said.iloc[-1])
                if claim.where == "target":
                    converges = SERIES[claim.sampler + suffix].converges
                    where = TARGET
                    ratio = crossing(full, TARGET, converges=converges).over(
                        needed(frame, claim.measure, "orthant", TARGET)
                    )
                else:
                    point = full.iloc[0 if claim.where == "moderate" else -1]
                    ratio, where = against(frame, point), float(point["log_error"])
            elif not line.empty:
                status = "not timed"
            rows.append(
                {
                    "claim": key,
                    "statement": claim.words,
                    "measure": claim.measure,
                    "form": form,
                    "log_error": where,
                    "log_ratio": ratio.log,
                    "log_ratio_se": ratio.se,
                    "log_ratio_df": ratio.df,
                    "kind": ratio.kind,
                    "doubt": ratio.doubt,
                    "status": status,
                }
            )
    return pd.DataFrame(rows)
