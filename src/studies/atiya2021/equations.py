"""The paper's doubtful equations and its limits, checked numerically.

Each check computes a printed formula and its correction on a random problem, and compares both
with an answer reached by another way: a closed form, a quadrature over the latent values, or the
matrices that the formula came from.

References
----------
Atiya, Fayed, Abdel-Gawad (2021), Eqs. (10)-(12), (22)-(31), (48)-(52), (65), (66), (69)-(75), section 3.3.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.linalg import block_diag, inv, solve
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from gpcmc._validation import FloatArray, check_rng
from gpcmc.orthant.truths import three_dimensional, two_dimensional
from studies.common.rows import Line

_ZERO = 1e-9  # an error below this is rounding, above it a misprint


@threadpool_limits.wrap(limits=1)
def check_equations(rng: np.random.Generator) -> list[Line]:
    """Evaluate Eqs. (30), (31), (48)-(51), (52), (66), (75) and the limits of section 3.3 as printed and corrected.

    Parameters
    ----------
    rng : Generator
        Draws the random problems; the verdicts do not depend on it.

    Returns
    -------
    list of dict
        One row an equation, with ``equation``, ``statement`` (what is printed, in words),
        ``correction`` (empty if none is needed), ``printed_error`` (NaN where the printed shapes
        do not conform), ``corrected_error`` (NaN if there is no correction) and ``verdict``.
        Errors are absolute: nats for (30), (66) and the limits, probabilities for (31), matrix
        entries elsewhere.

    Raises
    ------
    ValueError
        If rng is not a Generator.
    """
    rng = check_rng("rng", rng)
    checks = [
        *(_equation_30, _equation_31, _equations_48_51, _equation_52, _equation_66, _equation_75),
        *(_limit_small, _limit_beta),
    ]
    rows = [check(rng) for check in checks]
    for row in rows:
        row["verdict"] = _verdict(row["printed_error"], row["corrected_error"])
    return rows


def _verdict(printed_error: float, corrected_error: float) -> str:
    """Return the conclusion from the two errors; a NaN is an error that does not exist."""
    if printed_error < _ZERO:
        return "correct as printed"
    if not corrected_error < _ZERO:
        return "not settled"
    if np.isnan(printed_error):
        return "misprint: shapes do not conform; corrected form agrees"
    return "misprint: corrected form agrees"


def _problem(rng: np.random.Generator, n: int, t: int) -> tuple[FloatArray, FloatArray]:
    """Return labels (n,) and a random covariance of n training and t test latent values."""
    G = rng.standard_normal((n + t, n + t))
    return rng.choice([-1.0, 1.0], n), G @ G.T / (n + t) + 0.1 * np.eye(n + t)


def _equation_30(rng: np.random.Generator) -> dict[str, Any]:
    """L = P(v' > 0), v' ~ N(0, C'(I + Sigma)C'), against a quadrature over f, N = 3."""
    n = 3
    y, joint = _problem(rng, n, 1)
    Sigma = joint[:n, :n]
    C = np.diag(y)
    u, weight = np.polynomial.hermite_e.hermegauss(60)
    z = np.array(list(itertools.product(u, repeat=n)))
    w = np.prod(list(itertools.product(weight / weight.sum(), repeat=n)), axis=1)
    f = z @ np.linalg.cholesky(Sigma).T
    evidence = np.log(w @ np.prod(ndtr(y * f), axis=1))
    corrected = three_dimensional(C @ (np.eye(n) + Sigma) @ C)
    return {
        "equation": "30",
        "statement": "the marginal likelihood is the orthant integral of covariance "
        "C'(I + Sigma')C', Sigma' being the (N+1) x (N+1) covariance of training and test points",
        "correction": "Sigma, N x N, in place of Sigma'",
        "printed_error": np.nan,
        "corrected_error": abs(corrected - evidence),
    }


def _equation_31(rng: np.random.Generator) -> dict[str, Any]:
    """The limit of an endless length scale, K = beta everywhere, against the orthants of that K, N = 2."""
    n, beta = 2, float(rng.uniform(0.5, 5.0))
    y = rng.choice([-1.0, 1.0], n)
    positive = int((y > 0).sum())
    root = np.sqrt(beta)

    def integral(ones: int, others: int) -> float:
        def integrand(u: float) -> float:
            return float(np.exp(-0.5 * u * u) * ndtr(root * u) ** ones * ndtr(-root * u) ** others)

        return float(quad(integrand, -12.0, 12.0, epsabs=1e-14, epsrel=1e-12, limit=200)[0])

    printed = integral(positive + 1, n - positive) / integral(positive, n - positive)
    signs = np.append(y, 1.0)
    R = np.eye(n + 1) + beta * np.outer(signs, signs)
    truth = np.exp(three_dimensional(R) - two_dimensional(R[0, 1] / R[0, 0]))
    return {
        "equation": "31",
        "statement": "for alpha -> infinity the probability is a ratio of integrals that count classes",
        "correction": "",
        "printed_error": abs(printed - truth),
        "corrected_error": np.nan,
    }


def _limit_small(rng: np.random.Generator) -> dict[str, Any]:
    """L = 2^-N and J = 1/2 where length scale or variance vanish, in nats, N = 3 and N = 2."""
    n = 3
    y, joint = _problem(rng, n, 1)
    C, error = np.diag(y), 0.0
    # beta -> 0 leaves the identity; alpha -> 0 leaves (1 + beta) I, whose orthant is the same
    for Sigma in (1e-12 * joint[:n, :n], float(rng.uniform(0.5, 5.0)) * np.eye(n)):
        R = C @ (np.eye(n) + Sigma) @ C
        evidence = three_dimensional(R)
        rho = R[0, 1] / np.sqrt(R[0, 0] * R[1, 1])
        error = max(
            error,
            abs(evidence + n * np.log(2.0)),
            abs(evidence - two_dimensional(rho) - np.log(0.5)),
        )
    return {
        "equation": "section 3.3 (small)",
        "statement": "for alpha -> 0 or beta -> 0, L = 2^-N and the probability is 1/2",
        "correction": "",
        "printed_error": error,
        "corrected_error": np.nan,
    }


def _limit_beta(rng: np.random.Generator) -> dict[str, Any]:
    """The identity in I + C K C is negligible where the variance has no bounds, in nats, N = 3."""
    n, beta = 3, 1e13
    y, joint = _problem(rng, n, 1)
    C, K = np.diag(y), joint[:n, :n]
    limit = three_dimensional(C @ K @ C)
    return {
        "equation": "section 3.3 (large)",
        "statement": "for beta -> infinity the identity becomes negligible",
        "correction": "",
        "printed_error": abs(three_dimensional(C @ (np.eye(n) / beta + K) @ C) - limit),
        "corrected_error": np.nan,
    }


def _equations_48_51(rng: np.random.Generator) -> dict[str, Any]:
    """The recursion for b_i, sigma_i^2 and Q_i against solving with every leading block."""
    n = 12
    y, joint = _problem(rng, n, 1)
    C = np.diag(y)
    R = C @ (np.eye(n) + joint[:n, :n]) @ C
    Q = np.array([[1.0 / R[0, 0]]])
    error = 0.0
    for i in range(1, n):
        b = Q @ R[:i, i]  # 50
        variance = R[i, i] - R[:i, i] @ b  # 51
        direct = solve(R[:i, :i], R[:i, i], assume_a="pos")
        Q = np.block(
            [
                [Q + np.outer(b, b) / variance, -b[:, None] / variance],
                [-b / variance, 1.0 / variance],
            ]
        )  # 49
        error = max(
            error,
            np.max(np.abs(b - direct)),
            abs(variance - (R[i, i] - R[:i, i] @ direct)),
            np.max(np.abs(Q - inv(R[: i + 1, : i + 1]))),
        )
    return {
        "equation": "48-51",
        "statement": "the conditional moments follow from the previous ones by a recursion",
        "correction": "",
        "printed_error": error,
        "corrected_error": np.nan,
    }


def _equation_52(rng: np.random.Generator) -> dict[str, Any]:
    """The covariance of training and test variables; N = NTEST, so that the printed one exists."""
    n = 4
    y, joint = _problem(rng, n, n)
    C, S = np.diag(y), joint[:n, n:]  # S: training rows, test columns
    signs = block_diag(C, np.eye(n))
    truth = signs @ (np.eye(2 * n) + joint) @ signs  # covariance of (C'(f + z), f* + z*)
    train, test = C @ (np.eye(n) + joint[:n, :n]) @ C, np.eye(n) + joint[n:, n:]
    printed = np.block([[train, S.T @ C], [C @ S, test]])
    corrected = np.block([[train, C @ S], [S.T @ C, test]])
    return {
        "equation": "52",
        "statement": "the joint covariance has Sigma_XX*^T C' top right, C' Sigma_XX* bottom left",
        "correction": "the two blocks exchanged (as printed they conform only when N = NTEST)",
        "printed_error": np.max(np.abs(printed - truth)),
        "corrected_error": np.max(np.abs(corrected - truth)),
    }


def _equation_66(rng: np.random.Generator) -> dict[str, Any]:
    """The denominator as marginal likelihood, against the closed form in three dimensions."""
    x, y = rng.standard_normal(3), rng.choice([-1.0, 1.0], 3)
    evidence = three_dimensional(np.eye(3) + np.outer(y * x, y * x))

    def integrand(u: float) -> float:
        return float(np.exp(-0.5 * u * u) * np.prod(ndtr(y * x * u)))

    denominator = quad(integrand, -12.0, 12.0, epsabs=1e-14, epsrel=1e-12, limit=200)[0]
    return {
        "equation": "66",
        "statement": "the marginal likelihood is the denominator of the ratio",
        "correction": "the denominator divided by sqrt(2 pi); the ratio itself is right",
        "printed_error": abs(np.log(denominator) - evidence),
        "corrected_error": abs(np.log(denominator / np.sqrt(2.0 * np.pi)) - evidence),
    }


def _equation_75(rng: np.random.Generator) -> dict[str, Any]:
    """The vector b' = A_12 B^-1 b of the appendix, from its factors (22), (70), (71)."""
    n = 5
    y, joint = _problem(rng, n, 1)
    Sigma, C = joint[:n, :n], np.diag(y)
    a = solve(Sigma, joint[:n, n])  # 10
    inner = np.eye(n) + inv(Sigma)
    A_12, B, b = block_diag(1.0, C), block_diag(1.0, inner), np.append(1.0, -a)
    truth = A_12 @ solve(B, b)
    printed = np.append(-1.0, C @ solve(inner, a))
    return {
        "equation": "75",
        "statement": "b' = A_12 B^-1 b has first entry -1 and the rest +C'(I + Sigma^-1)^-1 a",
        "correction": "the opposite sign throughout; harmless, only b' b'^T is used",
        "printed_error": np.max(np.abs(printed - truth)),
        "corrected_error": np.max(np.abs(-printed - truth)),
    }
