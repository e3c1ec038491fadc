"""The exact evidence of threes against fives at some points, by two unbiased estimators (Figure 3.12)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gpcmc.chains.annealing import annealed_importance_sampling
from gpcmc.covariance.dense import Dense
from gpcmc.covariance.prior import Prior
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.laplace import Laplace
from gpcmc.inference import HamiltonianMonteCarlo
from gpcmc.posterior import NOT_CONVERGED, OK, UNTRUSTED
from gpcmc.rectangle.classification import Twisted
from studies.common.rows import Line
from studies.rasmussen2006.gp import squared_exponential
from studies.rasmussen2006.patterns import Binary
from studies.rasmussen2006.scores import information

Array = np.ndarray


def evidence(
    method: str,
    options: Mapping[str, int],
    point: tuple[float, float],
    digits: Mapping[str, Array],
    rng: np.random.Generator,
) -> Line:
    """Estimate the log evidence at a point (log l, log sf), beside Laplace's and EP's.

    Parameters
    ----------
    method : {"twisted-ep", "annealing"}
    options : mapping
        ``points`` and ``randomizations`` of the first, ``temperatures`` and ``runs`` of the second, which moves by
        Hamiltonian Monte Carlo. The first one also predicts the test cases.
    point : (float, float)
    digits : mapping
        Arrays of `patterns.usps`.
    rng : Generator

    Returns
    -------
    dict
        The estimate with its standard error, diagnostics and status, and the approximations.
    """
    data = Binary.of_digits(digits)
    K = squared_exponential(data.distances, *point)
    others = {
        "laplace": Laplace().approximate(Dense(K), data.y).log_evidence,
        "ep": ExpectationPropagation().approximate(Dense(K), data.y).log_evidence,
    }
    if method == "twisted-ep":
        return _twisted(data, K, point, options, rng) | others
    return _annealed(data, K, options, rng) | others


def _twisted(
    data: Binary,
    K: Array,
    point: tuple[float, float],
    options: Mapping[str, int],
    rng: np.random.Generator,
) -> Line:
    variances = np.full(len(data.y_star), math.exp(2 * point[1]))
    prior = Prior(K, squared_exponential(data.across, *point), variances)
    found = Twisted(**options).fit(prior, data.y, rng=rng)
    p = found.prediction.probability
    told = information(np.log(np.where(data.y_star > 0, p, 1.0 - p)), data.bits)
    return {
        "log_evidence": found.log_evidence,
        "standard_error": found.log_evidence_se,
        "degrees": options["randomizations"] - 1,
        "k_hat": found.diagnostics["k_hat"],
        "effective_fraction": found.diagnostics["effective_fraction"],
        "information": float(told.mean()),
        # EP that has not converged is a proposal like any other: the weights say whether the estimate can be trusted
        "status": OK if found.status in (OK, NOT_CONVERGED) else found.status,
    }


def _annealed(data: Binary, K: Array, options: Mapping[str, int], rng: np.random.Generator) -> Line:
    transition, counts = HamiltonianMonteCarlo(), dict(options)
    found = annealed_importance_sampling(K, data.y, transition=transition, rng=rng, **counts)
    return {
        "log_evidence": found.log_evidence,
        "standard_error": found.log_evidence_se,
        "degrees": options["runs"] - 1,
        "k_hat": found.diagnostics.get("k_hat", math.nan),
        "effective_fraction": found.diagnostics["effective_fraction"],
        "information": math.nan,
        # EP that has not converged is a proposal like any other: the weights say whether the estimate can be trusted
        "status": OK if found.status == OK else UNTRUSTED,
    }
