"""The statements of the paper's prose, each one checked against the results.

A statement is a region for a quantity (``data/published/claims.yaml``); a check below estimates the quantity from
result files, with a standard error. Two tests look at it, whether it lies inside (``p``) and whether it lies outside
(``p_outside``), Student's at the end of the region that is nearest, or exact binomial ones where the quantity
is a share. Verdicts:

consistent, equivalent
    that it lies outside is rejected at 5 %. Equivalent, if the region has two ends.
discrepant
    that it lies inside is rejected, at a family-wise 5 % over its family (Holm): the judged statements of the paper, or
    their variants of which it says nothing. Exact findings are never wrong by chance and are in no family.
inconclusive
    neither; ``detectable`` is how far outside it would have to be to be found with a probability of 80 %.
not comparable, not run, data not available
    as of cells (`gpcmc.audit.compare`); not comparable are also seconds on another machine.

Where several hyperparameter sets or runs share a problem, the problem is the unit of replication. A statement on every
run is judged by the run that is furthest outside (`Finding.each`): one counterexample is enough.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from scipy.special import stdtr, stdtrit
from scipy.stats import binom

from gpcmc.audit import findings as found
from gpcmc.audit import tradeoff
from gpcmc.audit.compare import ALPHA, POWER, VERDICTS, holm, welch_satterthwaite
from gpcmc.audit.estimates import (
    EVERY_RUN,
    absolute_percentage_error,
    at_published_budget,
    paper_scheme,
)
from gpcmc.audit.experiment4 import (
    PAPER,
    SAMPLER,
    all_cells,
    cells_over,
    control_inputs,
    mae_med_by_problem,
    mae_post_ranges,
    run_gaps,
    seconds_by_problem,
)
from gpcmc.audit.results import ResultFiles, mean_and_error, read, read_long
from gpcmc.audit.tuning import tuned, tuning_means
from gpcmc.experiments.classification import NO_DATA
from gpcmc.experiments.reference import Plan
from gpcmc.inference.interface import NOT_CONVERGED, OK, STOPPED

__all__ = [
    "CHECKS",
    "COLUMNS",
    "VARIANT",
    "Claim",
    "Finding",
    "check_claims_complete",
    "judge_claims",
    "read_claims",
]

#: How the ids of statements end that are about chains which the paper did not run.
VARIANT = "/proper"

#: Kinds of effects that are bounds.
BOUNDS = ("at least", "at most")

COLUMNS = [
    "id",
    "section",
    "statement",
    "check",
    "parameters",
    "quantity",
    "low",
    "high",
    "effect",
    "se",
    "df",
    "log",
    "kind",
    "z",
    "p",
    "p_family",
    "p_outside",
    "detectable",
    "verdict",
    "result_file",
    "note",
]

#: Result files by the name of their field, as a reader finds them.
FILES: dict[str, str] = {
    "experiment1": "experiment1/N*.csv",
    "experiment2": "experiment2/problem*.csv",
    "experiment3": "experiment3/*.csv",
    "experiment3_timing": "experiment3/*_timing.csv",
    "experiment4": "experiment4/problem*/*.csv",
    "experiment4_timing": "experiment4/problem*/*_timing.csv",
    "probabilities": "experiment4/problem*/*.npz",
    "problems": "experiment4/problem*.npz",
    "reference": "data/reference/evidence.csv",
    "spread": "experiment4/spread.csv",
    "ordering": "ordering.csv",
    "equations": "equations.csv",
    "tuning": "experiment5/problem*_tuning.csv",
    "tuning_timing": "experiment5/problem*_tuning_timing.csv",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of ``claims.yaml``.

    Attributes
    ----------
    id, section, statement : str
    check : str
        A key of `CHECKS`.
    parameters : mapping
        Arguments of the check.
    reads : tuple of str
        Fields of `ResultFiles`: without one of them the statement reads "not run".
    low, high : float
        The region; infinite where it has no end. NaN: shown and not judged.
    """

    id: str
    section: str
    statement: str
    check: str
    parameters: Mapping[str, Any]
    reads: tuple[str, ...]
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check finds.

    Attributes
    ----------
    quantity : str
        What is estimated, with its unit.
    effect, se : float
        The estimate and its standard error, on the logarithmic scale if ``log``; a standard error of zero is exact.
    df : float
        Degrees of freedom of the standard error.
    log : bool
        Whether effect and region are compared as logarithms; they are then shown as what they are logarithms of.
    kind : str
        ``measured`` or ``extrapolated``; ``at least`` or ``at most``, where the effect is a bound; ``share``,
        where it is `successes` of `trials`.
    doubt : float
        Probability that a bound is none: it adds to every p-value that rests on it.
    successes, trials : int
    each : tuple of (float, float)
        Effects and standard errors, with the degrees of freedom `df`, of quantities all of which have to lie
        inside. The finding is then the one furthest outside, in standard errors. That it lies inside is tested
        with Bonferroni's correction for the choice, which needs no independence. That it lies outside is
        tested without one: all are shown to be inside if each is.
    status : str
        "ok", or a verdict of its own: "not run", "not comparable", "data not available".
    note : str
    """

    quantity: str
    effect: float = math.nan
    se: float = math.nan
    df: float = math.inf
    log: bool = False
    kind: str = "measured"
    doubt: float = 0.0
    successes: int = 0
    trials: int = 0
    each: tuple[tuple[float, float], ...] = ()
    status: str = OK
    note: str = ""


class Results:
    """What several checks need, computed once.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
    """

    def __init__(self, registry: pd.DataFrame, files: ResultFiles) -> None:
        self.registry, self.files = registry, files

    @functools.cached_property
    def slopes(self) -> pd.DataFrame:
        """`findings.slopes`."""
        return found.slopes(self.registry, self.files)

    @functools.cached_property
    def cells(self) -> pd.DataFrame:
        """`experiment4.all_cells`, as the paper counts runs where they had its budget."""
        return all_cells(self.registry, self.files, as_published=True)

    @functools.cached_property
    def rule(self) -> str:
        """Which runs `cells` counts, where it is not those that converged."""
        rows = read_long("experiment4", self.files.experiment4)
        return EVERY_RUN if at_published_budget(rows) else ""

    @functools.cached_property
    def times(self) -> pd.DataFrame:
        """`tradeoff.claims`."""
        return tradeoff.claims(tradeoff.points(self.files)).set_index(["claim", "form"])


# ---------------------------------------------------------------------------------------------------------------------
# Reading


def read_claims(path: str | Path) -> list[Claim]:
    """Read and check ``claims.yaml``.

    Raises
    ------
    ValueError
        A key is unknown or missing, an id comes twice, a check does not exist or does not take the
        parameters, a result is unknown, or a region is none; the message names the claim.
    """
    with Path(path).open(encoding="utf-8") as stream:
        rows = yaml.safe_load(stream)
    if not isinstance(rows, list):
        raise ValueError(f"{path}: needed is a list of claims")
    claims = [_claim(row, f"{path}: claim {place + 1}") for place, row in enumerate(rows)]
    ids = [claim.id for claim in claims]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise ValueError(f"{path}: claims {twice} occur more than once")
    return claims


_NEEDED = {"id", "section", "statement", "check", "reads"}
_KNOWN = _NEEDED | {"parameters", "above", "below", "between"}


def _claim(row: Any, where: str) -> Claim:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: needed are keys {sorted(_NEEDED)}, given was {row!r}")
    where = f"{where} ({row.get('id', 'without id')})"
    if missing := sorted(_NEEDED - row.keys()):
        raise ValueError(f"{where}: {missing} are missing")
    if strange := sorted(row.keys() - _KNOWN):
        raise ValueError(f"{where}: {strange} are unknown; known are {sorted(_KNOWN)}")
    if row["check"] not in CHECKS:
        raise ValueError(f"{where}: check {row['check']!r} is unknown; known are {sorted(CHECKS)}")
    given = row.get("parameters", {})
    try:
        inspect.signature(CHECKS[row["check"]]).bind(None, **given)
    except TypeError as error:
        raise ValueError(f"{where}: check {row['check']}: {error}") from None
    if strange := sorted(set(row["reads"]) - FILES.keys()):
        raise ValueError(f"{where}: results {strange} are unknown; known are {sorted(FILES)}")
    low, high = _region(row, where)
    return Claim(
        id=str(row["id"]),
        section=str(row["section"]),
        statement=str(row["statement"]),
        check=str(row["check"]),
        parameters=given,
        reads=tuple(row["reads"]),
        low=low,
        high=high,
    )


def _region(row: Mapping[str, Any], where: str) -> tuple[float, float]:
    """The ends of a claim's region; NaN without one."""
    regions = [name for name in ("above", "below", "between") if name in row]
    if len(regions) > 1:
        raise ValueError(f"{where}: one region is needed at most, given were {regions}")
    low, high = -math.inf, math.inf
    try:
        if "between" in row:
            low, high = (float(end) for end in row["between"])
        elif "above" in row:
            low = float(row["above"])
        elif "below" in row:
            high = float(row["below"])
        else:
            return math.nan, math.nan
    except (TypeError, ValueError):  # no numbers, or not two
        low = math.nan
    if not low < high or (low, high) == (-math.inf, math.inf):
        (name,) = regions
        needed = "[low, high] with low < high" if name == "between" else "a finite number"
        raise ValueError(f"{where}: {name}: needed is {needed}, given was {row[name]!r}")
    return low, high


# ---------------------------------------------------------------------------------------------------------------------
# Checks


def _slope(results: Results, table: int) -> Finding:
    """Slope of log error on log M, the mean of the problems' own slopes.

    Their standard errors rest on few problems or data sets each: as weights they would favour what is small by
    chance. Degrees of freedom are Welch and Satterthwaite's.
    """
    rows = results.slopes[results.slopes["table"] == table]
    published = ", ".join(f"{value:.2f}" for value in rows["published"])
    quantity = "slope of log error on log M"
    if not rows["clusters"].any():
        return Finding(quantity, status="not run")
    rows = rows.dropna(subset=["ours", "ours_se"])
    if rows.empty:
        note = "no standard error: fewer than three sample sizes, or one problem or data set"
        return Finding(quantity, status="not comparable", note=note)
    variances = rows["ours_se"] ** 2
    return Finding(
        quantity,
        float(rows["ours"].mean()),
        math.sqrt(variances.sum()) / len(rows),
        welch_satterthwaite(variances, rows["clusters"] - 1),
        note=f"the published columns themselves have {published}",
    )


def _formula(results: Results, moment: str, experiment: int) -> Finding:
    """Measured bias or variance of the log estimate over that of Eq. (43) or (44)."""
    source = {"bias": found.bias, "variance": found.overall_variance}[moment]
    quantity = f"measured {moment} over Eq. ({ {'bias': 43, 'variance': 44}[moment] })"
    rows = source(results.files)
    rows = rows[rows["experiment"] == experiment]
    if rows.empty:
        return Finding(quantity, status="not run")
    row = rows.iloc[0]
    note = f"{row['runs']:.0f} runs on {row['clusters']:.0f} data sets or problems"
    return Finding(
        quantity, float(row["ratio"]), float(row["ratio_se"]), float(row["clusters"]) - 1, note=note
    )


def _dimension(results: Results) -> Finding:
    """Slope of log MAPE on log N at a given M, every problem counting alike."""
    quantity = "slope of log MAPE on log N"
    frame = paper_scheme(read_long("experiment1", results.files.experiment1))
    frame = frame.assign(error=absolute_percentage_error(frame))
    frame = frame[frame["error"] > 0]
    # the level of a sample size goes out first; then a problem is one point
    level = np.log(frame["error"]) + 0.5 * np.log(frame["samples"].astype(float))
    means = level.groupby([frame["dimension"], frame["instance"]]).mean().reset_index(name="level")
    sizes = means["dimension"].nunique()
    if sizes < 3:
        status = "not comparable" if sizes else "not run"
        return Finding(quantity, status=status, note=f"{sizes} dimensions of three")
    x = np.log(means["dimension"].astype(float).to_numpy())
    fit, covariance = np.polyfit(x, means["level"].to_numpy(), 1, cov=True)
    note = "a percentage of log I: in nats the slope is one higher"
    return Finding(
        quantity, float(fit[0]), float(np.sqrt(covariance[0, 0])), len(means) - 2.0, note=note
    )


def _ordering(
    results: Results, measure: str, numerator: list[str], denominator: list[str]
) -> Finding:
    """Ratio of mean square errors, or of another measure, of two orders or counts; data sets are the units."""
    columns = {
        "evidence": ("log_evidence_error", 2, "mean square errors of log L"),
        "probability": ("probability_mae", 2, "mean square MAE"),
        "variance_eq44": ("variance_eq44", 1, "variances by Eq. (44)"),
    }
    column, power, words = columns[measure]
    (order, count), (other, its) = numerator, denominator
    quantity = f"{words}: {order} ({count}) over {other} ({its})"
    keys = ["order", "count", "dataset"]
    frame = read(results.files.ordering, [*keys, column])
    value = frame[column].abs() ** power
    cells = value.groupby([frame[key] for key in keys])
    means = cells.mean()
    ratios = np.log(means[order, count] / means[other, its]).to_numpy()
    effect, se = mean_and_error(pd.Series(ratios))
    note = f"{len(ratios)} data sets, {cells.size().min()} runs on each"
    return Finding(quantity, effect, se, len(ratios) - 1.0, log=True, note=note)


def _seconds_for_error(results: Results, claim: str, form: str) -> Finding:
    """CPU seconds over those of the orthant sampler for the same error."""
    row = results.times.loc[(claim, form)]
    where = tradeoff.CLAIMS[claim].where
    quantity = f"CPU seconds over the sampler's, {row['measure']}, {where} accuracy"
    if row["status"] in ("not run", "not timed"):
        return Finding(quantity, status="not run", note=row["status"])
    if row["status"] != OK:
        return Finding(quantity, status="not comparable", note=row["status"])
    if row["kind"] == "none":
        return Finding(quantity, status="not comparable", note="no error that both reach")
    note = f"at a log error of {row['log_error']:.1f}"
    if row["kind"] in BOUNDS:
        note += f"; that it is a bound is noise with p = {row['doubt']:.2g}"
    return Finding(
        quantity,
        float(row["log_ratio"]),
        float(row["log_ratio_se"]),
        float(row["log_ratio_df"]),
        log=True,
        kind=str(row["kind"]),
        doubt=float(row["doubt"]),
        note=note,
    )


def _over_units(
    quantity: str, logs: pd.Series, note: str = "", *, units: str = "problems"
) -> Finding:
    """The mean of logarithms over problems, or over other units of which the note then speaks."""
    if len(logs) < 2:
        said = f"{'none' if logs.empty else 'only one'} of the {units} has a value that counts"
        return Finding(quantity, status="not comparable", note=_with(said, note))
    effect, se = mean_and_error(logs)
    said = f"{len(logs)} {units}"
    return Finding(
        quantity,
        effect,
        se,
        len(logs) - 1.0,
        log=True,
        note=_with(said, note),
    )


def _share(quantity: str, inside: pd.Series, note: str = "") -> Finding:
    n, k = len(inside), int(inside.sum())
    if not n:
        return Finding(quantity, status="not comparable", note=note or "nothing that counts")
    said = _with(f"{k} of {n}", note)
    return Finding(quantity, k / n, kind="share", successes=k, trials=n, note=said)


def _with(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _from_median(results: Results) -> Finding:
    """MAE-MED of the paper's methods but HMC: geometric mean over those that have one, and over problems."""
    table = mae_med_by_problem(results.cells)
    table = table[[method for method in PAPER if method != "hmc-gpml"]]
    logs = np.log(table).mean(axis=1).dropna()
    return _over_units(
        "mean MAE-MED of all but HMC",
        logs,
        _with(_without(table.loc[logs.index].count(axis=1), table.shape[1]), results.rule),
    )


def _without(counts: pd.Series, wanted: int) -> str:
    """The problems in which fewer methods than wanted have a value, by how many have one."""
    return ", ".join(
        f"Problem {problem} by {n:.0f} of {wanted} methods"
        for problem, n in counts[counts < wanted].items()
    )


def _furthest_from_median(results: Results, method: str) -> Finding:
    """Share of problems in which a method is furthest from the median of all that the paper has there."""
    table = mae_med_by_problem(results.cells).dropna(subset=method)
    others = table[[name for name in PAPER if name != method]]
    furthest = table[method] > others.max(axis=1)
    return _share(
        "share of problems in which it is furthest",
        furthest,
        _with(_without(others.count(axis=1), others.shape[1]), results.rule),
    )


def _alike_in_mae_post(results: Results) -> Finding:
    """Share of problems in which the range over methods is below one standard deviation of data sets."""
    ranges = mae_post_ranges(results.registry, results.cells, results.files)
    ranges = ranges.dropna(subset=["ours", "between"])
    alike = ranges["ours"] < ranges["between"]
    return _share(
        "share of problems in which it is",
        alike,
        _with(_without(ranges["methods"], len(PAPER)), results.rule),
    )


def _mae_post_ratio(results: Results, large: int, small: int) -> Finding:
    """Ratio of MAE-POST of two problems over data sets (Laplace's approximation)."""
    frame = read_long("spread", results.files.spread)
    logs = np.log(frame.groupby(["problem", "dataset"])["mae_post"].mean())
    quantity = f"MAE-POST of Problem {large} over Problem {small}"
    if not {large, small} <= set(logs.index.get_level_values(0)):
        return Finding(quantity, status="not run")
    pair = [mean_and_error(logs[problem]) for problem in (large, small)]
    sizes = [len(logs[problem]) for problem in (large, small)]
    return Finding(
        quantity,
        pair[0][0] - pair[1][0],
        math.hypot(pair[0][1], pair[1][1]),
        min(sizes) - 1.0,
        log=True,
        note=f"{sizes[0]} and {sizes[1]} data sets",
    )


def _seconds_by_alpha(results: Results, method: str) -> Finding:
    """CPU seconds with the smallest alpha over those with the largest."""
    quantity = "CPU seconds, smallest alpha over largest"
    return _over_units(quantity, np.log(seconds_by_problem(results.cells, method)))


def _share_that_counts(results: Results, method: str, problem: int) -> Finding:
    """Share of hyperparameter sets in which every run counts, of the runs that were let sample.

    One problem has one data set here, so the sets stand for themselves and not for other data. A run that a limit
    of ours stops before it samples says nothing of how it would have ended.
    """
    rows = read_long("experiment4", results.files.experiment4)
    rows = rows[(rows["method"] == method) & (rows["problem"] == problem)]
    quantity = "share of hyperparameter sets whose runs count"
    if rows.empty:
        return Finding(quantity, status="not run")
    if (rows["status"] == NO_DATA).any():
        return Finding(quantity, status=NO_DATA)
    said = ", ".join(f"{n} {status}" for status, n in rows["status"].value_counts().items())
    note = f"sets of one data set; runs: {said}"
    if inputs := control_inputs(rows):
        note += (
            f"; those stopped did not sample: they need {inputs.least} to {inputs.most} control inputs "
            f"or more, and our limit is {inputs.limit}"
        )
    rows = rows[rows["status"] != STOPPED]
    good = (rows["status"] == OK).groupby(rows["set"]).all()
    return _share(quantity, good, note)


def _evidence_gap(results: Results, method: str, problem: int | None = None) -> Finding:
    """|difference of log L from the sampler's|, in percent: the median set, geometric mean over problems.

    Of one problem it is the geometric mean over hyperparameter sets. They share its data set, so that its standard
    error is for other sets and not for other data, as the note says.
    """
    cells = cells_over(results.cells, "telling")
    if problem is not None:
        cells = cells[cells["problem"] == problem]
    wide = cells.pivot_table(index=["problem", "set"], columns="method", values="log_evidence")
    quantity = "percent of log L between it and the sampler"
    stray = _with(results.rule, _stray(results, method, problem))
    if not {SAMPLER, method} <= set(wide.columns):
        there = cells[cells["method"] == method]
        status = "not run" if there.empty else "not comparable"
        if len(there) and (there["status"] == NO_DATA).all():
            status = NO_DATA
        return Finding(quantity, status=status, note=stray)
    gaps = 100 * (wide[method] / wide[SAMPLER] - 1).abs().dropna().clip(lower=1e-6)
    if problem is not None:  # sets of one problem are what there is
        return _over_units(
            quantity, np.log(gaps), stray, units="hyperparameter sets of one data set"
        )
    return _over_units(quantity, np.log(gaps.groupby("problem").median()), stray)


def _stray(results: Results, method: str, problem: int | None) -> str:
    """What runs that do not count say, against the certified reference."""
    known = cells_over(results.cells, "certified").drop_duplicates(["problem", "set"])
    rows = read_long("experiment4", results.files.experiment4)
    rows = rows[(rows["method"] == method) & (rows["status"] == NOT_CONVERGED)]
    rows = rows[rows["dataset"] == 0]
    if problem is not None:
        rows = rows[rows["problem"] == problem]
    both = rows.merge(known[["problem", "set", "reference_log_evidence"]], on=["problem", "set"])
    if both.empty:
        return ""
    gaps = 100 * (both["log_evidence"].astype(float) / both["reference_log_evidence"] - 1).abs()
    return (
        f"{len(gaps)} runs that did not converge are off the reference by {gaps.median():.2g} percent "
        "in the median"
    )


def _minutes_a_million(results: Results, problem: int) -> Finding:
    """CPU minutes of the sampler with a million samples, scaled from those that it had: another machine."""
    rows = read_long("experiment4", results.files.experiment4)
    timing = read_long("experiment4_timing", results.files.experiment4_timing)
    key = ["problem", "method", "set", "dataset", "replicate"]
    rows = rows.merge(timing[[*key, "cpu_seconds"]], on=key)
    rows = rows[(rows["method"] == SAMPLER) & (rows["problem"] == problem)]
    quantity = "CPU minutes for a million samples"
    if rows.empty:
        return Finding(quantity, status="not run")
    minutes = rows["cpu_seconds"] / rows["samples"].astype(float) * 1e6 / 60
    effect, se = mean_and_error(minutes)
    note = f"another machine and language; M was {rows['samples'].iloc[0]:.0f}, seconds are proportional to it"
    return Finding(quantity, effect, se, status="not comparable", note=note)


def _failed_runs(results: Results) -> Finding:
    """Share of the sampler's runs that gave no answer; Experiments 1 and 2 keep answers only and have no part."""
    rows = read_long("experiment4", results.files.experiment4)
    rows = rows[(rows["method"] == SAMPLER) & (rows["status"] != NO_DATA)]
    note = f"runs on {rows['problem'].nunique()} problems"
    return _share("share of runs that fail", rows["status"] != OK, note)


def _worst_run(results: Results) -> Finding:
    """How many nats a run of the sampler is off the reference, either way, the worst of all runs.

    The errors of the run, of the reference and of the reference's second method count. The largest is what the run
    says of itself. It is an estimate too: its degrees of freedom are those with which the squares of the standard
    errors of replicates scatter, and no more than the reference's, whose standard error comes from its
    randomisations.
    """
    runs = run_gaps(results.files, SAMPLER)
    quantity = "nats that a run is off, of all runs the furthest beyond errors"
    squares = runs["log_evidence_se"].pow(2).groupby([runs["problem"], runs["set"]])
    scatter = (squares.var() / squares.mean() ** 2).mean()  # of chi-squared it is 2 / df
    if math.isnan(scatter):
        return Finding(quantity, status="not comparable", note="no pair has two runs that count")
    fewest = Plan().randomizations - 1.0
    off = runs.loc[runs["gap"].abs().idxmax()]
    return Finding(
        quantity,
        df=min(2 / scatter, fewest) if scatter > 0 else fewest,
        each=tuple(zip([*runs["gap"], *-runs["gap"]], [*runs["joint_se"]] * 2, strict=True)),
        note=f"{len(runs)} runs on {runs['problem'].nunique()} problems; furthest off: problem {off['problem']}, "
        f"set {off['set']}, {off['gap']:.2f} nats",
    )


def _tuning_loss(results: Results, least: int, most: int) -> Finding:
    """Nats below the best hyperparameters that any method has found, after a search with few samples."""
    means = tuning_means(tuned(results.files))
    looks = means[means["method"].str.fullmatch(r"orthant-\d+") & (means["stage"] == "search")]
    looks = looks.assign(samples=pd.to_numeric(looks["samples"]))
    looks = looks[(looks["samples"] <= most) & (looks["ok"] > 0)].dropna(subset="shortfall")
    quantity = "nats lost by tuning with few samples"
    if looks.empty:
        return Finding(quantity, status="not run")
    samples = int(looks["samples"].max())
    values = looks[looks["samples"] == samples]["shortfall"]
    effect, se = mean_and_error(values)
    note = f"M = {samples} in the search, {len(values)} problems, {values.max():.2f} nats at worst"
    if samples < least:
        return Finding(quantity, effect, status="not comparable", note=f"{note}; M is too small")
    if len(values) < 2:
        return Finding(quantity, effect, status="not comparable", note=f"{note}; one problem only")
    return Finding(quantity, effect, se, len(values) - 1.0, note=note)


def _equation(results: Results, equation: str) -> Finding:
    """The largest error of a printed formula, exact up to rounding."""
    rows = read_long("equations", results.files.equations)
    rows = rows[rows["equation"] == equation]
    if rows.empty:
        return Finding("largest error", status="not run")
    return Finding("largest error", float(rows["printed_error"].max(skipna=False)), 0.0)


CHECKS: dict[str, Callable[..., Finding]] = {
    "slope": _slope,
    "formula": _formula,
    "dimension": _dimension,
    "ordering": _ordering,
    "seconds_for_error": _seconds_for_error,
    "from_median": _from_median,
    "furthest_from_median": _furthest_from_median,
    "alike_in_mae_post": _alike_in_mae_post,
    "mae_post_ratio": _mae_post_ratio,
    "seconds_by_alpha": _seconds_by_alpha,
    "share_that_counts": _share_that_counts,
    "evidence_gap": _evidence_gap,
    "minutes_a_million": _minutes_a_million,
    "failed_runs": _failed_runs,
    "worst_run": _worst_run,
    "tuning_loss": _tuning_loss,
    "equation": _equation,
}


# ---------------------------------------------------------------------------------------------------------------------
# Judging


def probabilities(finding: Finding, low: float, high: float) -> tuple[float, float]:
    """p-values of the hypotheses that a quantity lies inside a region, and that it lies outside.

    Parameters
    ----------
    finding : Finding
        With an effect, on the scale of the region.
    low, high : float
        Ends of the region, either of which may be infinite.
    """
    if finding.kind == "share":
        n, k = finding.trials, finding.successes
        # at the ends; a share is never below zero or above one
        above = (
            float(binom.sf(k - 1, n, low)) if low > 0 else 0.0
        )  # so many or more, at the low end
        below = float(binom.cdf(k, n, high)) if high < 1 else 0.0
        inside = 1.0
        if k / n < low:
            inside = float(binom.cdf(k, n, low))
        elif k / n > high:
            inside = float(binom.sf(k - 1, n, high))
        return inside, max(above, below)
    from_low, from_high = finding.effect - low, high - finding.effect  # positive inside
    beyond_low, beyond_high = _tail(from_low, finding), _tail(from_high, finding)
    # a bound says nothing about the end that lies in its own direction
    if finding.kind == "at least":
        beyond_high = 1.0 if math.isfinite(high) and from_high >= 0 else beyond_high
    if finding.kind == "at most":
        beyond_low = 1.0 if math.isfinite(low) and from_low >= 0 else beyond_low
    outside = max(beyond_low, beyond_high)
    inside = 1.0
    if from_low < 0 and finding.kind != "at least":
        inside = _tail(-from_low, finding)
    elif from_high < 0 and finding.kind != "at most":
        inside = _tail(-from_high, finding)
    return min(1.0, inside * max(1, len(finding.each))), outside


def _furthest(finding: Finding, low: float, high: float) -> Finding:
    """A finding on `each` of several quantities as that on the one furthest outside a region."""
    effects, errors = np.array(finding.each).T
    worst = np.argmax(np.maximum(low - effects, effects - high) / errors)  # what is no number first
    return replace(finding, effect=float(effects[worst]), se=float(errors[worst]))


def _tail(distance: float, finding: Finding) -> float:
    """p-value of the hypothesis that a quantity is beyond an end that lies at a distance from the effect."""
    exact = finding.se == 0
    tail = float(distance < 0 if exact else stdtr(finding.df, -distance / finding.se))
    # what rests on a bound is no surer than the bound
    return min(1.0, tail + finding.doubt)


def judge_claims(claims: list[Claim], registry: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    """Evaluate every claim.

    Parameters
    ----------
    claims : list of Claim
        `read_claims`.
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        What was run.

    Returns
    -------
    DataFrame
        The columns `COLUMNS`, in the order of the claims. ``effect``, ``low``, ``high`` are in the units of the
        quantity, ``se`` (of the logarithm, where ``log`` says so) and ``z`` (distance from the nearest end
        in standard errors, positive inside) on the scale of the comparison.

    Raises
    ------
    ValueError
        A claim is absent or comes twice, or a check finds an effect that is no number. To what a
        check itself raises, a note is added that names the claim.
    """
    results = Results(registry, files)
    rows, exact, looks = [], [], []
    for claim in claims:
        if all(getattr(files, name) for name in claim.reads):
            try:
                finding = CHECKS[claim.check](results, **claim.parameters)
            except Exception as error:
                given = dict(claim.parameters)
                error.add_note(f"in claim {claim.id}: check {claim.check}, parameters {given}")
                raise
        else:
            lost = [name for name in claim.reads if not getattr(files, name)]
            finding = Finding("", status="not run", note=f"no results of {', '.join(lost)}")
        rows.append(_row(claim, finding))
        exact.append(finding.se == 0 and finding.doubt == 0)
        looks.append(max(1, len(finding.each)))
    frame = pd.DataFrame(rows, columns=COLUMNS)
    judged, sure = frame["verdict"] == "", np.array(exact, dtype=bool)
    frame.loc[judged & sure, "p_family"] = frame["p"]
    frame.loc[judged & sure, "detectable"] = 0.0
    variant = frame["id"].str.endswith(VARIANT)
    for family in (judged & ~sure & ~variant, judged & ~sure & variant):
        frame.loc[family, "p_family"] = holm(frame.loc[family, "p"].to_numpy(dtype=float))
        se, df = (frame.loc[family, name].to_numpy(dtype=float) for name in ("se", "df"))
        level = ALPHA / max(family.sum(), 1) / np.array(looks)[family]
        with np.errstate(invalid="ignore"):
            frame.loc[family, "detectable"] = (stdtrit(df, 1 - level) + stdtrit(df, POWER)) * se
    frame.loc[frame["kind"].isin(BOUNDS), "detectable"] = math.nan
    frame.loc[judged, "verdict"] = [_verdict(row) for _, row in frame[judged].iterrows()]
    check_claims_complete(frame, claims)
    return frame


def _verdict(row: pd.Series) -> str:
    if row["p_family"] <= ALPHA:
        return "discrepant"
    if row["p_outside"] < ALPHA:
        two_ends = math.isfinite(row["low"]) and math.isfinite(row["high"])
        return "equivalent" if two_ends else "consistent"
    return "inconclusive"


def _row(claim: Claim, finding: Finding) -> dict[str, object]:
    if finding.each:
        finding = _furthest(finding, claim.low, claim.high)
    row: dict[str, object] = dict.fromkeys(COLUMNS, math.nan)
    used = [FILES[name] for name in claim.reads if not name.endswith("_timing")]
    row |= {
        "id": claim.id,
        "section": claim.section,
        "statement": claim.statement,
        "check": claim.check,
        "parameters": "; ".join(f"{name}={given}" for name, given in claim.parameters.items()),
        "quantity": finding.quantity,
        "low": claim.low,
        "high": claim.high,
        "effect": math.exp(finding.effect) if finding.log else finding.effect,
        "se": finding.se,
        "df": finding.df,
        "log": finding.log,
        "kind": finding.kind,
        "verdict": "" if finding.status == OK else finding.status,
        "result_file": "; ".join(dict.fromkeys(used)),
        "note": finding.note,
    }
    if finding.status != OK:
        return row
    low, high = claim.low, claim.high
    if math.isnan(low):
        return row | {"verdict": "not comparable", "note": _with(finding.note, "no region")}
    if finding.log:
        low, high = (math.log(end) if end > 0 else -math.inf for end in (low, high))
    if finding.kind != "share" and not math.isfinite(finding.se):
        return row | {"verdict": "not comparable", "note": _with(finding.note, "no standard error")}
    if not math.isfinite(finding.effect):
        raise ValueError(
            f"audit: {claim.id}: {finding.quantity}: needed is a finite number, found was {finding.effect}; "
            f"look into {row['result_file']}"
        )
    inside, outside = probabilities(finding, low, high)
    distance = min(finding.effect - low, high - finding.effect)
    if finding.kind != "share" and finding.se > 0:
        row["z"] = distance / finding.se
    return row | {"p": inside, "p_outside": outside}


def check_claims_complete(frame: pd.DataFrame, claims: list[Claim]) -> None:
    """Count evaluated claims against the registered ones.

    Raises
    ------
    ValueError
        A claim is absent, comes twice, is not registered, or has a verdict of its own making.
    """
    ids = [claim.id for claim in claims]
    if frame["id"].tolist() != ids:
        absent = sorted(set(ids) - set(frame["id"]))
        strange = sorted(set(frame["id"]) - set(ids))
        raise ValueError(
            f"audit: claims absent {absent}, not registered {strange}; needed is each of {len(ids)} "
            f"once, in their order; given were {len(frame)}"
        )
    if unknown := sorted(set(frame["verdict"]) - set(VERDICTS)):
        raise ValueError(f"audit: verdicts {unknown} are unknown; known are {list(VERDICTS)}")
