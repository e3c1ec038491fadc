"""One ascent of a function with a gradient: L-BFGS-B from several starts, with poor points allowed.

Evidence surfaces need four things that an optimiser does not do. A covariance may be too large for floating point; such
a point counts as a poor one, and the search goes on. The best point that was tried is kept, which need not be the last.
Evaluations are counted over all starts. An ascent may be told to stop, where it can no longer end above another.

References
----------
Byrd, Lu, Nocedal and Zhu (1995), SIAM J. Sci. Comput. 16, 1190.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult, minimize

from gpcmc._validation import FloatArray
from gpcmc.posterior import ConvergenceError

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

_FTOL, _GTOL = 2e-9, 1e-5
#: Takes a point (p,), the value there and its gradient (p,), and says whether to stop.
Stop = Callable[[FloatArray, float, FloatArray], bool]


@dataclass(frozen=True, slots=True)
class Summit:
    """What a search found.

    Attributes
    ----------
    theta : (p,) array
        The best point that was tried; the first start where the function failed everywhere.
    value : float
        There; minus infinity where the function failed everywhere.
    gradient : (p,) array
        There.
    ends : list of tuple
        The point (p,) where the optimiser stopped, and the value there, for each start.
    evaluations : int
        Over all starts.
    failure : Exception or None
        The last one that made a point poor.
    inverse : (p, p) operator
        About the inverse of minus the Hessian, by the optimiser's steps from the last start.
    """

    theta: FloatArray
    value: float
    gradient: FloatArray
    ends: list[tuple[FloatArray, float]]
    evaluations: int
    failure: Exception | None
    inverse: LinearOperator


def climb(
    value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    starts: Sequence[ArrayLike],
    bounds: ArrayLike | Sequence[tuple[float, float]],
    *,
    poor: float,
    tolerances: Mapping[str, float] | None = None,
    stop: Stop | None = None,
) -> Summit:
    """Climb from each start, within bounds.

    Parameters
    ----------
    value_and_gradient : callable
        Takes theta (p,) and returns the value and its gradient (p,). Where it raises ValueError or ConvergenceError,
        the point has the value `poor` and no slope.
    starts : sequence of (p,) array
    bounds : (p, 2) array
        Lowest and highest values.
    poor : float
        Below any value that a search should end at.
    tolerances : mapping of str to float, optional
        ``ftol`` and ``gtol`` of SciPy's L-BFGS-B; by default 2e-9, of the value, and 1e-5.
    stop : callable, optional
        Asked after each step.
    """
    first = np.array(starts[0], dtype=np.float64)
    lowest, highest = np.array(bounds, dtype=np.float64).T
    theta, best, slope = first, -np.inf, np.zeros(len(first))
    tried: dict[bytes, tuple[float, FloatArray]] = {}
    evaluations = 0
    failure: Exception | None = None

    def tell(at: FloatArray) -> tuple[float, FloatArray]:
        nonlocal theta, best, slope, evaluations, failure
        if at.tobytes() in tried:
            return tried[at.tobytes()]
        evaluations += 1
        try:
            value, gradient = value_and_gradient(at)
        except (ValueError, ConvergenceError) as error:
            failure = error
            value, gradient = poor, np.zeros(len(at))
        else:
            if value > best:
                theta, best, slope = at.copy(), value, gradient
        tried[at.tobytes()] = value, gradient
        return value, gradient

    def after_step(intermediate_result: OptimizeResult) -> None:
        at = intermediate_result.x
        now = tried.get(at.tobytes())
        tried.clear()
        if now is not None:
            tried[at.tobytes()] = now
            if stop is not None and stop(at, *now):
                raise StopIteration

    ends = []
    for start in starts:
        start = np.clip(np.array(start, dtype=np.float64), lowest, highest)
        value, gradient = tell(start)
        # within bounds on all sides L-BFGS-B tries the whole gradient first, which may lead anywhere
        free = np.clip(start + gradient, lowest, highest) != start
        scale = 1.0 / max(float(np.linalg.norm(gradient[free])), 1.0)
        options = {"ftol": _FTOL, "gtol": _GTOL} | dict(tolerances or {})
        options["ftol"] *= scale * max(abs(value), 1.0) / max(scale * abs(value), 1.0)
        options["gtol"] *= scale

        def objective(at: FloatArray, scale: float = scale) -> tuple[float, FloatArray]:
            value, gradient = tell(at)
            return -scale * value, -scale * gradient

        found = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options=options,
            callback=after_step,
        )
        ends.append((found.x, -float(found.fun) / scale))
        inverse = scale * found.hess_inv
    return Summit(theta, best, slope, ends, evaluations, failure, inverse)
