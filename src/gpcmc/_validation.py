"""Checks of arguments, made once at the public entries; what lies behind them relies on these.

Every check returns the argument in the form the numerics want (float64, C-contiguous) or raises a
``ValueError`` that says which argument it was, what was given and what is needed.
"""

from __future__ import annotations

import math
import numbers

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky

from gpcmc._memory import available_memory

FloatArray = NDArray[np.float64]
#: What may be given for random numbers; see `check_rng`.
Rng = np.random.Generator | np.random.RandomState | int | None

_SYMMETRY = 1e-10  # largest |A - A'| accepted, relative to the largest entry


def check_array(name: str, value: ArrayLike, *, ndim: int) -> FloatArray:
    """Return `value` as a finite, C-contiguous float64 array with `ndim` dimensions."""
    given = as_real(name, value)
    if given.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s); got {given.ndim}")
    array = np.ascontiguousarray(given)
    if not np.isfinite(array).all():
        bad = int(np.count_nonzero(~np.isfinite(array)))
        raise ValueError(f"{name} must be finite; got {bad} NaN or infinite entries")
    return array


def as_real(name: str, value: ArrayLike) -> FloatArray:
    """Return `value`, which may not be complex, ragged or text, as a float64 array of its own shape, finite or not."""
    try:
        if not np.iscomplexobj(value):
            return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be real numbers; got {type(value).__name__}") from error
    # NumPy would drop the imaginary part with no more than a warning
    raise ValueError(f"{name} must be real numbers; got complex ones")


def check_covariance(name: str, value: ArrayLike, *, semidefinite: bool = False) -> FloatArray:
    """Return a square, finite, exactly symmetric matrix with a row at least and no negative variance.

    Asymmetry within rounding is averaged away. If it is to be `semidefinite`, one Cholesky factorization finds whether
    an eigenvalue is negative beyond rounding.
    """
    A = check_array(name, value, ndim=2)
    n = A.shape[0]
    if A.shape != (n, n) or n == 0:
        raise ValueError(f"{name} must be square with at least one row; got shape {A.shape}")
    gap = float(np.max(np.abs(A - A.T)))
    if gap > _SYMMETRY * float(np.max(np.abs(A))):
        raise ValueError(f"{name} must be symmetric; entries differ from their mirror by {gap:.3g}")
    if gap > 0:
        A = 0.5 * (A + A.T)
    if (lowest := float(A.diagonal().min())) < 0:
        raise ValueError(f"{name} must have no negative variance; got {lowest:.3g} on the diagonal")
    if semidefinite:
        # rounding in a kernel moves eigenvalues by about n eps |A|; the trace bounds |A|
        slack = 10 * n * np.finfo(float).eps * float(np.trace(A)) + np.finfo(float).tiny
        try:
            cholesky(A + slack * np.eye(n), lower=True, check_finite=False)
        except LinAlgError as error:
            raise ValueError(
                f"{name} must be positive semidefinite; got an indefinite matrix of order {n}"
            ) from error
    return A


def check_labels(name: str, value: ArrayLike, n: int) -> FloatArray:
    """Return labels as an (n,) float64 array of -1 and +1."""
    y = check_array(name, value, ndim=1)
    if y.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},); got {y.shape}")
    if not np.isin(y, (-1.0, 1.0)).all():
        found = ", ".join(f"{v:g}" for v in np.unique(y)[:5])
        raise ValueError(
            f"{name} must hold -1 and +1 only; got values {{{found}}} (use 2*y - 1 for 0/1)"
        )
    return y


def check_cross_covariance(
    name: str, K_star: ArrayLike, variances_name: str, k_star_star: ArrayLike, n: int
) -> tuple[FloatArray, FloatArray]:
    """Return the (n, t) train x test covariances and the (t,) prior test variances, which are not negative."""
    cross = check_array(name, K_star, ndim=2)
    variances = check_array(variances_name, k_star_star, ndim=1)
    if cross.shape != (n, len(variances)):
        raise ValueError(
            f"{name} must have shape (train, test) = ({n}, {len(variances)}); got {cross.shape}"
        )
    if (variances < 0).any():
        raise ValueError(f"{variances_name} must not be negative; got {variances.min():.3g}")
    return cross, variances


def check_positive_int(name: str, value: object) -> int:
    """Return `value`, an integer (a bool or a float is none), as an int that is at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1; got {value!r}")
    return int(value)


def check_positive(name: str, value: object) -> float:
    """Return `value`, a real number, as a finite float above zero."""
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Real)
        or not 0 < float(value) < np.inf
    ):
        raise ValueError(f"{name} must be a finite number > 0; got {value!r}")
    return float(value)


def check_rng(name: str, value: object, *, optional: bool = False) -> np.random.Generator:
    """Return a generator: the given one, or one that a seed or NumPy's former generator stands for.

    An integer of at least 0 is a seed; of a RandomState four numbers are drawn as one. None stands for a generator that
    is seeded afresh, where that is `optional`.
    """
    if isinstance(value, np.random.Generator):
        return value
    if isinstance(value, np.random.RandomState):
        return np.random.default_rng(value.randint(2**31, size=4))
    if optional and value is None:
        return np.random.default_rng()
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0:
        return np.random.default_rng(int(value))
    raise ValueError(
        f"{name} must be a numpy.random.Generator, e.g. numpy.random.default_rng(seed), a seed (an integer "
        f">= 0){', None' if optional else ''} or a RandomState; got {value!r}"
    )


def check_option(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
    return value


def check_memory(what: str, n: int, needed: float, least: float) -> None:
    """Refuse n training patterns that `what` needs more bytes for than this process may have, by a MemoryError.

    It says what would fit: by `least`, the bytes that Laplace's method needs, which needs least of all.
    """
    limit = available_memory()
    there = limit.bytes
    if needed <= there:
        return
    GiB = 2.0**30
    if least <= there:
        remedy = f"Laplace's method needs {least / GiB:.1f}"
    else:
        remedy = (
            f"with Laplace's method {math.floor(n * math.sqrt(there / least))} patterns would fit"
        )
    raise MemoryError(
        f"{what} needs about {needed / GiB:.1f} GiB for n = {n} training patterns; {limit.source} "
        f"{there / GiB:.1f} GiB; {remedy}"
    )
