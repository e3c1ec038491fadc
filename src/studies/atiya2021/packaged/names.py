"""The binary data sets of the experiment `packaged`: those of scikit-learn, and those of the registry of raw data.

A plan reads this table before any data are there, so it says how many patterns there are.
"""

from __future__ import annotations

from typing import NamedTuple


class DataSet(NamedTuple):
    """Where patterns come from, and how many there are.

    Attributes
    ----------
    origin : str
        scikit-learn's loader without ``load_``, or a name in `studies.common.data.DATASETS`.
    training, test : int
        Two thirds of all patterns for training, and the rest for tests, but at most 200 of either.
    classes : (int, int) or None
        Of several classes, the two that are told apart, first that of label +1; None for two classes, or for a target
        that is divided at its median.
    registered : str
        Of raw data, its name in data/registry.csv; empty for scikit-learn's.
    """

    origin: str
    training: int
    test: int
    classes: tuple[int, int] | None = None
    registered: str = ""


#: Data sets by name, from few patterns to many in either group.
DATA_SETS = {
    "linnerud": DataSet("linnerud", 13, 7),
    "iris-0-1": DataSet("iris", 67, 33, (0, 1)),
    "iris-1-2": DataSet("iris", 67, 33, (1, 2)),
    "wine-1-2": DataSet("wine", 79, 40, (1, 2)),
    "wine-0-1": DataSet("wine", 87, 43, (0, 1)),
    "digits-8-9": DataSet("digits", 200, 154, (8, 9)),
    "digits-1-7": DataSet("digits", 200, 161, (1, 7)),
    "digits-4-9": DataSet("digits", 200, 161, (4, 9)),
    "digits-3-5": DataSet("digits", 200, 165, (3, 5)),
    "diabetes": DataSet("diabetes", 200, 200),
    "wdbc": DataSet("breast_cancer", 200, 200),
    "crabs": DataSet("crabs", 133, 67, registered="crabs"),
    "sonar": DataSet("sonar", 139, 69, registered="sonar"),
    "ionosphere": DataSet("ionosphere", 200, 151, registered="ionosphere"),
    "wisconsin": DataSet("wisconsin", 200, 200, registered="breast_cancer"),
    "pima": DataSet("pima", 200, 200, registered="pima"),
    "abalone": DataSet("abalone", 200, 200, registered="abalone"),
    "usps-1-7": DataSet("usps_zip_smoothed", 200, 200, (1, 7), registered="usps"),
    "usps-3-5": DataSet("usps_zip_smoothed", 200, 200, (3, 5), registered="usps"),
    "usps-4-9": DataSet("usps_zip_smoothed", 200, 200, (4, 9), registered="usps"),
}
