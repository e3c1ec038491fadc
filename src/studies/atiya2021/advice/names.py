"""The twenty binary data sets of the experiment `advice`: those of scikit-learn, and those of the registry of raw data.

A plan reads this table before any data are there, so it says how many patterns there are: two thirds for training, and
the rest for tests, but at most 200 of either.
"""

from __future__ import annotations

from studies.atiya2021.whofits.names import DataSet


def _two(one: int, other: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of several classes, the two that are told apart, first that of label +1."""
    return (one,), (other,)


def _digits(test: int, one: int, other: int) -> DataSet:
    return DataSet("digits", 200, test, 64, classes=_two(one, other))


def _usps(one: int, other: int) -> DataSet:
    return DataSet("usps_zip_smoothed", 200, 200, 256, "usps", _two(one, other))


#: Data sets by name, from few patterns to many in either group.
DATA_SETS = {
    "linnerud": DataSet("linnerud", 13, 7, 3),
    "iris-0-1": DataSet("iris", 67, 33, 4, classes=_two(0, 1)),
    "iris-1-2": DataSet("iris", 67, 33, 4, classes=_two(1, 2)),
    "wine-1-2": DataSet("wine", 79, 40, 13, classes=_two(1, 2)),
    "wine-0-1": DataSet("wine", 87, 43, 13, classes=_two(0, 1)),
    "digits-8-9": _digits(154, 8, 9),
    "digits-1-7": _digits(161, 1, 7),
    "digits-4-9": _digits(161, 4, 9),
    "digits-3-5": _digits(165, 3, 5),
    "diabetes": DataSet("diabetes", 200, 200, 10),
    "wdbc": DataSet("breast_cancer", 200, 200, 30),
    "crabs": DataSet("crabs", 133, 67, 6, "crabs"),
    "sonar": DataSet("sonar", 139, 69, 60, "sonar"),
    "ionosphere": DataSet("ionosphere", 200, 151, 34, "ionosphere"),
    "wisconsin": DataSet("breast_cancer", 200, 200, 9, "breast_cancer"),
    "pima": DataSet("pima", 200, 200, 8, "pima"),
    "abalone": DataSet("abalone", 200, 200, 8, "abalone"),
    "usps-1-7": _usps(1, 7),
    "usps-3-5": _usps(3, 5),
    "usps-4-9": _usps(4, 9),
}
