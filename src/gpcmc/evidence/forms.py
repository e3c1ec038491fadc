"""Which form a covariance gets: the one place where that is decided.

`form_of` has the rule. A form makes the covariance of a kernel and inputs, for the posterior (`prior`) and for a
climb that starts at the kernel (`around`), which under low rank holds its inducing inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcmc._memory import available_memory
from gpcmc._validation import FloatArray
from gpcmc.covariance import Covariance, Dense, LowRank, Prior, low_rank
from gpcmc.covariance.gradient import KernelOn
from gpcmc.covariance.kernels import evaluate
from gpcmc.covariance.neighbours import left_by
from gpcmc.covariance.pivoted import MAX_RANK
from gpcmc.covariance.sparse import NEIGHBOURS, on_neighbours, sparse
from gpcmc.evidence.scale import vectors
from gpcmc.methods import Method
from gpcmc.posterior import ConvergenceError

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Takes theta (p,) and returns the covariance there.
Climbed = Callable[[FloatArray], Covariance]

#: Patterns up to which "auto" is dense: an evaluation of the evidence then takes at most a few seconds.
FEW = 2000
_NESTED = 500  # patterns from which on a dense covariance has coarser forms, if it knows its kernel
_SHARE = 4  # a rank above n over this gains little over the dense form
_SEARCHED = (
    1e-3  # tolerance of covariances in a search: maxima move by less than their own uncertainty
)
_COST = 0.5  # nats that a covariance of a climb may leave out: with more, it has a tenth of the tolerance
_REFINED = 3  # times, at most
_SEARCHED_NEIGHBOURS = 10  # of a climb: its maximum moves by less than its own uncertainty
_SCREENED = (
    0.02  # variance, beside the noise of one, that the further half of the neighbours may explain
)
_LOOKED_AT = 200  # patterns whose neighbours say whether the kernel is screened


class Form(ABC):
    """How covariances are made.

    Attributes
    ----------
    name : str
        As the classifier's argument `covariance` has it.
    """

    __slots__ = ()

    name: ClassVar[str]

    @abstractmethod
    def prior(self, kernel: Kernel, X: Any) -> Prior:
        """Return the prior that a posterior gets."""

    @abstractmethod
    def around(self, kernel: Kernel, X: Any, y: FloatArray, method: Any) -> Climbed:
        """Return what makes the covariances of a climb from this kernel."""

    @abstractmethod
    def near(self, kernel: Kernel, X: Any) -> Climbed:
        """Return what makes covariances near this kernel, as good as that of its posterior."""

    @property
    @abstractmethod
    def held(self) -> bool:
        """Whether a climb holds something that its end would choose otherwise."""


def dense(kernel: Kernel, X: Any) -> Climbed:
    """Return what makes dense covariances of a kernel at inputs, for gradients; no array (n, n) before the first."""

    @cache
    def on() -> KernelOn:
        return KernelOn(kernel, X)

    def at(theta: FloatArray) -> Dense:
        K, contract = on().at(theta)
        return Dense(K, kernel.clone_with_theta(theta) if len(K) >= _NESTED else None, X, contract)

    return at


@dataclass(frozen=True, slots=True)
class DenseForm(Form):
    """The array (n, n)."""

    name: ClassVar[str] = "dense"
    held: ClassVar[bool] = False

    def prior(self, kernel: Kernel, X: Any) -> Prior:
        """Return that of the array, which a method checks."""
        return Prior(evaluate(kernel, X), kernel=kernel, X=X)

    def around(self, kernel: Kernel, X: Any, y: FloatArray, method: Any) -> Climbed:
        """Return what makes arrays, which holds nothing."""
        return dense(kernel, X)

    def near(self, kernel: Kernel, X: Any) -> Climbed:
        """Return the same."""
        return dense(kernel, X)


DENSE = DenseForm()


@dataclass(frozen=True, slots=True)
class LowRankForm(Form):
    """F F' + D, with inducing inputs for a tolerance, or as many as are allowed.

    Attributes
    ----------
    tolerance : float
        Of the covariance of a posterior. In a search it is .001 where this is less, and then less where the correction
        of the evidence at the start of a climb is above half a nat: a share of the variance says little where the
        variance is large, or the patterns are many.
    """

    name: ClassVar[str] = "low-rank"
    held: ClassVar[bool] = True

    tolerance: float

    def prior(self, kernel: Kernel, X: Any) -> Prior:
        """Return that of F F' + D with the inducing inputs for the kernel."""
        return Prior(self._chosen(kernel, X, self.tolerance))

    def around(self, kernel: Kernel, X: Any, y: FloatArray, method: Any) -> Climbed:
        """Return what makes covariances with the inducing inputs for the kernel."""
        tolerance = max(self.tolerance, _SEARCHED)
        found, posterior = self._chosen(kernel, X, tolerance), None
        for _ in range(_REFINED):
            if found.rank >= 0.8 * MAX_RANK:
                break
            try:
                posterior = method.approximate(found, y, posterior)
                left = found.correction(method.gradient(found, y, posterior)).change
            except (ValueError, ConvergenceError):
                break
            if abs(left) <= _COST:
                break
            tolerance *= 0.1
            found = self._chosen(kernel, X, tolerance)
        return self._held(found, kernel, X)

    def near(self, kernel: Kernel, X: Any) -> Climbed:
        """Return what makes covariances with the inducing inputs that the posterior of the kernel has."""
        return self._held(self._chosen(kernel, X, self.tolerance), kernel, X)

    @staticmethod
    def _held(found: LowRank, kernel: Kernel, X: Any) -> Climbed:
        assert found.inducing is not None
        Z = found.inducing.Z
        return lambda theta: low_rank(kernel.clone_with_theta(theta), X, inducing=Z)

    @staticmethod
    def _chosen(kernel: Kernel, X: Any, tolerance: float) -> LowRank:
        return low_rank(kernel, X, tolerance=tolerance, max_rank=MAX_RANK, strict=False)


@dataclass(frozen=True, slots=True)
class SparseForm(Form):
    """Conditionals on nearest neighbours: 20 for a posterior, 10 in a climb, which holds those at its start."""

    name: ClassVar[str] = "sparse"
    held: ClassVar[bool] = True

    def prior(self, kernel: Kernel, X: Any) -> Prior:
        """Return that with the neighbours for the kernel."""
        return Prior(sparse(kernel, X))

    def around(self, kernel: Kernel, X: Any, y: FloatArray, method: Any) -> Climbed:
        """Return what makes covariances with few neighbours for the kernel."""
        return self._held(kernel, X, _SEARCHED_NEIGHBOURS)

    def near(self, kernel: Kernel, X: Any) -> Climbed:
        """Return what makes covariances with the neighbours that the posterior of the kernel has."""
        return self._held(kernel, X, NEIGHBOURS)

    @staticmethod
    def _held(kernel: Kernel, X: Any, neighbours: int) -> Climbed:
        near = sparse(kernel, X, neighbours=neighbours).near
        return lambda theta: on_neighbours(kernel.clone_with_theta(theta), X, near)


def form_of(
    covariance: str, tolerance: float, method: Method, kernel: Kernel, X: Any, n: int
) -> Form:
    """Return the form that a covariance gets.

    "dense", "low-rank" and "sparse" are what they say. "auto" is dense

    - up to 2000 patterns;
    - for a method that works on arrays, and for a kernel on other things than vectors.

    Else it is the first of these that serves:

    - of low rank, F F' + D of at most 2000 columns, where 2000 of the patterns need no more than a quarter of their
      number, and no more than is allowed, for the tolerance;
    - sparse, where the kernel is stationary and near patterns screen far ones: of 200 patterns, the further ten of 20
      nearest ones explain a variance of no more than .02, beside the noise of one;
    - dense, where the method's memory allows the array; else of low rank, with the largest rank that is allowed.

    Parameters
    ----------
    covariance : {"auto", "dense", "low-rank", "sparse"}
    tolerance : float
        Share of the prior variance that a covariance of low rank may leave unexplained.
    method : Method
    kernel : Kernel
        Near the one that the posterior will have.
    X : array
        Inputs, of which the first 2000 are looked at.
    n : int
        Patterns.

    Raises
    ------
    MemoryError
        If the form is dense, and the method needs more memory than this process may have.
    """
    named = {"low-rank": LowRankForm(tolerance), "sparse": SparseForm()}
    if covariance in named:
        return named[covariance]
    no_choice = covariance == "dense" or n <= FEW or not method.any_form or not vectors(X)
    if not no_choice:
        if _has_low_rank(kernel, X, tolerance):
            return named["low-rank"]
        if _is_screened(kernel, X):
            return named["sparse"]
        if method.memory(n) > available_memory().bytes:
            return named["low-rank"]
    method.check_size(n)
    return DENSE


def _is_screened(kernel: Kernel, X: Any) -> bool:
    """Return whether patterns that are near leave little for those that are somewhat further away."""
    if not kernel.is_stationary():
        return False
    some = np.linspace(0, len(X) - 1, min(len(X), _LOOKED_AT)).astype(int)
    try:
        left = left_by(kernel, X, some, NEIGHBOURS)
    except ValueError:
        return False
    return float(np.mean(left[0] - left[1])) <= _SCREENED


def _has_low_rank(kernel: Kernel, X: Any, tolerance: float) -> bool:
    """Return whether a sample of the patterns needs no more than a quarter of its own number."""
    some = X[:: max(len(X) // FEW, 1)][:FEW]
    try:
        low_rank(kernel, some, tolerance=tolerance, max_rank=min(len(some) // _SHARE, MAX_RANK))
    except ValueError:  # it needs a larger rank
        return False
    return True
