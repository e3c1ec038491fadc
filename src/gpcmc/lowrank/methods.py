"""Which methods work on a covariance of low rank: the one place where they are told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_labels, check_option, check_rng
from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.importance import ImportanceSampling
from gpcmc.inference.interface import ConvergenceError, Method
from gpcmc.inference.laplace import Laplace
from gpcmc.inference.multiclass import MulticlassLaplace
from gpcmc.inference.softmax_mode import check_classes
from gpcmc.inference.twisted import Twisted
from gpcmc.lowrank.correction import corrected
from gpcmc.lowrank.covariance import LowRank
from gpcmc.lowrank.ep import TOLERANCE, expectation_propagation
from gpcmc.lowrank.gaussian import LowRankPosterior
from gpcmc.lowrank.laplace import laplace
from gpcmc.lowrank.multiclass import Gaussian, multiclass_laplace
from gpcmc.lowrank.prior import LowRankPrior
from gpcmc.lowrank.sampling import WeightedPosterior, importance, twisted_ep

#: Methods that have a form for a covariance of low rank.
SUPPORTED = (ExpectationPropagation, Laplace, MulticlassLaplace, Twisted, ImportanceSampling)
#: Patterns above which dense methods take minutes.
MANY = 4000
#: Methods whose evidence has a gradient there.
Climbable = ExpectationPropagation | Laplace | MulticlassLaplace
#: What a posterior under a covariance of low rank may be.
Found = Gaussian | WeightedPosterior


@one_thread()
def fit(
    method: Method | MulticlassLaplace,
    prior: LowRankPrior,
    y: ArrayLike,
    *,
    rng: np.random.Generator | None = None,
) -> Found:
    """Find the posterior, the evidence, and the probabilities at the prior's test inputs.

    The evidence is corrected for what the covariance leaves out, where the prior knows of it.

    Parameters
    ----------
    method : ExpectationPropagation, Laplace, MulticlassLaplace, Twisted or ImportanceSampling
        The options of the dense methods. Expectation propagation stops at sites that move by less than 1e-4, if its
        tolerance is smaller: the covariance is not as good as that.
    prior : LowRankPrior
    y : (n,) array
        Labels -1/+1; of `MulticlassLaplace` 0 to C - 1, each of which occurs.
    rng : numpy.random.Generator, optional
        Required by a method that draws.

    Returns
    -------
    LowRankPosterior, LowRankMulticlassPosterior or WeightedPosterior
        The second for `MulticlassLaplace`, whose probabilities are (t, C); the third for a method that draws.

    Raises
    ------
    ValueError
        If an argument is not as above, or the method has no form for a covariance of low rank.
    ConvergenceError
        If the method iterates and does not converge.
    """
    check = check_classes if isinstance(method, MulticlassLaplace) else check_labels
    labels = check("y", y, len(prior))
    found: Found
    if isinstance(method, Climbable):
        found = replace(
            corrected(prior, gaussian(method, prior.covariance, labels)), inducing=prior.inducing
        )
    elif isinstance(method, Twisted):
        rng = check_rng("rng", rng)
        guide = proposal(ExpectationPropagation(), prior.covariance, labels)
        found = twisted_ep(prior, labels, method, guide, rng)
    elif isinstance(method, ImportanceSampling):
        rng = check_rng("rng", rng)
        if method.points == "sobol":
            raise ValueError(
                "points must be 'random' or 'antithetic' with a covariance of low rank; got 'sobol'"
            )
        approximation = ExpectationPropagation() if method.proposal == "ep" else Laplace()
        guide = proposal(approximation, prior.covariance, labels)
        found = importance(prior, labels, method, guide, rng)
    else:
        raise ValueError(
            "inference must be 'ep', 'laplace', 'twisted-ep' or 'importance' with a covariance of low rank; "
            f"got {type(method).__name__}: it needs the dense one"
        )
    if prior.X_star is None:
        return found
    return replace(found, prediction=found.predict_inputs(prior.X_star))


def uses_low_rank(
    approximation: str | None, method: object, n: int, optimizer: object = None
) -> bool:
    """Return whether n patterns get a covariance of low rank, as the classifier's options have it.

    "auto" takes it above `MANY` patterns, for the methods that have a form for it.

    Raises
    ------
    ValueError
        If `approximation` is no option, or "low-rank" does not go with the others.
    """
    if approximation is None:
        return False
    check_option("approximation", approximation, ("low-rank", "auto"))
    supported = isinstance(method, SUPPORTED)
    if approximation == "auto":
        return n > MANY and supported and not callable(optimizer)
    if not supported:
        raise ValueError(
            "approximation must be None with this method: a covariance of low rank is for "
            f"'ep', 'laplace', 'twisted-ep' or 'importance'; got {type(method).__name__}"
        )
    if callable(optimizer):
        raise ValueError(
            "optimizer must be 'lbfgs' or None with a covariance of low rank, whose inducing inputs are chosen anew "
            "between climbs; got a callable"
        )
    return True


def gaussian(method: Climbable, K: LowRank, y: FloatArray, start: Any = None) -> Gaussian:
    """Return the Gaussian approximation for arguments that are checked already, without a correction.

    Labels y are -1/+1 (n,), or of several classes ones and zeros (C, n). A posterior of another covariance and the same
    method and labels may be the start.

    Raises
    ------
    ConvergenceError
        If the iteration meets its limit; it carries the last iterate.
    """
    if isinstance(method, MulticlassLaplace):
        return multiclass_laplace(K, y, method, start)
    if isinstance(method, Laplace):
        return laplace(
            K, y, method.record, max_iterations=method.max_iterations, start=start,
            tolerance=max(method.tolerance, 1e-10),
        )  # fmt: skip
    return expectation_propagation(
        K, y, tolerance=max(method.tolerance, TOLERANCE), max_sweeps=method.max_sweeps, start=start
    )


def proposal(
    method: ExpectationPropagation | Laplace, K: LowRank, y: FloatArray
) -> LowRankPosterior:
    """Return the Gaussian, converged or not: the weights are right for any."""
    try:
        return cast(LowRankPosterior, gaussian(method, K, y))
    except ConvergenceError as error:
        return cast(LowRankPosterior, error.posterior)
