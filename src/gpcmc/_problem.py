"""One problem of the classifier, fitted: two classes, or all of them at once by the softmax."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpcmc._memory import check_predictions
from gpcmc._search import Search, check_kernel, check_kernel_matrix
from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_option
from gpcmc.chains.pseudo_marginal import HyperparameterPosterior, PseudoMarginal
from gpcmc.covariance.kernels import flush_subnormal
from gpcmc.covariance.lowrank import low_rank
from gpcmc.covariance.pivoted import check_tolerance
from gpcmc.covariance.prior import Prior
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import ImportanceSampling
from gpcmc.gaussian.laplace import Laplace
from gpcmc.gaussian.softmax_mode import MulticlassLaplace
from gpcmc.gp import prior
from gpcmc.inference import Method, Posterior, Prediction
from gpcmc.inference.evidence import EvidenceSurface, Optimum, bounded, surface_method
from gpcmc.inference.exact import CommonPoints, ExactSurface
from gpcmc.likelihood.softmax import one_hot
from gpcmc.lowrank import LowRankSurface, maximize_low_rank
from gpcmc.lowrank.surface import TOLERANCE as SEARCH_TOLERANCE
from gpcmc.orthant import ExtinctionError
from gpcmc.rectangle.classification import Twisted

#: Largest correlation of a kernel that tells nothing of other inputs.
UNCORRELATED = 1e-3
#: Training patterns from which on EP and twisted EP start from a covariance of low rank.
_MANY = 500
#: Patterns above which dense methods take minutes.
MANY = 4000


@dataclass(frozen=True, slots=True)
class Fitted:
    """What the fit of one problem leaves.

    Attributes
    ----------
    kernel : Kernel
        With the hyperparameters used.
    method : Method
    posterior : Posterior
    y : (n,) or (C, n) array
        Labels -1/+1, or ones and zeros of C classes.
    found : Optimum or None
        Where the search ended; None without one.
    correlation : float
        The largest one between two patterns; 1 under a covariance of low rank, which there would not be otherwise.
    low_rank : float or None
        As of `Search`.
    common : CommonPoints or None
        Of the exact surface, where that is climbed.
    """

    kernel: Kernel
    method: Method
    posterior: Posterior
    y: FloatArray
    found: Optimum | None
    correlation: float
    low_rank: float | None
    common: CommonPoints | None

    @property
    def at_bound(self) -> list[str]:
        """Names of the hyperparameters that the search left at a bound; none without one."""
        return [] if self.found is None else [name for name, _, _ in bounded(self.kernel)]

    def surface(self, X: Any, theta: FloatArray) -> EvidenceSurface | ExactSurface | LowRankSurface:
        """Return the log marginal likelihood that a search climbs, at training inputs X.

        Under a covariance of low rank, the one whose inducing inputs are those for theta; of exact ones, the one whose
        sites are.
        """
        if self.common is not None:
            return ExactSurface(self.kernel, X, self.y, self.common)
        method = surface_method(self.method)
        if self.low_rank is None:
            return EvidenceSurface(method, self.kernel, X, self.y)
        kernel = self.kernel.clone_with_theta(theta)
        inducing = low_rank(kernel, X, tolerance=self.low_rank).inducing
        assert inducing is not None
        return LowRankSurface(method, kernel, X, self.y, inducing.Z)

    def covariances(self, X: Any, X_star: Any) -> tuple[FloatArray, FloatArray]:
        """Return covariances (n, t) of training and test inputs, and variances (t,) of these.

        Raises
        ------
        MemoryError
            If probabilities at so many test inputs would need more memory than this process may have.
        """
        held = 4.0 if self.y.ndim == 1 else 2.0 * len(self.y) + 2.0
        check_predictions(self.y.shape[-1], len(X_star), held)
        return flush_subnormal(self.kernel(X, X_star)), self.kernel.diag(X_star)

    def predict(self, X: Any, X_star: Any) -> Prediction:
        """Return probabilities at test inputs: (t,) of class +1, or (t, C)."""
        if self.low_rank is not None or isinstance(self.posterior, HyperparameterPosterior):
            return self.posterior.predict_inputs(X_star)
        return self.posterior.predict(*self.covariances(X, X_star))


#: Methods that have a form for a covariance of low rank.
SUPPORTED = (ExpectationPropagation, Laplace, MulticlassLaplace, Twisted, ImportanceSampling)


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


def with_covariance(
    search: Search,
    method: Method,
    size: tuple[int, int],
    approximation: str | None,
    tolerance: float,
) -> Search:
    """Return the search with the covariance that a method gets: of low rank, or dense if its memory allows.

    Parameters
    ----------
    search : Search
    method : Method
    size : (int, int)
        Patterns and classes.
    approximation, tolerance
        As the classifier has them.

    Raises
    ------
    ValueError
        If the covariance is of low rank, and the method or the search has no form for it, or the tolerance is no share.
    MemoryError
        If the method needs more memory than this process may have; the message says what fits.
    """
    n, classes = size
    if uses_low_rank(approximation, method, n, search.optimizer):
        if search.exact:
            raise ValueError(
                "approximation must be None with surface='exact', which has no form for a covariance of low rank; "
                f"got {approximation!r} with {n} patterns"
            )
        # its memory has a limit of its own
        return replace(search, low_rank=check_tolerance(tolerance))
    try:
        if isinstance(method, MulticlassLaplace):
            method.check_size(n, classes)
        else:
            method.check_size(n)
    except MemoryError as error:
        if search.exact or not uses_low_rank("auto", method, n, search.optimizer):
            raise
        raise MemoryError(
            f"{error}. With inputs in few dimensions, approximation='low-rank' fits"
        ) from None
    return search


@one_thread()
def fit_problem(
    X: Any,
    code: np.ndarray,
    kernel: Kernel,
    method: Method,
    search: Search,
    rng: np.random.Generator,
) -> Fitted:
    """Find the hyperparameters, and then the posterior.

    Parameters
    ----------
    X : (n, d) array, or n things that the kernel takes
    code : (n,) array of int
        0 or 1; of more classes, which the softmax takes, 0 to C - 1.
    kernel : Kernel
        Not changed.
    method : Method
    search : Search
    rng : Generator
        For restarts, then for a method that draws.
    """
    several = isinstance(method, MulticlassLaplace)
    y = one_hot(code) if several else np.where(code == 1, 1.0, -1.0)
    check_kernel(kernel, X)
    found = None
    searches = search.optimizer is not None and not isinstance(method, PseudoMarginal)
    if searches and kernel.n_dims:
        found = _maximum(X, y, kernel, method, search, rng)
    common = CommonPoints.of(method, rng) if search.exact else None
    if found is not None:
        if common is not None:
            found = search.run_on(ExactSurface(kernel, X, y, common), found, rng)
        kernel = kernel.clone_with_theta(found.theta)
    blocks, correlation = _blocks(X, kernel, search.low_rank)
    if search.verbose:
        print(f"[gpcmc] posterior by {type(method).__name__}, {kernel}", flush=True)
    try:
        posterior: Posterior = method.fit(blocks, code if several else y, rng=rng)
    except ExtinctionError as error:
        raise ExtinctionError(
            "no sample of the orthant sampler survived: use inference=Orthant(scheme='adapted'), which draws inside "
            "the limits, inference='twisted-ep', or more samples"
        ) from error
    except ValueError:
        if search.low_rank is None:  # its whole point is that no (n, n) array is made
            check_kernel_matrix(kernel, X)  # the cause, if it is that
        raise
    return Fitted(kernel, method, posterior, y, found, correlation, search.low_rank, common)


def _maximum(
    X: Any,
    y: FloatArray,
    kernel: Kernel,
    method: Method,
    search: Search,
    rng: np.random.Generator,
) -> Optimum:
    climbed = surface_method(method, searching=True)
    if search.low_rank is None:
        return search.run(EvidenceSurface(climbed, kernel, X, y), rng)
    return maximize_low_rank(
        climbed,
        kernel,
        X,
        y,
        tolerance=max(search.low_rank, SEARCH_TOLERANCE),
        n_restarts=search.restarts,
        rng=rng,
        verbose=search.verbose,
    )


def _blocks(X: Any, kernel: Kernel, tolerance: float | None) -> tuple[Prior, float]:
    """The prior at the training inputs, and the largest correlation between two of them."""
    if tolerance is not None:
        return prior(kernel, X, covariance="low-rank", tolerance=tolerance), 1.0
    vectors = isinstance(X, np.ndarray) and kernel.requires_vector_input
    dense = prior(kernel, X) if vectors else Prior(flush_subnormal(kernel(X)), kernel=kernel)
    correlation = np.abs(np.triu(dense.K, 1)).max() / max(dense.K.diagonal().max(), 1e-300)
    return dense, float(correlation)
