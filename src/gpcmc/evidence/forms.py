"""Which form a covariance gets: the one place where that is decided.

`form_of` has the rule. A form makes the covariance of a kernel and inputs, for the posterior (`prior`) and for a
climb that starts at the kernel (`around`), which under low rank holds its inducing inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gpcmc._memory import available_memory
from gpcmc._validation import FloatArray
from gpcmc.covariance import Covariance, Dense, LowRank, Prior, low_rank
from gpcmc.covariance.gradient import KernelOn
from gpcmc.covariance.kernels import evaluate
from gpcmc.covariance.pivoted import MAX_RANK
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
_COST = (
    0.5  # nats of correction: with more, a climb has inducing inputs for a tenth of the tolerance
)
_REFINED = 3  # times, at most


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
    """Return what makes dense covariances of a kernel at inputs, for gradients."""
    on = KernelOn(kernel, X)

    def at(theta: FloatArray) -> Dense:
        K, contract = on.at(theta)
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
        found = self._chosen(kernel, X, tolerance)
        for _ in range(_REFINED):
            if found.rank >= 0.8 * MAX_RANK or not self._costs(found, y, method):
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

    @staticmethod
    def _costs(covariance: LowRank, y: FloatArray, method: Any) -> bool:
        """Return whether the covariance leaves out more than half a nat."""
        try:
            M = method.gradient(covariance, y, method.approximate(covariance, y))
            return abs(covariance.correction(M).change) > _COST
        except (ValueError, ConvergenceError):
            return False


def form_of(
    covariance: str, tolerance: float, method: Method, kernel: Kernel, X: Any, n: int
) -> Form:
    """Return the form that a covariance gets.

    "dense" and "low-rank" are what they say. "auto" is dense

    - up to 2000 patterns;
    - for a method that works on arrays, and for a kernel on other things than vectors;
    - where the kernel has no low rank: of 2000 of the patterns the tolerance asks for a quarter, or for the largest
      rank that is allowed, and the method's memory allows the array.

    Else it is of low rank: F F' + D of at most 2000 columns.

    Parameters
    ----------
    covariance : {"auto", "dense", "low-rank"}
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
    wanted = LowRankForm(tolerance)
    if covariance == "low-rank":
        return wanted
    no_choice = covariance == "dense" or n <= FEW or not method.any_form or not vectors(X)
    fits = no_choice or method.memory(n) <= available_memory().bytes
    if fits and (no_choice or not _has_low_rank(kernel, X, tolerance)):
        method.check_size(n)
        return DENSE
    return wanted


def _has_low_rank(kernel: Kernel, X: Any, tolerance: float) -> bool:
    """Return whether a sample of the patterns needs no more than a quarter of its own number."""
    some = X[:: max(len(X) // FEW, 1)][:FEW]
    try:
        low_rank(kernel, some, tolerance=tolerance, max_rank=min(len(some) // _SHARE, MAX_RANK))
    except ValueError:  # it needs a larger rank
        return False
    return True
