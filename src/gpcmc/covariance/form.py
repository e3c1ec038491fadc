"""What a form of covariance is: the contract that every method works on.

A covariance K of n latent values is an object. A method asks it for products, for what is left when the values are
observed with Gaussian noise (`Conditioned`), for what predictions need (`cross`), and for traces with its derivatives
(`contract`). No method asks which form it has. A new structure is one file with a subclass of `Covariance`, one of
`Conditioned` and one of `Predictor`; `tests/gpcmc/test_covariance.py` runs the contract on each against dense linear
algebra.

The latent functions of several classes are independent a priori and share K. Arrays of theirs are (C, n), and one
latent function has arrays (n,).

References
----------
Rasmussen and Williams (2006), sections 3.3, 3.5, 3.6, 5.5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.covariance.chain import Chain
from gpcmc.covariance.cross import Cross
from gpcmc.covariance.root import PivotedRoot, Root

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

    from gpcmc.covariance.factor import Factor


#: See `Conditioned.predictor`.
Answer = Callable[[Any, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


class Covariance(ABC):
    """A covariance K of n latent values, positive semidefinite.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel or None
        What K is of; None where K was given as numbers.
    X : (n, d) array, n things that the kernel takes, or None
        The inputs.
    """

    __slots__ = ()

    #: Whether the form leaves nothing out, so that there is nothing to correct or to say.
    exact: bool = True
    #: How finely sites need to settle on this form: what it leaves out moves them by more. Zero for an exact form.
    resolution: float = 0.0
    #: NumPy leaves ``array @ covariance`` alone.
    __array_ufunc__: ClassVar[None] = None

    kernel: Kernel | None
    X: Any

    @abstractmethod
    def __len__(self) -> int:
        """Return n."""

    @property
    @abstractmethod
    def diagonal(self) -> FloatArray:
        """The prior variances (n,)."""

    @abstractmethod
    def __matmul__(self, x: FloatArray) -> FloatArray:
        """Return K x for a vector (n,) or for columns (n, m)."""

    @abstractmethod
    def conditioned(self, S: FloatArray) -> ConditionedFunction:
        """Return what is left when each latent value is observed with Gaussian noise of precision S >= 0 (n,).

        Raises
        ------
        ValueError
            If I + S^(1/2) K S^(1/2) is not positive definite in floating point.
        """

    @abstractmethod
    def conditioned_softmax(self, pi: FloatArray) -> Conditioned:
        """Return the same for C latent functions and noise of precision W = diag(pi) - pi pi' at each pattern.

        Parameters
        ----------
        pi : (C, n) array
            Class probabilities, which sum to one for each pattern.

        Raises
        ------
        ValueError
            If I + K W is singular in floating point.
        MemoryError
            If it needs more memory than this process may have.
        """

    @abstractmethod
    def factor(self, signs: FloatArray, noise: float = 1.0) -> Factor:
        """Return the lower Cholesky factor of noise I + C K C, C = diag(signs), in the order of the patterns.

        Parameters
        ----------
        signs : (n,) array
        noise : float
            Above zero.
        """

    def signed(self, signs: FloatArray, noise: float = 1.0) -> FloatArray | None:
        """Return noise I + C K C (n, n), for the order of its coordinates to be chosen; None if there is no array."""
        return None

    @abstractmethod
    def cross(self, X_star: FloatArray) -> Cross:
        """Return what predictions at test inputs (t, d) need.

        Raises
        ------
        ValueError
            If K was given without a kernel, or X_star has another width than the inputs.
        """

    @abstractmethod
    def cross_of(self, K_star: FloatArray, k_star_star: FloatArray) -> Cross:
        """Return the same from covariances (n, t) of training and test latent values, and test variances (t,).

        Raises
        ------
        ValueError
            If the form cannot predict from these.
        """

    @abstractmethod
    def contract(self, M: GradientMatrix) -> FloatArray:
        """Return tr(M dK / dtheta_k) / 2 (p,), in the order of ``kernel.theta``.

        Raises
        ------
        ValueError
            If K was given without a kernel.
        """

    @abstractmethod
    def dense(self) -> FloatArray:
        """Return K as an array (n, n)."""

    def root(self) -> Root:
        """Return A and D with K = A A' + diag(D), and what test inputs have in A; by the array, unless a form knows."""
        return PivotedRoot.of(self.dense())

    @classmethod
    @abstractmethod
    def memory(cls, n: int, matrices: float) -> float:
        """Return about how many bytes a method needs for n patterns that holds so many matrices like K.

        A form without (n, n) arrays needs no more than its own arrays, and returns zero: these exist already.
        """

    def correction(self, M: GradientMatrix) -> Correction:
        """Return what the form leaves out of the evidence, to first order; nothing for an exact form."""
        return Correction()

    def coarser(self) -> Sequence[Covariance]:
        """Return covariances of the same values on which sites are cheaper to find, the cheapest first."""
        return ()

    def chain(self) -> Chain | None:
        """Return K as a Markov chain along one input; None where it is none, or the form does not know."""
        return None

    def stand_in(self) -> Covariance:
        """Return a covariance whose sites serve a sampler as well as this one's, where they cost less; or this one."""
        return self


@dataclass(frozen=True, slots=True)
class Correction:
    """What a form leaves out of a log marginal likelihood.

    Attributes
    ----------
    change : float
        To be added, in nats.
    rest : float
        About how much of it is still left out, in nats.
    diagnostics : dict of str to float
        The same, and what the form says of itself; empty for an exact form.
    """

    change: float = 0.0
    rest: float = 0.0
    diagnostics: dict[str, float] = field(default_factory=dict)


class Conditioned(ABC):
    """A covariance with Gaussian noise of precision S on each value; R = (K + S^-1)^-1, S may be singular.

    For C latent functions S is the (C, C) matrix W of each pattern, and R a matrix of order C n.

    Attributes
    ----------
    log_determinant : float
        Log determinant of I + S^(1/2) K S^(1/2), which for C functions is that of I + K W.
    """

    __slots__ = ()

    log_determinant: float

    @property
    @abstractmethod
    def variance(self) -> FloatArray:
        """Posterior variances (n,), or the covariances (n, C, C) of each pattern's latent values."""

    @property
    @abstractmethod
    def noise_diagonal(self) -> FloatArray:
        """R_ii (n,); for C functions the sum of their R_ii."""

    @abstractmethod
    def solve(self, x: FloatArray) -> FloatArray:
        """Return R x for x (n,), or (C, n) of several latent functions."""

    @abstractmethod
    def predictor(self, a: FloatArray, answer: Answer | None = None) -> Predictor:
        """Return what predicts, given a = K^-1 mean: (n,) or (C, n).

        `answer` says how the Gaussian terms would move with the posterior, for a form that corrects what it leaves out:
        it takes a conditioned covariance, a and the mean there, and returns the noise of the terms that match,
        precisions S (n,) or class probabilities (C, n), and nu - S mean - a.
        """


class ConditionedFunction(Conditioned):
    """One latent function, which is what Gaussian sites condition."""

    __slots__ = ()

    @property
    @abstractmethod
    def kept(self) -> FloatArray:
        """1 - S_i variance_i (n,), the share of a cavity that is left, without cancellation where S is large."""

    @abstractmethod
    def shifted(self, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a = K^-1 mean and the mean (n,) of the posterior that terms exp(nu_i f_i - S_i f_i^2 / 2) make."""


@dataclass(frozen=True, slots=True)
class Latent:
    """The Gaussian of the latent values at t test inputs.

    Attributes
    ----------
    mean : (t,) or (t, C) array
    variance : (t,) or (t, C, C) array
        For C functions the covariances of their values at one input.
    own : Latent, optional
        What K itself says, without a correction for what its form leaves out; None for an exact form.
    others : tuple of Latent
        The same with less of the correction: their distance from this one says how far off it may be. Empty for an
        exact form.
    """

    mean: FloatArray
    variance: FloatArray
    own: Latent | None = None
    others: tuple[Latent, ...] = ()


class Predictor(ABC):
    """A posterior as predictions need it."""

    __slots__ = ()

    @abstractmethod
    def latent(self, cross: Cross) -> Latent:
        """Return means and variances of the latent values at the test inputs of `cross`.

        Raises
        ------
        ValueError
            If the covariances of `cross` cannot belong to K: a variance would be negative.
        """


@dataclass(frozen=True, slots=True)
class GradientMatrix:
    """The symmetric M with d log Z = tr(M dK) / 2: the sum over latent functions of p q' + q p', without R.

    R is the sum over the functions of their own blocks of `conditioned`'s R.

    Attributes
    ----------
    p : (C, n) array
        C is one for one latent function.
    q : (C, n) array
    conditioned : Conditioned
        Of the covariance that contracts it.
    """

    p: FloatArray
    q: FloatArray
    conditioned: Any

    @classmethod
    def of(cls, a: FloatArray, v: FloatArray | float, conditioned: Conditioned) -> GradientMatrix:
        """Return a a' + v a' + a v' - R for a, v (n,) or (C, n)."""
        p, q = np.atleast_2d(v + 0.5 * a, a)
        return cls(p, q, conditioned)

    @property
    def diagonal(self) -> FloatArray:
        """M_ii (n,)."""
        return 2.0 * np.sum(self.p * self.q, axis=0) - self.conditioned.noise_diagonal

    def outer(self) -> FloatArray:
        """Return the sum of p q' + q p' (n, n)."""
        across = self.p.T @ self.q
        return across + across.T
