r"""Importance sampling with a Gaussian approximation as proposal (Filippone and Girolami, Eq. 25).

With K = A A' + diag(D), f = A u + e, Laplace's method and expectation propagation both end with a Gaussian of u, of
mean A'a and precision C C' = I + A' diag(t) A, t = S / (1 + S D). e is integrated out: p(y | u) = prod_i Phi(y_i
(A u)_i / sqrt(1 + D_i)). At u = A'a + C^-T z the weight p(y | u) p(u) / q(u) has the logarithm

    sum_i log Phi(y_i (A u)_i / sqrt(1 + D_i)) + (z'z - u'u) / 2 - log |C|.

K is never inverted, and the formula holds for *any* a and S >= 0: the mean of the weights is p(y | X) under K without
bias also where an approximation has not converged. What the form of K leaves out is corrected for by the Gaussian.

The weights are not bounded. Their variance is infinite as soon as one direction f that separates
the classes has f'Sf > f'K^-1 f, which rich kernels always have; the Pareto k-hat of the weights says
when that matters, and then the standard errors cannot be trusted. Below that, they are still too small
more often than a normal law has it, the more so the more of the ordinary variance the points remove:
of intervals of two standard errors, in trials with 40 patterns, 93 to 97 percent held the truth with
expectation propagation's proposal and random points, 88 to 93 with the other points, and with
Laplace's proposal on rough kernels only 74 to 89, while k-hat read 0.6.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, Eq. (25). Vehtari, Simpson, Gelman, Yao and Gabry
(2024), JMLR 25, 72 (k-hat). Owen (2013), Monte Carlo theory, methods and examples, chapters 9 and 17.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import log_ndtr, logsumexp

from gpcmc._normal_points import Points, PointSet, principal_directions
from gpcmc._validation import FloatArray, check_option, check_positive_int
from gpcmc.covariance.cross import Cross
from gpcmc.covariance.prior import Prior
from gpcmc.covariance.root import Root
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.laplace import Laplace
from gpcmc.gaussian.posterior import GaussianApproximation, GaussianPosterior
from gpcmc.likelihood.probit import predictive_probability
from gpcmc.methods import Method
from gpcmc.posterior import OK, ConvergenceError, FormPosterior, Prediction, with_prediction
from gpcmc.weights import MIN_TAIL, weight_diagnostics, weights_status

_PROPOSALS: dict[str, GaussianApproximation] = {
    "ep": ExpectationPropagation(),
    "laplace": Laplace(),
}


@dataclass(frozen=True, slots=True)
class Proposal:
    """The Gaussian of u that a posterior of f makes: u = centre + T z."""

    root: Root
    centre: FloatArray  # (r,)
    T: FloatArray  # (r, r) T T' is the covariance
    half_log_determinant: float  # of I + A' diag(t) A

    @classmethod
    def of(cls, posterior: GaussianPosterior, root: Root | None = None) -> Proposal:
        """Return that of a posterior with one latent function; `root` is its covariance's, if that is known."""
        root = posterior.covariance.root() if root is None else root
        A = root.A
        G = A.T @ ((posterior.S / (1.0 + posterior.S * root.D))[:, None] * A)
        G.flat[:: len(G) + 1] += 1.0
        C = cholesky(G, lower=True, overwrite_a=True, check_finite=False)
        T = solve_triangular(C, np.eye(len(C)), lower=True, trans="T", check_finite=False)
        return cls(root, posterior.a @ A, T, float(np.sum(np.log(C.diagonal()))))

    def rotated(self) -> Proposal:
        """Return the same with the longest principal directions of f first."""
        T = self.T @ principal_directions(self.root.A @ self.T)
        return Proposal(self.root, self.centre, T, self.half_log_determinant)

    def log_weights(self, y: FloatArray, normals: FloatArray) -> FloatArray:
        """Return log p(y | u) p(u) / q(u) (M,) at standard normals (M, r), for labels -1/+1 (n,).

        The mean of their exponentials has expectation p(y | X).
        """
        u = self.centre + normals @ self.T.T
        scaled = (y / np.sqrt(1.0 + self.root.D))[:, None] * self.root.A
        likelihood = np.sum(log_ndtr(u @ scaled.T), axis=1)
        spread = np.einsum("ij,ij->i", normals, normals) - np.einsum("ij,ij->i", u, u)
        return likelihood + 0.5 * spread - self.half_log_determinant


def log_evidence_estimate(
    posterior: GaussianPosterior, y: FloatArray, normals: FloatArray
) -> float:
    """Return log of an unbiased estimate of p(y | X): the mean of the weights (Eq. 25) of a posterior for y.

    Of each row of the standard normals (M, n) the first rank(K) are used.
    """
    proposal = Proposal.of(posterior)
    log_w = proposal.log_weights(y, normals[:, : len(proposal.T)])
    return float(logsumexp(log_w) - np.log(len(log_w)))


@dataclass(frozen=True, kw_only=True)
class ImportancePosterior(FormPosterior):
    """Weighted samples of p(f | y). Held are the weights; the samples are drawn again when needed.

    The evidence is the log of the mean weight. The mean is unbiased, its log is not. A prediction is by self-normalised
    weights, each sample through the exact f* | f; its standard errors are the delta method's for the ratio, over
    samples, antithetic pairs, or randomisations.

    The work counts samples, likelihood evaluations, and what the proposal's method took. The diagnostics are
    ``effective_samples``, (sum w)^2 / sum w^2; ``effective_fraction``; and ``k_hat``, which is left out where it is not
    defined: fewer than 25 samples, or equal weights in the tail. With antithetic points it is the larger of the
    samples' and the pairs'. The status is ``UNTRUSTED`` when k-hat exceeds `MAX_K_HAT`, ``NOT_CONVERGED`` with fewer
    than `MIN_EFFECTIVE` effective samples, else that of the Gaussian. For the attributes see `PosteriorRecord`.

    Under a form that leaves something out, evidence and probabilities are corrected as the Gaussian's are.

    Attributes
    ----------
    gaussian : GaussianPosterior
        Whose Gaussian was sampled.
    """

    log_evidence: float
    log_evidence_se: float
    gaussian: GaussianPosterior = field(repr=False)
    _proposal: Proposal = field(repr=False)
    _points: PointSet = field(repr=False)
    _weights: FloatArray = field(repr=False)  # (M,), sum 1

    def _predict_at(self, cross: Cross) -> Prediction:
        b, variance = self._proposal.root.coordinates(cross)
        centre, slopes = b @ self._proposal.centre, (b @ self._proposal.T).T
        # about what is expected, so that the sums of squares below do not cancel
        expected = predictive_probability(centre, variance + np.sum(slopes**2, axis=0))
        unit, start = self._points.unit, 0
        sums, squares, products, weight_squares = np.zeros((4, len(b)))
        for normals in self._points.blocks():
            w = self._weights[start : start + len(normals)]
            start += len(normals)
            gap = predictive_probability(centre + normals @ slopes, variance) - expected
            units = (w[:, None] * gap).reshape(-1, unit, len(expected)).sum(axis=1)
            unit_w = w.reshape(-1, unit).sum(axis=1)
            sums += units.sum(axis=0)
            squares += np.sum(units**2, axis=0)
            products += unit_w @ units
            weight_squares += unit_w @ unit_w
        n_units = len(self._weights) // unit
        spread = np.maximum(squares - 2.0 * sums * products + sums**2 * weight_squares, 0.0)
        change, form_error = self.gaussian.form_change(cross)
        probability = np.clip(expected + sums + change, 0.0, 1.0)
        return Prediction(probability, np.sqrt(spread * n_units / (n_units - 1)), form_error)


@dataclass(frozen=True, slots=True)
class ImportanceSampling(Method[ImportancePosterior]):
    """Options of importance sampling.

    A fit takes that of the proposal, O(n^3) once, and 2 n r flops and n log Phi a sample, r the rank of K. A
    proposal whose iteration does not converge fits less well; the estimate stays unbiased.

    Attributes
    ----------
    samples : int
        Weighted samples in all.
    proposal : {"ep", "laplace"}
        Whose Gaussian is sampled.
    points : {"random", "antithetic", "sobol"}
        Independent normals; pairs of opposite ones; or Sobol's points, scrambled, along the 16 leading
        principal directions of the proposal's covariance, and independent normals along the others.
        On smooth kernels pairs have a quarter or less of the variance at equal time, and Sobol's points
        about a third; on rough ones a few heavy weights make the variance, and points hardly matter. The
        default is the one whose standard errors hold best.
    replicates : int
        Independent randomisations of Sobol's points, which give the standard errors; the other
        points do not need them. Each has samples / replicates points, a power of two.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    any_form: ClassVar[bool] = True

    samples: int = 4096
    proposal: Literal["ep", "laplace"] = "ep"
    points: Points = "random"
    replicates: int = 16

    def __post_init__(self) -> None:
        check_positive_int("samples", self.samples)
        check_positive_int("replicates", self.replicates)
        check_option("proposal", self.proposal, tuple(_PROPOSALS))
        check_option("points", self.points, ("random", "antithetic", "sobol"))
        if self.samples < 2 * self._unit() or self.samples % self._unit():
            raise ValueError(
                f"samples must be a multiple of {self._unit()} and at least twice that with "
                f"points={self.points!r}; got {self.samples}"
            )
        if self.points == "sobol":
            if self.replicates < 2:
                raise ValueError(f"replicates must be at least 2; got {self.replicates}")
            size = self.samples // self.replicates
            if self.samples % self.replicates or size & (size - 1):
                raise ValueError(
                    "samples must be replicates times a power of two with points='sobol'; got "
                    f"{self.samples} samples for {self.replicates} replicates"
                )

    def _unit(self) -> int:
        """Return how many samples belong together: what standard errors take as one draw."""
        return {"random": 1, "antithetic": 2, "sobol": self.samples // self.replicates}[self.points]

    def _fit(self, prior: Prior, y: FloatArray, rng: np.random.Generator) -> ImportancePosterior:
        gaussian = gaussian_proposal(_PROPOSALS[self.proposal], prior.covariance, y)
        proposal = Proposal.of(gaussian)
        if self.points == "sobol":
            proposal = proposal.rotated()
        r = len(proposal.T)
        points = PointSet(
            self.points, self.samples, self._unit(), r, tuple(rng.integers(2**63, size=2))
        )
        log_w = np.concatenate([proposal.log_weights(y, u) for u in points.blocks()])
        total = logsumexp(log_w)
        weights = np.exp(log_w - total)
        unit_w = weights.reshape(-1, points.unit).sum(axis=1)
        diagnostics = self._diagnostics(log_w, weights, unit_w)
        status = weights_status(diagnostics)
        change = gaussian.diagnostics.get("correction", 0.0)
        posterior = ImportancePosterior(
            covariance=prior.covariance,
            log_evidence=float(total - np.log(self.samples)) + change,
            log_evidence_se=float(np.std(unit_w, ddof=1) * np.sqrt(len(unit_w))),
            work=gaussian.work
            | {"samples": self.samples, "likelihood_evaluations": self.samples * len(y)},
            diagnostics=gaussian.diagnostics | diagnostics,
            status=gaussian.status if status == OK else status,
            gaussian=gaussian,
            _proposal=proposal,
            _points=points,
            _weights=weights,
        )
        return with_prediction(posterior, prior)

    def _diagnostics(
        self, log_w: FloatArray, weights: FloatArray, unit_w: FloatArray
    ) -> dict[str, float]:
        """Return effective samples, and k-hat where it is defined."""
        effective = 1.0 / float(weights @ weights)
        diagnostics = {
            "effective_samples": effective,
            "effective_fraction": effective / self.samples,
        }
        # a pair's average has lost what the two sides had of opposite sign: its tail shows earlier
        tails = [log_w, np.log(unit_w)] if self.points == "antithetic" else [log_w]
        if long := [tail for tail in tails if len(tail) >= MIN_TAIL]:
            diagnostics["k_hat"] = max(weight_diagnostics(tail)["k_hat"] for tail in long)
        return diagnostics


def gaussian_proposal(method: GaussianApproximation, K: Any, y: FloatArray) -> GaussianPosterior:
    """Return the Gaussian that `method` finds, or the last one of its iteration, for K (n, n) and labels y (n,) -1/+1.

    The weights are right for any Gaussian of this form: one that has not converged is only a proposal that fits less
    well. K, an array or an object, and y are checked.
    """
    try:
        return method.fit(Prior(K), y)
    except ConvergenceError as error:
        return method.corrected(cast(GaussianPosterior, error.posterior))
