"""The certifier: annealed importance sampling of the latent values, from expectation propagation's Gaussian.

The reference is an orthant probability: it stands on I + C K C, on the library's kernels and on its expectation
propagation. Nothing of these is used here. The covariances come from the paper's Eq. (3), computed in this module, the
latent values are drawn as such, and the likelihood is the product of Phi(y_i f_i).

With q = N(m, Sigma), Sigma^-1 = K^-1 + S and m = K a, a draw f = m + z has, the prior cancelling as far as it can,

    log p(y | f) p(f) / q(f) = sum_i log Phi(y_i f_i) + z'Sz / 2 - a'z - a'm / 2 - log |I + S^(1/2) K S^(1/2)| / 2

for *any* a and S >= 0, so the iteration that finds them need not be trusted. The draws start from
q_0 = (1 - s) q + s p(f), a share s of them from the prior, and pass through the densities
q_0^(1-t) (p(y | f) p(f))^t, t = 1/T .. (T-1)/T, by elliptical slice sampling in coordinates in which q is N(0, I).
The weight of a chain is the product of T factors ((p(y | f) p(f)) / q_0)^(1/T), each at most s^(-1/T): so no weight
exceeds 1/s, its variance is finite, and its mean is p(y | X) (Neal 2001). The bound proves that and no more: over the
mean it is 1/(s p(y | X)), which only a problem of few patterns makes small. So the weights' Pareto k-hat is reported.

Chains are independent, so the standard errors are those of averages, and of ratios of averages for the test patterns.

References
----------
Neal (2001), Statistics and Computing 11, 125. Nickisch and Rasmussen (2008), JMLR 9, 2035 (annealing from a Gaussian).
Murray, Adams and MacKay (2010), AISTATS 9, 541. Hesterberg (1995), Technometrics 37, 185 (defensive mixtures).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import log_ndtr, logsumexp, ndtr

from gpcmc._threads import one_thread
from gpcmc.methods import Inference
from gpcmc.weights import weight_diagnostics
from studies.atiya2021.problems import Problem

Array = np.ndarray

#: Share of the chains that start from the prior.
PRIOR_SHARE = 0.05
#: Chains that advance side by side.
BATCH = 500
#: States of a chain, after the last weight, over which a test pattern's probability is averaged.
STATES = 16
#: Temperatures, as multiples of the variance of the log weights under q, and their bounds.
TEMPERATURES_PER_VARIANCE, TEMPERATURES = 16.0, (16, 256)


@dataclass(frozen=True, slots=True)
class Model:
    """Covariances and labels.

    Attributes
    ----------
    K : (n, n) array
        Of the latent values at the training patterns; semidefinite.
    K_star : (n, t) array
        Between these and those at the test patterns.
    k_star_star : (t,) array
        Variances of the latter.
    y : (n,) array
        Labels -1/+1.
    """

    K: Array
    K_star: Array
    k_star_star: Array
    y: Array


@one_thread()
def model(problem: Problem, alpha: float, beta: float) -> Model:
    """Return the covariances of the paper's Eq. (3), beta exp(-|x - x'|^2 / alpha^2), without their white part.

    With c the least eigenvalue of the covariance of all latent values, f = g + e, where e is white of variance c.
    Averaged over e, Phi(y f) is Phi(y g / sqrt(1 + c)): the same model with covariance (K - c I) / (1 + c), in which
    patterns that are nearly alone leave nearly nothing to integrate.
    """
    X, n = np.concatenate([problem.X_train, problem.X_test]), len(problem.y_train)
    K = beta * np.exp(-cdist(X, X, "sqeuclidean") / alpha**2)
    white = max(np.linalg.eigvalsh(K)[0], 0.0)
    K.flat[:: len(K) + 1] -= white
    K /= 1.0 + white
    return Model(K[:n, :n], K[:n, n:], np.diag(K)[n:].copy(), problem.y_train)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """q, in coordinates u ~ N(0, I) with z = u @ root; f = m + z.

    Attributes
    ----------
    y, m, a, S : (n,) array
    root : (r, n) array
    log_constant : float
        Of the log weights.
    to_u, center : (r, r), (r,) array
        A draw w ~ N(0, I) of the prior's own coordinates is u = (w - center) @ to_u.
    test_root, test_mean : (r, t), (t,) array
        A test pattern is of class +1 with probability Phi(test_mean + u @ test_root).
    """

    y: Array
    m: Array
    a: Array
    S: Array
    root: Array
    log_constant: float
    to_u: Array
    center: Array
    test_root: Array
    test_mean: Array

    def log_ratios(self, z: Array) -> tuple[Array, Array]:
        """Return log p(y | f) p(f) / q(f) and log q_0(f) / q(f) (M,) at the rows of z (M, n)."""
        likelihood = log_ndtr(self.y * (self.m + z)).sum(axis=1)
        prior = 0.5 * (z * z) @ self.S - z @ self.a + self.log_constant
        start = np.logaddexp(np.log1p(-PRIOR_SHARE), np.log(PRIOR_SHARE) + prior)
        return likelihood + prior, start


@one_thread()
def gaussian(model: Model, *, sweeps: int = 200, tolerance: float = 1e-6) -> Gaussian:
    """Find sites by expectation propagation, all at once and half of the way, and make q of them."""
    values, vectors = np.linalg.eigh(model.K)
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    A = vectors[:, kept] * np.sqrt(values[kept])  # K = A A', f = A w
    y = model.y
    S, nu = np.zeros(len(y)), np.zeros(len(y))
    for _ in range(sweeps):
        C, root = _factors(A, S)
        variance, mean = np.sum(root**2, axis=0), root.T @ (root @ nu)
        new_S, new_nu = _matched(variance, mean, S, nu, y)
        moved = np.max(np.abs(new_S - S) * variance + np.abs(new_nu - nu) * np.sqrt(variance))
        S, nu = 0.5 * (S + new_S), 0.5 * (nu + new_nu)
        if moved < tolerance:
            break
    C, root = _factors(A, S)
    m = root.T @ (root @ nu)
    a = nu - S * m
    center = A.T @ a
    b = (vectors[:, kept] / np.sqrt(values[kept])).T @ model.K_star  # f* given w has mean b'w
    deviation = np.sqrt(1.0 + np.maximum(model.k_star_star - np.sum(b**2, axis=0), 0.0))
    test_root = solve_triangular(C, b, lower=True) / deviation
    constant = -0.5 * a @ m - np.sum(np.log(np.diag(C)))
    return Gaussian(y, m, a, S, root, constant, C, center, test_root, center @ b / deviation)


def _factors(A: Array, S: Array) -> tuple[Array, Array]:
    """Return C, C C' = I + A'SA, and the root C^-1 A' of q's covariance."""
    G = A.T @ (S[:, None] * A)
    G.flat[:: len(G) + 1] += 1.0
    C = cholesky(G, lower=True)
    return C, solve_triangular(C, A.T, lower=True)


def _matched(variance: Array, mean: Array, S: Array, nu: Array, y: Array) -> tuple[Array, Array]:
    """Return the sites that match the moments of Phi(y f) under each cavity."""
    left = 1.0 - variance * S
    variance, mean = variance / left, (mean - variance * nu) / left
    scale = np.sqrt(1.0 + variance)
    z = y * mean / scale
    r = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))  # phi / Phi
    curvature = r * (z + r) / scale**2
    new_S = curvature / (1.0 - variance * curvature)
    return new_S, y * r / scale * (1.0 + variance * new_S) + mean * new_S


@dataclass(slots=True)
class Chains:
    """Chains side by side: coordinates u (M, r), z (M, n), and both logarithms of `Gaussian.log_ratios` (M,)."""

    u: Array
    z: Array
    target: Array
    start: Array

    @classmethod
    def draw(cls, q: Gaussian, count: int, rng: np.random.Generator) -> Chains:
        """Draw from q_0."""
        u = rng.standard_normal((count, len(q.root)))
        of_prior = rng.random(count) < PRIOR_SHARE
        u[of_prior] = (u[of_prior] - q.center) @ q.to_u
        z = u @ q.root
        return cls(u, z, *q.log_ratios(z))

    def move(self, q: Gaussian, t: float, rng: np.random.Generator) -> None:
        """Make one step of elliptical slice sampling that leaves q_0^(1-t) (p(y | f) p(f))^t invariant."""
        other = rng.standard_normal(self.u.shape)
        other_z = other @ q.root
        level = t * self.target + (1.0 - t) * self.start + np.log1p(-rng.random(len(other)))
        angle = rng.uniform(0.0, 2.0 * np.pi, len(other))
        low, high = angle - 2.0 * np.pi, angle.copy()
        active = np.arange(len(other))
        while len(active):
            turn = angle[active, None]
            z = np.cos(turn) * self.z[active] + np.sin(turn) * other_z[active]
            target, start = q.log_ratios(z)
            inside = t * target + (1.0 - t) * start >= level[active]
            done = active[inside]
            self.z[done], self.target[done], self.start[done] = (
                z[inside],
                target[inside],
                start[inside],
            )
            active = active[~inside]
            low[active] = np.where(angle[active] < 0.0, angle[active], low[active])
            high[active] = np.where(angle[active] >= 0.0, angle[active], high[active])
            angle[active] = rng.uniform(low[active], high[active])
        self.u = np.cos(angle)[:, None] * self.u + np.sin(angle)[:, None] * other


def temperatures(q: Gaussian, rng: np.random.Generator) -> int:
    """Return how many temperatures the spread of the log weights asks for."""
    z = rng.standard_normal((BATCH, len(q.root))) @ q.root
    wanted = TEMPERATURES_PER_VARIANCE * np.var(q.log_ratios(z)[0])
    return int(np.clip(np.ceil(wanted), *TEMPERATURES))


@one_thread()
def annealed(
    model: Model, chains: int, *, rng: np.random.Generator, q: Gaussian | None = None
) -> Inference:
    """Estimate the log evidence and the test probabilities, with standard errors and the weights' k-hat.

    Parameters
    ----------
    model : Model
    chains : int
    rng : numpy.random.Generator
        Consumed.
    q : Gaussian, optional
        Of this model; found if it is not given.
    """
    q = q or gaussian(model)
    steps = temperatures(q, rng)
    log_w = np.empty(chains)
    # over the chains: weight times probability; squared weight times probability^0, ^1, ^2
    first, second = np.zeros(len(q.test_mean)), np.zeros((3, len(q.test_mean)))
    scale = None
    for begin in range(0, chains, BATCH):
        here = slice(begin, min(begin + BATCH, chains))
        batch = Chains.draw(q, here.stop - here.start, rng)
        log_w[here] = (batch.target - batch.start) / steps
        for k in range(1, steps):
            batch.move(q, k / steps, rng)
            log_w[here] += (batch.target - batch.start) / steps
        if len(q.test_mean) == 0:
            continue
        probability = np.zeros((len(batch.u), len(q.test_mean)))
        for _ in range(STATES):
            batch.move(q, 1.0, rng)
            probability += ndtr(q.test_mean + batch.u @ q.test_root) / STATES
        scale = log_w[here].max() if scale is None else scale
        w = np.exp(log_w[here] - scale)
        first += w @ probability
        second += np.stack([(w**2) @ probability**power for power in range(3)])
    log_mean = float(logsumexp(log_w) - np.log(chains))
    relative = np.exp(log_w - log_mean)
    total = chains * np.exp(log_mean - (scale or 0.0))
    p = first / total
    variance = (second[2] - 2.0 * p * second[1] + p**2 * second[0]) / total**2
    return Inference(
        log_evidence=log_mean,
        log_evidence_se=float(np.std(relative, ddof=1) / np.sqrt(chains)),
        probability=p,
        probability_se=np.sqrt(np.maximum(variance, 0.0)),
        work={"samples": chains, "temperatures": steps},
        diagnostics=weight_diagnostics(log_w)
        | {"log_weight_bound": float(-np.log(PRIOR_SHARE) - log_mean)},
    )
