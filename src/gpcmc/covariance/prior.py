"""The Gaussian process prior at the training and test inputs: a covariance of any form, and what predictions need."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._threads import one_thread
from gpcmc._validation import (
    FloatArray,
    check_array,
    check_covariance,
    check_cross_covariance,
    check_option,
    check_positive_int,
)
from gpcmc.covariance.cross import Cross
from gpcmc.covariance.dense import Dense
from gpcmc.covariance.form import Covariance
from gpcmc.covariance.kernels import check_kernel, diagonal, evaluate
from gpcmc.covariance.lowrank import low_rank
from gpcmc.covariance.pivoted import MAX_RANK, TOLERANCE
from gpcmc.covariance.sparse import NEIGHBOURS, sparse

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel


@dataclass(frozen=True, slots=True)
class Prior:
    """The Gaussian process prior at the training inputs, and at the test inputs if there are any.

    ``Prior(K)`` is a prior without test inputs; `prior` makes one from a kernel.

    Attributes
    ----------
    K : (n, n) array, or Covariance
        Covariance of the latent values at the training inputs; `covariance` is the object in either case.
    K_star : (n, t) array
        Covariance between training (rows) and test (columns) latent values. By default t is 0.
    k_star_star : (t,) array
        Prior variances of the latent values at the test inputs.
    kernel : Kernel, optional
        The covariances' kernel, for methods that place inputs of their own or change its hyperparameters.
    X : (n, d) array, optional
    X_star : (t, d) array, optional
        Training and test inputs, for the same; without K_star and k_star_star predictions take X_star.
    """

    K: Any
    K_star: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    k_star_star: FloatArray = field(default_factory=lambda: np.empty(0))
    kernel: Kernel | None = None
    X: Any = None
    X_star: Any = None

    def __post_init__(self) -> None:
        if np.size(self.K_star) == np.size(self.k_star_star) == 0:
            object.__setattr__(self, "K_star", np.empty((len(self.K), 0)))
        if isinstance(self.K, Covariance) and self.kernel is None:
            object.__setattr__(self, "kernel", self.K.kernel)
            object.__setattr__(self, "X", self.K.X if self.X is None else self.X)

    def __len__(self) -> int:
        return len(self.K)

    @property
    def covariance(self) -> Covariance:
        """The covariance of the latent values, of whatever form."""
        return self.K if isinstance(self.K, Covariance) else Dense(self.K, self.kernel, self.X)

    def cross(self) -> Cross | None:
        """Return what predictions at the test inputs need; None if there are none."""
        if len(self.k_star_star):
            return self.covariance.cross_of(self.K_star, self.k_star_star)
        return None if self.X_star is None else self.covariance.cross(self.X_star)

    def checked(self) -> Prior:
        """Return the same with arrays as the numerics want them.

        Raises
        ------
        ValueError
            If K is no covariance, or the arrays for the test inputs do not belong to it.
        """
        K = self.K
        if not isinstance(K, Covariance):
            K = check_covariance("prior.K", K, semidefinite=True)
        K_star, k_star_star = check_cross_covariance(
            "prior.K_star", self.K_star, "prior.k_star_star", self.k_star_star, len(K)
        )
        return replace(self, K=K, K_star=K_star, k_star_star=k_star_star)

    def densified(self) -> Prior:
        """Return the same with arrays alone, for a method that works on these."""
        if not isinstance(self.K, Covariance):
            return self
        cross = self.cross()
        if cross is None:
            return replace(self, K=self.K.dense())
        return replace(
            self, K=self.K.dense(), K_star=cross.covariances(), k_star_star=cross.variance
        )


@one_thread()
@np.errstate(under="ignore")
def prior(
    kernel: Kernel,
    X: ArrayLike,
    X_star: ArrayLike | None = None,
    *,
    covariance: str = "dense",
    tolerance: float = TOLERANCE,
    max_rank: int = MAX_RANK,
    inducing: ArrayLike | None = None,
    neighbours: int = NEIGHBOURS,
    front: int | None = None,
) -> Prior:
    """Evaluate a kernel at the training and test inputs.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : (n, d) array
        Training inputs.
    X_star : (t, d) array, optional
        Test inputs; without them the prior has none, and t is 0.
    covariance : {"dense", "low-rank", "sparse"}
        The array K (n, n), which the others never make: F F' + D from a pivoted Cholesky factorisation of it; or, of a
        stationary kernel, each latent value regressed on its nearest neighbours.
    tolerance : float
        Of low rank: mean of the variance that the inducing inputs may leave unexplained, over the mean of the prior
        variance. Above 0 and below 1.
    max_rank : int
        Of low rank: inducing inputs at most.
    inducing : (r, d) array, optional
        Of low rank: inducing inputs; by default patterns are chosen, until the tolerance is met. Where they are given,
        neither `tolerance` nor `max_rank` matters.
    neighbours : int
        Of the sparse form: at most so many. It is exact with n - 1; with one input, and for a Markov process with 1.
    front : int, optional
        Of the sparse form with two inputs or more: so many patterns, spread over the inputs, that every later value is
        regressed on too, for a part of the kernel that reaches far. By default as many as neighbours where the kernel
        is a sum, and none elsewhere.

    Raises
    ------
    ValueError
        If an input is not a finite two-dimensional array, is empty, or the two differ in d; if the kernel is none, or
        is not stationary and the covariance is to be sparse, or
        has a hyperparameter that is not above zero; or if the tolerance needs more inducing inputs than `max_rank`: the
        message then says about how many.
    """
    check_kernel(kernel)
    check_option("covariance", covariance, ("dense", "low-rank", "sparse"))
    X = check_inputs("X", X)
    if X_star is not None and len(X_star := check_array("X_star", X_star, ndim=2)) == 0:
        raise ValueError("X_star must not be empty (leave it out for a prior without test inputs)")
    if X_star is not None:
        X_star = check_inputs("X_star", X_star, X.shape[1])
    if covariance == "low-rank":
        if inducing is not None:
            inducing = check_inputs("inducing", inducing, X.shape[1])
        found = low_rank(kernel, X, tolerance=tolerance, max_rank=max_rank, inducing=inducing)
        return Prior(found, X_star=X_star)
    if covariance == "sparse":
        most = check_positive_int("neighbours", neighbours)
        if front is not None and front != 0:
            front = check_positive_int("front", front)
        return Prior(sparse(kernel, X, neighbours=most, front=front), X_star=X_star)
    if X_star is None:
        return Prior(evaluate(kernel, X), kernel=kernel, X=X)
    return Prior(
        K=evaluate(kernel, X),
        K_star=evaluate(kernel, X, X_star),
        k_star_star=diagonal(kernel, X_star),
        kernel=kernel,
        X=X,
        X_star=X_star,
    )


def check_inputs(name: str, value: ArrayLike, columns: int | None = None) -> FloatArray:
    """Return inputs as a finite array (n, d), n and d at least one.

    Raises
    ------
    ValueError
        If they are none, or have another number of columns.
    """
    X = check_array(name, value, ndim=2)
    if 0 in X.shape:
        raise ValueError(f"{name} must not be empty; got shape {X.shape}")
    if columns is not None and X.shape[1] != columns:
        raise ValueError(f"{name} must have {columns} columns as X has; got {X.shape[1]}")
    return X
