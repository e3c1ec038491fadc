"""Support vector machines: scores of held-out cases, and the book's search for C and l (section 3.7.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from studies.common.rows import Line
from studies.common.seeds import random_state
from studies.rasmussen2006.patterns import Binary

Array = np.ndarray
FOLDS = 5
#: The grid, ours: the book prints neither its steps nor its ends. The best of the book is C = 1, l = 10.
LENGTHS, COSTS = (2.5, 5.0, 10.0, 20.0, 40.0), (0.1, 1.0, 10.0, 100.0, 1000.0)
#: The factor of d^2 / l^2 in the kernel, by reading: the book's 1/2, and 1.
EXPONENTS = {"half": 0.5, "whole": 1.0}


def held_out_scores(
    kernel: Array, y: Array, cost: float, folds: Sequence[tuple[Array, Array]]
) -> Array:
    """Return the score (n,) of each case by a machine that is trained on the other folds.

    Parameters
    ----------
    kernel : (n, n) array
    y : (n,) array
        Labels -1/+1.
    cost : float
        C.
    folds : sequence of (array, array)
        Indices of the training and of the held-out cases.
    """
    from sklearn.svm import SVC

    scores, machine = np.empty(len(y)), SVC(C=cost, kernel="precomputed")
    for rest, part in folds:
        machine.fit(kernel[np.ix_(rest, rest)], y[rest])
        scores[part] = machine.decision_function(kernel[np.ix_(part, rest)])
    return scores


def search(path: str, digits: Mapping[str, Array]) -> list[Line]:
    """Search C and l by the error rate of five-fold cross-validation of threes against fives.

    Parameters
    ----------
    path : str
        Of the random stream: the folds.
    digits : mapping
        Arrays of `patterns.usps`.

    Returns
    -------
    list of dict
        One a ``machine`` (a key of `EXPONENTS`), ``length`` and ``cost``: held-out ``errors`` of ``cases``.
    """
    from sklearn.model_selection import StratifiedKFold

    data, lines = Binary.of_digits(digits), []
    shuffled = StratifiedKFold(FOLDS, shuffle=True, random_state=random_state(path))
    folds = list(shuffled.split(data.X, data.y))
    for name, exponent in EXPONENTS.items():
        for length in LENGTHS:
            kernel = np.exp(-exponent / length**2 * data.distances)
            for cost in COSTS:
                wrong = held_out_scores(kernel, data.y, cost, folds) * data.y <= 0
                key = {"machine": name, "length": length, "cost": cost}
                lines.append({**key, "errors": int(wrong.sum()), "cases": len(wrong)})
    return lines
