"""Experiment 5, first part: the posterior over (alpha, beta) by Markov chains.

The paper fixes the hyperparameters or maximises the evidence. An unbiased estimate of the evidence also
gives their whole posterior (Filippone and Girolami 2014): each method runs its chains on a problem of
Experiment 4, and the test patterns are predicted with the hyperparameters averaged out. All methods
have one and the same posterior as their target, so that they differ in effort and not in answer.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, Algorithm 1.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpcmc._validation import check_positive_int
from gpcmc.gp.covariance import Prior, prior, rbf
from gpcmc.inference.convergence import hyperparameter_convergence
from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.evidence_estimators import Estimator, orthant_estimator
from gpcmc.inference.hyperparameter_chains import run_chains
from gpcmc.inference.importance import gaussian_proposal
from gpcmc.inference.interface import NOT_CONVERGED, OK, ConvergenceError, chain_status
from gpcmc.inference.twisted import Twisted
from studies.atiya2021.problems import Problem
from studies.atiya2021.runs import NO_DATA
from studies.common.pieces import Piece, Pieces, Row
from studies.common.seeds import generator, seed
from studies.common.timing import import_late

_PREDICTOR = ExpectationPropagation(tolerance=1e-6)
_QUANTILES = {"q025": 0.025, "median": 0.5, "q975": 0.975}


def hyperparameter_posterior(
    number: int,
    name: str,
    problem: Problem | None,
    *,
    root: int,
    method: str,
    options: Mapping[str, Any],
    chains: int,
    iterations: int,
    burn_in: int,
    kept: int,
    predictive: int,
    pieces: Pieces,
) -> Piece:
    """Run one method's chains on one problem, and predict with their draws.

    Parameters
    ----------
    number, name, problem, root : int, str, Problem or None, int
        Problem of Experiment 4; the row's name, which keys the random streams; None where the data could not be
        had; root of the random streams.
    method, options : str, mapping
        As of `run_chains`; or ``twisted-ep``, pseudo-marginal with the estimator of that method, and its options.
    chains, iterations, burn_in, kept, predictive : int
        Chains, an even number because they run in pairs; the lengths of each; draws of each, evenly spaced, to keep
        for figures and to average predictions over.

    Returns
    -------
    rows, timing, arrays : list of dict, list of dict, dict
        One row; ``log_alpha``, ``log_beta`` (chains, kept) and ``probability`` (t,) at the test patterns.

    Raises
    ------
    ValueError : if a count or an option is not as above.
    """
    if check_positive_int("chains", chains) % 2:
        raise ValueError(f"chains must be even, they run in pairs; got {chains}")
    for what, value in (("kept", kept), ("predictive", predictive)):
        if check_positive_int(what, value) > iterations:
            raise ValueError(f"{what} must not exceed iterations = {iterations}; got {value}")
    key: Row = {"problem": number, "method": name}
    if problem is None:
        return [key | {"status": NO_DATA}], [key | {"cpu_seconds": None}], {}
    path = seed(root, "experiment5", f"problem{number}", name)
    lengths = {"chains": chains, "iterations": iterations, "burn_in": burn_in}
    pairs = _pairs(problem, path, method, options, lengths, pieces)
    draws = {
        which: np.concatenate([arrays[which] for _, _, arrays in pairs])
        for which in ("log_alpha", "log_beta")
    }
    at = _evenly(iterations, predictive)
    predicted = pieces.get(
        "prediction",
        partial(_predict, problem, draws["log_alpha"][:, at], draws["log_beta"][:, at]),
    )
    row = key | {"seed": path} | dict(options) | lengths
    rows, timing = _summarised(row, key, draws, pairs, predicted)
    thinned = {which: values[:, _evenly(iterations, kept)] for which, values in draws.items()}
    return rows, timing, thinned | predicted[2]


def _pairs(
    problem: Problem,
    path: str,
    method: str,
    options: Mapping[str, Any],
    lengths: Mapping[str, int],
    pieces: Pieces,
) -> list[Piece]:
    """All chains, two a piece."""
    settings: dict[str, Any] = {"method": method, **options}
    if method == "twisted-ep":
        settings = {"method": _twisted_estimator(options)}
    settings |= {**lengths, "chains": 2}
    import_late()
    return [
        pieces.get(f"pair{k}", partial(_pair, problem, seed(path, f"pair{k}"), settings))
        for k in range(lengths["chains"] // 2)
    ]


def _pair(problem: Problem, path: str, settings: Mapping[str, Any]) -> Piece:
    """Two chains: their work, their acceptance and their draws."""
    start = time.process_time()
    found = run_chains(problem.X_train, problem.y_train, rng=generator(path), **settings)
    seconds = time.process_time() - start
    made = {"work": found.work, "acceptance": found.acceptance.tolist()}
    arrays = {"log_alpha": np.log(found.alpha), "log_beta": np.log(found.beta)}
    return [made], [{"cpu_seconds": seconds}], arrays


def _summarised(
    row: Row,
    key: Row,
    draws: Mapping[str, np.ndarray],
    pairs: Sequence[Piece],
    predicted: Piece,
) -> tuple[list[Row], list[Row]]:
    """Put summaries of the draws (chains, iterations), effort and predictions into one row and one of timing."""
    summaries = {which: _summary(values) for which, values in draws.items()}
    statuses = {chain_status(summary) for summary in summaries.values()}
    row["status"] = OK if statuses == {OK} else NOT_CONVERGED
    for which, summary in summaries.items():
        row |= {f"{which}_{what}": value for what, value in summary.items()}
    row["acceptance"] = float(np.mean([rows[0]["acceptance"] for rows, _, _ in pairs]))
    work = sum((Counter(rows[0]["work"]) for rows, _, _ in pairs), Counter[str]())
    row |= {f"work_{what}": int(count) for what, count in work.items()}
    row |= predicted[0][0]
    seconds = sum(timing[0]["cpu_seconds"] for _, timing, _ in pairs)
    timing = key | {"cpu_seconds": seconds} | predicted[1][0]
    for which, summary in summaries.items():
        timing[f"{which}_effective_per_second"] = summary["effective_samples"] / seconds
    return [row], [timing]


def _twisted_estimator(options: Mapping[str, Any]) -> Estimator:
    """The estimator of twisted EP; the orthant sampler that it builds on where EP does not converge.

    Which of the two is taken depends on the hyperparameters alone, and both are unbiased.
    """
    method = Twisted(**options)

    def estimator(K: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float:
        try:
            return float(method.fit(Prior(K), y, rng=rng).log_evidence)
        except ConvergenceError:
            return orthant_estimator(K, y, rng, samples=method.points * method.randomizations)

    return estimator


def _evenly(length: int, count: int) -> np.ndarray:
    """Return `count` places in a chain, the last one among them."""
    return (np.arange(1, count + 1) * length) // count - 1


def _summary(values: np.ndarray) -> dict[str, float]:
    """Return mean, spread and diagnostics of one hyperparameter (chains, draws)."""
    found = hyperparameter_convergence(values[..., None])
    deviation, effective = float(values.std(ddof=1)), found["effective_samples"]
    quantiles = np.quantile(values, list(_QUANTILES.values()))
    return {
        "mean": float(values.mean()),
        "mean_se": deviation / np.sqrt(effective) if effective > 0 else np.inf,
        "sd": deviation,
        **{what: float(q) for what, q in zip(_QUANTILES, quantiles, strict=True)},
        "r_hat": found["r_hat"],
        "effective_samples": effective,
    }


def _predict(problem: Problem, log_alpha: np.ndarray, log_beta: np.ndarray) -> Piece:
    """Average the test patterns' probabilities over draws (chains, draws) of the hyperparameters.

    Expectation propagation predicts at each draw: its error is far below the spread between draws.
    """
    start = time.process_time()
    of_chain = np.zeros((len(log_alpha), len(problem.y_test)))
    for c, i in np.ndindex(log_alpha.shape):
        kernel = rbf(float(np.exp(log_alpha[c, i])), float(np.exp(log_beta[c, i])))
        gp = prior(kernel, problem.X_train, problem.X_test)
        found = gaussian_proposal(_PREDICTOR, gp.K, problem.y_train)
        of_chain[c] += found.predict(gp.K_star, gp.k_star_star).probability / log_alpha.shape[1]
    seconds = time.process_time() - start
    probability = of_chain.mean(axis=0)
    row = scores(probability, problem.y_test)
    # jackknife over chains: the logarithm of the average of all but one
    m = len(of_chain)
    left_out = (of_chain.sum(axis=0) - of_chain) / (m - 1)
    losses = np.array([scores(p, problem.y_test)["log_loss"] for p in left_out])
    row["log_loss_se"] = float(np.sqrt((m - 1) / m * np.sum((losses - losses.mean()) ** 2)))
    return [row], [{"prediction_cpu_seconds": seconds}], {"probability": probability}


def scores(probability: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the mean log loss, in nats, and the error rate of probabilities (t,) of class +1."""
    of_truth = np.where(y > 0, probability, 1.0 - probability)
    least = np.finfo(float).eps  # a rounded zero would make an infinite loss
    decided = np.where(probability >= 0.5, 1.0, -1.0)
    return {
        "log_loss": float(-np.mean(np.log(np.maximum(of_truth, least)))),
        "error_rate": float(np.mean(decided != y)),
    }
