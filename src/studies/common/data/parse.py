"""From verified raw files to arrays, for every data set.

The sources state neither targets nor cleaning; the recipes here give their numbers of patterns.

- Atiya et al. (2021), Problems 7 to 9. ``crabs``: target sex; the species (0 blue, 1 orange) and five lengths in mm.
  ``breast_cancer``: 699 rows, less 16 with a missing value, less repetitions of the nine features among the rest.
  ``usps``: threes and fives of both files, smoothed as the data page of Rasmussen and Williams (2006) has them.
- Rasmussen and Williams (2006): all ten digits, smoothed and put in `book_order`; the first half is for training.
- Kuss and Rasmussen (2005), Table 1: ``ionosphere``, ``pima``, ``sonar``, ``wisconsin`` (the complete rows,
  repetitions kept) and ``crabs_index`` (the index is a feature too).
- Filippone and Girolami (2014): ``abalone``, males against females; no infants.
- Neal (1997): the examples of his software, three classes and a regression with outliers. The release of 1997-01-18 is
  the one that he describes; that of 2022 has other cases of the same recipe, and more for tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from studies.common.data.checking import COLUMNS, compare, require
from studies.common.data.registry import (
    DataUnavailableError,
    Entry,
    files_of,
    read_registry,
    read_verified,
)

#: Where raw files and their registry are, from the root of the repository.
RAW, REGISTRY = "data/raw", "data/registry.csv"
LENGTHS, SIDE = ["FL", "RW", "CL", "CW", "BD"], 16
#: Of the Gaussian that smooths USPS images, in pixels: its standard deviation, and where it is cut off.
BLUR, CUT = 0.75, 3.0
#: Features, targets, and how many of the first cases are for training, where the source says it.
_Arrays = tuple[NDArray[np.float64], NDArray[Any], int | None]


@dataclass(frozen=True, slots=True, eq=False)
class RawData:
    """A data set, cleaned but neither scaled nor split.

    Features (n, d) in the units of the source; labels -1.0/+1.0, digits (int64) or Neal's targets (n,); how many of the
    first patterns are for training, where the source says it.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    training: int | None = None

    @property
    def table(self) -> pd.DataFrame:
        """Columns ``X``, ``y`` and, where the source has parts, ``part``: what facts are about."""
        groups = {"X": pd.DataFrame(self.X), "y": pd.DataFrame(self.y)}
        if self.training is not None:
            first = np.arange(len(self.y)) < self.training
            groups["part"] = pd.DataFrame(np.where(first, "training", "test"))
        return pd.concat(groups, axis=1)


def _labelled(features: pd.DataFrame, positive: pd.Series) -> _Arrays:
    X = np.ascontiguousarray(features.to_numpy(dtype=np.float64))
    return X, np.where(positive.to_numpy(), 1.0, -1.0), None


def _last_column(table: pd.DataFrame, *, positive: str) -> _Arrays:
    return _labelled(table.iloc[:, :-1], table.iloc[:, -1].astype(str) == positive)


def _crabs(table: pd.DataFrame, *, index: bool) -> _Arrays:
    table = table.assign(species=(table["sp"] == "O").astype("float64"))
    features = ["index", *LENGTHS, "species"] if index else ["species", *LENGTHS]
    return _labelled(table[features], table["sex"] == "M")


def _breast_cancer(table: pd.DataFrame, *, repetitions: bool) -> _Arrays:
    # The order matters: repetitions are removed among the complete rows (449), not before (463).
    table = table.dropna()
    features = table.loc[:, "1":"9"]
    kept = repetitions | ~features.duplicated()
    return _labelled(features[kept], table["10"][kept] == 4)


def _abalone(table: pd.DataFrame) -> _Arrays:
    table = table[table["0"] != "I"]
    return _labelled(table.iloc[:, 1:], table["0"] == "M")


def _example(table: pd.DataFrame, *, training: int) -> _Arrays:
    cases = table.to_numpy(dtype=np.float64)
    return np.ascontiguousarray(cases[:, :-1]), np.ascontiguousarray(cases[:, -1]), training


def _digits(first: pd.DataFrame, second: pd.DataFrame, *, smoothed: bool, book: bool) -> _Arrays:
    table = pd.concat([first, second])
    X, digit = np.ascontiguousarray(table.iloc[:, 1:]), table["0"].to_numpy().astype(np.int64)
    X = smooth(X) if smoothed else X
    if not book:
        return X, digit, len(first)
    order = book_order(len(digit))
    return X[order], digit[order], len(digit) // 2


def _three_five(first: pd.DataFrame, second: pd.DataFrame, *, smoothed: bool) -> _Arrays:
    X, digit, _ = _digits(first, second, smoothed=smoothed, book=False)
    used = np.isin(digit, (3, 5))
    return X[used], np.where(digit[used] == 3, 1.0, -1.0), None


def smooth(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smooth images (n, 256), whose rows are 16 x 16 rasters of grey values in [-1, 1].

    A normalised Gaussian, outside of an image is background (-1): so the ZIP-code images became those of the book's
    ``usps_resampled.mat``.
    """
    raster, cut = images.reshape(-1, SIDE, SIDE), CUT / BLUR
    blurred = gaussian_filter(raster, BLUR, mode="constant", cval=-1.0, truncate=cut, axes=(1, 2))
    return np.ascontiguousarray(blurred.reshape(images.shape))


def book_order(n: int) -> NDArray[np.intp]:
    """Return the permutation of n images that the book's partition is made by.

    It sorts draws of the multiplicative congruential generator 16807 modulo 2^31 - 1 from the state 27 * 2^16. It gives
    all published labels in order, and the grey values of all images that are public in another form.
    """
    state, draws = 27 * 2**16, np.empty(n)
    for k in range(n):
        state = 16807 * state % (2**31 - 1)
        draws[k] = state
    return np.argsort(draws, kind="stable")


#: Data set of the registry, and what makes arrays of its tables, which come in the order of ``facts.yaml``.
DATASETS: dict[str, tuple[str, Callable[..., _Arrays]]] = {
    "crabs": ("crabs", partial(_crabs, index=False)),
    "crabs_index": ("crabs", partial(_crabs, index=True)),
    "breast_cancer": ("breast_cancer", partial(_breast_cancer, repetitions=False)),
    "wisconsin": ("breast_cancer", partial(_breast_cancer, repetitions=True)),
    "usps": ("usps", partial(_three_five, smoothed=True)),
    "usps_raw": ("usps", partial(_three_five, smoothed=False)),
    "usps_book_smoothed": ("usps", partial(_digits, smoothed=True, book=True)),
    "usps_book_raw": ("usps", partial(_digits, smoothed=False, book=True)),
    "usps_zip_smoothed": ("usps", partial(_digits, smoothed=True, book=False)),
    "usps_zip_raw": ("usps", partial(_digits, smoothed=False, book=False)),
    "ionosphere": ("ionosphere", partial(_last_column, positive="g")),
    "sonar": ("sonar", partial(_last_column, positive="M")),
    "pima": ("pima", partial(_last_column, positive="1")),
    "abalone": ("abalone", _abalone),
    "neal_classes_1997": ("neal_classes_1997", partial(_example, training=400)),
    "neal_outliers_1997": ("neal_outliers_1997", partial(_example, training=100)),
    "neal_classes_2022": ("neal_classes_2022", partial(_example, training=400)),
    "neal_outliers_2022": ("neal_outliers_2022", partial(_example, training=100)),
}


def _recipes(source: str) -> dict[str, Callable[..., _Arrays]]:
    return {name: recipe for name, (origin, recipe) in DATASETS.items() if origin == source}


def _examine(
    source: str, names: Iterable[str], folder: str | PathLike[str], registry: Sequence[Entry]
) -> Iterator[tuple[RawData | None, pd.DataFrame]]:
    """The one path from registry to arrays: the facts of the files, then each of the arrays with its facts."""
    entries = {entry.file: entry for entry in files_of(source, registry)}
    recipes, known = _recipes(source), next(iter(entries.values())).facts
    files, arrays = known.get("files", {}), known.get("arrays", {})
    stated = [[name for name, facts in part.items() if facts] for part in (files, arrays)]
    if not recipes or [*map(set, stated)] != [entries.keys(), recipes.keys()]:
        raise ValueError(
            f"{source}: facts are stated about the files and arrays {stated}, need some about each of "
            f"{[[*entries], [*recipes]]}: correct data/facts.yaml or `DATASETS`, studies/common/data/parse.py"
        )
    # Without a head and comma-separated, where nothing else is stated.
    options = {"header": None, **known.get("format", {})}
    contents = {file: BytesIO(read_verified(entries[file], Path(folder) / file)) for file in files}
    tables = {
        file: pd.read_csv(content, **options).rename(columns=str)
        for file, content in contents.items()
    }
    yield None, pd.concat(compare(source, file, tables[file], files[file]) for file in files)
    for name in names:
        raw = RawData(name, *recipes[name](*tables.values()))
        yield raw, compare(source, name, raw.table, arrays[name])


def load(dataset: str, folder: str | PathLike[str], registry: Sequence[Entry]) -> RawData:
    """Load one of `DATASETS` from the folder of the raw files; no connection is opened.

    Raises
    ------
    DamagedFileError, DataUnavailableError
        If a file is not the registered one, or not there.
    ValueError
        If there is no such data set, no facts are stated about it, or a fact does not come out.
    """
    if dataset not in DATASETS:
        raise ValueError(f"dataset={dataset!r}, need one of {list(DATASETS)}")
    made: list[RawData] = []
    for raw, facts in _examine(DATASETS[dataset][0], [dataset], folder, registry):
        require(facts)
        made += [raw] if raw else []
    return made[0]


def registered(dataset: str) -> RawData:
    """Load one of `DATASETS` from where the workflow has raw files and their registry (`load`)."""
    return load(dataset, RAW, read_registry(REGISTRY))


def check(
    folder: str | PathLike[str], registry: Sequence[Entry], datasets: Iterable[str] | None = None
) -> pd.DataFrame:
    """Compare data sets of the registry, by default all, with the facts that are stated about them.

    The columns are ``dataset, fact, expected, found`` (text) and ``ok`` (nullable boolean). A data set of which a file
    is not there has one row, with ``found`` "data not available" and ``ok`` missing: that is no failure.

    Raises
    ------
    DamagedFileError
        If a file is not the registered one.
    ValueError
        If there is no such data set, or no facts are stated about it.
    """
    tables = []
    for source in dict.fromkeys(entry.name for entry in registry) if datasets is None else datasets:
        try:
            found = [*_examine(source, _recipes(source), folder, registry)]
            tables += [facts for _, facts in found]
        except DataUnavailableError as missing:
            row = (source, f"file {missing.entry.file}", "present", "data not available", None)
            tables.append(pd.DataFrame([row], columns=COLUMNS))
    return pd.concat([table.astype({"ok": "boolean"}) for table in tables], ignore_index=True)
