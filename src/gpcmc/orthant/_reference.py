"""The orthant sampler in plain NumPy, one stage at a time: the specification of `_sampler.pyx`.

It consumes the same random numbers in the same order and agrees with the compiled sampler to
rounding, which the tests check. The whole history is reordered at every resampling.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri, ndtri_exp

Array = NDArray[np.float64]


def normals(rng: np.random.Generator, size: int) -> Array:
    """Normal draws by inversion, which vectorises where rejection does not."""
    return ndtri(np.maximum(rng.random(size), np.finfo(float).tiny))


def systematic(w: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Ancestors (M,) of a systematic resampling by weights w (M,); they never decrease."""
    M = len(w)
    points = (np.arange(M) + rng.random()) * (w.sum() / M)
    return np.minimum(np.searchsorted(np.cumsum(w), points, side="right"), M - 1)


def refilled(survivors: NDArray[np.intp], M: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Ancestors (M,): all survivors, and as many of them drawn again as samples were lost."""
    refill = (rng.random(M - len(survivors)) * len(survivors)).astype(int)
    return np.sort(np.concatenate([survivors, survivors[refill]]))


def population(
    G: Array,
    shift: Array,
    samples: int,
    soft: bool,
    ess_threshold: float,
    rng: np.random.Generator,
    draw: Callable[[np.random.Generator, int], Array] = normals,
) -> tuple[Array, Array, NDArray[np.intp], Array, Array]:
    """Draw one population; the arguments are those of `_sampler.Population`.

    `draw` is what the bootstrap scheme draws its innovations with, so that a test may break it on purpose.

    Returns
    -------
    E : (n, samples) array
        Innovations.
    log_stages : (n,) array
        Log of the estimated stage probabilities; stops short where no sample is left.
    eves : (samples,) int array
    log_weights, influence : (samples,) array
    """
    n, M = len(G), samples
    E = np.empty((n, M))
    log_stages: list[float] = []
    eves, log_w, influence, log_z = np.arange(M), np.zeros(M), np.zeros(M), 0.0

    def book(relative_weight: Array) -> None:  # each eve's share in the error of one factor
        np.add.at(influence, eves, relative_weight - 1.0)

    for i in range(n):
        c = shift[i] + G[i, :i] @ E[:i]  # Eq. 45
        if ess_threshold > 0:  # adapted: weight, resample when uneven, draw inside
            log_p = log_ndtr(c)
            log_w = log_w + log_p
            log_stages.append(log_z + logsumexp(log_w) - np.log(M) - np.sum(log_stages))
            w = np.exp(log_w - log_w.max())
            if w.sum() ** 2 < ess_threshold * M * np.sum(w**2):
                book(w * (M / w.sum()))
                log_z += logsumexp(log_w) - np.log(M)
                parent = systematic(w, rng)
                E[:i], eves, log_p = E[:i, parent], eves[parent], log_p[parent]
                log_w = np.zeros(M)
            E[i] = -ndtri_exp(np.minimum(np.log(1.0 - rng.random(M)) + log_p, -(2.0**-54)))
            continue
        E[i] = draw(rng, M)
        inside = c + E[i] >= 0
        score = ndtr(c) if soft else inside  # Eq. 62 or Eq. 57
        with np.errstate(divide="ignore"):
            log_stages.append(np.log(score.mean()))
        survivors = np.flatnonzero(inside)
        if len(survivors) == 0:
            break
        book(score / score.mean())
        parent = refilled(survivors, M, rng)
        E[: i + 1], eves = E[: i + 1, parent], eves[parent]
    else:
        if ess_threshold > 0:
            book(np.exp(log_w - logsumexp(log_w)) * M)
    return E, np.array(log_stages), eves, log_w, influence


def predict(E: Array, log_w: Array, A: Array, soft: bool, rng: np.random.Generator) -> Array:
    """Weighted probability that each test coordinate is >= 0; see `_sampler.predict`."""
    w = np.exp(log_w - logsumexp(log_w))
    p = []
    for row in A:
        mu = row @ E
        p.append(np.sum(w * (ndtr(mu) if soft else mu + normals(rng, len(mu)) >= 0)))
    return np.array(p)
