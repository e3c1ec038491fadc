"""The Gaussian process prior with a covariance of low rank, which takes the place of `gpcmc.gp.Prior`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_array
from gpcmc.inference.interface import Method, StructuredPrior
from gpcmc.lowrank.covariance import MAX_RANK, Inducing, LowRank, inducing_at, pivoted

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: The default: where the evidence of expectation propagation is within a few hundredths of a nat of the dense one.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class LowRankPrior(StructuredPrior):
    """The prior f = F u + e at the training inputs, u ~ N(0, I_r), e ~ N(0, diag(D)), and what it leaves out.

    ``LowRankPrior(LowRank(F, D))`` is a prior that is taken as it is; `low_rank_prior` makes one from a kernel.

    Attributes
    ----------
    covariance : LowRank
    inducing : Inducing, optional
        What predictions at other inputs need.
    finer : LowRank, optional
        Further columns G of the factorisation, and what they leave: K is about F F' + G G' + D of `finer`.
    X : (n, d) array, optional
    X_star : (t, d) array, optional
        Training and test inputs.

    Raises
    ------
    ValueError
        If F has no column.
    """

    covariance: LowRank
    inducing: Inducing | None = None
    finer: LowRank | None = None
    X: FloatArray | None = None
    X_star: FloatArray | None = None

    def __post_init__(self) -> None:
        if not self.covariance.rank:
            raise ValueError("covariance.F must have a column; of independent patterns, zeros")

    def __len__(self) -> int:
        return len(self.covariance)

    @property
    def K(self) -> FloatArray:
        """Refuse what is asked of a dense prior."""
        raise AttributeError(
            "prior has no K: its covariance is of low rank; use gpcmc.lowrank.fit(method, prior, y)"
        )

    @property
    def kernel(self) -> Kernel | None:
        """The kernel that the covariance stands for."""
        return None if self.inducing is None else self.inducing.kernel

    def fit_by(self, method: Method[Any], y: ArrayLike, rng: np.random.Generator | None) -> Any:
        """Return what `gpcmc.lowrank.fit` does."""
        from gpcmc.lowrank.methods import fit  # which imports this module

        return fit(method, self, y, rng=rng)


@one_thread()
def low_rank_prior(
    kernel: Kernel,
    X: ArrayLike,
    X_star: ArrayLike | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_rank: int = MAX_RANK,
    inducing: ArrayLike | None = None,
) -> LowRankPrior:
    """Approximate a kernel's covariance at the training inputs; no (n, n) array is made.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : (n, d) array
        Training inputs.
    X_star : (t, d) array, optional
        Test inputs.
    tolerance : float
        Mean of the variance that the inducing inputs may leave unexplained, over the mean of the prior variance.
        Above 0 and below 1.
    max_rank : int
        Inducing inputs at most.
    inducing : (r, d) array, optional
        Inducing inputs; by default patterns are chosen, until the tolerance is met. Where they are given, neither
        `tolerance` nor `max_rank` matters.

    Raises
    ------
    ValueError
        If inputs are not finite two-dimensional arrays, are empty or differ in d, or if the tolerance needs more
        inducing inputs than `max_rank`; the message then says about how many.
    """
    X = _inputs("X", X)
    X_star = None if X_star is None else _inputs("X_star", X_star, X.shape[1])
    if inducing is not None:
        given = inducing_at(kernel, _inputs("inducing", inducing, X.shape[1]))
        return LowRankPrior(LowRank(*given.rows(X)), given, X=X, X_star=X_star)
    found, finest, rank = pivoted(kernel, X, tolerance, max_rank)
    return LowRankPrior(
        covariance=finest.truncated(rank),
        inducing=found.first(rank),
        finer=LowRank(finest.F[:, rank:], finest.D),
        X=X,
        X_star=X_star,
    )


def _inputs(name: str, value: ArrayLike, columns: int | None = None) -> FloatArray:
    X = check_array(name, value, ndim=2)
    if 0 in X.shape:
        raise ValueError(f"{name} must not be empty; got shape {X.shape}")
    if columns is not None and X.shape[1] != columns:
        raise ValueError(f"{name} must have {columns} columns as X has; got {X.shape[1]}")
    return np.ascontiguousarray(X)
