r"""Exact inference for the probit model by the probability of an orthant: ``twisted-ep`` and ``minimax-tilting``.

The orthant is the paper's (Eqs 25 to 30): p(y | X) = P(v >= 0) for v ~ N(0, R), R = I + C K C, C = diag(y). Expectation
propagation leaves a Gaussian site on f_i for each label. The site on v_i = y_i f_i + noise that, convolved with the
probit's unit noise, is that one stands for v_i >= 0, and guides the draws (`gpcmc.rectangle.proposals`). A ninth of
them are by minimax tilting, which bounds all weights; ``diagnostics["log_weight_bound"]`` says how tightly. The
estimate of the evidence is unbiased whatever sites and tilt are, so that both may come from a covariance on which they
are cheaper to find: `Covariance.stand_in` says of which, from what it would save, and the result's `work`
says whether one did. Where the latent values are a Markov chain (`Covariance.chain`) the average over twisted draws is
by quadrature (`gpcmc.rectangle.chain`), if that settles. Beyond 2000 patterns of a sparse covariance draws are
resampled (`gpcmc.rectangle.filter`).

References
----------
Botev (2017), Journal of the Royal Statistical Society B 79, 125. Whiteley and Lee (2014), Annals of Statistics 42, 115.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcmc import _validation as validation
from gpcmc._validation import FloatArray
from gpcmc.covariance.cross import Cross
from gpcmc.covariance.form import Covariance
from gpcmc.covariance.prior import Prior
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.posterior import GaussianPosterior
from gpcmc.likelihood import PROBIT, Ordinal
from gpcmc.methods import Method
from gpcmc.posterior import NOT_MET, OK, FormPosterior, Prediction, with_prediction
from gpcmc.rectangle import proposals, rounds
from gpcmc.rectangle._pass import normal_cdf
from gpcmc.rectangle.chain import QuadraturePosterior, Twist, settled
from gpcmc.rectangle.filter import filtered
from gpcmc.rectangle.mixture import (
    Average,
    Means,
    Mixture,
    Samples,
    check_points,
    deviation,
    draw,
)
from gpcmc.rectangle.order import ordered
from gpcmc.rectangle.tilt import minimax_tilt
from gpcmc.weights import weights_status

#: Of the interval that a tolerance is for.
_CONFIDENCE = 0.95
#: Patterns of a sparse covariance beyond which draws are resampled and have no defence: its bound is tens of nats above
#: the mean weight from a thousand patterns on, and proves nothing at any number of draws.
RESAMPLED = 2000


@dataclass(frozen=True, slots=True)
class Drawing:
    """All that a pass over the samples needs; a pass for later predictions draws the same ones."""

    mixture: Mixture
    signs: FloatArray  # (n,) of the latent values, in the order in which coordinates are drawn
    order: NDArray[np.intp]  # (n,)
    points: int
    seeds: NDArray[np.int64]  # (r,)
    n_jobs: int
    edges: FloatArray | None = None  # (C - 1,) between ordered classes; None of two

    @property
    def condenses(self) -> bool:
        """Whether what predictions need of a draw takes fewer numbers than the draw."""
        return self.mixture.proposals[-1].factor.condenses

    def run(self, visit: Any = None) -> Average:
        """Draw the samples, and have them seen."""
        if (centre := self.mixture.centre) is not None:
            only, jobs = self.mixture.proposals[0], self.n_jobs
            return filtered(only, self.points, self.seeds, centre=centre, n_jobs=jobs, visit=visit)
        return draw(self.mixture, self.points, self.seeds, n_jobs=self.n_jobs, visit=visit)

    def classes(self, cross: Cross) -> Callable[[FloatArray], FloatArray]:
        """Return what makes class probabilities at t test inputs, given draws, of their states (q, m).

        They are (t, m), of class +1; or (t C, m), of all ordered classes.
        """
        factor, edges = self.mixture.proposals[-1].factor, self.edges
        rows = factor.test_rows(cross, self.signs, self.order)

        def of_two(state: FloatArray) -> FloatArray:
            p = rows @ state
            normal_cdf(p)
            return p

        if edges is None:
            return of_two
        levels = edges / factor.test_spread(cross, rows)[:, None]

        def of_ordered(state: FloatArray) -> FloatArray:
            mean = rows @ state
            below = np.empty((len(rows), len(edges) + 2, state.shape[1]))
            below[:, 0], below[:, -1] = 0.0, 1.0
            for c in range(len(edges)):
                p = levels[:, c, None] - mean
                normal_cdf(p)
                below[:, c + 1] = p
            return np.diff(below, axis=1).reshape(-1, state.shape[1])

        return of_ordered


@dataclass(frozen=True, slots=True)
class Seen:
    """What all samples say of test inputs: their class probabilities under the weights."""

    classes: Callable[[FloatArray], FloatArray]  # as of `Drawing.classes`
    sums: Means

    @classmethod
    def of(cls, drawing: Drawing, cross: Cross) -> Seen:
        """Begin with no sample."""
        return cls(drawing.classes(cross), Means(len(drawing.seeds)))

    def __call__(self, some: Samples) -> None:
        """See samples."""
        p = self.classes(some.passes[-1].state)
        p = p.reshape(len(p), len(some.randomizations), -1)
        self.sums.add(some, lambda share: np.einsum("tgj,gj->gt", p, share))


@dataclass(frozen=True, kw_only=True)
class SampledPosterior(FormPosterior):
    """Evidence, and what class probabilities at test inputs are averaged over.

    The standard errors are from the randomisations: one degree of freedom less than these. The work counts samples, and
    what the preparation took; with a tolerance the samples of all rounds, and ``rounds``. The status is that of
    `gpcmc.weights.weights_status`, or of the covariance where that leaves too much out; or it says that a tolerance is
    not met.

    The diagnostics are Pareto k-hat, effective samples and their share, and ``log_weight_bound``. The last is a proven
    bound on log(weight / mean weight). Where it is below the logarithm of a tenth of the samples, no weight that was
    never drawn could change the average by much. Above, it is vacuous: it proves that the variance is finite, and not
    that the standard error is right; k-hat is then all there is to go by. On large problems with rough kernels it is
    vacuous at any number of samples. Under a form of covariance that leaves something out, the evidence has its
    correction, and there are the diagnostics of `GaussianPosterior`. For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    samples : Average
        The average weight of all samples.
    guide : GaussianPosterior or None
        Expectation propagation's on this covariance, if its sites were used or say what the form leaves out.
    """

    log_evidence: float
    log_evidence_se: float
    samples: Average
    guide: GaussianPosterior | None = field(default=None, repr=False)
    _drawing: Drawing = field(repr=False)
    _kept: tuple[Samples, ...] = field(default=(), repr=False)

    def _predict_at(self, cross: Cross) -> Prediction:
        seen = Seen.of(self._drawing, cross)
        if self._kept:
            for some in self._kept:
                seen(some)
        else:
            self._drawing.run(seen)
        return self._prediction(seen, cross)

    def _prediction(self, seen: Seen, cross: Cross) -> Prediction:
        probability, errors = seen.sums.contributions(self.samples.share)
        change, form_error = (0.0, 0.0) if self.guide is None else self.guide.form_change(cross)
        error = deviation(errors)
        if self._drawing.edges is not None:
            probability, error = (one.reshape(len(cross), -1) for one in (probability, error))
        return Prediction(np.clip(probability + change, 0.0, 1.0), error, form_error)


@dataclass(slots=True)
class _Round:
    """Samples as they are drawn, and what is kept of them for predictions."""

    drawing: Drawing
    seen: Seen | None  # the prior's own test inputs see the samples as they are drawn
    kept: dict[tuple[int, int, int], Samples] = field(default_factory=dict)

    def __call__(self, some: Samples) -> None:
        if self.drawing.condenses:
            where = some.randomizations.start, some.k, some.columns.start
            self.kept[where] = some.condensed()
        if self.seen is not None:
            self.seen(some)

    def run(self) -> Average:
        """Draw all samples; the diagnostics have the bound on their weights, where there is one."""
        found = self.drawing.run(self)
        if not np.isfinite(bound := self.drawing.mixture.log_bound):
            return found
        told = {"log_weight_bound": bound - found.log_probability}
        return replace(found, diagnostics=found.diagnostics | told)


#: What draws, in which order, a Gaussian for the same covariance, and what the preparation took.
Prepared = tuple[Mixture, NDArray[np.intp], GaussianPosterior | None, dict[str, int]]


@dataclass(frozen=True, slots=True)
class OrthantMethod(Method[SampledPosterior | QuadraturePosterior]):
    """Options that `Twisted` and `MinimaxTilting` share. The random numbers of a fit seed its randomisations."""

    points: int = 1024
    randomizations: int = 16
    n_jobs: int = 1
    tolerance: float | None = None

    any_form: ClassVar[bool] = True
    matrices: ClassVar[float] = 8.0
    #: A likelihood whose labels are rectangles of the latent values with unit noise.
    likelihood: ClassVar[Any] = PROBIT

    def __post_init__(self) -> None:
        check_points(self.points, self.randomizations)
        validation.check_positive_int("n_jobs", self.n_jobs)
        if self.tolerance is not None:
            validation.check_positive("tolerance", self.tolerance)

    @property
    def largest_se(self) -> float:
        """The standard error that the tolerance asks for, in nats; infinite without one."""
        if self.tolerance is None:
            return np.inf
        return self.tolerance / rounds.student(_CONFIDENCE, self.randomizations)

    def memory(self, n: int) -> float:
        """As `Method.memory`; the points that each thread works on count too."""
        at_once = min(self.points * n, max(2**22, 256 * n))
        return Method.memory(self, n) + 8.0 * self.n_jobs * 4 * at_once

    @abstractmethod
    def prepare(self, K: Covariance, y: FloatArray) -> Prepared:
        """Return what draws, in which order, a Gaussian for the same covariance, and what the preparation took."""

    def _fit(
        self, prior: Prior, y: FloatArray, rng: np.random.Generator
    ) -> SampledPosterior | QuadraturePosterior:
        return self._sampled(prior, y, rng, self.prepare(prior.covariance, y))

    def _sampled(
        self, prior: Prior, y: FloatArray, rng: np.random.Generator, prepared: Prepared
    ) -> SampledPosterior:
        K, cross = prior.covariance, prior.cross()
        mixture, order, guide, work = prepared
        signs, edges = self.likelihood.rectangle(y)[0][order], getattr(self.likelihood, "at", None)
        made: list[_Round] = []

        def run(points: int) -> Average:
            seeds = rng.integers(2**63, size=self.randomizations)
            drawing = Drawing(mixture, signs, order, points, seeds, self.n_jobs, edges)
            made[:] = [_Round(drawing, None if cross is None else Seen.of(drawing, cross))]
            return made[0].run()

        if self.tolerance is None:
            found = run(self.points)
            work = {"samples": found.samples} | work
        else:
            found, spent, number = rounds.run_rounds(
                run,
                self.largest_se,
                lambda points, _: points <= self.points,
                points=min(rounds.FIRST, self.points),
                trusted=lambda found: weights_status(found.diagnostics) == OK,
            )
            work = {"samples": spent, "rounds": number} | work
        (last,) = made
        diagnostics, change = found.diagnostics, 0.0
        status = weights_status(diagnostics)
        if guide is not None:
            change = guide.diagnostics.get("correction", 0.0)
            diagnostics = guide.diagnostics | diagnostics
            status = guide.status if status == OK else status
        if status == OK and found.standard_error > self.largest_se:
            status = NOT_MET
        posterior = SampledPosterior(
            log_evidence=found.log_probability + change,
            log_evidence_se=found.standard_error,
            work=work,
            diagnostics=diagnostics,
            status=status,
            covariance=K,
            samples=found,
            guide=guide,
            _drawing=last.drawing,
            _kept=tuple(last.kept[key] for key in sorted(last.kept)),
        )
        if last.seen is None or cross is None:
            return posterior
        return replace(posterior, prediction=posterior._prediction(last.seen, cross))


@dataclass(frozen=True, slots=True)
class Twisted(OrthantMethod):
    """Options of the orthant sampler twisted by expectation propagation (the method ``twisted-ep``).

    Attributes
    ----------
    points : int
        Points of a randomisation, a power of two: Sobol's, or beyond 500 patterns Latin hypercubes; an eighth as many
        more bound the weights. With a tolerance, at most.
    randomizations : int
        Independent randomisations: their spread is the standard error.
    n_jobs : int
        Threads that these are spread over; the result has the same bits whatever it is. Each needs memory for up to
        4096 points of n coordinates, a few times over.
    tolerance : float, optional
        Half-width of the 95 % interval of the log evidence, in nats, by Student's t: rounds of points, each larger than
        the last, are drawn until it is met and the status is ok. The first has 64 points, the largest ``points``; where
        these are not enough, the status is "tolerance not met". The last round alone is the estimate, and its size
        depends on the others only (`gpcmc.rectangle.rounds`).

    A Markov chain needs none of these where quadrature settles: the result is a
    `gpcmc.rectangle.chain.QuadraturePosterior`.
    """

    def _fit(
        self, prior: Prior, y: FloatArray, rng: np.random.Generator
    ) -> SampledPosterior | QuadraturePosterior:
        K = prior.covariance
        guide = self._guide(K, y)
        if (found := self._along(K, y, guide)) is not None:
            return with_prediction(found, prior)
        return self._sampled(prior, y, rng, self._prepared(K, y, guide))

    def _guide(self, K: Covariance, y: FloatArray) -> GaussianPosterior:
        """Expectation propagation's posterior on the covariance or what stands in for it."""
        return ExpectationPropagation(likelihood=self.likelihood).last(K.stand_in(), y)

    def _along(
        self, K: Covariance, y: FloatArray, guide: GaussianPosterior
    ) -> QuadraturePosterior | None:
        """Return the posterior of a Markov chain by quadrature; None where K is none, or quadrature does not settle."""
        if (chain := K.chain()) is None:
            return None
        twist = Twist.of(chain, guide.sites, self.likelihood.rectangle(y))
        if (found := settled(twist)) is None:
            return None
        log_evidence, error, basis = found
        return QuadraturePosterior(
            log_evidence=log_evidence,
            log_evidence_se=error,
            work={"polynomials": len(basis)} | _ep_work(guide),
            covariance=K,
            basis=basis,
            twist=twist,
            likelihood=self.likelihood,
        )

    def prepare(self, K: Covariance, y: FloatArray) -> Prepared:
        """Take sites and tilt from the covariance or what stands in for it."""
        return self._prepared(K, y, self._guide(K, y))

    def _prepared(self, K: Covariance, y: FloatArray, guide: GaussianPosterior) -> Prepared:
        signs, low, high = self.likelihood.rectangle(y)
        near, factor, work = guide.covariance, K.factor(signs), dict[str, int]()
        low, high = factor.limits(low, high)
        nu, tau = map(factor.coordinates, orthant_sites(guide, signs))
        sited = factor.sited(nu, tau)
        main = proposals.twisted(sited, tau, low, high)
        ep = ExpectationPropagation(likelihood=self.likelihood)
        own = ep.corrected(guide) if near is K else None
        if factor.resamples and len(y) > RESAMPLED:
            mixture = Mixture((main,), np.inf, centre=factor.centre(sited.mean))
            return mixture, np.arange(len(y)), own, _ep_work(guide)
        if near is K:
            tilt = minimax_tilt(factor, low, high)
            work["factorizations"] = tilt.steps
        else:
            rough = minimax_tilt(near.factor(signs), low, high)
            tilt = minimax_tilt(factor, low, high, starts=[rough.t], max_steps=0)
            work["stand_in_factorizations"] = rough.steps
        defence = Mixture((proposals.tilted(factor, tilt.mu, low, high),), tilt.log_bound)
        return Mixture.defended(main, defence), np.arange(len(y)), own, _ep_work(guide) | work


@dataclass(frozen=True, slots=True)
class OrdinalTwisted(Twisted):
    """The same for ordered classes: the labels are a rectangle between edges.

    Attributes
    ----------
    likelihood : Ordinal
        For the others see `Twisted`.
    """

    likelihood: Ordinal = field(default=Ordinal((0.0,)))  # type: ignore[misc]

    def check_labels(self, y: ArrayLike, n: int) -> FloatArray:
        """Return class numbers (n,)."""
        return self.likelihood.check_labels(y, n)


@dataclass(frozen=True, slots=True)
class MinimaxTilting(OrthantMethod):
    """Options of minimax exponential tilting (Botev 2017), with reordered variables and Sobol' points.

    The weights are bounded, so that their average has a variance and its standard error a meaning; how far the bound
    lies above their mean is among the diagnostics.

    Attributes
    ----------
    points : int
        Sobol' points of a randomisation, a power of two. With a tolerance, at most.
    randomizations : int
        Independent randomisations: their spread is the standard error.
    n_jobs : int
        Threads that these are spread over; the result has the same bits whatever it is. Each needs memory for up to
        4096 points of n coordinates, a few times over.
    tolerance : float, optional
        As of `Twisted`.
    order : {"gibson", "given"}
        Order in which coordinates are drawn: the least likely to be inside first, or that of the patterns. A
        covariance of low rank has that of the patterns.
    """

    points: int = 4096
    order: Literal["gibson", "given"] = "gibson"

    def __post_init__(self) -> None:
        OrthantMethod.__post_init__(self)
        validation.check_option("order", self.order, ("gibson", "given"))

    def prepare(self, K: Covariance, y: FloatArray) -> Prepared:
        """Order and tilt; sites too, where they say what the form leaves out."""
        low, high = np.zeros(len(y)), np.full(len(y), np.inf)
        R = K.signed(y) if self.order == "gibson" else None
        if R is None:
            factor, order = K.factor(y), np.arange(len(y))
            low, high = factor.limits(low, high)
        else:
            given = ordered(R, low, high, 0.0)
            factor, order = given.factor, given.order
        tilt = minimax_tilt(factor, low, high)
        proposal = proposals.tilted(factor, tilt.mu, low, high)
        work = {"factorizations": 1 + tilt.steps}  # the order and each Newton step
        guide = None
        if not K.exact:
            guide = ExpectationPropagation().corrected(ExpectationPropagation().last(K, y))
            work |= _ep_work(guide)
        return Mixture((proposal,), tilt.log_bound), order, guide, work


def _ep_work(guide: GaussianPosterior) -> dict[str, int]:
    return {f"ep_{name}": count for name, count in guide.work.items()}


def orthant_sites(guide: GaussianPosterior, signs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sites nu and tau (n,) on v = sign f + noise which, convolved with it, are the guide's on f."""
    tau, nu = guide.sites
    return signs * nu / (1.0 - tau), tau / (1.0 - tau)
