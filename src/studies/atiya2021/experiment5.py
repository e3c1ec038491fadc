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
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpcmc.chains.convergence import hyperparameter_convergence
from gpcmc.chains.estimators import Estimator, orthant_estimator
from gpcmc.chains.hyperparameter_chains import ChainOptions, run_chains
from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import Prior, prior
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import gaussian_proposal
from gpcmc.posterior import NOT_CONVERGED, OK, ConvergenceError, chain_status
from gpcmc.rectangle.classification import Twisted
from studies.atiya2021.problems import Problem
from studies.common.rows import Line
from studies.common.seeds import generator
from studies.common.timing import import_late

_PREDICTOR = ExpectationPropagation(tolerance=1e-6)
_QUANTILES = {"q025": 0.025, "median": 0.5, "q975": 0.975}


class Draws(NamedTuple):
    """Chains that ran side by side.

    Attributes
    ----------
    log_alpha, log_beta : (chains, iterations) array
    acceptance : (chains,) array
        Share of proposals that were accepted.
    """

    log_alpha: np.ndarray
    log_beta: np.ndarray
    acceptance: np.ndarray


def pair(
    problem: Problem, method: str, settings: Mapping[str, Any], path: str
) -> tuple[Draws, Line, float]:
    """Run two chains on a problem.

    Parameters
    ----------
    problem : Problem
    method : str
        As of `run_chains`; or ``twisted-ep``, pseudo-marginal with the estimator of that method.
    settings : mapping
        ``iterations`` and ``burn_in`` of each chain, and the options of the method.
    path : str
        Seed of both.

    Returns
    -------
    Draws, dict, float
        The chains, counts of their work, and their CPU seconds.
    """
    given: dict[str, Any] = {"method": method, **settings}
    if method == "twisted-ep":
        lengths = {name: settings[name] for name in ("iterations", "burn_in")}
        own = {key: value for key, value in settings.items() if key not in lengths}
        given = {"method": _twisted_estimator(own), **lengths}
    options = ChainOptions(chains=2, **given)
    import_late()
    start = time.process_time()
    found = run_chains(problem.X_train, problem.y_train, options, rng=generator(path))
    seconds = time.process_time() - start
    draws = Draws(np.log(found.alpha), np.log(found.beta), found.acceptance)
    return draws, {f"work_{what}": count for what, count in found.work.items()}, seconds


def moves(draws: Draws) -> dict[str, np.ndarray]:
    """Return chains as their moves: they refuse most proposals, and then stay where they are.

    Returns
    -------
    dict
        ``moved``, packed bits: whether a draw is another than the one before, chain after chain; ``log_alpha`` and
        ``log_beta`` of the draws that are, and ``acceptance``.
    """
    both = np.stack([draws.log_alpha, draws.log_beta])
    moved = np.ones(draws.log_alpha.shape, dtype=bool)
    moved[:, 1:] = (both[..., 1:] != both[..., :-1]).any(axis=0)
    return {
        "moved": np.packbits(moved),
        "log_alpha": draws.log_alpha[moved],
        "log_beta": draws.log_beta[moved],
        "acceptance": draws.acceptance,
    }


def of_moves(arrays: Mapping[str, np.ndarray], iterations: int) -> Draws:
    """Return the chains of which `moves` kept the moves."""
    acceptance = arrays["acceptance"]
    shape = len(acceptance), iterations
    place = np.cumsum(np.unpackbits(arrays["moved"], count=shape[0] * shape[1])) - 1
    log_alpha, log_beta = (
        arrays[f"log_{name}"][place].reshape(shape) for name in ("alpha", "beta")
    )
    return Draws(log_alpha, log_beta, acceptance)


def posterior(
    problem: Problem, pairs: Sequence[Draws], kept: int, predictive: int
) -> tuple[Line, dict[str, np.ndarray]]:
    """Summarise the chains of a posterior, and predict with their draws.

    Parameters
    ----------
    problem : Problem
    pairs : sequence of Draws
        At least two chains in all.
    kept, predictive : int
        Draws of each chain, evenly spaced, to keep for figures and to average predictions over.

    Returns
    -------
    dict, dict
        Columns, and arrays ``log_alpha``, ``log_beta`` (chains, kept) and ``probability`` (t,) at the test patterns.
    """
    draws = {
        which: np.concatenate([getattr(one, which) for one in pairs])
        for which in ("log_alpha", "log_beta")
    }
    summaries = {which: _summary(values) for which, values in draws.items()}
    statuses = {chain_status(summary) for summary in summaries.values()}
    line: Line = {"status": OK if statuses == {OK} else NOT_CONVERGED}
    for which, summary in summaries.items():
        line |= {f"{which}_{what}": value for what, value in summary.items()}
    line["acceptance"] = float(np.mean([one.acceptance for one in pairs]))
    iterations = draws["log_alpha"].shape[1]
    at = _evenly(iterations, predictive)
    predicted, probability = predict(problem, draws["log_alpha"][:, at], draws["log_beta"][:, at])
    thinned = {which: values[:, _evenly(iterations, kept)] for which, values in draws.items()}
    return line | predicted, thinned | {"probability": probability}


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


def predict(
    problem: Problem, log_alpha: np.ndarray, log_beta: np.ndarray
) -> tuple[Line, np.ndarray]:
    """Average the test patterns' probabilities over draws (chains, draws) of the hyperparameters.

    Expectation propagation predicts at each draw: its error is far below the spread between draws.

    Returns
    -------
    dict, (t,) array
        ``log_loss``, ``error_rate`` and ``log_loss_se``; the probabilities of class +1.
    """
    of_chain = np.zeros((len(log_alpha), len(problem.y_test)))
    for c, i in np.ndindex(log_alpha.shape):
        kernel = rbf(float(np.exp(log_alpha[c, i])), float(np.exp(log_beta[c, i])))
        gp = prior(kernel, problem.X_train, problem.X_test)
        found = gaussian_proposal(_PREDICTOR, gp.K, problem.y_train)
        of_chain[c] += found.predict(gp.K_star, gp.k_star_star).probability / log_alpha.shape[1]
    probability = of_chain.mean(axis=0)
    line: Line = {**scores(probability, problem.y_test)}
    # jackknife over chains: the logarithm of the average of all but one
    m = len(of_chain)
    left_out = (of_chain.sum(axis=0) - of_chain) / (m - 1)
    losses = np.array([scores(p, problem.y_test)["log_loss"] for p in left_out])
    line["log_loss_se"] = float(np.sqrt((m - 1) / m * np.sum((losses - losses.mean()) ** 2)))
    return line, probability


def scores(probability: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the mean log loss, in nats, and the error rate of probabilities (t,) of class +1."""
    of_truth = np.where(y > 0, probability, 1.0 - probability)
    least = np.finfo(float).eps  # a rounded zero would make an infinite loss
    decided = np.where(probability >= 0.5, 1.0, -1.0)
    return {
        "log_loss": float(-np.mean(np.log(np.maximum(of_truth, least)))),
        "error_rate": float(np.mean(decided != y)),
    }
