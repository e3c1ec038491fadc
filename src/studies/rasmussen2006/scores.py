"""Information in bits (Eq. 3.76), curves over rejected cases, and probabilities of scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr

from gpcmc.likelihood.probit import hazard

Array = np.ndarray


def baseline(train: Array, test: Array) -> float:
    """Return the bits a test case that the training frequencies of the classes leave unknown (Eq. 3.76).

    `train` and `test` are labels 0, 1, ..., C - 1.
    """
    share = np.bincount(train) / len(train)
    return float(-np.mean(np.log2(share[test])))


def information(log_probability: Array, bits: float) -> Array:
    """Return the bits that each prediction tells about its case; `log_probability` (t,) is that of the true label."""
    return bits + log_probability / np.log(2.0)


def half_width(values: Array) -> float:
    """Return the half width of the 95 % interval of a mean over cases."""
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def over_rejections(values: Array, confidence: Array, shares: Sequence[float]) -> Array:
    """Return the mean of `values` (t,) over the cases that are kept when a share of the least confident is rejected.

    Cases of equal confidence are rejected in the order in which they come.
    """
    order = np.argsort(confidence, kind="stable")
    cut = [min(round(share * len(values)), len(values) - 1) for share in shares]
    return np.array([values[order[first:]].mean() for first in cut])


def probit_of_score(score: Array, y: Array) -> tuple[float, float]:
    """Return A and B that maximise the likelihood of labels y = -1/+1 under Phi(A score + B).

    The book's variant of Platt's method, which has the logistic function in the place of Phi.
    """
    scale = float(np.std(score)) or 1.0
    x = np.stack([score / scale, np.ones(len(score))])

    def objective(weights: Array) -> tuple[float, Array]:
        z = y * (weights @ x)
        r, _ = hazard(z)
        return -float(log_ndtr(z).sum()), -(x @ (y * r))

    found = minimize(objective, np.array([1.0, 0.0]), jac=True, method="BFGS").x
    return float(found[0]) / scale, float(found[1])


def logistic_of_score(score: Array, y: Array) -> tuple[float, float]:
    """Return A and B of the probability 1 / (1 + exp(-(A score + B))), fitted to labels y = -1/+1 by Platt's method.

    Its targets are not 0 and 1 but (1 + the number of +1) / (2 + that number), and one less the same of -1. So A stays
    finite where the scores separate the classes (Platt, 2000).
    """
    from sklearn.linear_model import LogisticRegression

    positive, negative = int(np.sum(y > 0)), int(np.sum(y < 0))
    target = np.where(y > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    scale = float(np.std(score)) or 1.0
    fit = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)
    fit.fit(
        np.tile(score / scale, 2)[:, None],
        np.repeat([1, 0], len(y)),
        sample_weight=np.concatenate([target, 1.0 - target]),
    )
    return float(fit.coef_[0, 0]) / scale, float(fit.intercept_[0])
