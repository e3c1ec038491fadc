"""What the abstract claims: predictions that integrate over hyperparameters against fitted ones and calibrated SVMs.

The source's section 5 is lost to us. The design is ours: training sets of a few sizes, drawn with both classes in
their shares, and all other cases as test cases; features are standardised over all cases, as in section 4.4. Four
methods see the same training cases:

- ``fitted``: expectation propagation (EP) at the maximum of its evidence (type II maximum likelihood);
- ``mode``: EP at the maximum of its evidence times the prior, which tells the prior's part from that of integration;
- ``integrated``: the mean of EP's predictions over draws of a pseudo-marginal chain with EP's Gaussian;
- ``svm``: a support vector machine whose cost and width are chosen by cross-validation, and the logistic function of
  its held-out scores (Platt).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gpcmc.chains.hyperparameters import (
    HyperparameterPrior,
    covariance_at,
    default_prior,
    squared_differences,
)
from gpcmc.covariance.dense import Dense, gradient_array
from gpcmc.evidence.climbing import climb
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import gaussian_proposal
from studies.common.rows import Line
from studies.common.seeds import generator
from studies.filippone2014.chains import effective_samples
from studies.filippone2014.simulated import median_start, model_of, standardised
from studies.filippone2014.tuned_chains import pilot, pseudo_marginal_chain

Array = np.ndarray
_EP = ExpectationPropagation(tolerance=1e-6)
#: Bounds of (log sigma, log tau) of fitted hyperparameters.
BOUNDS = ((-6.0, 12.0), (-5.0, 7.0))
#: Grids of the support vector machine: log C, and log of the width over the median distance.
COSTS, WIDTHS = (-2.0, 0.0, 2.0, 4.0, 6.0), (-1.0, -0.5, 0.0, 0.5, 1.0)
_FOLDS = 5
_BINS = 10


class Task(NamedTuple):
    """Training and test cases."""

    X: Array
    y: Array
    X_star: Array
    y_star: Array


def task_of(data: Mapping[str, Array], size: int, path: str) -> Task:
    """Return a training set of so many cases and the other cases, standardised over all cases.

    Parameters
    ----------
    data : mapping
        ``X`` (n, d) and ``y`` (n,).
    size : int
        Training cases.
    path : str
        Of the stream that draws them.
    """
    return drawn(*standardised(data), size, generator(path))


def drawn(X: Array, y: Array, size: int, rng: np.random.Generator) -> Task:
    """Return a training set with the classes in their shares, at least three cases of each, and the other cases."""
    positive = min(max(round(size * float(np.mean(y > 0))), 3), size - 3)
    order = rng.permutation(len(y))
    classes = [order[y[order] > 0][:positive], order[y[order] < 0][: size - positive]]
    train = np.sort(np.concatenate(classes))
    test = np.setdiff1d(np.arange(len(y)), train)
    return Task(X[train], y[train], X[test], y[test])


def scores(p: Array, y: Array) -> dict[str, float]:
    """Return scores of probabilities p (t,) of the class +1.

    ``log_loss`` in nats; ``brier``; ``error_rate``; ``auc``, the area under the curve of true against false positives;
    ``calibration``, the mean distance between probabilities and frequencies over ten bins of equal numbers of cases.
    """
    from scipy.stats import rankdata

    least = np.finfo(float).eps  # a rounded zero would make an infinite loss
    t = (y > 0).astype(float)
    right = np.clip(np.where(y > 0, p, 1.0 - p), least, 1.0)
    positive = t.sum()
    ranks = rankdata(p)[y > 0].sum() - positive * (positive + 1) / 2
    bins = np.array_split(np.argsort(p, kind="stable"), min(_BINS, len(p)))
    gaps = [len(b) * abs(p[b].mean() - t[b].mean()) for b in bins]
    return {
        "log_loss": float(-np.log(right).mean()),
        "brier": float(np.mean((p - t) ** 2)),
        "error_rate": float(np.mean((p > 0.5) != (y > 0))),
        "auc": float(ranks / (positive * (len(y) - positive))),
        "calibration": float(np.sum(gaps) / len(p)),
    }


# --- Gaussian processes. `chain` has ``chains``, ``samples``, ``iterations``, ``burn_in``, ``pilot`` (iterations), and
# ``draws`` of each chain that predictions are averaged over; the other methods take no notice of it.


def at(task: Task, theta: Array) -> Array:
    """Return EP's probabilities of the test cases at (log sigma, log tau)."""
    K, K_star = (
        covariance_at(squared_differences(task.X, other, 1), theta)
        for other in (task.X, task.X_star)
    )
    posterior = gaussian_proposal(_EP, K, task.y)
    return posterior.predict(K_star, np.full(len(task.y_star), np.exp(theta[0]))).probability


def maximum(task: Task, prior: HyperparameterPrior | None) -> tuple[Array, bool]:
    """Return (log sigma, log tau) of EP's largest evidence, times the prior if there is one; and whether at a bound."""
    squares = squared_differences(task.X, task.X, 1)
    low, high = np.array(BOUNDS).T

    def objective(theta: Array) -> tuple[float, Array]:
        K = covariance_at(squares, theta)
        covariance = Dense(K)
        posterior = _EP.approximate(covariance, task.y)
        weighted = gradient_array(_EP.gradient(covariance, task.y, posterior)) * K
        slope = np.array([weighted.sum(), (weighted * squares[0]).sum() * np.exp(-2 * theta[1])])
        value, gradient = posterior.log_evidence, 0.5 * slope
        if prior is not None:
            value += prior.log_density(theta)
            gradient += np.array(prior.shape) - np.array(prior.rate) * np.exp(theta)
        return value, gradient

    start = median_start(default_prior(task.X.shape[1]))
    starts = [np.clip(one, low, high) for one in (start, start + np.array([1.0, -1.0]))]
    found = climb(objective, starts, BOUNDS, poor=-10.0 * len(task.y))
    best = max(found.ends, key=lambda end: end[1])[0]
    return best, bool((np.minimum(best - low, high - best) < 1e-3).any())


def _fitted(task: Task, chain: Mapping[str, int], rng: np.random.Generator) -> tuple[Array, Line]:
    theta, bound = maximum(task, None)
    return at(task, theta), {"at_bound": bound}


def _mode(task: Task, chain: Mapping[str, int], rng: np.random.Generator) -> tuple[Array, Line]:
    theta, bound = maximum(task, default_prior(task.X.shape[1]))
    return at(task, theta), {"at_bound": bound}


def _integrated(
    task: Task, chain: Mapping[str, int], rng: np.random.Generator
) -> tuple[Array, Line]:
    model = model_of(task.X, task.y, relevance=False)
    root = pilot(model, burn_in=chain["pilot"], iterations=chain["pilot"], rng=rng)
    given = {key: chain[key] for key in ("samples", "iterations", "burn_in")}
    theta = np.stack(
        [
            pseudo_marginal_chain(model, "ep", root, rng=rng, **given).theta
            for _ in range(chain["chains"])
        ]
    )
    length = theta.shape[1]
    kept = (np.arange(1, chain["draws"] + 1) * length) // chain["draws"] - 1
    draws = theta[:, kept].reshape(-1, 2)
    p = np.mean([at(task, one) for one in draws], axis=0)
    return p, {"ess": effective_samples(theta)}


# --- the support vector machine


def _machine(task: Task, chain: Mapping[str, int], rng: np.random.Generator) -> tuple[Array, Line]:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    smallest = int(min((task.y > 0).sum(), (task.y < 0).sum()))
    folds = StratifiedKFold(
        min(_FOLDS, smallest), shuffle=True, random_state=int(rng.integers(2**31))
    )
    distances = squared_differences(task.X, task.X, 1)
    median = np.median(distances[distances > 0])
    grid: dict[str, Any] = {
        "C": np.exp(COSTS),
        "gamma": 0.5 / (median * np.exp(2 * np.array(WIDTHS))),
    }
    best = GridSearchCV(SVC(), grid, cv=folds).fit(task.X, task.y)
    # one machine of all training cases, and the logistic function of scores of cases that were held out
    calibrated = CalibratedClassifierCV(SVC(**best.best_params_), cv=folds, ensemble=False)
    p = calibrated.fit(task.X, task.y).predict_proba(task.X_star)[:, 1]
    return p, {}


METHODS = {"fitted": _fitted, "mode": _mode, "integrated": _integrated, "svm": _machine}
