"""Where a search should begin: in the scale of the data, and with some of the patterns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from gpcmc._validation import FloatArray

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

_SAMPLE = 100  # inputs whose distances are looked at
_RARE = 25  # patterns of a class that a share of all patterns keeps, if there are so many


def scaled_starts(kernel: Kernel, X: Any) -> list[FloatArray]:
    """Return theta with length scales of the median distance, and with variances of 1 and of 100, within the bounds.

    Hyperparameters of other names, and those of kernels on other things than vectors, stay as they are.
    """
    if not vectors(X):
        return [np.array(kernel.theta)] * 2
    whole, along = distances(X)
    starts = []
    for variance in (1.0, 100.0):
        theta = np.array(kernel.theta)
        for one, part in _free(kernel):
            if one.name.endswith("constant_value"):
                theta[part] = np.log(variance)
            elif one.name.endswith("length_scale"):
                theta[part] = np.log(along if one.n_elements == len(along) > 1 else whole)
        starts.append(np.clip(theta, *kernel.bounds.T))
    return starts


def revived(kernel: Kernel, theta: FloatArray, scaled: FloatArray) -> FloatArray:
    """Return theta (p,) with those of several length scales that are above the data's put back to these.

    Few patterns may not show that an input matters. Its length scale then ends far away, where the evidence of more
    patterns is flat as well.
    """
    back = theta.copy()
    for one, part in _free(kernel):
        if one.n_elements > 1 and one.name.endswith("length_scale"):
            back[part] = np.minimum(theta[part], scaled[part])
    return back


def _free(kernel: Kernel) -> Iterator[tuple[Hyperparameter, slice]]:
    """Each hyperparameter that is not fixed, and its place in theta."""
    at = 0
    for one in kernel.hyperparameters:
        if not one.fixed:
            yield one, slice(at, at + one.n_elements)
            at += one.n_elements


def distances(X: FloatArray) -> tuple[float, FloatArray]:
    """Return the median distance between inputs, and for each coordinate alone, times the root of their number.

    One where all inputs agree.
    """
    some = X[:: -(-len(X) // _SAMPLE)]
    pairs = np.triu_indices(len(some), 1)
    gaps = np.abs(some[pairs[0]] - some[pairs[1]])
    whole = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
    positive = whole[whole > 0]
    middle = float(np.median(positive)) if len(positive) else 1.0
    along = np.median(gaps, axis=0) * np.sqrt(X.shape[1])
    return middle, np.where(along > 0, along, middle)


def vectors(X: Any) -> bool:
    """Return whether the inputs are rows of numbers."""
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"


def knowing_shares(y: FloatArray) -> float:
    """Return the log probability (nats) of labels (n,) or (C, n) for one who knows the shares of the classes alone."""
    counts = np.unique(y, return_counts=True)[1] if y.ndim == 1 else y.sum(axis=1)
    shares = counts / y.shape[-1]
    return float(y.shape[-1] * np.sum(xlogy(shares, shares)))


def some_of(y: FloatArray, count: int) -> NDArray[np.intp]:
    """Return about `count` patterns, the same for equal arguments; of rare classes more than their share.

    y (n,) are labels -1/+1 or numbers of classes, or y (C, n) ones and zeros of C classes.
    """
    code = np.unique(y, return_inverse=True)[1] if y.ndim == 1 else y.argmax(axis=0)
    order = np.random.default_rng(0).permutation(len(code))
    chosen = order[:count]
    more = [chosen]
    for c in range(int(code.max()) + 1):
        missing = _RARE - int(np.sum(code[chosen] == c))
        if missing > 0:
            more.append(order[count:][code[order[count:]] == c][:missing])
    return np.sort(np.concatenate(more))


def sizes(n: int, least: int) -> list[int]:
    """Return numbers of patterns that a search climbs with, one after the other; the last is n."""
    found = [n]
    while found[0] > 1.6 * least:
        found.insert(0, max(found[0] // 4, least))
    return found
