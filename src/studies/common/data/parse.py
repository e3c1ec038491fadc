"""From verified raw files to arrays: Crabs, Breast Cancer, USPS threes against fives.

Every loader takes the folder of the raw files and the registry, verifies the bytes it is about to
parse, and never opens a connection. The paper states neither targets nor cleaning; what is done
here is what gives its numbers of patterns, and `RawData.notes` says it:

- Crabs (Problem 7): target sex, six features (species as 0/1 and five lengths), 200 = 100 + 100.
- Breast Cancer (Problem 8): 699 rows, less 16 with a missing value, less repetitions of the nine
  features among the rest, 449 = 200 + 249.
- USPS (Problem 9): the threes and fives of both files, 1540 = 750 + 790, smoothed as in the file
  that the paper names: the data page of Rasmussen and Williams (2006).
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from studies.common.data.registry import Entry, files_of, read_verified

LENGTHS = ("FL", "RW", "CL", "CW", "BD")
CYTOLOGY = (
    "clump_thickness",
    "uniformity_of_cell_size",
    "uniformity_of_cell_shape",
    "marginal_adhesion",
    "single_epithelial_cell_size",
    "bare_nuclei",
    "bland_chromatin",
    "normal_nucleoli",
    "mitoses",
)
SIDE = 16
#: Of the Gaussian that smooths USPS images, in pixels: its standard deviation, and where it is cut off.
BLUR, CUT = 0.75, 3.0
PIXELS = tuple(f"pixel_{row:02d}_{column:02d}" for row in range(SIDE) for column in range(SIDE))


@dataclass(frozen=True, slots=True, eq=False)
class RawData:
    """A two-class data set, cleaned but neither scaled nor split.

    Attributes
    ----------
    name : str
        Name of the data set in the registry.
    X : ndarray, shape (n, d)
        Features, in the units of the source.
    y : ndarray, shape (n,)
        Labels, -1.0 or +1.0.
    feature_names : tuple of str, length d
        Names of the columns of `X`.
    class_names : tuple of str, length 2
        What -1 and +1 stand for, in this order.
    notes : tuple of str
        The choices that were made between the file and the arrays.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    class_names: tuple[str, str]
    notes: tuple[str, ...]


def _contents(
    dataset: str, files: tuple[str, ...], folder: str | PathLike[str], registry: Sequence[Entry]
) -> list[BytesIO]:
    """Read the verified contents of the files of a data set, in the order of `files`."""
    entries = {entry.file: entry for entry in files_of(dataset, registry)}
    if set(entries) != set(files):
        raise ValueError(f"registry: {dataset} has files {sorted(entries)}, need {sorted(files)}")
    return [BytesIO(read_verified(entries[file], Path(folder) / file)) for file in files]


def crabs_table(folder: str | PathLike[str], registry: Sequence[Entry]) -> pd.DataFrame:
    """Read ``crabs.csv`` as it is: 200 rows."""
    (content,) = _contents("crabs", ("crabs.csv",), folder, registry)
    return pd.read_csv(content, dtype=dict.fromkeys(LENGTHS, "float64"))


def breast_cancer_table(folder: str | PathLike[str], registry: Sequence[Entry]) -> pd.DataFrame:
    """Read ``breast-cancer-wisconsin.data`` as it is, ``?`` as NaN: 699 rows."""
    (content,) = _contents("breast_cancer", ("breast-cancer-wisconsin.data",), folder, registry)
    return pd.read_csv(
        content,
        header=None,
        names=["id", *CYTOLOGY, "class"],
        na_values="?",
        dtype=dict.fromkeys(CYTOLOGY, "float64"),
    )


def usps_table(folder: str | PathLike[str], registry: Sequence[Entry]) -> pd.DataFrame:
    """Read ``zip.train.gz`` and ``zip.test.gz``, all digits, indexed by file and row: 9298 rows."""
    files = ("zip.train.gz", "zip.test.gz")
    parts = [
        pd.read_csv(
            BytesIO(gzip.decompress(content.getvalue())),
            sep=r"\s+",
            header=None,
            names=["digit", *PIXELS],
            dtype="float64",
        )
        for content in _contents("usps", files, folder, registry)
    ]
    return pd.concat(parts, keys=files, names=["file", "row"]).astype({"digit": "int64"})


def _arrays(
    features: pd.DataFrame, positive: pd.Series
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X = np.ascontiguousarray(features.to_numpy(dtype=np.float64))
    return X, np.where(positive.to_numpy(), 1.0, -1.0)


def load_crabs(folder: str | PathLike[str], registry: Sequence[Entry]) -> RawData:
    """Load Leptograpsus crabs, female (-1) against male (+1).

    Parameters
    ----------
    folder : path-like
        Folder that holds ``crabs.csv``.
    registry : sequence of Entry
        The registry, from `read_registry`.

    Returns
    -------
    RawData
        200 patterns, 100 of each class. Six features: species (0 blue, 1 orange) and FL, RW, CL,
        CW, BD in mm.

    Raises
    ------
    DamagedFileError, DataUnavailableError
        If the file is not the registered one, or not there.
    """
    table = crabs_table(folder, registry)
    features = table[list(LENGTHS)]
    features.insert(0, "species", (table["sp"] == "O").astype("float64"))
    X, y = _arrays(features, table["sex"] == "M")
    return RawData(
        "crabs",
        X,
        y,
        tuple(features.columns),
        ("female", "male"),
        (
            "target: sex, male +1, female -1",
            "species is a feature: 0 blue (B), 1 orange (O)",
            "the columns rownames and index are not features",
        ),
    )


def load_breast_cancer(folder: str | PathLike[str], registry: Sequence[Entry]) -> RawData:
    """Load Breast Cancer Wisconsin (Original), benign (-1) against malignant (+1).

    Parameters
    ----------
    folder : path-like
        Folder that holds ``breast-cancer-wisconsin.data``.
    registry : sequence of Entry
        The registry, from `read_registry`.

    Returns
    -------
    RawData
        449 patterns, 213 benign and 236 malignant. Nine features, integers from 1 to 10.

    Raises
    ------
    DamagedFileError, DataUnavailableError
        If the file is not the registered one, or not there.
    """
    # The order matters: repetitions are removed among the complete rows (449), not before (463).
    table = breast_cancer_table(folder, registry).dropna()
    table = table.drop_duplicates(subset=list(CYTOLOGY), keep="first")
    X, y = _arrays(table[list(CYTOLOGY)], table["class"] == 4)
    return RawData(
        "breast_cancer",
        X,
        y,
        CYTOLOGY,
        ("benign", "malignant"),
        (
            "target: class, malignant (4) +1, benign (2) -1",
            "rows with a missing value are dropped",
            "then of rows with equal features the first is kept; none of them differ in class",
        ),
    )


def smooth(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smooth images with a normalised Gaussian; outside of an image is background, -1.

    Parameters
    ----------
    images : ndarray, shape (n, 256)
        Grey values in [-1, 1], the 16 x 16 raster row by row.

    Returns
    -------
    ndarray, shape (n, 256)
        So the ZIP-code images became those of the book's ``usps_resampled.mat``.
    """
    raster = images.reshape(-1, SIDE, SIDE)
    blurred = gaussian_filter(
        raster, BLUR, mode="constant", cval=-1.0, truncate=CUT / BLUR, axes=(1, 2)
    )
    return np.ascontiguousarray(blurred.reshape(images.shape))


def load_usps(
    folder: str | PathLike[str], registry: Sequence[Entry], *, smoothed: bool = True
) -> RawData:
    """Load USPS digits, fives (-1) against threes (+1).

    Parameters
    ----------
    folder : path-like
        Folder that holds ``zip.train.gz`` and ``zip.test.gz``.
    registry : sequence of Entry
        The registry, from `read_registry`.
    smoothed : bool
        Whether the images are smoothed, as those of the book's data page are, or left as scanned.

    Returns
    -------
    RawData
        1540 patterns, 824 threes and 716 fives, those of ``zip.train.gz`` first. 256 features: grey
        values in [-1, 1], the 16 x 16 raster row by row.

    Raises
    ------
    DamagedFileError, DataUnavailableError
        If a file is not the registered one, or not there.
    """
    table = usps_table(folder, registry)
    table = table[table["digit"].isin((3, 5))]
    X, y = _arrays(table[list(PIXELS)], table["digit"] == 3)
    images = "smoothed: Gaussian of 0.75 pixel, cut off at 3 pixels" if smoothed else "as scanned"
    return RawData(
        "usps",
        smooth(X) if smoothed else X,
        y,
        PIXELS,
        ("five", "three"),
        (
            "target: digit, three +1, five -1; the other digits are dropped",
            "the traditional training and test files are pooled",
            f"the images are {images}",
        ),
    )


DATASETS: dict[str, Callable[[str | PathLike[str], Sequence[Entry]], RawData]] = {
    "crabs": load_crabs,
    "breast_cancer": load_breast_cancer,
    "usps": load_usps,
    "usps_raw": partial(load_usps, smoothed=False),
}
"""The loader of each data set: Problems 7, 8 and 9, and Problem 9 with the images as they were scanned."""


def load(dataset: str, folder: str | PathLike[str], registry: Sequence[Entry]) -> RawData:
    """Load a data set by name.

    Parameters
    ----------
    dataset : str
        One of the names in `DATASETS`.
    folder : path-like
        Folder of the raw files.
    registry : sequence of Entry
        The registry, from `read_registry`.

    Returns
    -------
    RawData
        The data set, cleaned but neither scaled nor split.

    Raises
    ------
    DamagedFileError
        If a file is not the registered one.
    DataUnavailableError
        If a file is not there.
    ValueError
        If there is no such data set.
    """
    if dataset not in DATASETS:
        raise ValueError(f"dataset={dataset!r}, need one of {list(DATASETS)}")
    return DATASETS[dataset](folder, registry)
