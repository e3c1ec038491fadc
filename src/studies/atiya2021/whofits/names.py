"""The data sets of the experiment `whofits`: what they are made from, and how many patterns of each are used.

A plan reads this table before any data are there, so it says how many patterns there are.
"""

from __future__ import annotations

from typing import NamedTuple


class DataSet(NamedTuple):
    """Where patterns come from, which of them are of class +1, and how many are used.

    Attributes
    ----------
    origin : str
        scikit-learn's loader without ``load_``, the name of a picture in `studies.atiya2021.whofits.data`, or a name in
        `studies.common.data.DATASETS`.
    training, test : int
        Patterns of a split: two thirds for training, but at most 1000, and 500 of those with 64 inputs; of the rest at
        most 1000 are held out.
    inputs : int
        Features of a pattern.
    registered : str
        Of raw data, its name in data/registry.csv; empty for what ships with a package.
    classes : (tuple of int, tuple of int) or None
        Of several classes, those of label +1 and those of label -1; None for two classes, or for a target that is
        divided at its median.
    target : int or None
        The feature that is the target, in place of the source's own.
    scaled : bool
        Whether features have the mean 0 and the standard deviation 1 over the training patterns. Grey values, which
        share a scale, are left as they are.
    """

    origin: str
    training: int
    test: int
    inputs: int
    registered: str = ""
    classes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    target: int | None = None
    scaled: bool = True


_ODD, _EVEN, _LOW, _HIGH = (1, 3, 5, 7, 9), (0, 2, 4, 6, 8), (0, 1, 2, 3, 4), (5, 6, 7, 8, 9)


def _usps(test: int, *classes: tuple[int, ...]) -> DataSet:
    positive, negative = classes
    return DataSet("usps_zip_smoothed", 1000, test, 16, "usps", (positive, negative), scaled=False)


#: Data sets by name: medicine and biology, then digits, then pictures, whose inputs are the place of a pixel.
DATA_SETS = {
    "wdbc": DataSet("breast_cancer", 379, 190, 30),
    "wisconsin": DataSet("wisconsin", 455, 228, 9, "breast_cancer"),
    "pima": DataSet("pima", 512, 256, 8, "pima"),
    "abalone-sex": DataSet("abalone", 1000, 1000, 8, "abalone"),
    "abalone-age": DataSet("abalone", 1000, 1000, 7, "abalone", target=7),
    "digits-odd": DataSet("digits", 500, 1000, 64, classes=(_ODD, _EVEN), scaled=False),
    "digits-low": DataSet("digits", 500, 1000, 64, classes=(_LOW, _HIGH), scaled=False),
    "usps-3-5": _usps(540, (3,), (5,)),
    "usps-4-9": _usps(673, (4,), (9,)),
    "usps-3-8": _usps(532, (3,), (8,)),
    "usps-odd": _usps(1000, _ODD, _EVEN),
    "sea-land": DataSet("sea_land", 1000, 1000, 2),
    "terrain": DataSet("terrain", 1000, 1000, 2),
    "photograph": DataSet("photograph", 1000, 1000, 2),
    "head": DataSet("head", 1000, 1000, 2),
}


#: Most splits of a data set.
SPLITS = 10


def split_of(name: str) -> tuple[str, int] | None:
    """Return data set and split of a name of patterns such as ``pima-split0``; None of another name."""
    data, _, split = name.rpartition("-split")
    return (data, int(split)) if data in DATA_SETS and split.isdigit() else None
