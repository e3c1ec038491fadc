"""The exact evidence of threes against fives at some points, by two unbiased estimators (Figure 3.12)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpcmc.gp.covariance import Prior
from gpcmc.inference.annealing import annealed_importance_sampling
from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.hamiltonian import HamiltonianMonteCarlo
from gpcmc.inference.interface import NOT_CONVERGED, OK, UNTRUSTED
from gpcmc.inference.laplace import Laplace
from gpcmc.inference.twisted import Twisted
from studies.common.pieces import Piece, Row, join
from studies.common.running import Keep
from studies.common.seeds import generator, seed
from studies.rasmussen2006.gp import squared_exponential
from studies.rasmussen2006.patterns import Binary
from studies.rasmussen2006.scores import information

Array = np.ndarray


def evidence(
    *,
    digits: Mapping[str, Array],
    method: str,
    options: Mapping[str, int],
    points: Sequence[tuple[float, float]],
    root: int,
    keep: Keep,
) -> Piece:
    """Estimate the log evidence at points (log l, log sf), beside Laplace's and EP's.

    Parameters
    ----------
    digits : mapping
        Arrays of `patterns.usps`.
    method : {"twisted-ep", "annealing"}
    options : mapping
        ``points`` and ``randomizations`` of the first, ``temperatures`` and ``runs`` of the second, which moves by
        Hamiltonian Monte Carlo. The first one also predicts the test cases.

    Returns
    -------
    rows : list of dict
        One row a point: the estimate with its standard error, diagnostics and status, and the approximations.
    """
    data = Binary.of_digits(digits)
    estimate = {"twisted-ep": _twisted, "annealing": _annealed}[method]

    def one(point: tuple[float, float]) -> tuple[list[Row], dict[str, Array]]:
        name = f"l{point[0]:g}a{point[1]:g}"
        path = seed(root, "exact", method, name)
        K = squared_exponential(data.distances, *point)
        key = {"method": method, "log_length": point[0], "log_amplitude": point[1]}
        others = {
            "laplace": Laplace().approximate(K, data.y).log_evidence,
            "ep": ExpectationPropagation().approximate(K, data.y).log_evidence,
        }
        found = estimate(data, K, point, dict(options), generator(path))
        return [{**key, **options, **found, **others, "seed": path}], {}

    names = [f"l{x:g}a{a:g}" for x, a in points]
    parts = zip(names, points, strict=True)
    return join(keep(name, partial(one, point)) for name, point in parts)


def _twisted(
    data: Binary,
    K: Array,
    point: tuple[float, float],
    options: dict[str, Any],
    rng: np.random.Generator,
) -> Row:
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


def _annealed(
    data: Binary,
    K: Array,
    point: tuple[float, float],
    options: dict[str, Any],
    rng: np.random.Generator,
) -> Row:
    found = annealed_importance_sampling(
        K, data.y, transition=HamiltonianMonteCarlo(), rng=rng, **options
    )
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
