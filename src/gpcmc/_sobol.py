"""Scrambled Sobol' points, the same as SciPy's to the last bit.

SciPy multiplies its direction numbers by the scrambling matrices digit by digit. With 500 coordinates that took longer
than the 1024 points after it. Here it is one product of matrices a coordinate, of the directions that are used.

References
----------
Owen (2013), Monte Carlo theory, methods and examples, chapter 17. Matousek (1998), Journal of Complexity 14, 527.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from gpcmc._validation import FloatArray

BITS = 30

#: Values of the digits of a number, the first one leading.
_DIGITS = np.uint32(1) << np.arange(BITS - 1, -1, -1, dtype=np.uint32)


class Sobol:
    """One scramble (a random linear map and a shift of digits) of Sobol's sequence, drawn piece after piece.

    Parameters
    ----------
    dimension : int
        Coordinates of a point, at most 21201.
    rng : numpy.random.Generator
        A child of it is asked, as by `scipy.stats.qmc.Sobol`, and for the same numbers.
    """

    __slots__ = ("_directions", "_drawn", "_last", "_map")

    def __init__(self, dimension: int, rng: np.random.Generator) -> None:
        size, rng = (dimension, BITS), rng.spawn(1)[0]
        self._last = rng.integers(2, size=size, dtype=np.uint32) @ _DIGITS[::-1]
        drawn = np.tril(rng.integers(2, size=(*size, BITS), dtype=np.uint32), -1)
        self._map = (drawn + np.eye(BITS, dtype=np.uint32)).astype(np.float32)
        self._directions = np.zeros((dimension, 0), dtype=np.uint32)
        self._drawn = 0

    def random(self, m: int) -> FloatArray:
        """Return the next m points, in columns: (dimension, m), multiples of 2^-30 in [0, 1)."""
        steps = np.arange(max(self._drawn, 1), self._drawn + m)  # step i leads to point i
        self._reach(int(steps.max(initial=0)).bit_length())
        change = np.log2(steps & -steps).astype(np.intp)  # the digit of Gray's code
        path = np.column_stack([self._last, self._directions[:, change]])
        np.bitwise_xor.accumulate(path, axis=1, out=path)
        scaled: FloatArray = path[:, len(steps) + 1 - m :] * 2.0**-BITS
        self._last = path[:, -1].copy()
        self._drawn += m
        return scaled

    def _reach(self, count: int) -> None:
        """Scramble the directions up to the last one that is needed."""
        if count <= (known := self._directions.shape[1]):
            return
        plain = _unscrambled(len(self._last), count)[:, known:]
        digits = (plain[:, None, :] & _DIGITS[:, None]) != 0
        mapped = (self._map @ digits.astype(np.float32)).astype(np.uint32) & np.uint32(1)
        further = np.einsum("dik,i->dk", mapped, _DIGITS)
        self._directions = np.hstack([self._directions, further])


@functools.lru_cache(maxsize=8)
def _unscrambled(dimension: int, count: int) -> NDArray[np.uint32]:
    """Return the first direction numbers (dimension, count): what takes point 2^k - 1 to the next one."""
    from scipy.stats import qmc  # costs half a second to import

    engine, found = qmc.Sobol(dimension, scramble=False, bits=BITS), []
    for k in range(count):
        engine.reset()
        if k:
            engine.fast_forward(2**k - 1)
        before, after = (engine.random(2) * 2.0**BITS).astype(np.uint32)
        found.append(before ^ after)
    return np.reshape(found, (count, dimension)).T.astype(np.uint32)
