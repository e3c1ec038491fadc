"""A third form of covariance, to show what one takes: the Ornstein-Uhlenbeck process in one input, a Markov chain.

K_ij = v exp(-|x_i - x_j| / l) at sorted inputs has a tridiagonal inverse Q. With noise of precision W at each pattern,
of one latent function or several, the posterior precision P = Q + W is block tridiagonal: all is O(n).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from gpcmc.covariance.cross import Cross
from gpcmc.covariance.factor import DenseFactor
from gpcmc.covariance.form import Conditioned, ConditionedFunction, Covariance, Latent, Predictor


@dataclass(frozen=True, eq=False)
class Markov(Covariance):
    """The process's covariance at sorted inputs X (n, 1)."""

    X: np.ndarray
    v: float
    scale: float

    @property
    def kernel(self):
        return ConstantKernel(self.v) * Matern(self.scale, nu=0.5)

    def __len__(self):
        return len(self.X)

    @property
    def diagonal(self):
        return np.full(len(self), self.v)

    @cached_property
    def steps(self):
        """Correlations (n - 1,) of neighbours."""
        return np.exp(-np.diff(self.X[:, 0]) / self.scale)

    @cached_property
    def precision(self):
        """Diagonal (n,) and what is beside it (n - 1,) of Q."""
        left = 1.0 - self.steps**2
        diagonal = np.ones(len(self))
        diagonal[:-1] += self.steps**2 / left
        diagonal[1:] += self.steps**2 / left
        return diagonal / self.v, -self.steps / left / self.v

    def __matmul__(self, x):
        ahead, back = x.astype(float), x.astype(float)
        for i in range(1, len(x)):
            ahead[i] = x[i] + self.steps[i - 1] * ahead[i - 1]
        for i in range(len(x) - 2, -1, -1):
            back[i] = x[i] + self.steps[i] * back[i + 1]
        return self.v * (ahead + back - x)

    def conditioned(self, S):
        return OneChain(self, S[:, None, None], S)

    def conditioned_softmax(self, pi):
        W = np.einsum("ci,cd->icd", pi, np.eye(len(pi))) - np.einsum("ci,di->icd", pi, pi)
        return Chain(self, W)

    def factor(self, signs, noise=1.0):
        R = signs[:, None] * self.dense() * signs
        return DenseFactor.of(R + noise * np.eye(len(R)))

    def cross(self, X_star):
        K_star = self.v * np.exp(-np.abs(self.X - X_star[:, 0]) / self.scale)
        return ArrayCross(K_star, np.full(len(X_star), self.v))

    def cross_of(self, K_star, k_star_star):
        return ArrayCross(K_star, k_star_star)

    def contract(self, M):
        _, dK = self.kernel(self.X, eval_gradient=True)
        R = M.conditioned.own_blocks()
        return 0.5 * np.einsum("ij,ijk->k", M.outer() - R, dK)

    def dense(self):
        return self @ np.eye(len(self))

    @classmethod
    def memory(cls, n, matrices):
        return 0.0


@dataclass(frozen=True)
class ArrayCross(Cross):
    K_star: np.ndarray
    k_star_star: np.ndarray

    def __len__(self):
        return len(self.k_star_star)

    @property
    def variance(self):
        return self.k_star_star

    def covariances(self):
        return self.K_star


@dataclass(frozen=True, eq=False)
class Chain(Conditioned):
    """P = Q + W by blocks: Cholesky factors along the chain, and blocks of P^-1 back."""

    K: Markov
    W: np.ndarray  # (n, C, C)

    @cached_property
    def _pivots(self):
        """Schur complements (n, C, C) of P along the chain."""
        q, beside = self.K.precision
        eye, found = np.eye(self.W.shape[1]), []
        for i, W in enumerate(self.W):
            before = beside[i - 1] ** 2 * np.linalg.inv(found[-1]) if i else 0.0
            found.append(q[i] * eye + W - before)
        return np.array(found)

    def _inverse(self, b):
        """P^-1 b for b (n, C)."""
        _, beside = self.K.precision
        x = b.astype(float)
        for i in range(1, len(b)):
            x[i] -= beside[i - 1] * np.linalg.solve(self._pivots[i - 1], x[i - 1])
        x[-1] = np.linalg.solve(self._pivots[-1], x[-1])
        for i in range(len(b) - 2, -1, -1):
            x[i] = np.linalg.solve(self._pivots[i], x[i] - beside[i] * x[i + 1])
        return x

    @property
    def log_determinant(self):
        left = np.append(self.K.v, self.K.v * (1.0 - self.K.steps**2))
        of_K = self.W.shape[1] * np.sum(np.log(left))
        return float(np.sum(np.linalg.slogdet(self._pivots)[1]) + of_K)

    @cached_property
    def _covariances(self):
        _, beside = self.K.precision
        found = [np.linalg.inv(self._pivots[-1])]
        for i in range(len(self.W) - 2, -1, -1):
            inverse = np.linalg.inv(self._pivots[i])
            found.append(inverse + beside[i] ** 2 * inverse @ found[-1] @ inverse)
        return np.array(found[::-1])

    @property
    def variance(self):
        return self._covariances

    @property
    def noise_diagonal(self):
        return np.einsum("icc->i", self.W - self.W @ self._covariances @ self.W)

    def solve(self, x):
        Wx = np.einsum("icd,di->ic", self.W, x)
        return (Wx - np.einsum("icd,id->ic", self.W, self._inverse(Wx))).T

    def own_blocks(self):
        """The sum of R's blocks of single functions, by columns."""
        n, C = self.W.shape[:2]
        total = np.zeros((n, n))
        for c in range(C):
            for j in range(n):
                x = np.zeros((C, n))
                x[c, j] = 1.0
                total[:, j] += self.solve(x if C > 1 else x[0]).reshape(C, n)[c]
        return total

    def predictor(self, a, answer=None):
        return ChainPredictor(self, a)


@dataclass(frozen=True, eq=False)
class OneChain(Chain, ConditionedFunction):
    S: np.ndarray

    @property
    def variance(self):
        return self._covariances[:, 0, 0]

    @property
    def kept(self):
        return 1.0 - self.S * self.variance

    def solve(self, x):
        return super().solve(x[None])[0]

    def shifted(self, nu):
        mean = self._inverse(nu[:, None])[:, 0]
        return nu - self.S * mean, mean


@dataclass(frozen=True)
class ChainPredictor(Predictor):
    chain: Chain
    a: np.ndarray

    def latent(self, cross):
        C, t = self.chain.W.shape[1], len(cross)
        covariance = np.empty((t, C, C))
        for k, column in enumerate(cross.K_star.T):
            for c in range(C):
                x = np.zeros((C, len(column)))
                x[c] = column
                solved = self.chain.solve(x if C > 1 else x[0]).reshape(x.shape)
                covariance[k, :, c] = cross.variance[k] * np.eye(C)[c] - solved @ column
        mean = cross.K_star.T @ self.a.T
        return Latent(mean, covariance if self.a.ndim > 1 else covariance[:, 0, 0])
