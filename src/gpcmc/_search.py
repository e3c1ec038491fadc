"""The search for a kernel's hyperparameters: from the given start, and in the scale of the data if that is lost.

A start far off ends where the kernel tells nothing: all covariances are equal, or zero, probabilities are the same
everywhere, and the marginal likelihood is flat. Then the search begins once more, at variances of one and length scales
of the median distance between inputs, and the better end counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.gaussian_process.kernels import Kernel

from gpcmc._progress import Progress
from gpcmc._settings import Optimizer
from gpcmc._validation import FloatArray, check_covariance
from gpcmc.inference.evidence import EvidenceSurface, Optimum, maximize
from gpcmc.inference.exact import ExactSurface
from gpcmc.posterior import ConvergenceError

_NOTHING = 1.0  # nats above what one gets who looks at no input
_SAMPLE = 500  # inputs whose distances are looked at
_GAIN = 0.01  # nats; a climb of the exact surface that gained less is the last one
_CLIMBS = 8


@dataclass(frozen=True, slots=True)
class Search:
    """What searches for hyperparameters.

    Attributes
    ----------
    optimizer : "lbfgs", callable or None
    restarts : int
    verbose : int
        0 says nothing; 1 prints each start's and each tenth evaluation, 2 every one.
    low_rank : float or None
        What a covariance of low rank may leave of the prior variance; None takes the dense one.
    exact : bool
        Whether the exact surface is climbed, from the end on the approximate one.
    """

    optimizer: str | Optimizer | None
    restarts: int
    verbose: int = 0
    low_rank: float | None = None
    exact: bool = False

    def run(self, surface: EvidenceSurface, rng: np.random.Generator) -> Optimum:
        """Return the highest point that was found.

        Raises
        ------
        ValueError
            If the method fails at all starts, or the kernel is no covariance on these inputs.
        """
        watched = _Watched(surface, self.verbose)
        found, failure = self._climb(watched, rng)
        if callable(self.optimizer):
            further = []
        elif found is None or self._lost(found, watched):
            further = [scaled_start(surface.kernel, surface.X)]
        else:
            further = [] if found.converged else [found.theta]  # a new start forgets bad slopes
        for start in further:
            if np.allclose(start, surface.kernel.theta):
                continue
            watched.restart(surface.kernel.clone_with_theta(start))
            again, _ = self._climb(watched, rng, restarts=0)
            if again is not None and (found is None or again.log_evidence > found.log_evidence):
                found = again
        if found is None:
            check_kernel_matrix(surface.kernel, surface.X)
            assert failure is not None
            raise failure
        return found

    def run_on(self, surface: ExactSurface, before: Optimum, rng: np.random.Generator) -> Optimum:
        """Climb the exact surface from where the search on the approximate one ended.

        A climb holds the sites of its start. They are found again at its end, and another climb follows until one
        gains less than 0.01 nats, by values that have their own sites. A maximum over noise is drawn to where the
        noise is high, so that in the end other points decide: where these do not find it higher, the start is kept.

        Raises
        ------
        ValueError
            If the surface cannot be evaluated at the start.
        """
        surface.move(before.theta)
        watched = _Watched(surface, self.verbose)
        value, _ = watched.value_and_gradient(before.theta)
        start = found = replace(before, log_evidence=value)
        for _ in range(_CLIMBS):
            again, _ = self._climb(watched, rng, restarts=0)
            if again is None:
                break
            surface.move(again.theta)
            value, _ = watched.value_and_gradient(again.theta)
            gain = value - found.log_evidence
            if gain > 0.0:
                found = replace(again, log_evidence=value)
            if gain < _GAIN:
                break
        other = replace(surface, common=surface.common.others(rng))
        if found is not start and other.fresh(found.theta) <= other.fresh(start.theta):
            found = start
        return replace(found, evaluations=before.evaluations + watched.progress.evaluations)

    @staticmethod
    def _lost(found: Optimum, watched: _Watched) -> bool:
        """Whether the end tells no more than the shares of the classes do, or the start was worse than nothing."""
        y = watched.surface.y
        nothing = -len(watched.X) * np.log(2.0 if y.ndim == 1 else len(y))
        return (
            found.log_evidence < knowing_shares(y) + _NOTHING or watched.first < nothing - _NOTHING
        )

    def _climb(
        self, watched: _Watched, rng: np.random.Generator, restarts: int | None = None
    ) -> tuple[Optimum | None, ValueError | None]:
        """Return the best end, or why there is none."""
        restarts = self.restarts if restarts is None else restarts
        if callable(self.optimizer):
            return _by(self.optimizer, watched, restarts, rng), None
        try:
            return maximize(watched, restarts, rng), None  # type: ignore[arg-type]
        except ValueError as error:
            if not str(error).startswith("kernel: "):
                raise
            return None, error


def _by(
    optimizer: Optimizer, watched: _Watched, restarts: int, rng: np.random.Generator
) -> Optimum:
    """Search by a user's own optimizer, in scikit-learn's convention."""
    bounds: FloatArray = watched.kernel.bounds
    poor = -10.0 * np.log(2.0) * len(watched.X)

    def objective(theta: FloatArray, eval_gradient: bool = True) -> Any:
        try:
            value, gradient = watched.value_and_gradient(np.asarray(theta, dtype=np.float64))
        except (ValueError, ConvergenceError):
            value, gradient = poor, np.zeros(len(bounds))
        return (-value, -gradient) if eval_gradient else -value

    starts = [watched.kernel.theta]
    if restarts:
        if not np.isfinite(bounds).all():
            raise ValueError(
                f"n_restarts={restarts} needs a kernel with finite bounds; got {bounds}"
            )
        starts += list(rng.uniform(bounds[:, 0], bounds[:, 1], size=(restarts, len(bounds))))
    ends = [optimizer(objective, start, bounds=bounds) for start in starts]
    theta = np.asarray(min(ends, key=lambda end: float(end[1]))[0], dtype=np.float64)
    if theta.shape != watched.kernel.theta.shape or not np.isfinite(theta).all():
        raise ValueError(
            "optimizer must return theta of the shape of the start "
            f"{watched.kernel.theta.shape}, and its objective; got {theta!r}"
        )
    value, _ = watched.value_and_gradient(theta)
    # whether an own optimizer ends at a maximum is its own affair
    return Optimum(theta, value, (), converged=True, evaluations=watched.progress.evaluations)


class _Watched:
    """An evidence surface that counts its evaluations, remembers the first and prints where it is asked to."""

    def __init__(self, surface: EvidenceSurface | ExactSurface, verbose: int) -> None:
        self.surface, self.progress, self.first = surface, Progress(verbose), np.inf

    @property
    def kernel(self) -> Kernel:
        return self.surface.kernel

    @property
    def X(self) -> Any:
        return self.surface.X

    def restart(self, kernel: Kernel) -> None:
        """Go on from another kernel."""
        assert isinstance(self.surface, EvidenceSurface)
        self.surface.kernel, self.surface._last = kernel, None
        self.progress.says(f"the start tells nothing of the classes; once more from {kernel}")

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        self.progress.evaluations += 1
        try:
            value, gradient = self.surface.value_and_gradient(theta)
        except (ValueError, ConvergenceError):
            self.first = -np.inf if self.progress.evaluations == 1 else self.first
            raise
        if self.progress.evaluations == 1:
            self.first = value
        self.progress.evaluated(self.kernel.clone_with_theta(theta), value)
        return value, gradient


def knowing_shares(y: FloatArray) -> float:
    """Return the log probability (nats) of labels (n,) or (C, n) for one who knows the shares of the classes alone."""
    shares = np.array([np.mean(y > 0), np.mean(y < 0)]) if y.ndim == 1 else y.mean(axis=1)
    return float(y.shape[-1] * np.sum(xlogy(shares, shares)))


def scaled_start(kernel: Kernel, X: Any) -> FloatArray:
    """Return theta with variances of one and length scales of the median distance, within the bounds.

    Hyperparameters of other names, and those of kernels on other things than vectors, stay as they are.
    """
    theta = np.array(kernel.theta)
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind != "f":
        return theta
    whole, along = distances(X)
    at = 0
    for one in kernel.hyperparameters:
        if one.fixed:
            continue
        part = slice(at, at + one.n_elements)
        at += one.n_elements
        if one.name.endswith("constant_value"):
            theta[part] = 0.0
        elif one.name.endswith("length_scale"):
            theta[part] = np.log(along if one.n_elements == len(along) > 1 else whole)
    return np.clip(theta, *kernel.bounds.T)


def distances(X: FloatArray) -> tuple[float, FloatArray]:
    """Return the median distance between inputs, and for each coordinate alone, times the root of their number.

    One where all inputs agree.
    """
    some = X[:: -(-len(X) // _SAMPLE)]
    pairs = np.triu_indices(len(some), 1)
    gaps = np.abs(some[pairs[0]] - some[pairs[1]])
    whole = np.sqrt(np.sum(gaps**2, axis=1))
    along = np.median(gaps, axis=0) * np.sqrt(X.shape[1])
    positive = whole[whole > 0]
    middle = float(np.median(positive)) if len(positive) else 1.0
    return middle, np.where(along > 0, along, middle)


def check_kernel(kernel: Kernel, X: Any) -> None:
    """Refuse a kernel that cannot be evaluated at these inputs.

    Raises
    ------
    ValueError
        If it cannot; the message has the kernel's own reason.
    """
    try:
        kernel(X[:2])
    except (TypeError, ValueError) as error:
        shape = getattr(X, "shape", (len(X),))
        raise ValueError(f"kernel {kernel} does not fit X of shape {shape}: {error}") from error


def check_kernel_matrix(kernel: Kernel, X: Any) -> None:
    """Refuse a kernel that is no covariance on these inputs.

    Raises
    ------
    ValueError
        If its matrix is not finite, not symmetric, or indefinite.
    """
    K = kernel(X)
    try:
        check_covariance("kernel", K, semidefinite=True)
    except ValueError as error:
        least = float(np.linalg.eigvalsh(K)[0]) if np.isfinite(K).all() else np.nan
        raise ValueError(
            f"kernel {kernel} is no covariance on these inputs (least eigenvalue {least:.3g}): {error}. No variance "
            "mends that. ExpSineSquared, for one, is a covariance for one input alone: use a product of such kernels "
            "of single inputs, or another kernel"
        ) from error
