"""One search for the maximum of a function with a gradient: L-BFGS-B from several starts, with poor points allowed.

Evidence surfaces need three things that an optimiser does not do. A covariance may be too large for floating point;
such a point counts as a poor one, and the search goes on. The best point that was tried is kept, which need not be the
last. Evaluations are counted over all starts.

References
----------
Byrd, Lu, Nocedal and Zhu (1995), SIAM J. Sci. Comput. 16, 1190.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from gpcmc._validation import FloatArray
from gpcmc.posterior import ConvergenceError


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
    """

    theta: FloatArray
    value: float
    gradient: FloatArray
    ends: list[tuple[FloatArray, float]]
    evaluations: int
    failure: Exception | None


def climb(
    value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    starts: Sequence[ArrayLike],
    bounds: ArrayLike | Sequence[tuple[float, float]],
    *,
    poor: float,
    tolerances: Mapping[str, float] | None = None,
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
        ``ftol`` and ``gtol`` of SciPy's L-BFGS-B; by default its own.
    """
    first = np.array(starts[0], dtype=np.float64)
    theta, best, slope = first, -np.inf, np.zeros(len(first))
    evaluations = 0
    failure: Exception | None = None

    def objective(at: FloatArray) -> tuple[float, FloatArray]:
        nonlocal theta, best, slope, evaluations, failure
        evaluations += 1
        try:
            value, gradient = value_and_gradient(at)
        except (ValueError, ConvergenceError) as error:
            failure = error
            return -poor, np.zeros(len(at))
        if value > best:
            theta, best, slope = at.copy(), value, gradient
        return -value, -gradient

    options = None if tolerances is None else dict(tolerances)
    ends = []
    for start in starts:
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        ends.append((found.x, -found.fun))
    return Summit(theta, best, slope, ends, evaluations, failure)
