"""Control variables with control inputs that are free in space, as in the paper's Table 4.

The library has them at training inputs (`gpcmc.chains.controls`). Here they minimise the same trace,
tr(K - K_xu K_uu^-1 K_ux), over all places: one is added at a time, at the training input that lowers the trace most;
after each addition all of them move freely to lower it further, where the kernel is an RBF and the inputs are known.

References
----------
Titsias, Lawrence, Rattray (2009), Efficient sampling for Gaussian process inference using control
variables, Advances in Neural Information Processing Systems 21, 1681, section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack, solve_triangular

from gpcmc._validation import FloatArray, check_array
from gpcmc.chains import controls
from gpcmc.covariance.kernels import flush_subnormal, rbf_parameters
from gpcmc.covariance.prior import Prior
from gpcmc.inference import ControlVariables

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

_DISTINCT = 1e-8  # control inputs may not come so near that one's variance given others is below
_PLACED = 1e-5  # a placement is found when a line search gains less than this share of the trace


def correlation(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return exp(-|a - b|^2 / 2) for all rows of a (m, d) and b (n, d), in units of the length scale."""
    from scipy.spatial.distance import cdist

    K = cdist(a, b, "sqeuclidean")
    K *= -0.5
    return flush_subnormal(np.exp(K, out=K))


def trace_and_gradient(u: FloatArray, x: FloatArray) -> tuple[float, FloatArray]:
    """Return the share of the variance that control inputs leave open, and its gradient.

    Parameters
    ----------
    u : (m, d) array
        Control inputs, in units of the RBF's length scale.
    x : (n, d) array
        Training inputs, in the same.

    Returns
    -------
    share : float
        tr(K - K_xu K_uu^-1 K_ux) / tr(K); 1.0, and no gradient, where two inputs all but coincide.
    gradient : (m, d) array
        With A = K_uu^-1 K_ux, the derivative of the trace is -2 <A', dK_xu> + <A A', dK_uu>.
    """
    K_ux, K_uu = correlation(u, x), correlation(u, u)
    L = _distinct_factor(K_uu)
    if L is None:
        return 1.0, np.zeros_like(u)
    V = solve_triangular(L, K_ux, lower=True, check_finite=False)
    A = solve_triangular(L, V, lower=True, trans=1, check_finite=False)
    toward_x = A * K_ux  # dk(x, u) / du = k(x, u) (x - u)
    toward_u = (A @ A.T) * K_uu
    gradient = toward_u @ u - toward_u.sum(axis=1)[:, None] * u
    gradient -= toward_x @ x - toward_x.sum(axis=1)[:, None] * u
    return 1.0 - float(np.vdot(V, V)) / len(x), 2.0 * gradient / len(x)


def _distinct_factor(K_uu: FloatArray) -> FloatArray | None:
    """Return the Cholesky factor of K_uu; None if a control variable is all but known by the others."""
    L, info = lapack.dpotrf(K_uu, lower=1, clean=1)
    if info or np.min(np.square(L.diagonal()) / K_uu.diagonal(), initial=np.inf) < _DISTINCT:
        return None
    return L


class Placement(controls.Placement):
    """Control inputs that move freely; they stay at training inputs where the kernel is no RBF, or X is not given.

    Parameters
    ----------
    K : (n, n) array
        Prior covariance at the training inputs.
    kernel : Kernel or None
    X : (n, d) array or None
        Training inputs.
    line_searches : int
        At most, of one placement.
    evaluations : int
        Of the trace and its gradient at most, in all; a line search that has begun may be ended.

    Attributes
    ----------
    chosen : list of int
        Training inputs where the control inputs began.
    inputs : (m, d) array
        Free control inputs, in length scales; there is none where they are not free.
    evaluations : int
        Of the trace, so far.
    """

    def __init__(
        self,
        K: FloatArray,
        kernel: Kernel | None,
        X: FloatArray | None,
        *,
        line_searches: int,
        evaluations: int,
    ) -> None:
        super().__init__(K)
        self._line_searches, self._limit = line_searches, evaluations
        self._x: FloatArray | None = None  # training and free control inputs, in length scales
        if X is not None and (parameters := rbf_parameters(kernel)):
            self._variance, length_scale = parameters
            self._x = X / length_scale
            self.inputs = self._x[:0]

    @property
    def exhausted(self) -> bool:
        """Whether no evaluation of the trace is left where one is needed."""
        return self._x is not None and self.evaluations >= self._limit

    def blocks(self) -> tuple[FloatArray, FloatArray]:
        """Return the covariances K_ux (m, n) and K_uu (m, m)."""
        if self._x is None:
            return super().blocks()
        return (
            self._variance * correlation(self.inputs, self._x),
            self._variance * correlation(self.inputs, self.inputs),
        )

    def add(self, rng: np.random.Generator | None = None) -> bool:
        """As of the library, at the place of a training input."""
        if not super().add(rng):
            return False
        if self._x is not None:
            self.inputs = np.vstack([self.inputs, self._x[self.chosen[-1]]])
        return True

    def settle(self) -> None:
        """Move free control inputs to where the trace is least, by a quasi-Newton method."""
        if self._x is None or self.exhausted or not len(self):
            return
        from scipy.optimize import minimize

        shape, x = self.inputs.shape, self._x

        def objective(u: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = trace_and_gradient(u.reshape(shape), x)
            return value, gradient.ravel()

        found = minimize(
            objective,
            self.inputs.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": self._line_searches,
                "maxfun": self._limit - self.evaluations,
                "ftol": _PLACED,
                "gtol": 1e-7,
            },
        )
        self.evaluations += found.nfev
        if found.fun < 1.0:  # otherwise it began where two inputs all but coincide
            self.inputs = found.x.reshape(shape)


@dataclass(frozen=True, slots=True)
class FreeControlVariables(ControlVariables):
    """Options of the sampler with free control inputs: those of the library's, and what its placement may take.

    Attributes
    ----------
    line_searches : int
        At most, each time the control inputs are placed.
    max_evaluations : int
        Evaluations of the placement's criterion at most, in all. If they end before `trace_fraction` is met, the run
        stops without a draw; if later, no further control input is added.

    Raises
    ------
    ValueError
        If an option is not as needed.
    """

    line_searches: int = 200
    max_evaluations: int = 10_000

    def placement(self, prior: Prior) -> Placement:
        """Return what places the control inputs freely."""
        return Placement(
            prior.K,
            prior.kernel,
            None if prior.X is None else check_array("prior.X", prior.X, ndim=2),
            line_searches=self.line_searches,
            evaluations=self.max_evaluations,
        )
