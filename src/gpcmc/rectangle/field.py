r"""The probability of a rectangle of the values of a field in thousands of dimensions, without their covariance matrix.

The values are regressed on few neighbours (`gpcmc.rectangle.vecchia`), and proposals are those of `proposals`: minimax
tilting draws the least likely values first, and expectation propagation's sites twist draws in the reverse of an
elimination. A twisted proposal looks ahead to all limits, so that its draws may be resampled as they go
(`gpcmc.rectangle.filter`): then an error grows as n, and not as its exponential. Its sites are wider than expectation
propagation's (`_Field.twisted`).

What the neighbours leave out is corrected for, and what is then left is estimated, as it is of an evidence
(`gpcmc.covariance.sparse_correction`): the probability is the evidence of a likelihood that says inside or not.

References
----------
Cao and Katzfuss (2024), "Linear-cost Vecchia approximation of multivariate normal probabilities". Whiteley and Lee
(2014), Annals of Statistics 42, 115.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError

from gpcmc import _validation as validation
from gpcmc._validation import FloatArray
from gpcmc.covariance.kernels import check_kernel, diagonal, evaluate
from gpcmc.covariance.neighbours import Neighbours
from gpcmc.covariance.prior import check_inputs
from gpcmc.covariance.sparse import Sparse, on_neighbours
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.posterior import GaussianPosterior
from gpcmc.likelihood.inside import Inside
from gpcmc.posterior import MAX_K_HAT, NOT_MET, OK, TOO_ROUGH, UNTRUSTED
from gpcmc.rectangle import proposals, rounds
from gpcmc.rectangle.arguments import check_bounds, check_problem
from gpcmc.rectangle.estimate import Options, RectangleEstimate, estimate
from gpcmc.rectangle.filter import filtered
from gpcmc.rectangle.limits import log_mass
from gpcmc.rectangle.mixture import Average, Mixture
from gpcmc.rectangle.proposals import Proposal
from gpcmc.rectangle.solve import CLOSED, NOTHING, PILOT, Request, cheap
from gpcmc.rectangle.tilt import minimax_tilt
from gpcmc.rectangle.vecchia import PrecisionFactor, VecchiaFactor, earlier, reflected
from gpcmc.weights import hidden_tail

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Values with limits up to which the covariance is made an array.
DENSE = 500
# Numbers of the states of particles of one randomisation at most: beyond, there are more randomisations.
_STATES = 2**24
# From calibration. An evidence's rest is for expectation propagation's evidence; of a rectangle's probability, of which
# that is nats off, it leaves a share of the change, too.
_BEYOND, _SHARE = 1.25, 0.4
# Shares of the sites' precisions that pilots are made of, and the effective share of a pilot that needs no other.
_SHARES, _MANY = (0.8, 0.4), 0.3
# Products for a coordinate that take as long as its normal quantile and what else is not a product.
_PRODUCTS = 400.0


@dataclass(frozen=True, eq=False)
class FieldCovariance:
    """The covariance of a field at n inputs, for `rectangle_probability` in thousands of dimensions.

    Each value is regressed on at most so many nearest ones, of those that are drawn before it (Vecchia's
    approximation), so that time and memory grow about as n. `rectangle_probability` corrects for what that leaves out,
    and its result says how much may be missing still (``diagnostics["correction_rest"]``). Up to 500 values that have
    limits nothing is left out: their covariance is made an array.

    Parameters
    ----------
    kernel : kernel of scikit-learn
        Stationary. A ``WhiteKernel`` in it is a nugget: noise that every value has of its own.
    X : (n, d) array
        Inputs. Distances are in units of the kernel's length scales, where it has one for each column.
    neighbours : int
        At most, of each value. Twice as many take two to four times as long.

    Raises
    ------
    ValueError
        If the kernel is not one of scikit-learn, or is not stationary, X is empty or not finite, or `neighbours` is not
        a whole number above zero.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    >>> from gpcmc import FieldCovariance, rectangle_probability
    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> cov = FieldCovariance(Matern(0.2, nu=1.5) + WhiteKernel(0.05), X)
    >>> found = rectangle_probability(-1.0, np.inf, cov=cov, tolerance=0.1, rng=0)
    >>> found.status, bool(found.diagnostics["correction_rest"] < 0.01)
    ('ok', True)

    References
    ----------
    Vecchia (1988), Journal of the Royal Statistical Society B 50, 297. Cao and Katzfuss (2024), "Linear-cost Vecchia
    approximation of multivariate normal probabilities".
    """

    kernel: Kernel
    X: FloatArray
    neighbours: int = 30

    def __post_init__(self) -> None:
        kernel = check_kernel(self.kernel)
        if not kernel.is_stationary():
            raise ValueError(
                f"kernel {kernel} must be stationary for regressions on neighbours; give the array cov=kernel(X)"
            )
        object.__setattr__(self, "X", check_inputs("X", self.X).copy())
        validation.check_positive_int("neighbours", self.neighbours)
        variance = diagonal(kernel, self.X)
        if not (variance > 0.0).all():
            raise ValueError(f"kernel {kernel} must have a variance above zero")

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class _Field:
    """Values with limits, less their mean, from the least likely to the most.

    With one input they are along the line, as the regressions of a Markov process have to be.

    Attributes
    ----------
    K : Sparse
        Each value is regressed on values before it.
    lower, upper : (n,) arrays
        lower < upper.
    """

    K: Sparse
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(
        cls, kernel: Kernel, X: FloatArray, lower: FloatArray, upper: FloatArray, most: int
    ) -> _Field:
        """Find the order, and the regressions on at most so many."""
        near, deviation = Neighbours.of(kernel, X, most), np.sqrt(diagonal(kernel, X))
        order = near.order.astype(np.intp)
        if X.shape[1] > 1:
            # equally likely ones stay as they are, from coarse to fine: the approximation is better for it
            likely = log_mass(lower / deviation, upper / deviation)[order]
            order = order[np.argsort(likely, kind="stable")]
        Z, here = near.Z[order], np.arange(len(X), dtype=np.int32)
        if (order == near.order).all():
            place = np.argsort(order).astype(np.int32)
            there = np.arange(near.most) < near.counts[order, None]
            index, counts = np.where(there, place[near.index[order]], 0), near.counts[order]
        else:
            index, counts = earlier(Z, most)
        ordered = Neighbours(Z, near.scale, here, np.ascontiguousarray(index), counts)
        K = on_neighbours(kernel, X[order], ordered)
        return cls(K, lower[order], upper[order])

    def __len__(self) -> int:
        return len(self.K)

    @cached_property
    def guide(self) -> GaussianPosterior | None:
        """Expectation propagation's Gaussian; None where it is lost in rounding."""
        method = ExpectationPropagation(likelihood=Inside(self.lower, self.upper))
        try:
            found = method.last(self.K, np.arange(len(self), dtype=np.float64))
        except ValueError:
            return None
        return found if np.isfinite(found.sites).all() else None

    def correction(self) -> tuple[float, float]:
        """Return what the neighbours leave out of log P, and what may be missing then, which is infinite if unknown."""
        if self.K.exact:
            return 0.0, 0.0
        if (guide := self.guide) is None:
            return 0.0, math.inf
        found = self.K.correction(guide.method.gradient(self.K, guide.y, guide))
        return found.change, _BEYOND * found.rest + _SHARE * abs(found.change)

    @cached_property
    def signs(self) -> FloatArray:
        """Of the values (n,): after them one that has one limit has a lower one."""
        return np.where(np.isneginf(self.lower), -1.0, 1.0)

    @cached_property
    def _standing(self) -> tuple[Sparse, FloatArray, FloatArray]:
        """Covariance and limits with these signs."""
        flip = self.signs < 0.0
        low, high = (
            np.where(flip, -b, a) for a, b in ((self.lower, self.upper), (self.upper, self.lower))
        )
        return reflected(self.K, self.signs), low, high

    def separation(self) -> Mixture:
        """Return Genz's method."""
        K, low, high = self._standing
        factor = VecchiaFactor.of(K)
        # all other factors of a weight are probabilities
        first = log_mass(low[:1] / factor.d[0], high[:1] / factor.d[0])
        return Mixture((proposals.tilted(factor, np.zeros(len(K)), low, high),), float(first[0]))

    def tilting(self) -> Mixture:
        """Return minimax tilting, whose search begins at the sites' mean, if that is better than zero."""
        K, low, high = self._standing
        factor, starts = VecchiaFactor.of(K), []
        if (guide := self.guide) is not None:
            # at the saddle point s = diag(d) K^-1 v and t = v / d - s
            starts.append(self.signs * (guide.mean / factor.d - factor.d * guide.a))
        tilt = minimax_tilt(factor, low, high, starts=starts)
        return Mixture((proposals.tilted(factor, tilt.mu, low, high),), tilt.log_bound)

    def twisted(self, share: float) -> Proposal | None:
        """Return the proposal of sites with a share of their precision; None where rounding leaves none.

        Their slopes at the posterior's mean stay. Wider sites say less of limits to come, and what they say wrongly of
        limits that are no Gaussians adds up to less: the weights of thousands of values vary less.
        """
        if (guide := self.guide) is None:
            return None
        K, low, high = self._standing
        factor = PrecisionFactor.of(K.prior, K.precision)
        order, tau = factor.order, share * guide.S
        nu = self.signs * (guide.a + tau * guide.mean)
        try:
            sited = factor.sited(nu[order], tau[order])
            return proposals.twisted(sited, tau[order], low[order], high[order])
        except LinAlgError:
            return None


def field_estimate(
    lower: ArrayLike,
    upper: ArrayLike,
    mean: ArrayLike,
    cov: FieldCovariance,
    options: Options,
    rng: np.random.Generator,
) -> RectangleEstimate:
    """Check limits and a mean, and estimate the probability of a rectangle of a field's values."""
    low, high, m = check_bounds(lower, upper, mean, len(cov))
    limited = ~(np.isneginf(low) & np.isposinf(high))  # the law of the others does not matter
    X, low, high = cov.X[limited], (low - m)[limited], (high - m)[limited]
    if len(X) <= DENSE:
        if not len(X):
            return estimate(check_problem(-np.inf, np.inf, 0.0, 1.0), options, rng)
        return estimate(check_problem(low, high, 0.0, evaluate(cov.kernel, X)), options, rng)
    if (low == high).any():
        return _told(-math.inf, 0.0, 0, OK, CLOSED, {}, options)
    try:
        field = _Field.of(cov.kernel, X, low, high, cov.neighbours)
    except ValueError as error:
        raise ValueError(
            f"cov: neighbours' covariances by the kernel {cov.kernel} are not positive definite in floating point; "
            "add a WhiteKernel, or take fewer neighbours"
        ) from error
    change, rest = field.correction()
    sampler, first, before = _choose(field, options.request, rng)
    budget = options.request.budget - before
    mixture = sampler.mixture
    last, spent, number = rounds.run_rounds(
        partial(sampler.run, rng=rng, n_jobs=options.request.n_jobs),
        options.request.largest_se,
        lambda points, so_far: so_far + rounds.SCRAMBLES * points <= budget,
        first=first,
        futile=rounds.beyond(mixture, budget) if mixture else lambda last, needed, spent: False,
    )
    told = last.diagnostics | {
        "neighbours": float(cov.neighbours),
        "correction": change,
        "correction_rest": rest,
        "rank": float(len(field)),
        "rounds": float(number + (first is not None)),
    }
    if mixture is not None:
        told["log_weight_bound"] = float(mixture.log_bound - last.log_probability)
    tolerance = options.request.largest_se * rounds.student(options.confidence)
    if np.isneginf(last.log_probability):
        status = NOTHING
    elif hidden_tail(told):
        status = UNTRUSTED
    elif rest > tolerance:
        status = TOO_ROUGH
    else:
        status = OK if rounds.good(last, options.request.largest_se) else NOT_MET
    log_p = min(last.log_probability + change, 0.0)
    return _told(log_p, last.standard_error, spent + before, status, sampler.name, told, options)


def _told(
    log_p: float,
    error: float,
    samples: int,
    status: str,
    method: str,
    diagnostics: dict[str, float],
    options: Options,
) -> RectangleEstimate:
    diagnostics = diagnostics | {"blocks": float(samples > 0)}
    return RectangleEstimate(
        log_p, error, samples, status, method, diagnostics, options.confidence, (), None, 0
    )


@dataclass(frozen=True, slots=True)
class _Sampler:
    """A method on a field: what makes a round of so many points, and the products that a draw takes."""

    name: str
    run: Callable[..., Average]
    products: int
    mixture: Mixture | None = None  # None where no bound on the weights is known

    @classmethod
    def of(cls, name: str, field: _Field) -> _Sampler:
        """Prepare minimax tilting or separation of variables."""
        mixture = field.separation() if name == "separation" else field.tilting()
        run = partial(rounds.run_round, mixture)
        return cls(name, run, int(field.K.near.counts.sum()), mixture)

    @classmethod
    def twisted(cls, field: _Field, share: float) -> _Sampler | None:
        """Prepare draws that are twisted by sites of a share of their precision; None where rounding leaves none."""
        if (proposal := field.twisted(share)) is None:
            return None
        products = int(field.K.near.symbolic.panels[-1])
        return cls("twisted-ep", partial(_resampled, proposal), products)

    def work(self, pilot: Average, n: int) -> float:
        """Return the squared error times the work of so many coordinates; work is counted, not timed."""
        # a heavy tail hides its error from a pilot
        heavy = 10.0 if pilot.diagnostics["k_hat"] > MAX_K_HAT else 1.0
        each = 1.0 + self.products / (_PRODUCTS * n)
        return heavy * pilot.standard_error**2 * pilot.samples * each


def _choose(
    field: _Field, request: Request, rng: np.random.Generator
) -> tuple[_Sampler, Average | None, int]:
    """Return a method, its pilot round if there was one, and the samples of all pilots; as `solve.choose` does."""
    if request.method == "twisted-ep":
        if (found := _wide_enough(field, request, rng)) is None:
            raise ValueError(
                "cov and the limits leave expectation propagation no proposal that floating point can hold; "
                "use method='auto' or method='minimax-tilting'"
            )
        return found
    if request.method != "auto":
        return _Sampler.of(request.method, field), None, 0
    one = _Sampler.of("minimax-tilting", field)
    pilot = one.run(PILOT, rng=rng, n_jobs=request.n_jobs)
    if cheap(pilot, request) or (found := _wide_enough(field, request, rng)) is None:
        return one, pilot, pilot.samples
    other, rival, spent = found
    spent += pilot.samples
    if other.work(rival, len(field)) < one.work(pilot, len(field)):
        return other, rival, spent
    return one, pilot, spent


def _wide_enough(
    field: _Field, request: Request, rng: np.random.Generator
) -> tuple[_Sampler, Average, int] | None:
    """Return twisted draws, by sites of which a pilot has more ancestors, the pilot, and the samples of pilots."""
    found: tuple[_Sampler, Average] | None = None
    spent = 0
    for share in _SHARES:
        if (one := _Sampler.twisted(field, share)) is None:
            continue
        pilot = one.run(PILOT, rng=rng, n_jobs=request.n_jobs)
        spent += pilot.samples
        ancestors = pilot.diagnostics["effective_samples"]
        if found is None or ancestors > found[1].diagnostics["effective_samples"]:
            found = one, pilot
        if pilot.diagnostics["effective_fraction"] > _MANY:
            break
    return None if found is None else (*found, spent)


def _resampled(
    proposal: Proposal, points: int, rng: np.random.Generator, n_jobs: int = 1
) -> Average:
    """Average the weights of one round of particles, of so many for each of the scrambles that others have.

    Where the states of so many take too much memory, there are more randomisations of fewer each.
    """
    most = max(_STATES // len(proposal), rounds.FIRST)
    split = 1
    while points // split > most and points % (2 * split) == 0:
        split *= 2
    seeds = rng.integers(2**63, size=split * rounds.SCRAMBLES)
    return replace(filtered(proposal, points // split, seeds, n_jobs=n_jobs), points=points)
