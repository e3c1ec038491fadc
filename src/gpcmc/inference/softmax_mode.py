"""The mode of the latent functions of several classes under the softmax likelihood, by Newton's iteration.

The iteration is Algorithm 3.3 of Rasmussen and Williams. How a covariance multiplies, and how the operator
R = (K + W^-1)^-1 is made, is the caller's: `gpcmc.inference.multiclass` holds n x n arrays, and
`gpcmc.lowrank.multiclass` holds none.

References
----------
Rasmussen and Williams (2006), Algorithm 3.3, Eqs. (3.34)-(3.40), (5.23).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from gpcmc._validation import FloatArray

_HALVINGS = 40
_WHOLE = 5  # steps at most where Psi cannot judge them


class Precision(Protocol):
    """The operator R = (K + W^-1)^-1 of all classes at one iterate."""

    def __matmul__(self, x: FloatArray, /) -> FloatArray:
        """Return the product of R with latent values (C, n)."""
        ...


P = TypeVar("P", bound=Precision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode(Generic[P]):
    """The last iterate of Newton's iteration; all fields belong to it.

    Attributes
    ----------
    f, a : (C, n) arrays
        Latent values f = K a, and K^-1 f.
    pi : (C, n) array
        Class probabilities at f.
    R : Precision
    log_evidence : float
        Laplace's approximation (Eq. 3.44).
    steps : int
    failure : str
        Why the iteration stopped before its tolerances were met; empty if they are.
    """

    f: FloatArray
    a: FloatArray
    pi: FloatArray
    R: P
    log_evidence: float
    steps: int
    failure: str


def find_mode(
    y: FloatArray,
    start: FloatArray | None = None,
    *,
    multiply: Callable[[FloatArray], FloatArray],
    magnitude: Callable[[FloatArray], FloatArray],
    precision: Callable[[FloatArray], tuple[P, float]],
    tolerance: float,
    max_iterations: int,
) -> Mode[P]:
    """Climb Psi(f) = log p(y | f) - f' K^-1 f / 2 in the variables a = K^-1 f.

    Parameters
    ----------
    y : (C, n) array
        1 for the class of each pattern, else 0.
    start : (C, n) array, optional
        Values of a to begin at, where Psi is higher there than at 0.
    multiply : callable
        From (C, n) latent values a to a K.
    magnitude : callable
        From |a| (C, n) to a bound of |a| |K|, which says how a K is rounded.
    precision : callable
        From class probabilities pi (C, n) to R, and log |I + K W| / 2.
    tolerance, max_iterations
        As in `gpcmc.inference.multiclass.MulticlassLaplace`.
    """
    a, f = np.zeros(y.shape), np.zeros(y.shape)
    psi, rise = _objective(y, a, f), np.inf
    if start is not None:
        f_start = multiply(start)
        if (psi_start := _objective(y, start, f_start)) > psi:
            a, f, psi = start, f_start, psi_start
    eps = np.sqrt(y.size) * np.finfo(float).eps
    steps, limit, whole = 0, max_iterations, False
    while True:
        pi = softmax(f, axis=0)
        R, half_log_det = precision(pi)
        rounding = eps * magnitude(np.abs(a))  # of f = K a
        psi_rounding = eps * abs(psi) + np.sum(np.abs(a) * rounding)
        gradient = y - pi - a  # of Psi
        steepness = np.abs(gradient)
        flat = steepness <= tolerance * max(1.0, np.abs(a).max()) + pi * rounding + eps
        done = bool(flat.all()) and (whole or rise <= tolerance * abs(psi) + psi_rounding)
        if done:
            break
        lifted, higher = multiply(gradient), None
        if steps < limit:
            direction = gradient - R @ lifted  # 8-10, a subtracted before it can cancel
            least = -np.inf if whole else psi - psi_rounding
            higher = _climb(multiply, y, a, direction, least)
        if higher is None:  # at the limit, or no ascent along a Newton direction
            if whole or _possible_rise(lifted, gradient) > psi_rounding + _certain_rounding(y):
                break
            whole, limit = True, steps + _WHOLE
            continue
        a, f, psi_new = higher
        rise, psi = abs(psi_new - psi), psi_new
        steps += 1
    failure = (
        f"laplace: Newton stopped after {steps} steps with gradient {steepness.max():.3g} "
        f"and last rise {rise:.3g}; raise max_iterations or tolerance"
    )
    return Mode(
        f=f,
        a=a,
        pi=pi,
        R=R,
        log_evidence=psi - half_log_det,  # 16, corrected
        steps=steps,
        failure="" if done else failure,
    )


def half_slope_of_log_det(pi: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return s (C, n), the derivative of -log |I + K W| / 2 in f, through the third derivatives of the softmax.

    With the posterior covariance S (C, C) of one pattern's latent values it is

        s_c = -pi_c (S_cc - sum_d pi_d S_dd - 2 (S pi)_c + 2 pi' S pi) / 2.

    Parameters
    ----------
    pi : (C, n) array
        Class probabilities.
    covariance : (n, C, C) array
        S of each pattern.
    """
    S_pi = np.einsum("ncd,dn->cn", covariance, pi)
    variance = np.einsum("ncc->cn", covariance)
    means = np.sum(pi * variance, axis=0) - 2.0 * np.sum(pi * S_pi, axis=0)
    return -0.5 * pi * (variance - means - 2.0 * S_pi)


def check_classes(name: str, value: ArrayLike, n: int) -> FloatArray:
    """Return a (C, n) array with 1 for the class of each pattern, given n labels 0 to C - 1.

    Raises
    ------
    ValueError
        If there are not n labels, a label is another number, or one of the labels does not occur.
    """
    labels = np.asarray(value)
    found = np.unique(labels)
    if labels.shape != (n,) or list(found) != list(range(max(len(found), 2))):
        raise ValueError(
            f"{name} must hold {n} labels 0, 1, ..., C - 1, each at least once; got shape "
            f"{labels.shape} with labels {found[:5].tolist()}"
        )
    return one_hot(labels.astype(np.intp))


def one_hot(labels: NDArray[np.integer]) -> FloatArray:
    """Return (C, n): 1 for the class of each pattern, else 0."""
    return np.eye(int(labels.max()) + 1)[:, labels]


def _objective(y: FloatArray, a: FloatArray, f: FloatArray) -> float:
    """Psi(f) = log p(y | f) - f' K^-1 f / 2 (Eq. 3.34; line 15, corrected)."""
    return float(np.sum(y * log_softmax(f, axis=0)) - 0.5 * np.sum(a * f))


def _possible_rise(lifted: FloatArray, gradient: FloatArray) -> float:
    """Return a bound of what any step adds to Psi: g' K g / 2, with its gradient g = y - pi - a, and K g (C, n).

    log p(y | f) is concave, so that Psi(f + K d) <= Psi(f) + g' K d - d' K d / 2 for every d. The bound needs no
    factorization, and so has no error of one.
    """
    return 0.5 * float(np.sum(gradient * lifted))


def _certain_rounding(y: FloatArray) -> float:
    """Return the rounding error of log p(y | f) where every pattern is certain of its class.

    The log-sum-exp of a pattern is then log(1 + little). Its error is a rounding of the 1 for each class, however small
    Psi is. Near the mode of separable classes a Newton step raises Psi by less. Halved until Psi seems to rise, such
    steps do nothing, and the gradient stays at 1e-11.
    """
    return y.size * float(np.finfo(float).eps)


def _climb(
    multiply: Callable[[FloatArray], FloatArray],
    y: FloatArray,
    a: FloatArray,
    direction: FloatArray,
    least: float,
) -> tuple[FloatArray, FloatArray, float] | None:
    """Return a, f and Psi after the longest of the halved steps with Psi >= `least`; None if there is none."""
    for halving in range(_HALVINGS):
        a_new = a + 0.5**halving * direction
        f_new = multiply(a_new)  # 11
        psi = _objective(y, a_new, f_new)
        if psi >= least:
            return a_new, f_new, psi
    return None
