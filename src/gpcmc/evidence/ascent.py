"""Maxima of one evidence surface, from several starts.

The highest start is climbed first, by L-BFGS-B within the kernel's bounds. Another start costs little where it leads
nowhere new: its climb stops where height and slope are those of the way to a maximum that is known, and where not even
its tangent reaches the height of that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcmc._progress import Progress
from gpcmc._validation import FloatArray
from gpcmc.evidence.climbing import Stop, Summit, climb
from gpcmc.evidence.forms import Form
from gpcmc.evidence.surface import Surface
from gpcmc.posterior import ConvergenceError

if TYPE_CHECKING:  # scikit-learn takes half a second
    from scipy.sparse.linalg import LinearOperator
    from sklearn.gaussian_process.kernels import Kernel

_NEAR = 1e-3  # a hyperparameter is at its bound if its logarithm is so near
_FLAT = 1e-2  # nats for each unit of a logarithm, times the root of n: a hundredth of a standard deviation away
_SAME = 0.3  # maxima whose logarithms differ by less are one
_REACH = 3.0  # units of logarithms over which a tangent is believed to be above the surface
_LITTLE = 0.05  # nats above a known point that are not worth a climb
_PARABOLA = (0.35, 0.7)  # gap in height over what the slope promises: half, on a parabola
_SETTLED = 1e-2  # a maximum that moves by less, in logarithms, keeps what its climb held
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Optimum:
    """The highest point of an evidence surface that was found.

    Attributes
    ----------
    theta : (p,) array
        Logarithms of the hyperparameters.
    log_evidence : float
        There, in nats.
    at_bound : tuple of str
        Names of the hyperparameters that ended at a bound, as in ``"k2__length_scale[1]"``, counted from 0.
    converged : bool
        Whether the surface is flat there, apart from slopes towards a bound.
    evaluations : int
        Of value and gradient, over all starts.
    gradient : (p,) array or None
        There; None after a user's own optimizer.
    posterior : object or None
        Of the method that was climbed, there.
    """

    theta: FloatArray
    log_evidence: float
    at_bound: tuple[str, ...]
    converged: bool
    evaluations: int
    gradient: FloatArray | None = field(default=None, repr=False)
    posterior: Any = field(default=None, repr=False)


def maximize(
    surface: Surface, n_restarts: int = 0, rng: np.random.Generator | None = None
) -> Optimum:
    """Climb a surface from the kernel's own hyperparameters, and from others drawn log-uniformly within the bounds.

    A point where the method fails, because a covariance is too large for floating point, counts as a poor one.

    Parameters
    ----------
    surface : Surface
    n_restarts : int
        Starts besides the first.
    rng : numpy.random.Generator, optional
        Required by restarts.

    Raises
    ------
    ValueError
        If a bound is not finite and there are restarts, or the method fails at all starts.
    """
    more = drawn(surface.kernel, n_restarts, rng)
    return Ascent(surface, Progress(0)).from_starts([surface.kernel.theta], (), more)[0]


def drawn(kernel: Kernel, count: int, rng: np.random.Generator | None) -> list[FloatArray]:
    """Return hyperparameters drawn log-uniformly within the bounds, which must be finite."""
    if not count:
        return []
    if not np.isfinite(kernel.bounds).all():
        raise ValueError(
            f"n_restarts_optimizer={count} needs a kernel with finite bounds; got {kernel.bounds}"
        )
    assert rng is not None
    low, high = kernel.bounds.T
    return list(rng.uniform(low, high, size=(count, len(low))))


def bounded(kernel: Kernel) -> list[tuple[str, float, str]]:
    """Return name, value and side of the hyperparameters that are at a bound.

    Names are those of scikit-learn, with a number from 0 where there are several: ``k2__length_scale[1]``.
    """
    names: list[str] = []
    for parameter in kernel.hyperparameters:
        if not parameter.fixed:
            several = parameter.n_elements > 1
            names += [
                f"{parameter.name}[{k}]" if several else parameter.name
                for k in range(parameter.n_elements)
            ]
    found = []
    for name, theta, (low, high) in zip(names, kernel.theta, kernel.bounds, strict=True):
        if abs(theta - high) <= _NEAR:
            found.append((name, float(np.exp(theta)), "upper"))
        elif abs(theta - low) <= _NEAR:
            found.append((name, float(np.exp(theta)), "lower"))
    return found


def at_bound(kernel: Kernel, theta: FloatArray) -> tuple[str, ...]:
    """Return the names of the hyperparameters that are at a bound at theta (p,)."""
    return tuple(name for name, _, _ in bounded(kernel.clone_with_theta(theta)))


@dataclass(slots=True)
class Ascent:
    """Climbs one surface from several starts, and tells how that goes."""

    surface: Surface
    progress: Progress
    bounds: FloatArray = field(init=False)
    _known: dict[bytes, tuple[float, FloatArray, Any]] = field(default_factory=dict)
    _best: tuple[float, Any] = (-np.inf, None)
    _inverse: LinearOperator = field(init=False)

    def __post_init__(self) -> None:
        self.bounds = self.surface.kernel.bounds  # which takes a while to find

    def from_starts(
        self,
        starts: Sequence[FloatArray],
        late: Sequence[FloatArray] = (),
        restarts: Sequence[FloatArray] = (),
    ) -> list[Optimum]:
        """Return the maxima that were found, the highest first; refuse a surface that fails at all starts.

        Of the starts the highest is climbed first. Late ones are looked at when these have been climbed; so are
        restarts, which climb to their ends.
        """
        before = self.progress.evaluations
        peaks: list[Optimum] = []
        failure: Exception | None = None
        for group in (starts, late, restarts):
            clipped = [np.clip(start, *self.bounds.T) for start in group]
            for start in clipped if group is restarts else self._ordered(clipped):
                stop, known = (
                    self._stop(peaks, whole=group is restarts),
                    self._known.get(start.tobytes()),
                )
                if stop and known and stop(start, *known[:2]):
                    continue
                peak, failed = self._peak(start, stop)
                failure = failed or failure
                if peak is not None:
                    peaks = _distinct([*peaks, peak])
        if not peaks:
            count = len(starts) + len(late) + len(restarts)
            raise ValueError(
                f"kernel: {failure} (at every start of the search, {count} in all)"
            ) from failure
        return [self._counted(peak, before) for peak in peaks[:1]] + peaks[1:]

    def with_held(self, form: Form, start: FloatArray, *, once: bool = False) -> Optimum:
        """Return the maximum where what its climb held serves at its end as well.

        It does where the end is near the start, or where what would be held from the end on has a slope there that
        promises little. Else, unless one climb is enough, the next one starts from the end; until one ends where an
        earlier one did, for the climbs then go in a circle.
        """
        surface, before, found = self.surface, self.progress.evaluations, None
        ends = [start]
        for _ in range(1 if once else _ROUNDS):
            kernel = surface.kernel.clone_with_theta(start)
            surface.form = form.around(kernel, surface.X, surface.y, surface.method)
            if found is not None:
                self._look(start)
                known = self._known.get(start.tobytes())
                if known and self._promised(start, known[1]) <= _LITTLE:
                    break
            self.progress.says(f"{len(surface.X)} patterns, from {kernel}")
            found, failed = self._peak(start, None)
            if found is None:
                raise ValueError(f"kernel: {failed}") from failed
            start = found.theta
            if min(float(np.abs(start - end).max()) for end in ends) <= _SETTLED:
                break
            ends.append(start)
        assert found is not None
        return self._counted(found, before)

    def _promised(self, theta: FloatArray, gradient: FloatArray) -> float:
        """Return the rise (nats) to the top of a parabola with this slope, and the curvature of the last climb."""
        slope = np.where(np.clip(theta + gradient, *self.bounds.T) == theta, 0.0, gradient)
        return 0.5 * float(slope @ (self._inverse @ slope))

    def _counted(self, found: Optimum, before: int) -> Optimum:
        """Return the same with its bounds, and the evaluations of this ascent."""
        names = at_bound(self.surface.kernel, found.theta)
        return replace(found, at_bound=names, evaluations=self.progress.evaluations - before)

    def _ordered(self, starts: list[FloatArray]) -> list[FloatArray]:
        """Return different starts, the highest first."""
        different: list[FloatArray] = []
        for start in starts:
            if not any(np.allclose(start, other) for other in different):
                different.append(start)
        heights = [self._look(start) for start in different]
        return [different[k] for k in np.argsort(-np.array(heights), kind="stable")]

    def _look(self, start: FloatArray) -> float:
        """Return the height of a start, minus infinity where the method fails; a climb from there knows it."""
        try:
            value, gradient = self._evaluate(start)
        except (ValueError, ConvergenceError):
            return -np.inf
        self._known[start.tobytes()] = value, gradient, self.surface.posterior
        return value

    def _peak(
        self, start: FloatArray, stop: Stop | None
    ) -> tuple[Optimum | None, Exception | None]:
        """Climb from one start, and once more from its end if that is no maximum: a new start forgets bad slopes."""
        self.surface.posterior, self._best = None, (-np.inf, None)
        found = self._climb(start, stop)
        if not np.isfinite(found.value):
            return None, found.failure
        if not self._flat(found) and not (stop and stop(found.theta, found.value, found.gradient)):
            again = self._climb(found.theta, stop)
            found = again if again.value > found.value else found
        flat, (_, posterior) = self._flat(found), self._best
        peak = Optimum(found.theta, found.value, (), flat, 0, found.gradient, posterior)
        return peak, found.failure

    def _climb(self, start: FloatArray, stop: Stop | None) -> Summit:
        found = climb(self._evaluate, [start], self.bounds, poor=self.surface.poor, stop=stop)
        self._inverse = found.inverse
        return found

    def _evaluate(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient; those of a start are known already."""
        known = self._known.pop(theta.tobytes(), None)
        if known is not None:
            value, gradient, self.surface.posterior = known
        else:
            self.progress.evaluations += 1
            value, gradient = self.surface.value_and_gradient(theta)
            self.progress.evaluated(self.surface.kernel, theta, value)
        if value > self._best[0]:
            self._best = value, self.surface.posterior
        return value, gradient

    def _flat(self, found: Summit) -> bool:
        inside = np.clip(found.theta + found.gradient, *self.bounds.T) - found.theta
        return bool(np.abs(inside).max() <= _FLAT * np.sqrt(len(self.surface.X)))

    def _stop(self, peaks: list[Optimum], *, whole: bool) -> Stop | None:
        """Return what stops a climb that leads to a maximum that is known, or to no higher one."""
        if not peaks:
            return None
        height, bounds = peaks[0].log_evidence, self.bounds

        def stop(theta: FloatArray, value: float, gradient: FloatArray) -> bool:
            if any(_leads_to(peak, theta, value, gradient) for peak in peaks):
                return True
            return not whole and (
                value + _rise(theta, gradient, bounds, _REACH) < height
                or value + _rise(theta, gradient, bounds, 1.0) < height + _LITTLE
            )

        return stop


def _leads_to(peak: Optimum, theta: FloatArray, value: float, gradient: FloatArray) -> bool:
    """Return whether a point is on the slope of a maximum.

    Along a parabola from the point to its top the gap in height is half of what the slope at the point promises. A
    hyperparameter that is far away counts as near: its effect has an end, as that of a length scale of an input that
    does not matter.
    """
    way, (low, high) = peak.theta - theta, _PARABOLA
    gap = peak.log_evidence - value
    if np.abs(way).max() <= _SAME:
        return gap >= 0.0
    promised = float(gradient @ np.clip(way, -_REACH, _REACH))
    return low * promised <= gap <= high * promised


def _rise(theta: FloatArray, gradient: FloatArray, bounds: FloatArray, reach: float) -> float:
    """Return by how much a tangent rises over so many units of each logarithm, within the bounds."""
    room = np.clip(theta + reach * np.sign(gradient), *bounds.T) - theta
    return float(gradient @ room)


def _distinct(peaks: list[Optimum]) -> list[Optimum]:
    """Return the maxima that differ, the highest first."""
    found: list[Optimum] = []
    for peak in sorted(peaks, key=lambda one: -one.log_evidence):
        if all(np.abs(peak.theta - other.theta).max() > _SAME for other in found):
            found.append(peak)
    return found
