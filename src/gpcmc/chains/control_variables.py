"""Control variables: Metropolis-Hastings over the latent values, a few function values at a time.

Next to the latent values f at the training inputs the chain keeps the function's values f_c at M control
inputs. One iteration is a sweep over them: f_c,i is drawn from the prior given the other control
variables, then all of f from the prior given f_c, and both are accepted or refused together. The
proposal's density is the prior's own conditional, in the old point as in the new one, so that in

    p(y | f') p(f' | f_c') p(f_c')    p(f_c,i | f_c,-i) p(f | f_c)
    ------------------------------  ----------------------------------
     p(y | f)  p(f | f_c)  p(f_c)    p(f_c,i' | f_c,-i) p(f' | f_c')

all but the ratio of the likelihoods cancels. `gpcmc.chains.controls` makes the proposals.

Control inputs are placed (`gpcmc.chains.placement`) until they leave open a tenth of the prior variance. More are added
while the chain refuses too much, and then all is frozen. A run that needs more of them than it may have stops before it
draws, and says so.

References
----------
Titsias, Lawrence, Rattray (2009), Efficient sampling for Gaussian process inference using control
variables, Advances in Neural Information Processing Systems 21, 1681.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from gpcmc._validation import FloatArray, check_array, check_positive, check_positive_int
from gpcmc.chains.chain import ChainPosterior, check_kept, kept_draws
from gpcmc.chains.controls import Controls, ControlState, init, make_controls, run
from gpcmc.chains.convergence import convergence, monitored
from gpcmc.chains.coordinates import Coordinates, whiten
from gpcmc.chains.placement import Placement, controls_needed
from gpcmc.covariance.prior import Prior
from gpcmc.methods import Method
from gpcmc.posterior import (
    STOPPED,
    ConvergenceError,
    PosteriorRecord,
    Prediction,
    chain_status,
    with_prediction,
)

#: Over M: the least acceptance of a control variable with which adaptation ends.
LEAST_ACCEPTANCE = 0.2
_ROUNDS = 2  # that many rounds in sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedPosterior(PosteriorRecord):
    """A run that met a limit before it could begin to sample: `predict` raises ConvergenceError, which says what limit.

    The diagnostics are ``controls``, ``trace_share`` (what they leave open) and ``controls_needed`` (at least). For the
    other attributes see `PosteriorRecord`.

    Attributes
    ----------
    reason : str
        Which limit, and where it stood.
    patterns : int
        How many there are.
    """

    reason: str
    patterns: int
    status: str = STOPPED

    @property
    def _patterns(self) -> int:
        return self.patterns

    def _predict(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        raise ConvergenceError(self.reason, self)


@dataclass(frozen=True, slots=True)
class ControlVariables(Method[ChainPosterior | StoppedPosterior]):
    """Options of the sampler with control variables. It gives no marginal likelihood.

    The control inputs are free if the prior holds an RBF kernel and its inputs; else they are training inputs. A run
    that meets a limit before it can sample returns a `StoppedPosterior`.

    The posterior's diagnostics: ``effective_samples``, ``r_hat``, ``acceptance`` (mean),
    ``least_acceptance`` (of a control variable), ``controls``, ``controls_needed`` (at least),
    ``trace_share``, ``adapted`` (1.0 if adaptation ended by itself).

    A proposal costs 2 n r flops for its noise, r the rank of K, in a matrix product for many, and one
    evaluation of the likelihood; an iteration is M proposals.

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
        Evaluations of the placement's criterion at most, in all. If they end before `trace_fraction` is met, the run
        stops without a draw; if later, no further control input is added.
    adaptation_rounds : int
        Rounds at most; may be 0. Adaptation ends sooner after two rounds in sequence in which every
        control variable was accepted more often than 0.2 / M; else every second round adds one.
    adaptation_burn_in : int
        Sweeps of a round, of each chain before acceptance is counted.
    adaptation_iterations : int
        Sweeps of a round, over all chains while acceptance is counted.

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
        check_kept("iterations", self.iterations, self.chains, self.thin, "sweeps")

    @property
    def _kept(self) -> int:
        """Draws kept of each chain."""
        return kept_draws(self.iterations, self.chains, self.thin)

    def memory(self, n: int) -> float:
        """As `Method.memory`; the draws count too."""
        return Method.memory(self, n) + 8.0 * self.chains * self._kept * n

    def _fit(
        self, prior: Prior, y: FloatArray, rng: np.random.Generator
    ) -> ChainPosterior | StoppedPosterior:
        placement = Placement(
            prior.K,
            prior.kernel,
            None if prior.X is None else check_array("prior.X", prior.X, ndim=2),
            line_searches=self.line_searches,
            evaluations=self.max_evaluations,
        )
        needed = controls_needed(prior.K, self.trace_fraction)
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
            return StoppedPosterior(
                reason=reason, patterns=len(y), work=dict(work), diagnostics=found
            )

        coordinates = whiten(prior.K, y)
        work["factorizations"] += coordinates.factorizations
        back_map = y[:, None] * coordinates.back  # margins, times it, are coordinates w
        w = coordinates.draw_laplace(self.chains, rng=rng)
        controls, w, adapted = self._adapt(placement, coordinates, w, back_map, work, rng)
        found["controls"], found["trace_share"] = float(len(placement)), placement.share()
        work["controls"], work["placement_evaluations"] = len(placement), placement.evaluations

        start = init(w, controls, coordinates, rng=rng)
        draws, log_likelihood, acceptance = self._sample(start, controls, back_map, rng)
        self._count(work, self.burn_in + self._kept * self.thin, len(placement))
        work["samples"] = log_likelihood.size
        margin_map = coordinates.margin_map
        found |= convergence(log_likelihood, draws @ margin_map[:, monitored(len(y))])
        found["acceptance"] = float(acceptance.mean()) if len(acceptance) else 1.0
        found["least_acceptance"] = float(acceptance.min(initial=1.0))
        found["adapted"] = float(adapted)
        posterior = ChainPosterior(
            w=draws,
            log_likelihood=log_likelihood,
            work=dict(work),
            diagnostics=found,
            status=chain_status(found),
            back=coordinates.back,
        )
        return with_prediction(posterior, prior)

    def _sample(
        self,
        start: ControlState,
        controls: Controls,
        back_map: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Run the chains; return draws (c, s, r), log likelihoods (c, s) and acceptance (m,)."""
        draws = np.empty((self.chains, self._kept, back_map.shape[1]))
        log_likelihood = np.empty(draws.shape[:2])
        acceptance = np.zeros(len(controls.directions))
        total = self.burn_in + self._kept * self.thin
        for k, (state, hits) in enumerate(run(start, controls, total, rng=rng), 1 - self.burn_in):
            if k > 0:
                acceptance += hits
                if k % self.thin == 0:
                    draws[:, k // self.thin - 1] = state.margin @ back_map
                    log_likelihood[:, k // self.thin - 1] = state.log_likelihood
        return draws, log_likelihood, acceptance / (self.chains * self._kept * self.thin)

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
                more = f"a higher max_controls ({self.max_controls})"
                return (
                    f"control variables: {len(placement)} control inputs leave open {share:.3g} of the "
                    f"prior variance after {placement.evaluations} evaluations; {wanted} needs "
                    f"{'a higher max_evaluations' if placement.exhausted else more}"
                )
            placement.settle()
        return ""

    def _adapt(
        self,
        placement: Placement,
        coordinates: Coordinates,
        w: FloatArray,
        back_map: FloatArray,
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
            w = made[-1][0].margin @ back_map
            self._count(work, sweeps, len(placement))
            work["adaptation_rounds"] += 1
            least = np.min(hits, initial=np.inf) / (self.chains * counted)
            passed = passed + 1 if least > LEAST_ACCEPTANCE / max(len(placement), 1) else 0
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
