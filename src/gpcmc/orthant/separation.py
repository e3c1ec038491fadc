"""Orthant probabilities by separation of variables and randomised quasi-Monte Carlo.

P(v >= 0), v ~ N(0, R), is an integral over the unit cube once each coordinate is drawn by inversion
inside its half-line (Genz 1992). The points are Sobol' points, scrambled anew for each of several
independent randomisations, so that the estimate of the *probability* is unbiased and its standard
error is the spread between randomisations.

A proposal whose weights may be unbounded is mixed with a defensive one whose weights are bounded: with
q = (1 - e) q_1 + e q_2 in the denominator, the weight p/q is at most (p/q_2)/e. What the second one's draws cost
where the first is good is won back by the control variate q_1/q, whose mean is one (Owen and Zhou 2000);
each randomisation takes its coefficient from the others, which keeps the estimate unbiased.

References
----------
Genz (1992), Journal of Computational and Graphical Statistics 1, 141. Owen (1998), ACM Transactions
on Modeling and Computer Simulation 8, 71. Owen and Zhou (2000), Journal of the American Statistical
Association 95, 135. Vehtari, Simpson, Gelman, Yao and Gabry (2024), Journal of Machine Learning Research
25(72) (Pareto k-hat).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.special import logsumexp

from gpcmc import _validation as validation
from gpcmc._threads import one_thread
from gpcmc.orthant._separation import average_cdf, separate
from gpcmc.orthant.pareto import pareto_shape

Array = NDArray[np.float64]

#: Points that are worked on at once: 32 MB at 1000 coordinates.
CHUNK = 4096
#: The defensive proposal gets one draw for so many of the other's.
DEFENCE = 8
#: Fewer weights have no tail that a Pareto distribution could be fitted to.
MIN_TAIL = 25


@dataclass(frozen=True, slots=True)
class Proposal:
    """How coordinates are drawn, v = mean + L e; see `_separation.separate`.

    Attributes
    ----------
    mean, L : (n,), (n, n) array
        L is lower triangular.
    coefficients : (n, 7) array
        a, b, scale, w0, w1, w2, d of each coordinate.
    log_constant : float
        Logarithm of the factor that the average weight is to be multiplied with.
    """

    mean: Array
    L: Array
    coefficients: Array
    log_constant: float = 0.0

    def prepare(self) -> tuple[Array, Array]:
        """Return the arguments G and coefficients of `_separation.separate`."""
        d = np.diag(self.L)
        G = np.ascontiguousarray(self.L / d[:, None])
        return G, np.ascontiguousarray(np.column_stack([self.mean / d, self.coefficients]))


@dataclass(frozen=True, slots=True)
class Change:
    """The map from one proposal's innovations to those by which another gives the same v."""

    T: Array  # lower triangular
    shift: Array

    @classmethod
    def between(cls, source: Proposal, other: Proposal) -> Change:
        """Return the map from `source` to `other`."""
        T = solve_triangular(other.L, source.L, lower=True, check_finite=False)
        difference = source.mean - other.mean
        return cls(T, solve_triangular(other.L, difference, lower=True, check_finite=False))

    def __call__(self, E: Array) -> Array:
        """Map innovations (n, m)."""
        # T E for a triangular T, in BLAS's column-major reading: E' T'
        product: Array = dtrmm(1.0, self.T.T, E.T, side=1).T
        product += self.shift[:, None]
        return product


@dataclass(frozen=True, slots=True)
class SeparationEstimate:
    """An orthant probability, and probabilities of test coordinates given the orthant.

    Attributes
    ----------
    log_probability : float
        Natural logarithm of the estimate.
    standard_error : float
        Its standard error, from the spread between randomisations.
    conditional : (t,) array
        P(v* >= 0 | v >= 0), a ratio of two estimates.
    conditional_se : (t,) array
        Its standard errors.
    samples : int
        Points of all randomisations and proposals.
    diagnostics : dict of str to float
        ``k_hat``, the Pareto shape of the largest weights: above 0.7 their average is not to be trusted;
        ``effective_samples`` and ``effective_fraction``, the effective samples over the samples:
        1/(1 + squared coefficient of variation of the weights).
    """

    log_probability: float
    standard_error: float
    conditional: Array
    conditional_se: Array
    samples: int
    diagnostics: dict[str, float]


def check_points(points: int, randomizations: int) -> None:
    """Refuse sizes that Sobol' points or a standard error cannot have.

    Raises
    ------
    ValueError
        If `points` is not a power of two up to 2^30, or there are fewer than two randomisations.
    """
    validation.check_positive_int("points", points)
    validation.check_positive_int("randomizations", randomizations)
    if points & (points - 1) or points > 2**30:
        raise ValueError(
            f"points must be a power of two up to 2^30, for the balance of Sobol' points; got {points}"
        )
    if randomizations < 2:
        raise ValueError(
            f"randomizations must be at least 2, for a standard error; got {randomizations}"
        )


@dataclass(frozen=True, slots=True)
class _Mixture:
    """Proposals in fixed proportions, and all that weighing the draws of one under the others takes."""

    sources: list[tuple[Proposal, int]]  # with the points of each in a randomisation
    samples: int  # of all proposals, in a randomisation
    log_share: Array
    ready: list[tuple[Array, Array]]  # arguments of `separate`
    changes: list[list[Change]]  # from the row's innovations to the column's

    @classmethod
    def of(cls, proposal: Proposal, points: int, defence: Proposal | None) -> _Mixture:
        sources = [(proposal, points)]
        if defence is not None:
            sources.append((defence, -(-points // DEFENCE)))
        samples = sum(count for _, count in sources)
        return cls(
            sources,
            samples,
            np.log([count / samples for _, count in sources]),
            [source.prepare() for source, _ in sources],
            [[Change.between(source, other) for other, _ in sources] for source, _ in sources],
        )

    def draws(self, seed: int) -> Iterator[tuple[int, slice, Array, Array]]:
        """Draw one randomisation, a chunk at a time.

        Yields
        ------
        k : int
            The proposal that drew the chunk.
        here : slice
            The chunk's place among the samples of the randomisation.
        E : (n, m) array
            Innovations of that proposal.
        log_q : (proposals, m) array
            Log of each proposal's share times its density, over the target's.
        """
        from scipy.stats import qmc  # costs half a second to import

        first = 0
        for k, (source, count) in enumerate(self.sources):
            engine = qmc.Sobol(len(source.L), rng=np.random.default_rng([seed, k]))
            for start in range(0, count, CHUNK):
                E = np.ascontiguousarray(engine.random(min(CHUNK, count - start)).T)
                log_q = np.empty((len(self.sources), E.shape[1]))
                log_q[k] = self.log_share[k] - source.log_constant - separate(*self.ready[k], E)
                for j, (other, _) in enumerate(self.sources):
                    if j != k:
                        log_u = separate(*self.ready[j], self.changes[k][j](E), True)
                        log_q[j] = self.log_share[j] - other.log_constant - log_u
                yield k, slice(first + start, first + start + E.shape[1]), E, log_q
            first += count


@one_thread()
def estimate(
    proposal: Proposal,
    rows: Array,
    *,
    points: int,
    seeds: NDArray[np.int64],
    defence: Proposal | None = None,
    n_jobs: int = 1,
) -> SeparationEstimate:
    """Average the weights, and the test coordinates' probabilities under them.

    Parameters
    ----------
    proposal : Proposal
    rows : (t, n) array
        ``rows v`` are the test coordinates' conditional means over conditional deviations; t may be 0.
    points : int
        Sobol' points of a randomisation, a power of two.
    seeds : (r,) int array
        One of each randomisation: equal seeds give equal bits on one machine.
    defence : Proposal, optional
        A proposal with bounded weights, to be mixed in: it gets an eighth as many points more.
    n_jobs : int
        Threads that the randomisations are spread over; the result has the same bits whatever it is.

    Returns
    -------
    SeparationEstimate
    """
    mixture = _Mixture.of(proposal, points, defence)
    samples, log_share = mixture.samples, mixture.log_share
    means_of = [(rows @ q.L, (rows @ q.mean)[:, None]) for q, _ in mixture.sources]
    log_w = np.empty((len(seeds), samples))  # target over mixture
    ratio = np.ones(len(seeds))  # mean of proposal over mixture
    scores = np.zeros((len(seeds), len(rows)))  # mean of weight times probability, over exp(scale)
    scale: float | None = None

    def run(r: int) -> None:
        nonlocal scale
        ratios = np.zeros(samples)
        for k, here, E, log_q in mixture.draws(int(seeds[r])):
            log_w[r, here] = -logsumexp(log_q, axis=0)
            ratios[here] = np.exp(log_q[0] + log_w[r, here] - log_share[0])
            if len(rows):
                scale = float(log_w[r, here].max()) if scale is None else scale
                means = means_of[k][0] @ E
                means += means_of[k][1]
                scores[r] += average_cdf(means, np.exp(log_w[r, here] - scale)) / samples
        ratio[r] = ratios.mean()

    run(0)  # it sets the scale, which the others share
    if n_jobs == 1:
        for r in range(1, len(seeds)):
            run(r)
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(run, range(1, len(seeds))))
    log_Z = logsumexp(log_w, axis=1) - np.log(samples)
    log_mean = logsumexp(log_Z) - np.log(len(seeds))
    share = np.exp(log_Z - log_mean)  # each randomisation's estimate over their average
    scores *= np.exp(0.0 if scale is None else scale - log_mean)
    conditional = scores.mean(axis=0)
    conditional_error = scores - share[:, None] * conditional
    controlled = share + (share.sum() - share) / (len(seeds) - 1) * (1.0 - ratio)
    root = np.sqrt(len(seeds))
    return SeparationEstimate(
        log_probability=float(log_mean + np.log(controlled.mean())),
        standard_error=float(np.std(controlled, ddof=1) / controlled.mean() / root),
        conditional=np.clip(conditional, 0.0, 1.0),
        conditional_se=np.std(conditional_error, axis=0, ddof=1) / root,
        samples=samples * len(seeds),
        diagnostics=weight_diagnostics(log_w.ravel()),
    )


def weight_diagnostics(log_weights: Array) -> dict[str, float]:
    """Return Pareto k-hat and effective samples.

    k-hat is minus infinity where the largest weights are equal, as weights that meet their bound are; and infinity
    where the largest few are all and the next have vanished, or where there are fewer than `MIN_TAIL` to fit.
    """
    w = np.exp(log_weights - log_weights.max())
    effective = float(w.sum() ** 2 / np.sum(w**2))
    tail = int(min(0.2 * len(w), 3 * len(w) ** 0.5))  # the weights that the fit sees
    cut, quarter = np.sort(w)[[-tail - 1, -tail + tail // 4]]
    if len(w) < MIN_TAIL or quarter < 1e-100:
        k_hat = np.inf
    elif quarter - cut <= 1e-9 * quarter:
        k_hat = -np.inf
    else:
        with np.errstate(all="ignore"):  # weights that differ by more than floating point can hold
            k_hat = pareto_shape(log_weights)
        k_hat = np.inf if np.isnan(k_hat) else k_hat
    return {
        "k_hat": k_hat,
        "effective_samples": effective,
        "effective_fraction": effective / len(w),
    }
