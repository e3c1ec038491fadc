"""The search for a kernel's hyperparameters, for all methods and forms of covariance.

A search starts from the kernel as it was given, and in the scale of the data: length scales of the median distance
between inputs, and variances of 1 and of 100. Each may end on a plateau or on a lower maximum, and the best end counts.

With more than 400 patterns the search begins with some of them, and goes on, from its ends, with four times as many,
until all take part. It then also starts from the best end with length scales that few patterns left far away put back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcmc._progress import Progress
from gpcmc._validation import FloatArray
from gpcmc.evidence.ascent import Ascent, Optimum, at_bound, drawn
from gpcmc.evidence.forms import DENSE, Form
from gpcmc.evidence.scale import revived, scaled_starts, sizes, some_of
from gpcmc.evidence.surface import Approximation, Surface
from gpcmc.posterior import ConvergenceError

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Takes (objective, start, bounds), the objective minus the log evidence, and returns the best theta and its objective.
Optimizer = Callable[..., tuple[Any, float]]

_FIRST = 250  # patterns of the first climbs
_DENSE = 1000  # patterns up to which climbs are dense before the last one
_LONG = 60.0  # seconds that are told of beforehand
_EVALUATIONS = 12  # of the last climb, about, and two more for each hyperparameter


@dataclass(frozen=True, slots=True)
class Search:
    """How hyperparameters are searched for.

    Attributes
    ----------
    optimizer : "lbfgs", "exact", callable or None
    restarts : int
        Further starts, log-uniform within the bounds, of the first climbs.
    verbose : int
        0 says nothing; 1 prints each start's and each tenth evaluation, 2 every one.
    """

    optimizer: str | Optimizer | None
    restarts: int = 0
    verbose: int = 0

    def run(
        self,
        method: Approximation,
        kernel: Kernel,
        X: Any,
        y: FloatArray,
        rng: np.random.Generator,
        *,
        form_at: Callable[[Kernel], Form],
        starts: Sequence[FloatArray] = (),
        surface_of: Callable[..., Surface] = Surface,
        scaled: Callable[..., list[FloatArray]] = scaled_starts,
    ) -> tuple[Optimum, Form]:
        """Return the highest point that was found, and the form of covariance that the last climb was on.

        Parameters
        ----------
        method : Approximation
            Whose evidence is climbed.
        kernel : Kernel
            The first start.
        X, y
            As of `Surface`.
        rng : Generator
            For restarts alone.
        form_at : callable
            Says which form a covariance gets, given the kernel that the first climbs found.
        starts : sequence of (p,) array
            Further ones, besides the scale of the data.
        surface_of, scaled : callable
            `Surface` and `scaled_starts`, or others for a kernel that has more to be searched for than its own.

        Raises
        ------
        ValueError
            If the method fails at all starts.
        """
        progress = Progress(self.verbose)
        if callable(self.optimizer):
            surface, form = surface_of(method, kernel, X, y), form_at(kernel)
            surface.form = form.around(kernel, X, y, method)
            return self._by(self.optimizer, surface, progress, rng), form
        small, large = scaled(kernel, X)
        thetas, more = [kernel.theta, small, *starts], [[large], drawn(kernel, self.restarts, rng)]
        found, form = None, DENSE
        for count in sizes(len(X), _FIRST):
            if count > _DENSE or count == len(X):
                form = form_at(kernel.clone_with_theta(thetas[0]))
            here = slice(None) if count == len(X) else some_of(y, count)
            surface = surface_of(method, kernel, X[here], y[..., here])
            ascent, begun = Ascent(surface, progress), time.process_time()
            try:
                if form.held and count > _DENSE:
                    peaks = [ascent.with_held(form, thetas[0], once=count < len(X))]
                else:
                    peaks = ascent.from_starts(thetas, *more)
            except (ValueError, ConvergenceError) as error:
                if found is None:
                    raise
                progress.says(f"no climb with {count} patterns, from {thetas[0]}: {error}")
                found = replace(found, posterior=None)
                continue
            found, thetas = peaks[0], [peak.theta for peak in peaks]
            back = revived(kernel, thetas[0], small)
            # a start twice would be an evaluation for nothing
            more = [] if np.array_equal(back, thetas[0]) else [[back]]
            spent = (time.process_time() - begun) / max(found.evaluations, 1)
            self._tell(progress, form_at, kernel.clone_with_theta(thetas[0]), spent, count, len(X))
        assert found is not None
        return replace(found, evaluations=progress.evaluations), form

    def _tell(
        self,
        progress: Progress,
        form_at: Callable[[Kernel], Form],
        kernel: Kernel,
        seconds: float,
        count: int,
        n: int,
    ) -> None:
        """Say how long the last climb will take, if it is long, and what would be faster."""
        if not self.verbose or count == n:
            return
        form = form_at(kernel)
        growth = n / count if form.held else (n / count) ** 3
        expected = seconds * growth * (_EVALUATIONS + 2 * len(kernel.theta))
        if expected > _LONG:
            faster = (
                "a larger tolerance"
                if form.held
                else "covariance='low-rank', where its rank is small"
            )
            progress.says(
                f"{n} patterns will take about {expected:.0f} s ({form.name} covariance). Faster: inference='laplace'; "
                f"{faster}; or a kernel that fewer patterns have fitted, with optimizer=None"
            )

    def _by(
        self,
        optimizer: Optimizer,
        surface: Surface,
        progress: Progress,
        rng: np.random.Generator,
    ) -> Optimum:
        """Search by a user's own optimizer, in scikit-learn's convention."""
        kernel = surface.kernel

        def objective(theta: FloatArray, eval_gradient: bool = True) -> Any:
            progress.evaluations += 1
            try:
                value, gradient = surface.value_and_gradient(np.asarray(theta, dtype=np.float64))
                progress.evaluated(kernel, theta, value)
            except (ValueError, ConvergenceError):
                value, gradient = surface.poor, np.zeros(len(kernel.theta))
            return (-value, -gradient) if eval_gradient else -value

        starts = [kernel.theta, *drawn(kernel, self.restarts, rng)]
        ends = [optimizer(objective, start, bounds=kernel.bounds) for start in starts]
        theta = np.asarray(min(ends, key=lambda end: float(end[1]))[0], dtype=np.float64)
        if theta.shape != kernel.theta.shape or not np.isfinite(theta).all():
            raise ValueError(
                "optimizer must return theta of the shape of the start "
                f"{kernel.theta.shape}, and its objective; got {theta!r}"
            )
        value = surface.value(theta)
        # whether an own optimizer ends at a maximum is its own affair
        names = at_bound(kernel, theta)
        return Optimum(theta, value, names, True, progress.evaluations, None, surface.posterior)
