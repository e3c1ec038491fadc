"""USPS digits as Rasmussen and Williams (2006) have them: all ten, smoothed and re-partitioned.

Their file is made of the ZIP-code images: these are pooled, smoothed (`studies.common.data.parse.smooth`) and put in
the order of a seeded permutation, of which the first half is for training. The permutation sorts draws of the
multiplicative congruential generator 16807 modulo 2^31 - 1 from the state 27 * 2^16. It gives all published labels in
order, and the grey values of all images that are public in another form.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from studies.common.data.parse import PIXELS, smooth, usps_table
from studies.common.data.registry import Entry

_MULTIPLIER, _MODULUS, _STATE = 16807, 2**31 - 1, 27 * 2**16
#: SHA-256 of the permutation as little-endian int32.
PERMUTATION = "2deceef83c212b301978efc2ff303afb719ccfbdfb54d582f47169b2065bfd70"
#: Images of each digit for training and for tests, as the book has them.
TRAINING = (767, 622, 475, 406, 409, 361, 420, 390, 377, 422)
TEST = (786, 647, 454, 418, 443, 355, 414, 402, 331, 399)


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """Images of digits, those for training first.

    Attributes
    ----------
    X : (n, 256) array
        Grey values in [-1, 1], the 16 x 16 raster row by row.
    digit : (n,) int array
        0 to 9.
    training : int
        How many are for training.
    """

    X: NDArray[np.float64]
    digit: NDArray[np.int64]
    training: int


def book_order(n: int) -> NDArray[np.intp]:
    """Return the permutation of n images that the book's partition is made by."""
    state, draws = _STATE, np.empty(n)
    for k in range(n):
        state = _MULTIPLIER * state % _MODULUS
        draws[k] = state
    return np.argsort(draws, kind="stable")


def load_digits(
    folder: str | PathLike[str],
    registry: Sequence[Entry],
    *,
    smoothed: bool = True,
    partition: str = "book",
) -> Digits:
    """Load all ten digits.

    Parameters
    ----------
    folder : path-like
        Folder that holds ``zip.train.gz`` and ``zip.test.gz``.
    registry : sequence of Entry
        The registry, from `read_registry`.
    smoothed : bool
        Whether the images are smoothed, as the book's are, or left as scanned.
    partition : {"book", "zip"}
        The book's, or that of the two files.

    Raises
    ------
    DamagedFileError, DataUnavailableError
        If a file is not the registered one, or not there.
    ValueError
        If `partition` is neither, or the facts of the book's partition do not come out.
    """
    if partition not in ("book", "zip"):
        raise ValueError(f"partition={partition!r}, need 'book' or 'zip'")
    table = usps_table(folder, registry)
    X, digit = table[list(PIXELS)].to_numpy(), table["digit"].to_numpy()
    X = smooth(X) if smoothed else np.ascontiguousarray(X)
    if partition == "zip":
        return Digits(X, digit, len(table.loc["zip.train.gz"]))
    order = book_order(len(digit))
    found = Digits(X[order], digit[order], len(digit) // 2)
    _require_book(order, found)
    return found


def _require_book(order: NDArray[np.intp], found: Digits) -> None:
    sha256 = hashlib.sha256(order.astype("<i4").tobytes()).hexdigest()
    parts = found.digit[: found.training], found.digit[found.training :]
    counts = tuple(tuple(np.bincount(part, minlength=10).tolist()) for part in parts)
    if sha256 != PERMUTATION or counts != (TRAINING, TEST):
        raise ValueError(
            f"usps: the permutation has sha256 {sha256} and the classes {counts}, need {PERMUTATION} and "
            f"{(TRAINING, TEST)}: correct the recipe"
        )
