"""The softmax likelihood of several classes, each with a latent function: p(y = c | f) = exp(f_c) / sum_d exp(f_d).

Its average over a Gaussian is by a rule that does not know the names of the classes. Points of a low-discrepancy
sequence treat their coordinates differently, so that an average over them depends on which class comes first. Here each
test input sorts its classes by what their Gaussian says of them (mean, variance, covariance with the mean), the root of
the covariance is the symmetric one, and the points are used in all C rotations of their coordinates. Classes that can
be exchanged without a change of the Gaussian share what they get together: where all can, as far from the data, each
has 1/C exactly.

References
----------
Rasmussen and Williams (2006), Eqs. (3.33)-(3.38), (5.23).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from gpcmc._normal_points import PointSet
from gpcmc._validation import FloatArray

_CHUNK = 16  # test inputs at a time
_FEW = 32  # points of a rough average
_SEED = (3, 4)  # of the points: predictions repeat to the bit
_SAME = 1e-9  # of the largest deviation: values nearer than this differ by rounding
_LEAST = 1e-100  # a variance that stands for none, whose powers do not vanish


@dataclass(frozen=True, slots=True)
class Softmax:
    """The likelihood with the rule of its averages: Sobol' points of a randomisation, and randomisations."""

    points: int = 512
    randomizations: int = 4

    def average(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return class probabilities (t, C) averaged over the latent Gaussian, and their standard errors."""
        return softmax_average(
            mean, variance, points=self.points, randomizations=self.randomizations
        )

    def roughly(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return class probabilities (t, C) by few points: good for differences."""
        return softmax_average(mean, variance, points=_FEW, randomizations=1)[0]


def log_likelihood(y: FloatArray, f: FloatArray) -> float:
    """Return the sum of log p(y | f) over patterns, for y (C, n) of ones and zeros and f (C, n)."""
    return float(np.sum(y * log_softmax(f, axis=0)))


def half_slope_of_log_det(pi: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return s (C, n), the derivative of -log |I + K W| / 2 in f, through the third derivatives of the softmax.

    With the class probabilities pi (C, n) and the posterior covariance S (C, C) of each pattern's latent values it is

        s_c = -pi_c (S_cc - sum_d pi_d S_dd - 2 (S pi)_c + 2 pi' S pi) / 2.
    """
    S_pi = np.einsum("ncd,dn->cn", covariance, pi)
    variance = np.einsum("ncc->cn", covariance)
    means = np.sum(pi * variance, axis=0) - 2.0 * np.sum(pi * S_pi, axis=0)
    return -0.5 * pi * (variance - means - 2.0 * S_pi)


def check_classes(name: str, value: ArrayLike, n: int) -> FloatArray:
    """Return (C, n): 1 for the class of each pattern, else 0; of n labels 0 to C - 1, each of which occurs."""
    labels = np.asarray(value)
    found = np.unique(labels)
    if labels.shape != (n,) or list(found) != list(range(max(len(found), 2))):
        raise ValueError(
            f"{name} must hold {n} labels 0, 1, ..., C - 1, each at least once; got shape "
            f"{labels.shape} with labels {found[:5].tolist()}"
        )
    return one_hot(labels.astype(np.intp))


def one_hot(labels: NDArray[np.integer]) -> FloatArray:
    """Return (C, n): 1 for the class of each pattern, else 0."""
    return np.eye(int(labels.max()) + 1)[:, labels]


def softmax_average(
    mean: FloatArray, covariance: FloatArray, *, points: int, randomizations: int
) -> tuple[FloatArray, FloatArray]:
    """Return E softmax(f), f ~ N(mean, covariance), of each test input, (t, C), and standard errors of the same shape.

    Each of the Sobol' points, a power of two, is used in C rotations; the spread of independent randomisations gives
    the errors, which are zeros with a single one. `covariance` is (t, C, C).
    """
    classes = mean.shape[1]
    total = points * randomizations
    draws = np.stack(list(PointSet("sobol", total, points, classes, _SEED).blocks()))
    rotated = np.concatenate([np.roll(draws, shift, axis=2) for shift in range(classes)], axis=1)
    order = _order(mean, covariance)
    mean = np.take_along_axis(mean, order, axis=1)
    covariance = np.take_along_axis(
        np.take_along_axis(covariance, order[:, :, None], axis=1), order[:, None, :], axis=2
    )
    each = np.empty((randomizations, *mean.shape))
    for start in range(0, len(mean), _CHUNK):
        part = slice(start, start + _CHUNK)
        variance, V = np.linalg.eigh(covariance[part])
        root = (V * np.sqrt(np.maximum(variance, 0.0))[:, None, :]) @ V.transpose(0, 2, 1)
        for average, normals in zip(each, rotated, strict=True):
            f = mean[part, None] + normals @ root
            average[part] = softmax(f, axis=2).mean(axis=1)
    _share(each, mean, covariance)
    spread = each.std(axis=0, ddof=1) if randomizations > 1 else 0.0 * each[0]
    back = np.argsort(order, axis=1)
    probability = np.take_along_axis(each.mean(axis=0), back, axis=1)
    return probability, np.take_along_axis(spread / np.sqrt(randomizations), back, axis=1)


def _order(mean: FloatArray, covariance: FloatArray) -> NDArray[np.intp]:
    """Return the order (t, C) of the classes of each test input; values that differ by rounding are ties."""
    variance = np.einsum("tcc->tc", covariance)
    scale = np.maximum(variance.max(axis=1, keepdims=True), _LEAST)
    along = np.einsum("tcd,td->tc", covariance, mean) / scale**1.5
    keys = (along, variance / scale, mean / np.sqrt(scale))  # the last one first
    return np.lexsort([np.round(key / _SAME) for key in keys], axis=1)


def _share(each: FloatArray, mean: FloatArray, covariance: FloatArray) -> None:
    """Give classes, neighbours in the order, that can be exchanged the mean of their averages (r, t, C), in place."""
    variance = np.einsum("tcc->tc", covariance)
    scale = np.maximum(variance.max(axis=1), _LEAST)
    classes = mean.shape[1]
    same = np.empty((len(mean), classes - 1), dtype=bool)
    for k in range(classes - 1):
        swapped = np.arange(classes)
        swapped[[k, k + 1]] = k + 1, k
        turned = covariance[:, swapped][:, :, swapped]
        change = np.abs(turned - covariance).max(axis=(1, 2)) / scale
        gap = np.abs(mean[:, k + 1] - mean[:, k]) / np.sqrt(scale)
        same[:, k] = (change <= _SAME) & (gap <= _SAME)
    for at in np.flatnonzero(same.any(axis=1)):
        start = 0
        for stop in range(1, classes + 1):
            if stop == classes or not same[at, stop - 1]:
                if stop - start > 1:
                    whole = each[:, at, start:stop].sum(axis=1, keepdims=True)
                    rest = each[:, at].sum(axis=1, keepdims=True)
                    each[:, at, start:stop] = whole / rest / (stop - start)
                start = stop
