"""Experiment 5, first part: the posterior of the hyperparameters, and predictions with them averaged out."""

from __future__ import annotations

from studies.atiya2021.experiments.posterior_chains import posteriors, row_of
from studies.atiya2021.settings import Configuration, on_problem
from studies.common.rows import Inputs, Line, Result, Row, planned


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem and method; it reads the chains of `posterior_chains`."""
    settings = config.atiya2021.experiment5.posterior.settings
    return planned(
        {
            "row": f"problem{posterior['problem']}/{posterior['method']}",
            "seconds": 1.5,
            **{name: posterior[name] for name in ("problem", "method", "seed", "options")},
            "lengths": {name: posterior[name] for name in ("chains", "iterations", "burn_in")},
            "pairs": [row_of(posterior, k) for k in range(posterior["chains"] // 2)],
            "draws": {
                name: on_problem(getattr(settings, name), posterior["problem"])
                for name in ("kept", "predictive")
            },
        }
        for posterior in posteriors(config)
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Summarise the draws and predict: settings, and what `studies.atiya2021.experiment5.posterior` returns."""
    from studies.atiya2021.experiment5 import of_moves, posterior
    from studies.atiya2021.problems import Problem

    names = ("moved", "log_alpha", "log_beta", "acceptance")
    chains, iterations = inputs["chains"], row["lengths"]["iterations"]
    pairs = [
        of_moves({name: chains[f"{pair}/{name}"][0] for name in names}, iterations)
        for pair in row["pairs"]
    ]
    line, arrays = posterior(Problem(**inputs["problem"]), pairs, **row["draws"])
    key = {name: row[name] for name in ("problem", "method", "seed")}
    line = key | row["options"] | row["lengths"] | line
    return Result([line], {f"problem{row['problem']}/{k}": one for k, one in arrays.items()})
