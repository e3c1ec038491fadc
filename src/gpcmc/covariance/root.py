"""Square roots of covariances: K = A A' + diag(D), so that f = A u + e, with u standard normal and e ~ N(0, D)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from gpcmc._validation import FloatArray


class Root(ABC):
    """A root of a covariance, made by `Covariance.root`.

    Attributes
    ----------
    A : (n, r) array
    D : (n,) array
    """

    A: FloatArray
    D: FloatArray

    @abstractmethod
    def coordinates(self, cross: Any) -> tuple[FloatArray, FloatArray]:
        """Return b (t, r) and the variances (t,) that are left: f* = b u + e* at the test inputs of `cross`."""


@dataclass(frozen=True, slots=True)
class PivotedRoot(Root):
    """The root of an array of covariances, which may be singular; D is zero.

    Attributes
    ----------
    A : (n, r) array
        r is the numerical rank; the rows `pivots` of A are lower triangular.
    D : (n,) array
    pivots : (r,) array of int
        The latent values that determine the others.
    """

    A: FloatArray
    D: FloatArray
    pivots: NDArray[np.intp]

    @classmethod
    def of(cls, K: FloatArray) -> PivotedRoot:
        """Factorise K (n, n) by Cholesky with pivoting, down to pivots of n eps max(K_ii)."""
        n = len(K)
        factor, order, rank, _ = dpstrf(K, lower=1)
        rank = rank if K.any() else 0  # LAPACK counts one pivot in a matrix of zeros, or none
        A = np.zeros((n, rank))
        A[order - 1] = np.tril(factor)[:, :rank]
        return cls(A, np.zeros(n), order[:rank] - 1)

    def coordinates(self, cross: Any) -> tuple[FloatArray, FloatArray]:
        K_star = cross.covariances()[self.pivots]
        b = solve_triangular(self.A[self.pivots], K_star, lower=True, check_finite=False).T
        return b, np.maximum(cross.variance - np.einsum("ij,ij->i", b, b), 0.0)
