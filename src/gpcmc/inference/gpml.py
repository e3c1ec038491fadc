"""The Markov chain baselines as the GPML toolbox ships them (its ``infMCMC``), each defect a switch.

The paper compared itself with hybrid Monte Carlo and elliptical slice sampling as they come in the
toolbox of Rasmussen and Nickisch (2010), with its defaults: one chain from f = 0 keeps every 40th of
its states; three annealed runs, of as many temperatures as there are samples and 40 transitions at
each, give the evidence as the mean of their weights. Four things in it are not what the methods
they implement prescribe, and each is switched by name (`DEFECTS`):

``right-end-point``
    The annealed weight of temperature t is evaluated at the state that was already moved at that
    temperature. Neal (2001, Eq. 5) evaluates it at the state before; then, and only then, is the
    mean weight unbiased. The defect biases the evidence upwards, by O(1 / samples).
``double-variance``
    A test pattern's probability averages Phi(m_s / sqrt(1 + v)) over the samples' conditional means
    m_s, where v is the variance of the whole posterior, spread of the m_s included: that spread is
    counted twice. The repaired v is the variance given one sample (Rasmussen and Williams 2006,
    Eq. 2.26).
``stale-energy``
    Hybrid Monte Carlo keeps the energy and gradient of its state from when they were computed; after
    a change of temperature they are those of the former temperature, until a proposal is accepted.
    Repaired, they are those of the temperature of the transition.
``shrinking-step``
    The running average of acceptance that steers the step size starts at 0, so that the step shrinks
    by 2 % a transition for the first 230, whatever is accepted. Repaired, it starts at its target,
    and is otherwise the same; a step frozen after burn-in would not serve the annealed runs, whose
    burn-in is at temperature 0, where far longer steps are stable than later.

All else is the toolbox's, whatever the switches: K has a noise of 1e-6 of its mean variance added;
slice sampling accepts the point after the 21st shrinkage, on the slice or not (such moves are counted);
hybrid Monte Carlo moves alpha = K^-1 f with identity mass, and its step size adapts to the very end.
Written from a description of what the toolbox computes; it shares no code with it.

The posterior chain and the annealed runs are independent and advance side by side as the rows of one
array (c, n): the law of each is that of a run alone, and K is read once for all of them.

References
----------
Atiya, Fayed, Abdel-Gawad (2021), section 6. Rasmussen and Nickisch (2010), Gaussian processes for
machine learning (GPML) toolbox, JMLR 11. Neal (2001), Annealed importance sampling, Eqs. (3), (5).
Neal (1993), Probabilistic inference using Markov chain Monte Carlo methods, section 5.2. Murray, Adams,
MacKay (2010), Elliptical slice sampling, Figure 2. Kuss and Rasmussen (2005), for the fourth power.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import erfcx, logsumexp, ndtr
from threadpoolctl import threadpool_limits

from gpcmc._validation import (
    FloatArray,
    check_covariance,
    check_cross_covariance,
    check_labels,
    check_option,
    check_positive_int,
    check_rng,
)
from gpcmc.gp.likelihood import log_likelihood
from gpcmc.inference.annealing import jackknife
from gpcmc.inference.chains import convergence, monitored
from gpcmc.inference.interface import (
    Prediction,
    chain_status,
)

Sampler = Literal["hmc", "ess"]

#: Names of the defects, in the order in which they are written.
DEFECTS = ("right-end-point", "double-variance", "stale-energy", "shrinking-step")
#: Those that change the chains; the others change how the same chains are read.
DYNAMIC = ("stale-energy", "shrinking-step")
#: Those that can change anything for a sampler.
APPLICABLE: dict[Sampler, tuple[str, ...]] = {"hmc": DEFECTS, "ess": DEFECTS[:2]}

_NOISE = 1e-6  # added to the diagonal of K, times its mean
_SHRINKAGES = 21  # the point after so many is accepted unseen
_STEP, _SHORTEST, _LONGEST = 0.01, 1e-6, 0.9  # of hybrid Monte Carlo: at first, and bounds
_LONGER, _SHORTER = 1.02, 0.98  # factors of the step size
_TARGET, _RATE = 0.9, 0.01  # of the running average of acceptance


# --- elliptical slice sampling


class EllipticalState(NamedTuple):
    """States of c chains."""

    f: FloatArray  # (c, n)
    log_likelihood: FloatArray  # (c,) at f
    evaluations: int = 0  # of the likelihood so far, over all chains
    off_slice: int = 0  # moves accepted without being on the slice


def elliptical_transition(
    state: EllipticalState, nu: FloatArray, uniform: FloatArray, heat: FloatArray, y: FloatArray
) -> EllipticalState:
    """Make one elliptical slice move of every chain (Murray, Adams, MacKay 2010, Figure 2).

    Parameters
    ----------
    state : EllipticalState
    nu : (c, n) array
        Draws from the prior.
    uniform : (c, 23) array
        Draws from [0, 1): of the height, of the first angle, of the angles after each shrinkage.
    heat : (c,) array
        Power of the likelihood in each chain's target.
    y : (n,) array
        Labels -1/+1.
    """
    height = heat * state.log_likelihood + np.log1p(-uniform[:, 0])
    angle = 2.0 * np.pi * uniform[:, 1]
    low, high = angle - 2.0 * np.pi, angle.copy()
    f, level = state.f.copy(), state.log_likelihood.copy()
    active, evaluations, off_slice = np.arange(len(f)), 0, 0
    for shrinkage in range(_SHRINKAGES + 1):
        a = angle[active, None]
        moved = np.cos(a) * state.f[active] + np.sin(a) * nu[active]
        new = log_likelihood(y, moved).sum(axis=1)
        evaluations += len(active)
        on = heat[active] * new > height[active]
        if shrinkage == _SHRINKAGES:
            off_slice, on = int(np.count_nonzero(~on)), np.ones_like(on)
        f[active[on]], level[active[on]] = moved[on], new[on]
        active = active[~on]
        if not len(active):
            break
        rejected = angle[active]
        low[active] = np.where(rejected < 0.0, rejected, low[active])
        high[active] = np.where(rejected > 0.0, rejected, high[active])
        angle[active] = low[active] + (high - low)[active] * uniform[active, 2 + shrinkage]
    return EllipticalState(f, level, state.evaluations + evaluations, state.off_slice + off_slice)


def _elliptical_block(
    state: EllipticalState,
    heat: FloatArray,
    L: FloatArray,
    y: FloatArray,
    skip: int,
    rng: np.random.Generator,
) -> EllipticalState:
    """`skip` transitions; the draws from the prior come from one product."""
    c, n = state.f.shape
    nu = (rng.standard_normal((skip * c, n)) @ L.T).reshape(skip, c, n)
    uniform = rng.random((skip, c, _SHRINKAGES + 2))
    for step in range(skip):
        state = elliptical_transition(state, nu[step], uniform[step], heat, y)
    return state


# --- hybrid Monte Carlo


class HamiltonianState(NamedTuple):
    """States of c chains in alpha = K^-1 f, where the energy is alpha' K alpha / 2 - heat log p(y | f)."""

    alpha: FloatArray  # (c, n)
    f: FloatArray  # (c, n) K alpha
    pull: FloatArray  # (c, n) K times the gradient of log p(y | f)
    log_likelihood: FloatArray  # (c,) at f
    heat: FloatArray  # (c,) at which energy and gradient were computed
    step: FloatArray  # (c,) step sizes
    average: FloatArray  # (c,) running averages of acceptance
    accepted: NDArray[np.int64]  # (c,) so far


def hamiltonian_transition(
    state: HamiltonianState,
    momentum: FloatArray,
    uniform: FloatArray,
    heat: FloatArray,
    K: FloatArray,
    y: FloatArray,
    leapfrog_steps: int,
) -> HamiltonianState:
    """Make one leapfrog trajectory of every chain at its step size, and accept or not (Metropolis).

    The trajectory starts with the gradient, and the test compares with the energy, at `state.heat`;
    the transition leaves the target of `heat` as it is if the two are equal.

    Parameters
    ----------
    state : HamiltonianState
    momentum : (c, n) array
        Standard normal draws.
    uniform : (c,) array
        Draws from [0, 1).
    heat : (c,) array
        Power of the likelihood in each chain's target.
    K : (n, n) array
        Prior covariance.
    y : (n,) array
        Labels -1/+1.
    leapfrog_steps : int

    Notes
    -----
    Two products with K a leapfrog step.
    """
    c = len(heat)
    step, power = state.step[:, None], heat[:, None]
    # a step far too long for the curvature overflows; the energy is then infinite or NaN: rejected
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        p = momentum - 0.5 * step * (state.f - state.heat[:, None] * state.pull)
        alpha, f, pull = state.alpha.copy(), np.empty_like(p), np.empty_like(p)
        for k in range(leapfrog_steps):
            alpha += step * p
            np.matmul(alpha, K, out=f)
            np.matmul(_slope(y, f), K, out=pull)
            p -= (step if k < leapfrog_steps - 1 else 0.5 * step) * (f - power * pull)
        level = log_likelihood(y, f).sum(axis=1)
        before = _energy(state.alpha, state.f, state.log_likelihood, state.heat, momentum)
        on = np.log1p(-uniform) < before - _energy(alpha, f, level, heat, p)
    take = on[:, None]
    step_size, average = adapt(state.step, state.average, on)
    return HamiltonianState(
        np.where(take, alpha, state.alpha),
        np.where(take, f, state.f),
        np.where(take, pull, state.pull),
        np.where(on, level, state.log_likelihood),
        np.where(on, heat, state.heat).reshape(c),
        step_size,
        average,
        state.accepted + on,
    )


def adapt(
    step: FloatArray, average: FloatArray, accepted: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the step sizes and the averages of acceptance after one more transition.

    The step follows the average as it was before the transition.
    """
    longer = np.where(average > _TARGET, _LONGER, _SHORTER)
    return (
        np.clip(step * longer, _SHORTEST, _LONGEST),
        (1.0 - _RATE) * average + _RATE * accepted,
    )


def _energy(
    alpha: FloatArray, f: FloatArray, level: FloatArray, heat: FloatArray, p: FloatArray
) -> FloatArray:
    return 0.5 * np.einsum("cn,cn->c", alpha, f) - heat * level + 0.5 * np.einsum("cn,cn->c", p, p)


def _slope(y: FloatArray, f: FloatArray) -> FloatArray:
    """Gradient of log p(y | f): `gp.likelihood.derivatives` has the second one too, ten times dearer."""
    return (np.sqrt(2.0 / np.pi) * y) / erfcx((-y / np.sqrt(2.0)) * f)


def _hamiltonian_block(
    state: HamiltonianState,
    heat: FloatArray,
    K: FloatArray,
    y: FloatArray,
    skip: int,
    leapfrog_steps: int,
    rng: np.random.Generator,
) -> HamiltonianState:
    """`skip` transitions at one temperature."""
    momentum = rng.standard_normal((skip, *state.f.shape))
    uniform = rng.random((skip, len(heat)))
    for k in range(skip):
        state = hamiltonian_transition(state, momentum[k], uniform[k], heat, K, y, leapfrog_steps)
    return state


# --- the method


def temperatures(samples: int, burn_in: int) -> FloatArray:
    """Return the powers of the likelihood of an annealed run: zeros, then (t / (samples - 1))^4."""
    return np.concatenate([np.zeros(burn_in), np.linspace(0.0, 1.0, samples)]) ** 4


def annealed_log_weights(
    heat: FloatArray, log_likelihood: FloatArray, *, right: bool
) -> FloatArray:
    """Return the log weights (r,) of annealed runs.

    Parameters
    ----------
    heat : (s,) array
        Temperatures, rising from 0 to 1.
    log_likelihood : (r, s) array
        Of the state that each run leaves at each temperature.
    right : bool
        Evaluate each step of temperature at the state left at its upper end, as the toolbox does,
        not at its lower end.
    """
    path = log_likelihood[:, 1:] if right else log_likelihood[:, :-1]
    return path @ np.diff(heat)


@dataclass(frozen=True, slots=True)
class GpmlPosterior:
    """A chain and annealed runs, and how to read them.

    ``dataclasses.replace(posterior, defects=...)`` reads the same chains with or without
    ``right-end-point`` and ``double-variance``.

    Attributes
    ----------
    defects : tuple of str
        Those that are switched on.
    f : (s, n) array
        Samples of the latent values.
    log_likelihood : (s,) array
        Of the samples.
    heat : (s,) array
        Temperatures of the annealed runs.
    annealed_log_likelihood : (r, s) array
        Of the state that each annealed run leaves at each temperature.
    L : (n, n) array
        Lower Cholesky factor of K, the toolbox's noise included.
    work : dict of str to int
        Counts: transitions, likelihood_evaluations, matrix_vector_products, factorizations, samples.
    diagnostics : dict of str to float
        ``effective_samples`` and ``r_hat``: the worst over the log likelihood and at most 50 latent
        values, the chain's two halves taken as two chains
        (`gpcmc.inference.chains.convergence`); of hybrid Monte Carlo ``acceptance`` of all proposals,
        ``annealing_acceptance`` and ``step_size``, the chain's last; of slice sampling ``off_slice``,
        the number of moves that the toolbox's limit forced.
    status : str
        ``OK`` or ``NOT_CONVERGED``, from the diagnostics; the annealed runs have no part in it.
    """

    defects: tuple[str, ...]
    f: FloatArray
    log_likelihood: FloatArray
    heat: FloatArray
    annealed_log_likelihood: FloatArray
    L: FloatArray
    work: dict[str, int]
    diagnostics: dict[str, float]
    status: str

    @property
    def log_weights(self) -> FloatArray:
        """Log weights of the annealed runs."""
        return annealed_log_weights(
            self.heat, self.annealed_log_likelihood, right="right-end-point" in self.defects
        )

    @property
    def log_evidence(self) -> float:
        """Log of the mean weight, nats."""
        return float(logsumexp(self.log_weights) - np.log(len(self.log_weights)))

    @property
    def log_evidence_se(self) -> float:
        """Its standard error, nats, such that 1.96 of it cover 95 % with so few runs.

        The jackknife's over the runs, times the 97.5 % point of Student's t over the normal's: 2.2
        for three runs. Of normal log weights with standard deviation 0.5, 1, 2 and 3 nats, three
        runs then cover the truth in 94, 92, 83 and 70 % of cases: what the runs have not met, no
        spread of theirs can tell, and no more the bias of ``right-end-point``.
        """
        return jackknife(self.log_weights)

    @threadpool_limits.wrap(limits=1)
    def predict(self, K_star: ArrayLike, k_star_star: ArrayLike) -> Prediction:
        """Return P(y* = +1 | y), the mean over the samples.

        The standard errors are those of the mean of a correlated series; with ``double-variance``
        that of the estimate's influence function, the sampling error of the variance included.

        Parameters
        ----------
        K_star : (n, t) array
            Covariances between training and test latent values.
        k_star_star : (t,) array
            Prior variances at the test inputs.

        Raises
        ------
        ValueError
            If shapes do not agree or an entry is not finite.
        """
        K_star, k_star_star = check_cross_covariance(
            "K_star", K_star, "k_star_star", k_star_star, self.f.shape[1]
        )
        v = solve_triangular(self.L, K_star, lower=True, check_finite=False)
        variance = np.maximum(k_star_star - np.einsum("ij,ij->j", v, v), 0.0)
        mean = self.f @ solve_triangular(self.L, v, lower=True, trans=1, check_finite=False)
        twice = "double-variance" in self.defects
        square = (mean - mean.mean(axis=0)) ** 2
        spread = square.mean(axis=0)
        scale = np.sqrt(1.0 + variance + (spread if twice else 0.0))
        z = mean / scale
        values = ndtr(z)
        probability = values.mean(axis=0)
        if twice:
            bend = np.mean(-0.5 * z * np.exp(-0.5 * z * z), axis=0) / np.sqrt(2.0 * np.pi)
            values = values + bend / scale**2 * (square - spread)
        return Prediction(probability, _series_standard_error(values))


@dataclass(frozen=True, slots=True)
class GpmlMonteCarlo:
    """Options of the toolbox's Monte Carlo inference; the defaults are the toolbox's.

    Attributes
    ----------
    sampler : {"hmc", "ess"}
        Hybrid Monte Carlo or elliptical slice sampling.
    samples : int
        States kept, and temperatures of an annealed run; at least 8, for the diagnostics.
    skip : int
        Transitions for every state kept, and at every temperature.
    burn_in : int
        States dropped first, `skip` transitions each; the annealed runs make as many at temperature 0.
    annealing_runs : int
        Annealed runs whose weights are averaged; at least 2, for a standard error.
    leapfrog_steps : int
        Of a trajectory of hybrid Monte Carlo.
    defects : tuple of str
        Defects of the toolbox to keep, of `DEFECTS`; an empty tuple repairs them all.

    Raises
    ------
    ValueError
        If a count is too small, or an option or a defect is not known.
    """

    sampler: Sampler = "hmc"
    samples: int = 200
    skip: int = 40
    burn_in: int = 10
    annealing_runs: int = 3
    leapfrog_steps: int = 20
    defects: tuple[str, ...] = DEFECTS

    def __post_init__(self) -> None:
        check_option("sampler", self.sampler, ("hmc", "ess"))
        for name, least in (("samples", 8), ("annealing_runs", 2)):
            if check_positive_int(name, getattr(self, name)) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}")
        for name in ("skip", "burn_in", "leapfrog_steps"):
            check_positive_int(name, getattr(self, name))
        object.__setattr__(self, "defects", _check_defects(self.defects))

    @threadpool_limits.wrap(limits=1)
    def fit(
        self, K: ArrayLike, y: ArrayLike, *, rng: np.random.Generator | None = None
    ) -> GpmlPosterior:
        """Run the chain and the annealed runs.

        Parameters
        ----------
        K : (n, n) array
            Prior covariance, positive semidefinite and not zero.
        y : (n,) array
            Labels -1/+1.
        rng : Generator
            Required. Consumed; how much does not depend on what is drawn.

        Raises
        ------
        ValueError
            If an argument is not as needed.

        Notes
        -----
        (samples + burn_in) skip (1 + annealing_runs) transitions: of slice sampling one product with
        a factor of K each, of hybrid Monte Carlo two a leapfrog step.
        """
        rng = check_rng("rng", rng)
        K = check_covariance("K", K, semidefinite=True)
        y = check_labels("y", y, len(K))
        K, L = _with_noise(K)
        n, c, blocks = len(y), 1 + self.annealing_runs, self.burn_in + self.samples
        schedule = np.empty((blocks, c))
        schedule[:, 0] = 1.0  # the posterior chain; the rest are the annealed runs
        schedule[:, 1:] = temperatures(self.samples, self.burn_in)[:, None]

        state = self._start(K, y, schedule[0])
        f, levels = np.empty((blocks, n)), np.empty((blocks, c))
        for block, heat in enumerate(schedule):
            if isinstance(state, EllipticalState):
                state = _elliptical_block(state, heat, L, y, self.skip, rng)
            else:
                if "stale-energy" not in self.defects:
                    state = state._replace(heat=heat)
                state = _hamiltonian_block(state, heat, K, y, self.skip, self.leapfrog_steps, rng)
            f[block], levels[block] = state.f[0], state.log_likelihood

        f, levels = f[self.burn_in :], levels[self.burn_in :]
        transitions = blocks * self.skip * c
        diagnostics = _diagnostics(f, levels[:, 0])
        if isinstance(state, EllipticalState):
            evaluations, products = state.evaluations, transitions
            diagnostics["off_slice"] = float(state.off_slice)
        else:
            evaluations = transitions * self.leapfrog_steps
            products = 2 * evaluations
            rate = state.accepted / (blocks * self.skip)
            diagnostics["acceptance"] = float(rate[0])
            diagnostics["annealing_acceptance"] = float(np.mean(rate[1:]))
            diagnostics["step_size"] = float(state.step[0])
        return GpmlPosterior(
            defects=self.defects,
            f=f,
            log_likelihood=levels[:, 0].copy(),
            heat=schedule[self.burn_in :, 1].copy(),
            annealed_log_likelihood=levels[:, 1:].T.copy(),
            L=L,
            work={
                "transitions": transitions,
                "likelihood_evaluations": evaluations,
                "matrix_vector_products": products,
                "factorizations": 1,
                "samples": self.samples,
            },
            diagnostics=diagnostics,
            status=chain_status(diagnostics),
        )

    def _start(
        self, K: FloatArray, y: FloatArray, heat: FloatArray
    ) -> EllipticalState | HamiltonianState:
        """All chains at f = 0."""
        c = len(heat)
        f = np.zeros((c, len(y)))
        level = log_likelihood(y, f).sum(axis=1)
        if self.sampler == "ess":
            return EllipticalState(f, level)
        average = 0.0 if "shrinking-step" in self.defects else _TARGET
        return HamiltonianState(
            alpha=f,
            f=f,
            pull=_slope(y, f) @ K,
            log_likelihood=level,
            heat=heat,
            step=np.full(c, _STEP),
            average=np.full(c, average),
            accepted=np.zeros(c, dtype=np.int64),
        )


def _check_defects(value: Iterable[str]) -> tuple[str, ...]:
    """Return known names, each once and in the order of `DEFECTS`."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"defects must be a tuple of names of {DEFECTS}; got {value!r}")
    names = {check_option("defects", name, DEFECTS) for name in value}
    return tuple(name for name in DEFECTS if name in names)


def _with_noise(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return K with the toolbox's noise, and its lower Cholesky factor."""
    K = K.copy()
    mean = float(np.mean(K.diagonal()))
    if mean == 0.0:
        raise ValueError("K must not be zero: the toolbox's noise is a share of its variances")
    K.flat[:: len(K) + 1] += _NOISE * mean
    return K, cholesky(K, lower=True, check_finite=False)


def _diagnostics(f: FloatArray, level: FloatArray) -> dict[str, float]:
    if np.ptp(level) == 0.0:  # not a proposal was accepted
        return {"effective_samples": 1.0, "r_hat": np.inf}
    found = convergence(level[None], f[None, :, monitored(f.shape[1])])
    # the estimate exceeds the samples where they alternate; fewer than needed are never enough
    return found | {"effective_samples": min(found["effective_samples"], float(len(level)))}


def _effective(series: FloatArray) -> FloatArray:
    """Effective sample sizes (k,) of the means of the columns of (s, k) series, at most s."""
    from arviz_stats.base import array_stats

    ess = array_stats.ess(series[None], chain_axis=0, draw_axis=1, method="mean")
    return np.minimum(ess, len(series))


def _series_standard_error(values: FloatArray) -> FloatArray:
    """Standard errors (t,) of the means of (s, t) correlated series; 0 for a constant one."""
    deviation = values.std(axis=0, ddof=1)
    moves = deviation > 0.0
    error = np.zeros(values.shape[1])
    if moves.any():
        error[moves] = deviation[moves] / np.sqrt(_effective(values[:, moves]))
    return error
