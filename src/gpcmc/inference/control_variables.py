"""Control variables: Metropolis-Hastings over the latent values, a few function values at a time.

Next to the latent values f at the training inputs the chain keeps the function's values f_c at M control
inputs. One iteration is a sweep over them: f_c,i is drawn from the prior given the other control
variables, then all of f from the prior given f_c, and both are accepted or refused together. The
proposal's density is the prior's own conditional, in the old point as in the new one, so that in

    p(y | f') p(f' | f_c') p(f_c')    p(f_c,i | f_c,-i) p(f | f_c)
    ------------------------------  ----------------------------------
     p(y | f)  p(f | f_c)  p(f_c)    p(f_c,i' | f_c,-i) p(f' | f_c')

all but the ratio of the likelihoods cancels.

Coordinates. Write f_c = L u with L L' = K_uu, and f = root w as in `gpcmc.inference.chains`, u and w
standard normal a priori, and P = E[w u'], whose singular values are at most one. Then

- f_c,i given the others: column i of L^-1 over its length is a unit vector d_i, and drawing f_c,i
  anew draws the component of u along d_i anew, u' = u + d_i (xi - d_i'u), xi standard normal;
- f given f_c: w = P u + (I - P P')^(1/2) z, z standard normal. Its mean moves along one direction
  when one f_c,i moves, and its noise does not depend on the state, so the noise of many proposals
  comes from one matrix product.

A proposal is then a multiple of a row added to a row, and one evaluation of the likelihood; nothing is
factorized, and nothing in it grows with M but the scalar product d_i'u.

Where the control inputs are. They minimise tr(K - K_xu K_uu^-1 K_ux), the prior variance of f that f_c
leaves open (the criterion of section 3.1 of the paper). One is added at a time, at the training input that lowers the
trace most, until a tenth is left; after each addition all of them move freely to lower it further,
where the kernel is an RBF and the inputs are known. Otherwise they stay at training inputs. More are added
while the chain refuses too much, and then all is frozen.

The trace cannot be below what the principal components of K leave open, so the least possible number
of control inputs is known before anything is done: a run that needs more than it may have stops
there, and says so.

References
----------
Titsias, Lawrence, Rattray (2009), Efficient sampling for Gaussian process inference using control
variables, Advances in Neural Information Processing Systems 21, 1681.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, eigvalsh, lapack, solve_triangular, svd
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import log_ndtr, ndtr
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Product
from threadpoolctl import threadpool_limits

from gpcmc._validation import (
    FloatArray,
    check_array,
    check_covariance,
    check_cross_covariance,
    check_labels,
    check_positive,
    check_positive_int,
    check_rng,
)
from gpcmc.gp.covariance import Prior
from gpcmc.inference.chains import ChainPosterior, Coordinates, convergence, monitored, whiten
from gpcmc.inference.interface import (
    STOPPED,
    ConvergenceError,
    Inference,
    Prediction,
    chain_status,
)

_ROWS = 512  # proposals whose noise comes from one product
_DEEP = 1e-290  # below this Phi nears underflow, and its logarithm is taken another way
_NEW = 1e-6  # a control input is added only where it knows this share of the variance by itself
_DISTINCT = 1e-8  # control inputs may not come so near that one's variance given others is below
_PLACED = 1e-5  # a placement is found when a line search gains less than this share of the trace
_ACCEPTANCE = 0.2  # over M: the least acceptance of a control variable with which adaptation ends
_ROUNDS = 2  # that many rounds in sequence


# --- placement


def rbf_parameters(kernel: Kernel | None) -> tuple[float, FloatArray] | None:
    """Return variance and length scale(s) of an RBF, alone or times a constant; None of any other."""
    variance, shape = 1.0, kernel
    if isinstance(kernel, Product):
        constant, shape = kernel.k1, kernel.k2
        if isinstance(shape, ConstantKernel):
            constant, shape = shape, constant
        if not isinstance(constant, ConstantKernel):
            return None
        variance = float(constant.constant_value)
    if shape is None or type(shape) is not RBF:  # its subclasses are other kernels
        return None
    return variance, np.asarray(shape.length_scale, dtype=np.float64)


def correlation(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return exp(-|a - b|^2 / 2) for all rows of a (m, d) and b (n, d), in units of the length scale."""
    K = cdist(a, b, "sqeuclidean")
    K *= -0.5
    return np.exp(K, out=K)


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


class Placement:
    """Control inputs, which are added one at a time: free in space, or training inputs.

    Parameters
    ----------
    K : (n, n) array
        Prior covariance at the training inputs.
    kernel : Kernel or None
    X : (n, d) array or None
        Training inputs. The control inputs are free if X is given and the kernel is an RBF.
    line_searches : int
        At most, of one placement.
    evaluations : int
        Of the trace and its gradient at most, in all; a line search that has begun may be ended.
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
        self._K, self._line_searches, self._limit = K, line_searches, evaluations
        self.evaluations = 0
        self._chosen: list[int] = []  # training inputs; where they are free, what they began as
        self._x: FloatArray | None = None  # training and free control inputs, in length scales
        if X is not None and (parameters := rbf_parameters(kernel)):
            self._variance, length_scale = parameters
            self._x = X / length_scale
            self._u = self._x[:0]

    def __len__(self) -> int:
        """Return the number of control inputs."""
        return len(self._chosen)

    @property
    def exhausted(self) -> bool:
        """Whether no evaluation of the trace is left where one is needed."""
        return self._x is not None and self.evaluations >= self._limit

    def blocks(self) -> tuple[FloatArray, FloatArray]:
        """Return the covariances K_ux (m, n) and K_uu (m, m)."""
        if self._x is None:
            return self._K[self._chosen], self._K[np.ix_(self._chosen, self._chosen)]
        return (
            self._variance * correlation(self._u, self._x),
            self._variance * correlation(self._u, self._u),
        )

    def remainder(self) -> FloatArray:
        """Return the covariance (n, n) of f given f_c: K - K_xu K_uu^-1 K_ux."""
        if not len(self):
            return self._K
        K_ux, K_uu = self.blocks()
        L = cholesky(K_uu, lower=True, check_finite=False)
        V = solve_triangular(L, K_ux, lower=True, check_finite=False)
        return self._K - V.T @ V

    def share(self) -> float:
        """Return the share of the variance that is left open."""
        total = float(np.trace(self._K))
        return float(np.trace(self.remainder())) / total if total > 0.0 else 0.0

    def add(self, rng: np.random.Generator | None = None) -> bool:
        """Add the training input that lowers the trace most, or with `rng` a random one.

        Returns
        -------
        bool
            False, with nothing added, if f_c already determines f.
        """
        S = self.remainder()
        variance = S.diagonal()
        open_ = np.flatnonzero(variance > _NEW * self._K.diagonal().max())
        if not len(open_):
            return False
        if rng is None:
            gain = np.einsum("ij,ij->j", S[:, open_], S[:, open_]) / variance[open_]
            best = int(open_[np.argmax(gain)])
        else:
            best = int(rng.choice(open_))
        self._chosen.append(best)
        if self._x is not None:
            self._u = np.vstack([self._u, self._x[best]])
        return True

    def settle(self) -> None:
        """Move free control inputs to where the trace is least, by a quasi-Newton method."""
        if self._x is None or self.exhausted or not len(self):
            return
        shape, x = self._u.shape, self._x

        def objective(u: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = trace_and_gradient(u.reshape(shape), x)
            return value, gradient.ravel()

        found = minimize(
            objective,
            self._u.ravel(),
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
            self._u = found.x.reshape(shape)


# --- the chain


@dataclass(frozen=True, slots=True)
class Controls:
    """What proposals need of the control inputs; nothing of it changes within a chain.

    Attributes
    ----------
    directions : (m, m) array
        Row i is d_i: the direction in which u moves when f_c,i does.
    mean_map : (m, n) array
        Margins y E[f | f_c] are ``u @ mean_map``.
    shifts : (m, n) array
        Row i is ``directions[i] @ mean_map``.
    noise_map : (r, n) array
        Margins y (f - E[f | f_c]) are ``z @ noise_map``, z standard normal.
    projection : (r, m) array
        P, so that E[u | w] = P'w and E[w | u] = P u.
    control_noise : (m, m) array
        The symmetric root of I - P'P, the covariance of u given w.
    """

    directions: FloatArray
    mean_map: FloatArray
    shifts: FloatArray
    noise_map: FloatArray
    projection: FloatArray
    control_noise: FloatArray


def make_controls(K_ux: FloatArray, K_uu: FloatArray, coordinates: Coordinates) -> Controls:
    """Precompute the conditionals.

    Parameters
    ----------
    K_ux : (m, n) array
        Covariances of control with latent values.
    K_uu : (m, m) array
        Those of control values, positive definite.
    coordinates : Coordinates
        Of the latent values.
    """
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


def log_likelihood(margin: FloatArray) -> FloatArray:
    """Return log p(y | f) (c,) at margins y f (c, n)."""
    p = ndtr(margin)
    if p.size and not p.min() >= _DEEP:
        return log_ndtr(margin).sum(axis=1)
    return np.log(p, out=p).sum(axis=1)


def init(
    w: FloatArray, controls: Controls, coordinates: Coordinates, *, rng: np.random.Generator
) -> ControlState:
    """Return states with latent values of coordinates w (c, r), and f_c drawn given f."""
    z = rng.standard_normal((len(w), len(controls.directions)))
    u = w @ controls.projection + z @ controls.control_noise
    margin = w @ coordinates.margin_map
    return ControlState(u, u @ controls.mean_map, margin, log_likelihood(margin))


def step(
    state: ControlState,
    i: int,
    xi: FloatArray,
    noise: FloatArray,
    log_uniform: FloatArray,
    controls: Controls,
) -> tuple[ControlState, NDArray[np.bool_]]:
    """Propose control variable i and all latent values anew, in every chain.

    Parameters
    ----------
    state : ControlState
    i : int
        Which control variable.
    xi : (c,) array
        Standard normal: the new component of u along d_i.
    noise : (c, n) array
        Draws of y (f - E[f | f_c]): ``z @ controls.noise_map``.
    log_uniform : (c,) array
        Logarithms of uniform draws.
    controls : Controls

    Returns
    -------
    state : ControlState
    accepted : (c,) bool array
    """
    move = xi - state.u @ controls.directions[i]
    mean = np.multiply.outer(move, controls.shifts[i])
    mean += state.mean
    margin = mean + noise
    level = log_likelihood(margin)
    accepted = log_uniform < level - state.log_likelihood
    if not accepted.any():
        return state, accepted
    rows = accepted[:, None]
    u = state.u + np.multiply.outer(np.where(accepted, move, 0.0), controls.directions[i])
    return ControlState(
        u,
        np.where(rows, mean, state.mean),
        np.where(rows, margin, state.margin),
        np.where(accepted, level, state.log_likelihood),
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
    block, total = max(1, _ROWS // c), iterations * m
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


# --- the method


@dataclass(frozen=True, slots=True)
class StoppedPosterior:
    """A run that met a limit before it could begin to sample.

    Attributes
    ----------
    reason : str
        Which limit, and where it stood.
    work : dict of str to int
        Counts of what was done.
    diagnostics : dict of str to float
        ``controls``, ``trace_share`` (what they leave open) and ``controls_needed`` (at least).
    log_evidence, log_evidence_se : None
        The method gives none.
    status : str
        ``STOPPED``.
    """

    reason: str
    work: dict[str, int]
    diagnostics: dict[str, float]
    log_evidence: None = None
    log_evidence_se: None = None
    status: str = STOPPED

    def predict(self, K_star: ArrayLike, k_star_star: ArrayLike) -> Prediction:
        """Raise: there is nothing to predict from.

        Raises
        ------
        ConvergenceError
            Always.
        """
        raise ConvergenceError(self.reason, self)


@dataclass(frozen=True, slots=True)
class ControlVariables:
    """Options of the sampler with control variables. It gives no marginal likelihood.

    Attributes
    ----------
    iterations : int
        Sweeps over the control variables, over all chains, after burn-in. The paper's run is 50,000 in
        one chain.
    burn_in : int
        Sweeps of each chain that are dropped, after adaptation; may be 0. The paper has 5,000.
    thin : int
        Keep every `thin`-th sweep.
    chains : int
        Chains side by side.
    start : int
        Control inputs to start with, at random training inputs.
    trace_fraction : float
        Control inputs are added until they leave open at most this share of the prior variance.
    max_controls : int
        Control inputs at most. If more are needed to meet `trace_fraction`, the run stops without a
        draw; if that shows only when the chain refuses too much, it goes on with these.
    line_searches : int
        At most, each time the control inputs are placed.
    max_evaluations : int
        Evaluations of the placement's criterion at most, in all. If they end before `trace_fraction`
        is met, the run stops without a draw; if later, no further control input is added.
    adaptation_rounds : int
        Rounds at most; may be 0. Adaptation ends sooner after two rounds in sequence in which every
        control variable was accepted more often than 0.2 / M; else every second round adds one.
    adaptation_burn_in, adaptation_iterations : int
        Sweeps of a round: of each chain before, and over all chains while acceptance is counted.

    Raises
    ------
    ValueError
        If an option is not as needed.
    """

    iterations: int = 10_000
    burn_in: int = 500
    thin: int = 1
    chains: int = 4
    start: int = 3
    trace_fraction: float = 0.1
    max_controls: int = 200
    line_searches: int = 200
    max_evaluations: int = 10_000
    adaptation_rounds: int = 80
    adaptation_burn_in: int = 10
    adaptation_iterations: int = 100

    def __post_init__(self) -> None:
        may_be_zero = ("burn_in", "adaptation_rounds", "adaptation_burn_in")
        for name in self.__slots__:
            value = getattr(self, name)
            if name == "trace_fraction" or (name in may_be_zero and value == 0):
                continue
            check_positive_int(name, value)
        if check_positive("trace_fraction", self.trace_fraction) >= 1.0:
            raise ValueError(f"trace_fraction must be below 1; got {self.trace_fraction!r}")
        if self.max_controls < self.start:
            raise ValueError(
                f"max_controls must be at least start={self.start}; got {self.max_controls}"
            )
        if (kept := self._kept) < 4:
            raise ValueError(
                "iterations must leave every chain at least 4 draws, that is "
                f"{4 * self.chains * self.thin} with chains={self.chains} and thin={self.thin}; got "
                f"iterations={self.iterations}, which leaves {kept}"
            )

    @property
    def _kept(self) -> int:
        """Draws kept of each chain."""
        return -(-self.iterations // self.chains) // self.thin

    def fit(
        self, K: ArrayLike, y: ArrayLike, *, rng: np.random.Generator | None = None
    ) -> ChainPosterior | StoppedPosterior:
        """Run the chains, with control inputs among the training inputs: K alone tells no others.

        Parameters
        ----------
        K : (n, n) array
            Prior covariance, positive semidefinite.
        y : (n,) array
            Labels -1/+1.
        rng : Generator
            Required. Consumed.

        Returns
        -------
        ChainPosterior or StoppedPosterior
            Without evidence. Diagnostics: ``effective_samples``, ``r_hat``, ``acceptance`` (mean),
            ``least_acceptance`` (of a control variable), ``controls``, ``controls_needed`` (at least),
            ``trace_share``, ``adapted`` (1.0 if adaptation ended by itself).

        Raises
        ------
        ValueError
            If an argument is not as needed.

        Notes
        -----
        A proposal costs 2 n r flops for its noise, r the rank of K, in a matrix product for many, and
        one evaluation of the likelihood; an iteration is M proposals.
        """
        return self._fit(K, y, None, None, rng)

    def infer(self, prior: Prior, y: ArrayLike, *, rng: np.random.Generator | None) -> Inference:
        """Run the chains and predict; control inputs are free if `prior` holds an RBF and its inputs.

        Raises
        ------
        ValueError
            As `fit`.
        """
        K_star, k_star_star = check_cross_covariance(
            "prior.K_star", prior.K_star, "prior.k_star_star", prior.k_star_star, len(prior.K)
        )
        posterior = self._fit(prior.K, y, prior.kernel, prior.X, rng)
        if isinstance(posterior, StoppedPosterior):
            prediction = Prediction(np.empty(0), np.empty(0))
        else:
            prediction = posterior.predict(K_star, k_star_star)
        return Inference(
            log_evidence=None,
            log_evidence_se=None,
            probability=prediction.probability,
            probability_se=prediction.standard_error,
            work=posterior.work,
            diagnostics=posterior.diagnostics,
            status=posterior.status,
        )

    @threadpool_limits.wrap(limits=1)
    def _fit(
        self,
        K: ArrayLike,
        y: ArrayLike,
        kernel: Kernel | None,
        X: ArrayLike | None,
        rng: np.random.Generator | None,
    ) -> ChainPosterior | StoppedPosterior:
        """As `fit`; with an RBF kernel and inputs X (n, d) the control inputs are free."""
        rng = check_rng("rng", rng)
        K = check_covariance("K", K, semidefinite=True)
        y = check_labels("y", y, len(K))
        if X is not None:
            X = check_array("X", X, ndim=2)
        placement = Placement(
            K, kernel, X, line_searches=self.line_searches, evaluations=self.max_evaluations
        )
        needed = controls_needed(K, self.trace_fraction)
        reason = self._place(placement, needed, rng)
        found = {
            "controls": float(len(placement)),
            "controls_needed": float(needed),
            "trace_share": placement.share(),
        }
        work = Counter(
            factorizations=2, placement_evaluations=placement.evaluations, controls=len(placement)
        )
        if reason:
            return StoppedPosterior(reason, dict(work), found)

        coordinates = whiten(K, y)
        work["factorizations"] += coordinates.factorizations
        pull_back = y[:, None] * coordinates.back  # margins, times it, are coordinates w
        w = coordinates.draw_laplace(self.chains, rng=rng)
        controls, w, adapted = self._adapt(placement, coordinates, w, pull_back, work, rng)
        found["controls"], found["trace_share"] = float(len(placement)), placement.share()
        work["controls"], work["placement_evaluations"] = len(placement), placement.evaluations

        draws = np.empty((self.chains, self._kept, coordinates.back.shape[1]))
        level = np.empty(draws.shape[:2])
        acceptance = np.zeros(len(placement))
        chain = init(w, controls, coordinates, rng=rng)
        total = self.burn_in + self._kept * self.thin
        for k, (state, hits) in enumerate(run(chain, controls, total, rng=rng), 1 - self.burn_in):
            if k > 0:
                acceptance += hits
                if k % self.thin == 0:
                    draws[:, k // self.thin - 1] = state.margin @ pull_back
                    level[:, k // self.thin - 1] = state.log_likelihood
        self._count(work, total, len(placement))
        work["samples"] = level.size
        acceptance /= self.chains * self._kept * self.thin
        found |= convergence(level, draws @ coordinates.margin_map[:, monitored(len(y))])
        found["acceptance"] = float(acceptance.mean()) if len(acceptance) else 1.0
        found["least_acceptance"] = float(acceptance.min(initial=1.0))
        found["adapted"] = float(adapted)
        return ChainPosterior(
            w=draws,
            log_likelihood=level,
            log_weights=None,
            log_evidence=None,
            log_evidence_se=None,
            work=dict(work),
            diagnostics=found,
            status=chain_status(found),
            _back=coordinates.back,
        )

    def _place(self, placement: Placement, needed: int, rng: np.random.Generator) -> str:
        """Add control inputs until the criterion is met; return why it cannot be, or nothing."""
        wanted = f"at most {self.trace_fraction:g} of the prior variance left open"
        if needed > self.max_controls:
            return (
                f"control variables: {wanted} needs at least {needed} control inputs, by the "
                f"eigenvalues of K; max_controls is {self.max_controls}"
            )
        for _ in range(self.start):
            placement.add(rng)
        placement.settle()
        while (share := placement.share()) > self.trace_fraction:
            if len(placement) >= self.max_controls or placement.exhausted or not placement.add():
                return (
                    f"control variables: {len(placement)} control inputs leave open {share:.3g} of the "
                    f"prior variance after {placement.evaluations} evaluations; {wanted} needs a "
                    f"higher max_controls ({self.max_controls}) or max_evaluations "
                    f"({self.max_evaluations})"
                )
            placement.settle()
        return ""

    def _adapt(
        self,
        placement: Placement,
        coordinates: Coordinates,
        w: FloatArray,
        pull_back: FloatArray,
        work: Counter[str],
        rng: np.random.Generator,
    ) -> tuple[Controls, FloatArray, bool]:
        """Add control inputs while the chains refuse too much; return where they stand after."""
        controls = make_controls(*placement.blocks(), coordinates)
        counted = -(-self.adaptation_iterations // self.chains)
        passed = 0
        for number in range(1, self.adaptation_rounds + 1):
            start = init(w, controls, coordinates, rng=rng)
            sweeps = self.adaptation_burn_in + counted
            made = list(run(start, controls, sweeps, rng=rng))
            hits = np.sum([accepted for _, accepted in made[-counted:]], axis=0, dtype=np.float64)
            w = made[-1][0].margin @ pull_back
            self._count(work, sweeps, len(placement))
            work["adaptation_rounds"] += 1
            least = np.min(hits, initial=np.inf) / (self.chains * counted)
            passed = passed + 1 if least > _ACCEPTANCE / max(len(placement), 1) else 0
            if passed == _ROUNDS:
                return controls, w, True
            if (
                passed == 0
                and number % 2 == 0
                and len(placement) < self.max_controls
                and not placement.exhausted
                and placement.add()
            ):
                placement.settle()
                controls = make_controls(*placement.blocks(), coordinates)
                work["factorizations"] += 1
        return controls, w, False

    def _count(self, work: Counter[str], sweeps: int, m: int) -> None:
        """Add `sweeps` iterations of all chains with m control variables to the counts of work."""
        work["transitions"] += sweeps * self.chains
        for name in ("proposals", "likelihood_evaluations", "matrix_vector_products"):
            work[name] += sweeps * self.chains * m


def controls_needed(K: FloatArray, fraction: float) -> int:
    """Return the least number of control inputs that can leave open `fraction` of the trace of K.

    K_xu K_uu^-1 K_ux has rank M and lies below K, so what it leaves open is at least the sum of all
    eigenvalues of K but the M largest.
    """
    variance = np.maximum(eigvalsh(K, check_finite=False), 0.0)  # ascending
    open_ = np.concatenate([[0.0], np.cumsum(variance)])  # by what the k smallest make
    # the bound is a proof only within rounding of the sum, which is given to the other side
    allowed = fraction * open_[-1] * (1.0 + 1e-10)
    return len(K) - int(np.searchsorted(open_, allowed, side="right") - 1)
