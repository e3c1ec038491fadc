"""Beside the chains: Laplace's method with one length scale an input, at the maximum of its evidence."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.covariance.kernels import flush_subnormal
from studies.common.rows import Line

Array = np.ndarray


def fitted(training: int, data: Mapping[str, Array]) -> list[Line]:
    """Fit the three-way problem of 1997 with so many cases.

    Returns
    -------
    list of dict
        ``training``, ``quantity``, ``value``: ``error-rate`` and ``log-probability`` of the test cases, and the
        relevances ``rho1`` to ``rho4`` that correspond to the length scales.
    """
    X, t, test = data["X"], data["t"].astype(int), int(data["training"])
    kernel = ConstantKernel(4.0) * RBF(np.ones(X.shape[1]), (1e-2, 1e3))
    model = GaussianProcessClassifier(kernel, inference="laplace")
    with warnings.catch_warnings():
        # the length scale of an input that does not matter ends at its bound
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:training], t[:training])
    K_star = flush_subnormal(model.kernel_(X[:training], X[test:]))
    posterior = model.posterior_
    p = posterior.predict(K_star, model.kernel_.diag(X[test:])).probability
    right = p[np.arange(len(t) - test), t[test:]]
    found = {
        "error-rate": float((p.argmax(axis=1) != t[test:]).mean()),
        "log-probability": float(np.log(right).mean()),
    }
    rho = 1 / (np.sqrt(2) * model.kernel_.k2.length_scale)
    found |= {f"rho{u + 1}": float(one) for u, one in enumerate(rho)}
    return [{"training": training, "quantity": k, "value": v} for k, v in found.items()]
