"""Gamma priors of hyperparameters, alone and in hierarchies, in logarithms: N(16) to N(18).

A hyperparameter theta is a standard deviation or a relevance. phi = theta^-2 is gamma with shape alpha/2 and mean
omega = width^-2; with x = log theta the density of x is

    log p(x) = (alpha/2) log(alpha / (2 omega)) - log Gamma(alpha/2) + log 2 - alpha x - alpha / (2 omega) e^(-2x).

In a hierarchy each member has this prior with omega = theta*^-2, where theta* is the top level of the group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpcmc._validation import FloatArray

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Hyperparameters of kernels by the end of their names: how many times log theta enters ``kernel.theta``.
_MULTIPLES = {"constant_value": 2.0, "noise_level": 2.0, "rho": 1.0}
#: Step of a leapfrog in log theta that Neal's software proposes before it is multiplied by a factor.
_STEP = 0.1


def gamma_log_density(x: FloatArray, top: float, alpha: float) -> tuple[float, FloatArray, float]:
    """Return the log density of logarithms x whose mean precision is e^(-2 top), N(18).

    Parameters
    ----------
    x : (p,) array
        log theta_u.
    top : float
        log theta*: the mean of theta_u^-2 is theta*^-2.
    alpha : float
        Twice the shape.

    Returns
    -------
    log_density : float
        Sum over u.
    gradient : (p,) array
        With respect to x.
    slope : float
        With respect to `top`: minus the sum of the gradient.
    """
    half = 0.5 * alpha
    ratio = np.exp(2.0 * (top - x))
    constant = half * math.log(half) - math.lgamma(half) + math.log(2.0)
    value = float(np.sum(constant + alpha * (top - x) - half * ratio))
    gradient = alpha * (ratio - 1.0)
    return value, gradient, -float(gradient.sum())


@dataclass(frozen=True)
class Gamma:
    """Prior of one hyperparameter: theta^-2 is gamma with shape alpha/2 and mean width^-2, N(16).

    Attributes
    ----------
    width : float
        Where theta is, in its own unit.
    alpha : float
        Large is narrow. Neal writes ``width:alpha``.
    """

    width: float
    alpha: float

    def log_density(self, x: float) -> tuple[float, float]:
        """Return the log density of x = log theta, and its derivative."""
        value, gradient, _ = gamma_log_density(np.array([x]), math.log(self.width), self.alpha)
        return value, float(gradient[0])

    def draw(self, rng: np.random.Generator) -> float:
        """Return x = log theta of a draw."""
        return float(draw_logarithms(math.log(self.width), self.alpha, 1, rng)[0])


@dataclass(frozen=True)
class Hierarchy:
    """Prior of a group: theta_u^-2 is gamma with shape alpha/2 and mean theta*^-2, N(17) and N(18).

    Attributes
    ----------
    top : Gamma
        Prior of theta*.
    alpha : float
        Large values make the members of the group equal. Neal writes ``width:alpha of the top:alpha``.
    """

    top: Gamma
    alpha: float


def draw_logarithms(top: float, alpha: float, count: int, rng: np.random.Generator) -> FloatArray:
    """Return logarithms (count,) of hyperparameters whose theta^-2 is gamma with shape alpha/2 and mean e^(-2 top)."""
    half = 0.5 * alpha
    # the logarithm of a gamma variate whose shape is small may be far below that of the least number
    logs = np.log(rng.standard_gamma(half + 1.0, count)) - rng.standard_exponential(count) / half
    return top - 0.5 * (logs - math.log(half))


@dataclass(frozen=True)
class _Group:
    """Where one prior is in the vector x, and in ``kernel.theta``."""

    prior: Gamma | Hierarchy
    top: int  # place in x of the top level of a hierarchy
    members: slice  # in x
    entries: slice  # in theta
    multiple: float


class Priors:
    """The joint prior of a kernel's hyperparameters, over a vector x of logarithms.

    x holds, for each prior in turn, log theta* if the prior is a hierarchy, then the logarithms of the members. A
    `Gamma` prior of a hyperparameter with several values makes them equal. Standard deviations, not variances, have the
    priors: x is half the logarithm of a ``constant_value`` or ``noise_level``.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Its free hyperparameters may be those of ConstantKernel, WhiteKernel and `SquaredExponential`.
    priors : sequence of Gamma or Hierarchy
        One for each free hyperparameter, in the order of ``kernel.hyperparameters``.

    Attributes
    ----------
    kernel : Kernel
    start : (p,) array
        The kernel's own values; a top level begins at the mean of its members' logarithms.
    steps : (p,) array
        Step sizes of a leapfrog, to be multiplied by a factor: 0.1, of a top level 0.1 / sqrt(members); section 5.
    """

    def __init__(self, kernel: Kernel, priors: Sequence[Gamma | Hierarchy]) -> None:
        free = [one for one in kernel.hyperparameters if not one.fixed]
        self.kernel, theta = kernel, kernel.theta
        self._groups: list[_Group] = []
        start: list[float] = []
        steps: list[float] = []
        entry = 0
        for hyperparameter, prior in zip(free, priors, strict=True):
            multiple = _MULTIPLES[hyperparameter.name.rsplit("__", 1)[-1]]
            count = hyperparameter.n_elements
            entries = slice(entry, entry + count)
            values = theta[entries] / multiple
            top = len(start)
            if isinstance(prior, Gamma):
                values = values.mean(keepdims=True)
            else:
                start.append(float(values.mean()))
                steps.append(_STEP / math.sqrt(count))
            members = slice(len(start), len(start) + len(values))
            start += values.tolist()
            steps += [_STEP] * len(values)
            self._groups.append(_Group(prior, top, members, entries, multiple))
            entry += count
        self._entries = entry
        self.start, self.steps = np.array(start), np.array(steps)

    def __len__(self) -> int:
        return len(self.start)

    def kernel_at(self, x: FloatArray) -> Kernel:
        """Return the kernel with hyperparameters x (p,)."""
        theta = np.empty(self._entries)
        for group in self._groups:
            theta[group.entries] = group.multiple * x[group.members]
        return self.kernel.clone_with_theta(theta)

    def pull_back(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient with respect to x (p,) of a function whose gradient in ``kernel.theta`` is given."""
        found = np.zeros(len(self))
        for group in self._groups:
            own = group.multiple * gradient[group.entries]
            found[group.members] = own.sum() if isinstance(group.prior, Gamma) else own
        return found

    def log_density(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the log density of x (p,), and its gradient (p,)."""
        total, gradient = 0.0, np.zeros(len(self))
        for group in self._groups:
            prior, members = group.prior, group.members
            if isinstance(prior, Gamma):
                value, slope = prior.log_density(float(x[members.start]))
                gradient[members] = slope
            else:
                top = float(x[group.top])
                value, gradient[members], slope = gamma_log_density(x[members], top, prior.alpha)
                of_top, own = prior.top.log_density(top)
                gradient[group.top] = slope + own
                value += of_top
            total += value
        return total, gradient

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Return a draw of x (p,) from the prior."""
        x = np.empty(len(self))
        for group in self._groups:
            prior, members = group.prior, group.members
            if isinstance(prior, Gamma):
                x[members] = prior.draw(rng)
                continue
            x[group.top] = top = prior.top.draw(rng)
            x[members] = draw_logarithms(top, prior.alpha, members.stop - members.start, rng)
        return x
