"""Measures of Experiment 5: the posterior over the hyperparameters, and tuning them by the marginal likelihood."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from recheck.judge.measures import OK, join_sources
from studies.atiya2021.measures import common
from studies.atiya2021.measures.common import Known, Row, each, estimate, measured
from studies.common.measuring import Rows
from studies.common.rows import NO_DATA

#: Hyperparameters, as columns of the files and as parts of ids.
_PARAMETERS = {"log_alpha": "log-alpha", "log_beta": "log-beta"}
#: What tells whether a chain has converged, and which of both hyperparameters is worse.
_WORSE = {"r_hat": "max", "effective_samples": "min", "effective_per_second": "min"}
#: What is measured of a tuned run and compared as a difference.
_COLUMNS = [*_PARAMETERS, "log_loss", "error_rate", "evaluations"]
_TUNED = [*_COLUMNS, "evidence_shortfall"]
_KEYS = ["problem", "method", "replicate", "stage"]
_UNIT = "experiment5/P{problem}"


def measure(given: Rows) -> pd.DataFrame:
    """All measures of Experiment 5, of which the paper prints no number."""
    chains, tuned = _chains(given), _tuned(given)
    fitted = _fitted(given, tuned)
    return common.combine(
        _posterior(chains),
        _tuning(tuned),
        _searches(tuned),
        _claim(tuned),
        _tuning(fitted),
        _gradients(fitted),
    )


def _chains(given: Rows) -> pd.DataFrame:
    """The posteriors, one row a problem and method, with `_WORSE` of both hyperparameters.

    Effective samples are set against the seconds of all pairs of chains.
    """
    optional = ["acceptance", "log_loss", "log_loss_se", "seed"]
    for part in ("mean", "mean_se", "sd", "r_hat", "effective_samples"):
        optional += [f"{name}_{part}" for name in _PARAMETERS]
    keys = ["problem", "method"]
    lines = given.lines("experiment5", dtype=common.TEXT)
    frame = common.needed(lines, [*keys, "status"], optional=optional)
    pairs = given.lines("posterior_chains", dtype=common.TEXT)
    pairs = pairs.merge(given.timing("posterior_chains"), on="row", how="left")
    seconds = pairs.groupby(keys)["cpu_seconds"].sum().rename("seconds")
    frame = frame.join(seconds, on=keys)
    for name in _PARAMETERS:
        rate = frame[f"{name}_effective_samples"] / frame["seconds"]
        frame[f"{name}_effective_per_second"] = rate
    for part, how in _WORSE.items():
        frame[part] = frame[[f"{name}_{part}" for name in _PARAMETERS]].agg(how, axis=1)
    return frame


def _posterior(chains: pd.DataFrame) -> Iterator[Row]:
    """Means and deviations of every chain, and what tells whether it has converged."""
    for row in chains.to_dict("records"):
        path, status = f"experiment5/P{row['problem']}/{row['method']}", row["status"]
        found = {"log-loss": Known(row["log_loss"], row["log_loss_se"], status=status)}
        for column, name in _PARAMETERS.items():
            mean, se, sd = (row[f"{column}_{part}"] for part in ("mean", "mean_se", "sd"))
            found[f"{name}-mean"] = Known(mean, se, status=status)
            found[f"{name}-sd"] = Known(sd, status=status)
        for column in (*_WORSE, "acceptance"):
            # these are shown of every chain
            shown = status if status == NO_DATA else OK
            found[column.replace("_", "-")] = Known(float(row[column]), status=shown)
        for name, known in found.items():
            yield estimate(f"{path}/{name}", known, row["source"], seed=row["seed"])


def _tuned(given: Rows) -> pd.DataFrame:
    """Tuned runs, one row a problem, method, replicate and stage. Seconds of a second look contain the search.

    ``evidence_shortfall`` is how far below the best that any method found, of runs that may be compared.
    """
    optional = [*_COLUMNS, "evidence", "evidence_se", "estimate", "samples", "seed"]
    frame = _searched(given, "tuning", ["row", "stage"], optional)
    in_order = frame.sort_values("stage", ascending=False)  # the search comes first
    seconds = in_order["cpu_seconds"].astype(float).groupby([in_order[k] for k in _KEYS[:3]])
    evidence = frame["evidence"].where(frame["status"] == OK).astype(float)
    best = evidence.groupby(frame["problem"]).transform("max")
    return frame.assign(cpu_seconds=seconds.cumsum(), evidence_shortfall=best - evidence)


def _searched(
    given: Rows, experiment: str, keys: list[str], optional: Sequence[str]
) -> pd.DataFrame:
    """The lines of an experiment, each with its seconds; `keys` are columns that lines and timing have in common."""
    lines = given.lines(experiment, dtype=common.TEXT)
    frame = common.needed(lines, [*_KEYS, "status"], optional=optional)
    timing = given.timing(experiment).reindex(columns=[*keys, "cpu_seconds"])
    timing = timing.astype(dict.fromkeys(keys, object))  # without data there are no stages
    return frame.merge(timing, on=keys, how="left", validate="one_to_one")


def _fitted(given: Rows, tuned: pd.DataFrame) -> pd.DataFrame:
    """Runs with gradients, and what sets each beside the simplex that climbed the same method's evidence.

    ``evidence_above`` is how far above the simplex it ends as the judge sees both, and ``estimate_above`` as the method
    sees them, where both have one length scale. ``log_loss_above`` is the same difference in the log loss of the test
    patterns. ``evidence_shortfall`` is from the best of the `tuned` runs, and negative above it. ``compared_source``
    names their rows too.
    """
    optional = [*_COLUMNS, "evidence", "evidence_se", "estimate", "climbed", "relevance", "seed"]
    frame = _searched(given, "tuning_gradient", ["row"], optional)
    compared = ["evidence", "estimate", "log_loss", "evaluations"]
    good = tuned[tuned["status"] == OK]
    simplex = good[good["stage"] == "search"].groupby(["problem", "method"])[compared].first()
    simplex = simplex.reindex(pd.MultiIndex.from_frame(frame[["problem", "climbed"]]))
    above = frame[compared].astype(float) - simplex.set_axis(frame.index).astype(float)
    one_surface = frame["evidence"].notna() & frame["relevance"].ne(True)
    best = frame["problem"].map(good.groupby("problem")["evidence"].max()).astype(float)
    others = (
        frame["problem"]
        .map(good.groupby("problem")["source"].agg(join_sources))
        .astype(object)
        .fillna("")
    )
    return frame.assign(
        compared_source=[*map(join_sources, zip(frame["source"], others, strict=True))],
        evidence_shortfall=best - frame["evidence"].astype(float),
        evidence_above=above["evidence"],
        estimate_above=above["estimate"].where(one_surface),
        log_loss_above=above["log_loss"],
        simplex_evaluations=simplex["evaluations"].to_numpy(),
    )


def _gradients(fitted: pd.DataFrame) -> Iterator[pd.DataFrame | Iterator[Row]]:
    """How far above the simplex's optimum gradients end, in how many evaluations, and how often more scales mislead."""
    path, fitted = "tuning/P{problem}/{method}/{stage}", _compared(fitted)
    for column in ("evidence_above", "estimate_above"):
        rows = fitted[fitted[column].notna()]
        name = f"{path}/{column.replace('_', '-')}"
        yield measured(rows, name, column, unit=_UNIT, status="status", scale="linear")
    there = fitted[(fitted["status"] == OK) & fitted["simplex_evaluations"].notna()]
    quantities: dict[str, Any] = {
        "evaluations": ("evaluations", "mean"),
        "simplex-evaluations": ("simplex_evaluations", "mean"),
    }
    name = "tuning/{method}/{quantity}"
    yield each(there, "method", name, quantities)
    quantities = {
        "least-above": ("evidence_above", "min"),
        "most-above": ("evidence_above", "max"),
        "apart": lambda rows: rows["evidence_above"].abs().max(),
    }
    judged = there[there["evidence_above"].notna()]
    yield each(judged, "method", name, quantities)
    several = judged[judged["relevance"].eq(True)]
    yield each(several, "method", name, {"worse": lambda rows: (rows["log_loss_above"] > 0).sum()})


def _compared(rows: pd.DataFrame) -> pd.DataFrame:
    """The same rows with the sources of what they are compared with, where these are other files."""
    return rows.assign(source=rows.get("compared_source", rows["source"]))


def _tuning(tuned: pd.DataFrame) -> Iterator[pd.DataFrame | Iterator[Row]]:
    """What each way of tuning has chosen, how far below the best, and how it classifies."""
    keys, path = ["problem", "method", "stage"], "tuning/P{problem}/{method}/{stage}"
    for column in (*_TUNED, "cpu_seconds"):
        name = column.removeprefix("evidence_").replace("_", "-")
        rows = tuned[tuned[column].notna() | (tuned["status"] != OK)]
        rows = _compared(rows) if column == "evidence_shortfall" else rows
        scale = "log" if column == "cpu_seconds" else "linear"
        given = {"unit": _UNIT, "run": "replicate", "status": "status", "scale": scale}
        yield measured(rows, f"{path}/{name}", column, **given)
    there = tuned[tuned["status"] != NO_DATA]
    counts = {"ok": lambda group: (group["status"] == OK).sum()}
    yield each(there, keys, f"{path}/{{quantity}}", counts)
    good = there[(there["status"] == OK) & there["evidence"].notna()]
    yield each(good, keys, f"{path}/{{quantity}}", {"evidence": _evidence})


def _evidence(good: pd.DataFrame) -> Known:
    """Mean log evidence. The judge uses the same random numbers throughout, so its error is that of every run."""
    spread = good["evidence"].sem() if len(good) > 1 else 0.0
    return Known(good["evidence"].mean(), math.hypot(good["evidence_se"].mean(), spread))


def _samples(tuned: pd.DataFrame) -> pd.Series:
    """Samples of the searches that climb the sampler's estimate, by method."""
    looks = tuned[tuned["method"].str.fullmatch(r"orthant-\d+") & (tuned["stage"] == "search")]
    looks = looks[looks["status"] != NO_DATA].dropna(subset="samples")
    return looks.groupby("method")["samples"].first().astype(float)


def _searches(tuned: pd.DataFrame) -> Iterator[Row]:
    """Nats lost by ways of tuning, on average and on the worst problem."""
    there = tuned[tuned["status"] != NO_DATA]
    if there.empty:
        return
    source = join_sources(there["source"])
    yield estimate("tuning/problems", there["problem"].nunique(), source)
    ways, sizes = {"ep": "ep", "laplace": "laplace"}, _samples(tuned)
    for key, method in (("small", sizes.idxmin()), ("large", sizes.idxmax())) if len(sizes) else ():
        yield estimate(f"tuning/{key}/samples", sizes[method], source)
        ways[key] = str(method)
    for key, method in ways.items():
        lost = _lost(there, method)
        for row in lost.to_dict("records"):
            unit = _UNIT.format(**row)
            yield estimate(f"tuning/{key}/mean", Known(row["mean"]), row["source"], unit=unit)
        if len(lost):
            worst = lost.loc[lost["mean"].idxmax()]
            known = Known(worst["mean"], worst["std"] / math.sqrt(worst["size"]))
            yield estimate(f"tuning/{key}/worst", known, worst["source"])
            yield estimate(f"tuning/{key}/searches", lost["size"].sum(), source)
            yield estimate(f"tuning/{key}/over-a-nat", lost["over"].sum(), source)


def _lost(tuned: pd.DataFrame, method: str, stage: str = "search") -> pd.DataFrame:
    """Nats that searches with a method lose, or second looks at their best candidates: mean over runs, by problem.

    ``over`` counts those that lose more than a nat.
    """
    rows = tuned[(tuned["method"] == method) & (tuned["stage"] == stage)]
    groups = rows[rows["status"] == OK].dropna(subset="evidence_shortfall").groupby("problem")
    table = groups["evidence_shortfall"].agg(["mean", "std", "size"])
    table["over"] = groups["evidence_shortfall"].agg(lambda lost: (lost > 1.0).sum())
    return table.assign(source=groups["source"].agg(join_sources)).reset_index()


def _claim(tuned: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Nats lost by tuning with 20 000 to 50 000 samples: the most of them that were run, by problem."""
    allowed = _samples(tuned).loc[lambda sizes: sizes <= 50_000]
    if len(allowed):
        method = str(allowed.idxmax())
        status = OK if allowed[method] >= 20_000 else "not comparable"
        given = {"unit": _UNIT, "scale": "linear", "status": status}
        lost = _lost(tuned, method)
        yield measured(lost, "claim/tuning/small", "mean", **given)
        again = _lost(tuned, method, "final").set_index("problem")["mean"]
        gained = again.reindex(lost["problem"]).to_numpy() - lost["mean"]
        yield measured(lost, "claim/tuning/again", gained, **given)
