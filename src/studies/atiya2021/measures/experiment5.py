"""Measures of Experiment 5: the posterior over the hyperparameters, and tuning them by the marginal likelihood."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from recheck.files import read_arrays, read_csv
from recheck.measures import OK, as_measures, join_sources
from studies.atiya2021.measures.common import estimate, raw_rows, whole
from studies.atiya2021.runs import NO_DATA

__all__ = ["measure_experiment5"]

Row = dict[str, Any]

#: Hyperparameters, as columns of the files and as parts of ids.
_PARAMETERS = {"log_alpha": "log-alpha", "log_beta": "log-beta"}
#: Probability of a false alarm among all pairs of chains together.
_FALSE_ALARM = 0.01
#: What is measured of a tuned run: column, last part of the id, scale.
_TUNED = (
    ("log_alpha", "log-alpha", "linear"),
    ("log_beta", "log-beta", "linear"),
    ("evidence_shortfall", "shortfall", "linear"),
    ("log_loss", "log-loss", "linear"),
    ("error_rate", "error-rate", "linear"),
    ("cpu_seconds", "cpu-seconds", "log"),
    ("evaluations", "evaluations", "linear"),
)


def measure_experiment5(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """Measures of Experiment 5.

    Parameters
    ----------
    root : Path
        Results of the study, ``results/<scale>/atiya2021``.
    published, reference : Path
        Not read: the paper prints no number of these experiments.

    Returns
    -------
    DataFrame
        `recheck.measures.COLUMNS`; without rows where nothing was run.

    Raises
    ------
    DamagedFileError
        A file is not what was written.
    ValueError
        A file lacks a column.
    """
    chains, tuned = _chains(root), _tuned(root)
    rows = [*_posterior(chains), *_draws(root, chains), *_tuning(tuned), *_searches(tuned)]
    return as_measures(pd.DataFrame(rows) if rows else [])


# ---------------------------------------------------------------------------------------------------------------------
# The posterior


def _with_columns(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The same with columns of NaN for those that are absent."""
    return frame.reindex(columns=[*frame.columns, *(n for n in names if n not in frame)])


def _chains(root: Path) -> pd.DataFrame:
    """The chains, one row a problem and method, with their CPU seconds.

    ``r_hat`` is the larger of the two hyperparameters', ``effective_samples`` and ``effective_per_second`` the smaller.
    """
    frame = raw_rows(root, "experiment5/problem*/*.csv", ["problem", "method", "status"])
    timing = raw_rows(root, "experiment5/problem*/*_timing.csv", ["problem", "method"])
    rates = [f"{which}_effective_per_second" for which in _PARAMETERS]
    seconds = ["cpu_seconds", *rates]
    timing = _with_columns(timing, seconds)[["problem", "method", *seconds]]
    frame = frame.merge(timing, on=["problem", "method"], how="left")
    needs = [f"{w}_{x}" for w in _PARAMETERS for x in ("mean", "mean_se", "sd", "r_hat")]
    needs += [f"{w}_effective_samples" for w in _PARAMETERS]
    needs += ["acceptance", "log_loss", "log_loss_se", "chains", "iterations", "burn_in", "seed"]
    frame = _with_columns(frame, needs)
    frame["r_hat"] = frame[[f"{w}_r_hat" for w in _PARAMETERS]].max(axis=1)
    frame["effective_samples"] = frame[[f"{w}_effective_samples" for w in _PARAMETERS]].min(axis=1)
    frame["effective_per_second"] = frame[rates].min(axis=1)
    return frame


def _posterior(chains: pd.DataFrame) -> Iterator[Row]:
    """Means and deviations of every chain, what tells whether it has converged, and pairs of chains."""
    for row in chains.to_dict("records"):
        path, source = f"experiment5/P{row['problem']}/{row['method']}", row["source"]
        status, known = row["status"], {"source": source, "seed": row["seed"], "run": 0}
        values = [
            (f"{name}-{part}", row[f"{column}_{part}"], row.get(f"{column}_{part}_se", math.nan))
            for column, name in _PARAMETERS.items()
            for part in ("mean", "sd")
        ]
        values.append(("log-loss", row["log_loss"], row["log_loss_se"]))
        for name, value, se in values:
            given = {"se": se, "status": status}
            yield estimate(f"{path}/{name}", value, source, **given) | known
        for column in ("r_hat", "effective_samples", "effective_per_second", "acceptance"):
            # these say whether a chain has converged, so they are shown of every chain
            said = status if status == NO_DATA else OK
            name = column.replace("_", "-")
            yield estimate(f"{path}/{name}", float(row[column]), source, status=said) | known
        if row["status"] != NO_DATA:
            name = f"{path}/cpu-seconds"
            yield estimate(name, float(row["cpu_seconds"]), source, scale="log") | known
    there = chains[chains["status"] != NO_DATA]
    if len(there):
        yield from _counts(there)
        yield from _agreement(there[there["status"] == OK])
        yield from _prior()


def _counts(there: pd.DataFrame) -> Iterator[Row]:
    """How many chains there are and how many have converged, as a whole and by method."""
    good, source = there[there["status"] == OK], join_sources(there["source"])
    yield whole("posterior/problems", there["problem"].nunique(), source)
    yield whole("posterior/methods", there["method"].nunique(), source)
    yield whole("posterior/chains", len(there), source)
    yield whole("posterior/converged", len(good), source)
    yield whole("posterior/each", there["chains"].max(), source)
    for column in ("iterations", "burn_in"):
        for end in ("min", "max"):
            name = f"posterior/{column.replace('_', '-')}/{end}"
            yield whole(name, there[column].agg(end), source)
    for method, group in there.groupby("method"):
        mine, where = group[group["status"] == OK], join_sources(group["source"])
        yield whole(f"posterior/{method}/problems", len(group), where)
        yield whole(f"posterior/{method}/converged", len(mine), where)
        if len(mine):
            rate = float(mine["effective_per_second"].median())
            yield estimate(f"posterior/{method}/rate", rate, where, scale="log")


def _agreement(good: pd.DataFrame) -> Iterator[Row]:
    """Posterior means of all pairs of chains that have converged on a problem, against Bonferroni's bound."""
    scores = [
        abs(one[f"{which}_mean"] - other[f"{which}_mean"])
        / math.hypot(one[f"{which}_mean_se"], other[f"{which}_mean_se"])
        for _, group in good.groupby("problem")
        for one, other in itertools.combinations(group.to_dict("records"), 2)
        for which in _PARAMETERS
    ]
    source = join_sources(good["source"])
    compared = good.groupby("problem").size()
    yield whole("posterior/compared", (compared > 1).sum(), source)
    yield whole("posterior/pairs", len(scores), source)
    if scores:
        yield whole("posterior/largest-z", max(scores), source)
        limit = float(norm.isf(_FALSE_ALARM / (2 * len(scores))))
        yield whole("posterior/threshold", limit, source)


def _prior() -> Iterator[Row]:
    """The prior of the hyperparameters, as the code has it."""
    from gpcmc.inference.pseudo_marginal import default_prior

    prior, source = default_prior(1), "src/gpcmc/inference/pseudo_marginal.py"
    yield whole("posterior/prior/beta-shape", prior.shape[0], source)
    yield whole("posterior/prior/beta-rate", prior.rate[0], source)
    yield whole("posterior/prior/alpha-shape", prior.shape[1], source)


def _draws(root: Path, chains: pd.DataFrame) -> Iterator[Row]:
    """Draws that were kept of the chain with most effective samples on each problem; draws of one run are one pair."""
    shown = chains[chains["status"] != NO_DATA]
    shown = shown.assign(good=shown["status"] == OK).sort_values(["good", "effective_samples"])
    for problem, row in shown.groupby("problem").tail(1).set_index("problem").iterrows():
        file = str(row["source"]).rpartition(".csv")[0] + ".npz"
        arrays = read_arrays(root / file) if (root / file).exists() else {}
        for column, name in _PARAMETERS.items():
            for run, value in enumerate(arrays.get(column, np.empty(0)).ravel()):
                yield {
                    "id": f"experiment5/P{problem}/{row['method']}/{name}-draws",
                    "unit": f"experiment5/P{problem}",
                    "run": run,
                    "value": value,
                    "scale": "linear",
                    "status": row["status"],
                    "source": file,
                    "seed": row["seed"],
                }


# ---------------------------------------------------------------------------------------------------------------------
# Tuning


def _tuned(root: Path) -> pd.DataFrame:
    """Tuned runs, one row a problem, method, replicate and stage, with CPU seconds.

    Those of a second look contain those of the search before it.
    """
    keys = ["problem", "method", "replicate", "stage"]
    frame = raw_rows(root, "experiment5/problem*_tuning.csv", [*keys, "status"])
    files = sorted(root.glob("experiment5/problem*_tuning_timing.csv"))
    columns = [*keys, "cpu_seconds"]
    timing = pd.concat(
        [pd.DataFrame(columns=columns), *(read_csv(path)[columns] for path in files)],
        ignore_index=True,
    ).sort_values("stage", ascending=False)  # the search comes first
    timing["cpu_seconds"] = timing["cpu_seconds"].astype(float)
    timing["cpu_seconds"] = timing.groupby(keys[:3])["cpu_seconds"].cumsum()
    frame = frame.merge(timing.astype({"problem": int, "replicate": int}), on=keys, how="left")
    needs = [column for column, _, _ in _TUNED]
    return _with_columns(frame, [*needs, "evidence", "evidence_se", "samples", "at_bound", "seed"])


def _tuning(tuned: pd.DataFrame) -> Iterator[Row]:
    """What each way of tuning has chosen, how far below the best, and how it classifies."""
    for (problem, method, stage), group in tuned.groupby(
        ["problem", "method", "stage"], sort=False
    ):
        path = f"tuning/P{problem}/{method}/{stage}"
        good, source = group[group["status"] == OK], join_sources(group["source"])
        for row in group.to_dict("records"):
            for column, name, scale in _TUNED:
                if math.isfinite(row[column]) or row["status"] != OK:
                    yield {
                        "id": f"{path}/{name}",
                        "unit": f"experiment5/P{problem}",
                        "run": row["replicate"],
                        "value": row[column],
                        "scale": scale,
                        "status": row["status"],
                        "source": row["source"],
                        "seed": row["seed"],
                    }
        if (group["status"] == NO_DATA).all():
            continue
        yield whole(f"{path}/runs", len(group), source)
        yield whole(f"{path}/ok", len(good), source)
        bound = good["at_bound"].astype(str).str.lower() == "true"
        yield whole(f"{path}/at-bound", bound.sum(), source)
        if len(good):
            # the judge uses the same random numbers throughout, so its error is that of every run
            spread = good["evidence"].std() / math.sqrt(len(good)) if len(good) > 1 else 0.0
            se = math.hypot(good["evidence_se"].mean(), spread)
            yield estimate(f"{path}/evidence", good["evidence"].mean(), source, se=se)


def _searches(tuned: pd.DataFrame) -> Iterator[Row]:
    """Nats lost by each way of tuning, over problems; and what the paper claims of few samples."""
    there = tuned[tuned["status"] != NO_DATA]
    if there.empty:
        return
    source, good = join_sources(there["source"]), there[there["status"] == OK]
    yield whole("tuning/problems", there["problem"].nunique(), source)
    yield whole("tuning/judge-se", good["evidence_se"].max(), source)
    at_bound = good[good["at_bound"].astype(str).str.lower() == "true"]
    ways = at_bound.drop_duplicates(["problem", "method", "stage"])
    yield whole("tuning/at-bound", len(ways), source)
    best = good.dropna(subset="evidence")
    for row in best.loc[best.groupby("problem")["evidence"].idxmax()].to_dict("records"):
        for column, name in _PARAMETERS.items():
            yield whole(f"tuning/P{row['problem']}/chosen/{name}", row[column], row["source"])
    looks = there[there["method"].str.fullmatch(r"orthant-\d+") & (there["stage"] == "search")]
    sizes = looks.dropna(subset="samples").groupby("method")["samples"].first().astype(float)
    named = {"ep": ("ep", "search"), "laplace": ("laplace", "search"), "best": ("best", "search")}
    for key, pick in (("small", "idxmin"), ("large", "idxmax")) if len(sizes) else ():
        method = str(getattr(sizes, pick)())
        yield whole(f"tuning/{key}/samples", sizes[method], source)
        named |= {key: (method, "search"), f"{key}-final": (method, "final")}
    for key, (method, stage) in named.items():
        yield from _way(key, there[(there["method"] == method) & (there["stage"] == stage)])
    final = there[(there["method"] == named.get("small", [""])[0]) & (there["stage"] == "final")]
    if final["samples"].notna().any():
        yield whole("tuning/small-final/samples", final["samples"].astype(float).max(), source)
    yield from _claim(looks, sizes)


def _by_problem(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean over runs that count, its standard error, and where it comes from, by problem."""
    good = rows[(rows["status"] == OK) & rows[column].notna()].groupby("problem")
    table = good[column].agg(["mean", "std", "size"])
    sources = good["source"].agg(join_sources)
    return table.assign(source=sources, se=table["std"] / np.sqrt(table["size"]))


def _way(key: str, rows: pd.DataFrame) -> Iterator[Row]:
    """One way of tuning: means over problems, and the problem on which it loses most."""
    quantities = {"evidence_shortfall": "mean", "log_loss": "log-loss", "cpu_seconds": "cpu"}
    for column, name in quantities.items():
        for problem, row in _by_problem(rows, column).iterrows():
            unit = {"unit": f"experiment5/P{problem}", "run": 0, "source": row["source"]}
            scale = "log" if name == "cpu" else "linear"
            yield unit | {"id": f"tuning/{key}/{name}", "value": row["mean"], "scale": scale}
    lost = _by_problem(rows, "evidence_shortfall")
    if len(lost):
        worst = lost.loc[lost["mean"].idxmax()]
        yield estimate(f"tuning/{key}/worst", worst["mean"], worst["source"], se=worst["se"])


def _claim(looks: pd.DataFrame, sizes: pd.Series) -> Iterator[Row]:
    """Nats lost by tuning with 20 000 to 50 000 samples: the most of them that were run, by problem."""
    allowed = sizes[sizes <= 50_000]
    if allowed.empty:
        return
    method = str(allowed.idxmax())
    status = OK if allowed[method] >= 20_000 else "not comparable"
    lost = _by_problem(looks[looks["method"] == method], "evidence_shortfall")
    for problem, row in lost.iterrows():
        yield {
            "id": "claim/tuning/small",
            "unit": f"experiment5/P{problem}",
            "run": 0,
            "value": row["mean"],
            "scale": "linear",
            "status": status,
            "source": row["source"],
        }
