"""Checks of the limits, the mean and the covariance of a rectangle probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, eigvalsh

from gpcmc import _validation as validation
from gpcmc._validation import FloatArray

# Asymmetry accepted, relative to sqrt(c_ii c_jj); by the precision that the covariance came in.
_SYMMETRY = {2: 1e-2, 4: 1e-5, 8: 1e-8}


@dataclass(frozen=True, slots=True)
class Problem:
    """Checked arguments."""

    lower: FloatArray  # (n,) lower <= upper; these two may be infinite
    upper: FloatArray  # (n,)
    mean: FloatArray  # (n,)
    cov: FloatArray  # (n, n) symmetric, positive semidefinite within `slack`
    slack: float  # a variance below `slack` times the coordinate's own is zero to the precision of `cov`


def check_problem(lower: ArrayLike, upper: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Problem:
    """Return checked arguments of `gpcmc.rectangle_probability`, which says what is refused."""
    C, slack = check_semidefinite("cov", cov)
    return Problem(*check_bounds(lower, upper, mean, len(C)), C, slack)


def check_bounds(
    lower: ArrayLike, upper: ArrayLike, mean: ArrayLike, n: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the limits and the mean of n coordinates as arrays (n,), lower <= upper and the mean finite."""
    low, high = check_limits("lower", lower, n), check_limits("upper", upper, n)
    m = check_limits("mean", mean, n)
    if not np.isfinite(m).all():
        bad = int(np.argmin(np.isfinite(m)))
        raise ValueError(f"mean must be finite; got {m[bad]} at index {bad}")
    if (crossed := low > high).any():
        i = int(np.argmax(crossed))
        raise ValueError(
            f"lower must not exceed upper; at index {i} they are {low[i]:g} and {high[i]:g}"
        )
    return low, high, m


def check_limits(name: str, value: ArrayLike, n: int) -> FloatArray:
    """Return a number or n numbers as an (n,) array; infinity is a number here, and NaN is not."""
    array = validation.as_real(name, value)
    if array.shape not in ((), (n,)):
        raise ValueError(f"{name} must be a number or of shape ({n},); got shape {array.shape}")
    array = np.broadcast_to(array, (n,)).copy()
    if (bad := np.isnan(array)).any():
        raise ValueError(
            f"{name} must not be NaN; got NaN at index {int(np.argmax(bad))} "
            "(-inf and inf stand for no limit)"
        )
    return array


def check_semidefinite(name: str, value: ArrayLike) -> tuple[FloatArray, float]:
    """Return a covariance, made exactly symmetric, and the slack of its precision.

    Symmetry and definiteness are judged in correlations, so that a large variance hides nothing.
    """
    number = validation.as_real(name, value)
    given = np.asarray(value)
    A = validation.check_array(name, np.atleast_2d(number) if given.ndim == 0 else value, ndim=2)
    n = len(A)
    if A.shape != (n, n) or n == 0:
        raise ValueError(f"{name} must be square with at least one row; got shape {A.shape}")
    variance = A.diagonal()
    if (variance < 0).any():
        i = int(np.argmin(variance))
        raise ValueError(
            f"{name} must have no negative variance; got {variance[i]:.3g} at index {i}"
        )
    sd = np.sqrt(variance)
    size = given.dtype.itemsize if given.dtype.kind == "f" else 8
    gap = np.abs(A - A.T)
    gap -= _SYMMETRY.get(size, 1e-8) * np.outer(sd, sd)
    if gap.max() > 0:
        i, j = (int(k) for k in np.unravel_index(np.argmax(gap), gap.shape))
        raise ValueError(
            f"{name} must be symmetric; {name}[{i}, {j}] = {A[i, j]:.10g} and "
            f"{name}[{j}, {i}] = {A[j, i]:.10g} (if that is rounding, average: ({name} + {name}.T) / 2)"
        )
    A = 0.5 * (A + A.T)
    slack = slack_of(given, n)
    _check_definite(name, A, sd, slack)
    return A, slack


def slack_of(given: np.ndarray, n: int) -> float:
    """Return the relative variance that is zero to the precision of covariances of order n."""
    slack = 10.0 * n * float(np.finfo(float).eps)
    if given.dtype.kind == "f" and given.dtype.itemsize < 8:
        # each entry is rounded by itself, so the norm of all of it grows as sqrt(n)
        slack += 4.0 * float(np.sqrt(n)) * float(np.finfo(given.dtype).eps)
    return slack


def _check_definite(name: str, A: FloatArray, sd: FloatArray, slack: float) -> None:
    zero = sd == 0.0
    if zero.any() and (A[zero] != 0.0).any():
        i, j = (int(k) for k in np.argwhere((A != 0.0) & zero[:, None])[0])
        raise ValueError(
            f"{name} must be positive semidefinite; index {i} has variance zero and covariance "
            f"{A[i, j]:.3g} with index {j}"
        )
    R = A[~zero][:, ~zero] / sd[~zero, None] / sd[~zero]
    R.flat[:: len(R) + 1] = 1.0 + slack
    try:
        cholesky(R, lower=True, check_finite=False)
    except LinAlgError:
        R.flat[:: len(R) + 1] = 1.0
        lowest = float(eigvalsh(R, subset_by_index=(0, 0))[0])
        raise ValueError(
            f"{name} must be positive semidefinite; its correlation matrix has the eigenvalue {lowest:.3g}. "
            f"If that is rounding or noise, multiply the variances by {1.0 - 1.1 * lowest:.10g}, or take "
            "the nearest correlation matrix"
        ) from None
