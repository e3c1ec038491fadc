"""What works on a covariance of low rank needs of it: the form itself stands above its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from gpcmc._validation import FloatArray
from gpcmc.covariance.pivoted import Inducing

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel


class Columns(Protocol):
    """A covariance F F' + diag(D); `gpcmc.covariance.lowrank.LowRank` is one."""

    @property
    def F(self) -> FloatArray:
        """The columns (n, r)."""

    @property
    def D(self) -> FloatArray:
        """The diagonal (n,)."""

    @property
    def rank(self) -> int:
        """The number r of columns."""

    @property
    def diagonal(self) -> FloatArray:
        """The prior variances (n,)."""

    @property
    def kernel(self) -> Kernel | None:
        """What it approximates."""

    @property
    def inducing(self) -> Inducing | None:
        """The inputs that the columns belong to."""

    @property
    def finer(self) -> Any:
        """One that has further columns, or None."""

    @property
    def X(self) -> Any:
        """The inputs."""

    def __len__(self) -> int:
        """Return n."""

    def __matmul__(self, x: FloatArray) -> FloatArray:
        """Return K x."""

    def conditioned(self, S: FloatArray) -> Any:
        """Return it with noise of precision S (n,)."""

    def conditioned_softmax(self, pi: FloatArray) -> Any:
        """Return it with the softmax's noise at class probabilities pi (k, n)."""


class Conditions(Protocol):
    """One with noise; those of `gpcmc.covariance.conditioned` are."""

    @property
    def K(self) -> Any:
        """The covariance."""

    @property
    def noise(self) -> FloatArray:
        """The precisions (n,), or the class probabilities (k, n)."""

    def on(self, K: Any, noise: FloatArray) -> Any:
        """Return another covariance with other noise of the same kind."""

    def solve(self, x: FloatArray) -> FloatArray:
        """Return R x."""

    def spread_of(self, F: FloatArray) -> FloatArray:
        """Return the covariances (t, k, k) of F u for rows F (t, r)."""
