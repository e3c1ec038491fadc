"""The chain with control variables: proposals, and what they need of the control inputs.

Coordinates. Write f_c = L u with L L' = K_uu, and f = root w as in `gpcmc.chains.coordinates`, u and w
standard normal a priori, and P = E[w u'], whose singular values are at most one. Then

- f_c,i given the others: column i of L^-1 over its length is a unit vector d_i, and drawing f_c,i
  anew draws the component of u along d_i anew, u' = u + d_i (xi - d_i'u), xi standard normal;
- f given f_c: w = P u + (I - P P')^(1/2) z, z standard normal. Its mean moves along one direction
  when one f_c,i moves, and its noise does not depend on the state, so the noise of many proposals
  comes from one matrix product.

A proposal is then a multiple of a row added to a row, and one evaluation of the likelihood; nothing is
factorized, and nothing in it grows with M but the scalar product d_i'u.

References
----------
Titsias, Lawrence, Rattray (2009), Efficient sampling for Gaussian process inference using control
variables, Advances in Neural Information Processing Systems 21, 1681.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular, svd

from gpcmc._validation import FloatArray
from gpcmc.chains._probit import log_likelihood_and_slope
from gpcmc.chains.coordinates import Coordinates

#: Proposals whose noise comes from one product.
BLOCK = 512


@dataclass(frozen=True, slots=True)
class Controls:
    """What proposals need of the control inputs; nothing of it changes within a chain."""

    directions: FloatArray  # (m, m) row i is d_i: the direction in which u moves when f_c,i does
    mean_map: FloatArray  # (m, n) margins y E[f | f_c] are ``u @ mean_map``
    shifts: FloatArray  # (m, n) row i is ``directions[i] @ mean_map``
    # (r, n) margins y (f - E[f | f_c]) are ``z @ noise_map``, z standard normal
    noise_map: FloatArray
    projection: FloatArray  # (r, m) P, so that E[u | w] = P'w and E[w | u] = P u
    control_noise: FloatArray  # (m, m) the symmetric root of I - P'P, the covariance of u given w


def make_controls(K_ux: FloatArray, K_uu: FloatArray, coordinates: Coordinates) -> Controls:
    """Precompute the conditionals from covariances K_ux (m, n) and K_uu (m, m), the latter positive definite."""
    m = len(K_uu)
    L = cholesky(K_uu, lower=True, check_finite=False)
    columns = solve_triangular(L, np.eye(m), lower=True, check_finite=False)
    directions = np.ascontiguousarray((columns / np.linalg.norm(columns, axis=0)).T)
    Pt = solve_triangular(L, K_ux @ coordinates.back, lower=True, check_finite=False)
    V, s, Qt = svd(Pt, full_matrices=False, check_finite=False)
    # I - P P' is the identity but on the range of P, and its root too: 1 - s^2 there, whose root
    # lies 1 - sqrt(1 - s^2) below one
    below = 1.0 - np.sqrt(np.maximum(1.0 - s * s, 0.0))
    margin_map = coordinates.margin_map
    mean_map = Pt @ margin_map
    return Controls(
        directions=directions,
        mean_map=mean_map,
        shifts=directions @ mean_map,
        noise_map=margin_map - (Qt.T * below) @ (Qt @ margin_map),
        projection=np.ascontiguousarray(Pt.T),
        control_noise=np.eye(m) - (V * below) @ V.T,
    )


class ControlState(NamedTuple):
    """States of c chains."""

    u: FloatArray  # (c, m) control values, whitened: f_c = L u
    mean: FloatArray  # (c, n) y E[f | f_c] = u @ mean_map
    margin: FloatArray  # (c, n) y f
    log_likelihood: FloatArray  # (c,) at f


def init(
    w: FloatArray, controls: Controls, coordinates: Coordinates, *, rng: np.random.Generator
) -> ControlState:
    """Return states with latent values of coordinates w (c, r), and f_c drawn given f."""
    z = rng.standard_normal((len(w), len(controls.directions)))
    u = w @ controls.projection + z @ controls.control_noise
    margin = w @ coordinates.margin_map
    return ControlState(u, u @ controls.mean_map, margin, log_likelihood_and_slope(margin)[0])


def step(
    state: ControlState,
    i: int,
    xi: FloatArray,
    noise: FloatArray,
    log_uniform: FloatArray,
    controls: Controls,
) -> tuple[ControlState, NDArray[np.bool_]]:
    """Propose control variable i and all latent values anew, in every chain; return which moved (c,).

    `xi` (c,), standard normal, is the new component of u along d_i, `noise` (c, n) a draw of y (f - E[f | f_c]), which
    is ``z @ controls.noise_map``, and `log_uniform` (c,) are logarithms of uniform draws.
    """
    move = xi - state.u @ controls.directions[i]
    mean = np.multiply.outer(move, controls.shifts[i])
    mean += state.mean
    margin = mean + noise
    proposed, _ = log_likelihood_and_slope(margin)
    accepted = log_uniform < proposed - state.log_likelihood
    if not accepted.any():
        return state, accepted
    rows = accepted[:, None]
    u = state.u + np.multiply.outer(np.where(accepted, move, 0.0), controls.directions[i])
    return ControlState(
        u,
        np.where(rows, mean, state.mean),
        np.where(rows, margin, state.margin),
        np.where(accepted, proposed, state.log_likelihood),
    ), accepted


def run(
    state: ControlState, controls: Controls, iterations: int, *, rng: np.random.Generator
) -> Iterator[tuple[ControlState, NDArray[np.int64]]]:
    """Make iterations, and yield the state after each with each control's acceptances (m,)."""
    c, (m, r) = len(state.u), controls.projection.T.shape
    accepted = np.zeros(m, dtype=np.int64)
    if m == 0:  # f is known: there is nothing to propose
        for _ in range(iterations):
            yield state, accepted
        return
    block, total = max(1, BLOCK // c), iterations * m
    for start in range(0, total, block):
        size = min(block, total - start)
        noise = rng.standard_normal((size * c, r)) @ controls.noise_map
        noise = noise.reshape(size, c, -1)
        xi = rng.standard_normal((size, c))
        log_uniform = np.log1p(-rng.random((size, c)))
        for k in range(size):
            i = (start + k) % m
            state, hit = step(state, i, xi[k], noise[k], log_uniform[k], controls)
            accepted[i] += np.count_nonzero(hit)
            if i == m - 1:
                yield state, accepted
                accepted = np.zeros(m, dtype=np.int64)
