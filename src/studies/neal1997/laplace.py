"""Beside the chains: Laplace's method with one length scale an input, at the maximum of its evidence."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from gpcmc.classifier import GaussianProcessClassifier
from studies.common.pieces import Piece, Row
from studies.common.running import Keep

Array = np.ndarray


def laplace(*, training: int, data: Mapping[str, Array], keep: Keep) -> Piece:
    """Fit the three-way problem of 1997 with so many cases.

    Returns
    -------
    rows : list of dict
        ``training``, ``quantity``, ``value``: ``error-rate`` and ``log-probability`` of the test cases, and the
        relevances ``rho1`` to ``rho4`` that correspond to the length scales.
    """

    def one() -> tuple[list[Row], dict[str, Array]]:
        X, t, test = data["X"], data["t"].astype(int), int(data["training"])
        kernel = ConstantKernel(4.0) * RBF(np.ones(X.shape[1]), (1e-2, 1e3))
        model = GaussianProcessClassifier(kernel, inference="laplace")
        with warnings.catch_warnings():
            # the length scale of an input that does not matter ends at its bound
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[:training], t[:training])
        p = model.predict_proba(X[test:])
        right = p[np.arange(len(t) - test), t[test:]]
        found = {
            "error-rate": float((p.argmax(axis=1) != t[test:]).mean()),
            "log-probability": float(np.log(right).mean()),
        }
        rho = 1 / (np.sqrt(2) * model.kernel_.k2.length_scale)
        found |= {f"rho{u + 1}": float(one) for u, one in enumerate(rho)}
        return [{"training": training, "quantity": k, "value": v} for k, v in found.items()], {}

    return keep("laplace", one)
