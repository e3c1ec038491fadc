"""Class probabilities where the variance of the kernel is large, and their truth by Gibbs sampling.

The truth is an average over v ~ N(0, R) given v > 0, the latent values with their noise, times the labels. Its draws
come from neither EP nor a tilted proposal. With R = K K^T and v = K e, a standard normal e is moved along one line
after the other. On each its law is a normal one between two limits, which is drawn exactly. The directions are the
principal axes of the e that the chains have reached, found anew several times before any draw counts. They are
orthonormal, and stay as they are from then on, so that the law of e is left as it is.

References
----------
Geman and Geman (1984), IEEE PAMI 6, 721. Bélisle, Romeijn and Smith (1993), Mathematics of Operations Research 18,
255, for lines in any direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import log_ndtr, ndtr, ndtri_exp, rel_entr

from gpcmc._threads import one_thread
from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import prior
from studies.atiya2021.methods import DETERMINISTIC, METHODS
from studies.atiya2021.runs import attempt, with_own_status
from studies.atiya2021.scaling import from_process
from studies.common.rows import Line
from studies.common.seeds import generator, seed

_FloatArray = NDArray[np.float64]

#: Halves of the truth, which share no random number.
HALVES = 2
#: How often directions are found anew before any draw counts.
_ADAPTATIONS = 6


class Half(NamedTuple):
    """Probabilities of class +1 (t,), and their standard errors (t,) by the spread of the chains."""

    probability: _FloatArray
    error: _FloatArray


def patterns(labels: str, n: int, path: str, alpha: float, beta: float) -> tuple[Any, Any]:
    """Draw standard normal features (n, 2) and labels -1/+1 (n,).

    Parameters
    ----------
    labels : {"process", "boundary"}
        Labels of the probit model with the kernel, or the sides of the curve x2 = sin(2 x1), without noise.
    n : int
        Patterns.
    path : str
        Seed; features do not depend on the kernel.
    alpha, beta : float
        Length scale and variance of the kernel.
    """
    X, y = from_process(2, n, path, alpha=alpha, beta=beta)
    return X, y if labels == "process" else np.where(X[:, 1] > np.sin(2.0 * X[:, 0]), 1.0, -1.0)


@one_thread()
def exact(
    R: _FloatArray,
    cross: _FloatArray,
    variance: _FloatArray,
    rng: np.random.Generator,
    chains: int,
    burn_in: int,
    sweeps: int,
) -> Half:
    """Return P(v_* > 0 | v > 0) of each test pattern by Gibbs sampling.

    Parameters
    ----------
    R : (n, n) array
        Covariance of v, the latent values with their noise, times the labels.
    cross : (t, n) array
        Covariances of v_* with v.
    variance : (t,) array
        Of v_*.
    rng : Generator
    chains, burn_in, sweeps : int
        Chains, at least two; sweeps of each that do not count, and that do.
    """
    n = len(R)
    K = cholesky(R, lower=True)
    weights = solve_triangular(K, cross.T, lower=True).T
    left = np.sqrt(variance - (weights**2).sum(axis=1))[:, None]
    # any start inside the orthant
    e = solve_triangular(K, np.abs(K @ rng.standard_normal((n, chains))), lower=True)
    axes = np.eye(n)
    for _ in range(_ADAPTATIONS):
        for _ in range(-(-burn_in // _ADAPTATIONS)):
            _sweep(e, K, axes, rng)
        axes = np.linalg.eigh(np.cov(e))[1]
    total = np.zeros((len(cross), chains))
    for _ in range(sweeps):
        _sweep(e, K, axes, rng)
        total += ndtr(weights @ e / left)
    total /= sweeps
    return Half(total.mean(axis=1), total.std(axis=1, ddof=1) / np.sqrt(chains))


def _sweep(e: _FloatArray, K: _FloatArray, axes: _FloatArray, rng: np.random.Generator) -> None:
    """Move all chains e (n, chains) along each axis in turn, given K e > 0."""
    v = np.maximum(K @ e, 0.0)  # a rounded zero is at its limit
    for axis, step in zip(axes.T, (K @ axes).T, strict=True):
        up, down = step > 0.0, step < 0.0
        low = (-v[up] / step[up, None]).max(axis=0, initial=-np.inf)
        high = (-v[down] / step[down, None]).min(axis=0, initial=np.inf)
        at = axis @ e
        move = _between(at + low, at + high, rng) - at
        e += axis[:, None] * move
        v += step[:, None] * move


def _between(low: _FloatArray, high: _FloatArray, rng: np.random.Generator) -> _FloatArray:
    """Draw standard normals between limits (m,) by inversion, from the tail that is nearer."""
    flip = low > 0.0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    below, upto = log_ndtr(a), log_ndtr(b)
    u = 1.0 - rng.random(len(low))  # never zero
    drawn = np.clip(ndtri_exp(upto + np.log(u + (1.0 - u) * np.exp(below - upto))), a, b)
    return np.where(flip, -drawn, drawn)


def judged(
    labels: str,
    n: int,
    kernel: tuple[float, float],
    test: int,
    truth: Mapping[str, int],
    methods: Mapping[str, Sequence[Any]],
    paths: tuple[str, str],
) -> list[Line]:
    """Return how far the class probabilities of methods are from the truth, a line a method.

    Parameters
    ----------
    labels, n
        As of `patterns`.
    kernel : (float, float)
        (alpha, beta).
    test : int
        Test patterns, at least 2.
    truth : mapping
        ``chains``, ``burn_in`` and ``sweeps`` of each half.
    methods : mapping
        By name, a method and its options.
    paths : (str, str)
        Seeds of the patterns, and of what is drawn on them.

    Returns
    -------
    list of dict
        ``method``, ``status``, and unless it failed: ``error``, the mean absolute difference from the mean of both
        halves, and ``largest``; ``square``, the mean product of the differences from either half, which their noise
        leaves without bias; ``entropy``, the mean relative entropy of the truth to the method, which is what it adds to
        the expected log loss, in nats; ``bolder``, by how much its probabilities are further from 1/2 in the mean;
        ``other_class``, at how many test patterns it decides otherwise. Of the truth: ``truth_se``, the standard error
        of the mean of both halves by their difference, and ``truth_spread``, the same by the spread of the chains, both
        in root mean square over test patterns.
    """
    own, drawn = paths
    X, y = patterns(labels, n, own, *kernel)
    X_test = generator(seed(own, "test")).standard_normal((test, X.shape[1]))
    k = rbf(*kernel)
    R = y[:, None] * k(X) * y + np.eye(n)
    cross, variance = k(X_test, X) * y, 1.0 + k.diag(X_test)
    streams = [generator(seed(drawn, f"half{i}")) for i in range(HALVES)]
    halves = [exact(R, cross, variance, rng, **truth) for rng in streams]
    one, two = (half.probability for half in halves)
    errors = np.hypot(*(half.error for half in halves)) / HALVES
    known: Line = {"truth_se": _rms((one - two) / HALVES), "truth_spread": _rms(errors)}
    gp, lines = prior(k, X, X_test), list[Line]()
    for name, (method, options) in methods.items():
        rng = None if method in DETERMINISTIC else generator(seed(drawn, name))
        made = attempt(partial(with_own_status, METHODS[method](**options), gp, y, rng=rng))
        line: Line = {"method": name, "status": made.status} | known
        if made.found is not None:
            line |= _apart(made.found.probability, one, two)
        lines.append(line)
    return lines


def _rms(values: _FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _apart(found: _FloatArray, one: _FloatArray, two: _FloatArray) -> Line:
    """What `judged` says of probabilities of class +1, given both halves of the truth."""
    known = (one + two) / HALVES
    apart = np.abs(found - known)
    least = np.finfo(float).eps  # a rounded zero would be infinitely far
    kept = np.clip(found, least, 1.0 - least)
    entropy = rel_entr(known, kept) + rel_entr(1.0 - known, 1.0 - kept)
    return {
        "error": float(apart.mean()),
        "largest": float(apart.max()),
        "square": float(np.mean((found - one) * (found - two))),
        "entropy": float(entropy.mean()),
        "bolder": float(np.mean(np.abs(found - 0.5) - np.abs(known - 0.5))),
        "other_class": int(np.sum((found >= 0.5) != (known >= 0.5))),
    }
