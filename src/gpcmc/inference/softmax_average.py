"""The average of the softmax over a Gaussian, by a rule that does not know the names of the classes.

Points of a low-discrepancy sequence treat their coordinates differently, so that an average over them depends on which
class comes first. Here each test input sorts its classes by what their Gaussian says of them (mean, variance,
covariance with the mean), the root of the covariance is the symmetric one, and the points are used in all C rotations
of their coordinates. Classes that can be exchanged without a change of the Gaussian share what they get together: where
all can, as far from the data, each has 1/C exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from gpcmc._validation import FloatArray
from gpcmc.inference.normal_points import PointSet

_CHUNK = 16  # test inputs at a time
_SEED = (3, 4)  # of the points: predictions repeat to the bit
_SAME = 1e-9  # of the largest deviation: values nearer than this differ by rounding
_LEAST = 1e-100  # a variance that stands for none, whose powers do not vanish


def softmax_average(
    mean: FloatArray, covariance: FloatArray, *, points: int, randomizations: int
) -> tuple[FloatArray, FloatArray]:
    """Return E softmax(f), f ~ N(mean, covariance), of each test input.

    Parameters
    ----------
    mean : (t, C) array
    covariance : (t, C, C) array
    points : int
        Sobol' points of a randomisation, a power of two; each is used in C rotations.
    randomizations : int
        Independent ones: their spread gives the standard errors.

    Returns
    -------
    probability, standard_error : (t, C) arrays
        The errors are zeros with a single randomisation.
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
