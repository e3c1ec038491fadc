"""The Markov chain baselines of the GPML toolbox (its ``infMCMC``), as distributed or corrected: each defect a switch.

The paper compared itself with hybrid Monte Carlo and elliptical slice sampling as they come in the
toolbox of Rasmussen and Nickisch (2010), with its defaults: one chain from f = 0 keeps every 40th of
its states; three annealed runs, of as many temperatures as there are samples and 40 transitions at
each, give the evidence as the mean of their weights. Four things in it differ from the methods that it
implements, and each is switched by name (`DEFECTS`). With all of them the toolbox is *as distributed*,
with none it is *corrected*:

``right-end-point``
    The annealed weight of temperature t is evaluated at the state that was already moved at that
    temperature. Neal (2001, Eq. 5) evaluates it at the state before; then, and only then, is the
    mean weight unbiased. The defect biases the evidence upwards, by O(1 / samples).
``double-variance``
    A test pattern's probability averages Phi(m_s / sqrt(1 + v)) over the samples' conditional means
    m_s, where v is the variance of the whole posterior, spread of the m_s included: that spread is
    counted twice. The corrected v is the variance given one sample (Rasmussen and Williams 2006,
    Eq. 2.26). `studies.atiya2021.toolbox.posterior` has both, and a third that a user of the toolbox may have printed.
``stale-energy``
    Hybrid Monte Carlo keeps the energy and gradient of its state from when they were computed; after
    a change of temperature they are those of the former temperature, until a proposal is accepted.
    Corrected, they are those of the temperature of the transition.
``shrinking-step``
    The running average of acceptance that steers the step size starts at 0, so that the step shrinks
    by 2 % a transition for the first 230, whatever is accepted. Corrected, it starts at its target,
    and is otherwise the same; a step frozen after burn-in would not serve the annealed runs, whose
    burn-in is at temperature 0, where far longer steps are stable than later.

All else is the toolbox's, whatever the switches: K has a noise of 1e-6 of its mean variance added;
slice sampling accepts the point after the 21st shrinkage, on the slice or not (such moves are counted);
hybrid Monte Carlo moves alpha = K^-1 f with identity mass, and its step size adapts to the very end.
Written from a description of what the toolbox computes; it shares no code with it.

Where they are, by lines of the toolbox's ``inf/infMCMC.m`` (dated 2016-05-09) and ``gp.m`` (dated 2022-04-04), as
mirrored at github.com/benfulcher/hctsa, Toolboxes/gpml: the right end point in infMCMC 81-84, the double variance in
infMCMC 68 with gp 186-197, the stale energy in infMCMC 173-174 and 186-187, the shrinking step in infMCMC 156 and 191,
the forced move of slice sampling in infMCMC 143. The file came with version 3.2 (2013-01-15), whose translation to
Python (github.com/depet/scikit-learn, sklearn/gpml/inf.py) has the same four. Two details differ here. The toolbox adds
its noise (infMCMC 61-63) for slice sampling and for variances, and not for hybrid Monte Carlo or the annealed
likelihoods; version 3.2 adds it only if K cannot be factorised. The toolbox's step size follows the average of
acceptance after the transition, ours the one before. ``benchmarks/octave`` sets the emulation beside the toolbox.

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
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.linalg import cholesky

from gpcmc._validation import (
    FloatArray,
    check_option,
    check_positive_int,
)
from gpcmc.chains.convergence import convergence, monitored
from gpcmc.covariance.prior import Prior
from gpcmc.likelihood.probit import log_likelihood
from gpcmc.methods import Method
from gpcmc.posterior import chain_status
from studies.atiya2021.toolbox.annealing import (
    FIRST_STEP,
    TARGET_ACCEPTANCE,
    EllipticalState,
    HamiltonianState,
    elliptical_block,
    hamiltonian_block,
    log_likelihood_gradient,
    temperatures,
)
from studies.atiya2021.toolbox.posterior import GpmlPosterior

Sampler = Literal["hmc", "ess"]

#: Names of the defects, in the order in which they are written.
DEFECTS = ("right-end-point", "double-variance", "stale-energy", "shrinking-step")
#: Those that change the chains; the others change how the same chains are read.
DYNAMIC = ("stale-energy", "shrinking-step")
#: Those that can change anything for a sampler.
APPLICABLE: dict[Sampler, tuple[str, ...]] = {"hmc": DEFECTS, "ess": DEFECTS[:2]}

_NOISE = 1e-6  # added to the diagonal of K, times its mean


@dataclass(frozen=True, slots=True)
class GpmlMonteCarlo(Method[GpmlPosterior]):
    """Options of the toolbox's Monte Carlo inference; the defaults are the toolbox's.

    A fit makes (samples + burn_in) skip (1 + annealing_runs) transitions: of slice sampling one product with
    a factor of K each, of hybrid Monte Carlo two a leapfrog step. How much of the generator it consumes does
    not depend on what is drawn. K must not be zero.

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
        Defects of the toolbox to keep, of `DEFECTS`; an empty tuple corrects them all.

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

    def _fit(self, prior: Prior, y: FloatArray, rng: np.random.Generator) -> GpmlPosterior:
        K, L = _with_noise(prior.K)
        c, blocks = 1 + self.annealing_runs, self.burn_in + self.samples
        schedule = np.empty((blocks, c))
        schedule[:, 0] = 1.0  # the posterior chain; the rest are the annealed runs
        schedule[:, 1:] = temperatures(self.samples, self.burn_in)[:, None]
        state, f, log_likelihoods = self._run(K, L, y, schedule, rng)
        diagnostics, work = self._account(state, f, log_likelihoods, blocks * self.skip)
        posterior = GpmlPosterior(
            defects=self.defects,
            f=f,
            log_likelihood=log_likelihoods[:, 0].copy(),
            inverse_temperature=schedule[self.burn_in :, 1].copy(),
            annealed_log_likelihood=log_likelihoods[:, 1:].T.copy(),
            L=L,
            work=work,
            diagnostics=diagnostics,
            status=chain_status(diagnostics),
        )
        if not len(prior.k_star_star):
            return posterior
        prediction = posterior.predict(prior.K_star, prior.k_star_star)
        return replace(posterior, prediction=prediction)

    def _run(
        self,
        K: FloatArray,
        L: FloatArray,
        y: FloatArray,
        schedule: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[EllipticalState | HamiltonianState, FloatArray, FloatArray]:
        """Follow a schedule (blocks, c) of inverse temperatures.

        Returns
        -------
        state
            Where all chains end.
        f : (s, n) array
            States of the first chain after burn-in.
        log_likelihoods : (s, c) array
            Of all chains' states, after burn-in.
        """
        state = self._start(K, y, schedule[0])
        f, log_likelihoods = np.empty((len(schedule), len(y))), np.empty(schedule.shape)
        for block, inverse_temperature in enumerate(schedule):
            if isinstance(state, EllipticalState):
                state = elliptical_block(state, inverse_temperature, L, y, self.skip, rng)
            else:
                if "stale-energy" not in self.defects:
                    state = state._replace(inverse_temperature=inverse_temperature)
                state = hamiltonian_block(
                    state, inverse_temperature, K, y, self.skip, self.leapfrog_steps, rng
                )
            f[block], log_likelihoods[block] = state.f[0], state.log_likelihood
        return state, f[self.burn_in :], log_likelihoods[self.burn_in :]

    def _account(
        self,
        state: EllipticalState | HamiltonianState,
        f: FloatArray,
        log_likelihoods: FloatArray,
        moves: int,
    ) -> tuple[dict[str, float], dict[str, int]]:
        """Return the diagnostics, and the counts of work after `moves` transitions of every chain."""
        transitions = moves * log_likelihoods.shape[1]
        diagnostics = _diagnostics(f, log_likelihoods[:, 0])
        if isinstance(state, EllipticalState):
            evaluations, products = state.evaluations, transitions
            diagnostics["off_slice"] = float(state.off_slice)
        else:
            evaluations = transitions * self.leapfrog_steps
            products = 2 * evaluations
            rate = state.accepted / moves
            diagnostics["acceptance"] = float(rate[0])
            diagnostics["annealing_acceptance"] = float(np.mean(rate[1:]))
            diagnostics["step_size"] = float(state.step[0])
        return diagnostics, {
            "transitions": transitions,
            "likelihood_evaluations": evaluations,
            "matrix_vector_products": products,
            "factorizations": 1,
            "samples": self.samples,
        }

    def _start(
        self, K: FloatArray, y: FloatArray, inverse_temperature: FloatArray
    ) -> EllipticalState | HamiltonianState:
        """All chains at f = 0."""
        c = len(inverse_temperature)
        f = np.zeros((c, len(y)))
        start = log_likelihood(y, f).sum(axis=1)
        if self.sampler == "ess":
            return EllipticalState(f, start)
        average = 0.0 if "shrinking-step" in self.defects else TARGET_ACCEPTANCE
        return HamiltonianState(
            alpha=f,
            f=f,
            gradient=log_likelihood_gradient(y, f) @ K,
            log_likelihood=start,
            inverse_temperature=inverse_temperature,
            step=np.full(c, FIRST_STEP),
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


def _diagnostics(f: FloatArray, log_likelihood: FloatArray) -> dict[str, float]:
    """Return effective samples and R-hat of one chain of latent values (s, n)."""
    if np.ptp(log_likelihood) == 0.0:  # not a proposal was accepted
        return {"effective_samples": 1.0, "r_hat": np.inf}
    found = convergence(log_likelihood[None], f[None, :, monitored(f.shape[1])])
    # the estimate exceeds the samples where they alternate; fewer than needed are never enough
    return found | {
        "effective_samples": min(found["effective_samples"], float(len(log_likelihood)))
    }
