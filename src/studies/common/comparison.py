"""Whether two pieces are the same, to the last bit or but for rounding."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from studies.common.pieces import Piece

#: Numbers that differ by less, relative to the larger of one and their size, differ by rounding. Measured at tiny scale
#: with the kernels of another processor: most results differ by less than 1e-10, importance sampling by 2e-8.
#: Markov chains are beyond it: one acceptance that falls otherwise gives another chain.
ROUNDING = 1e-7
#: Comparisons: on the processor that made the pieces, and on another.
BYTES, ROUNDED = "bytes", f"rounding {ROUNDING:g}"


def difference(kept: Piece, found: Piece, comparison: str) -> str:
    """Return the first difference between two pieces, timing apart; empty if they are the same.

    Parameters
    ----------
    kept, found : Piece
    comparison : {"bytes", "rounding 1e-07"}
        Whether numbers must be the same to the last bit, or but for rounding.
    """
    rows: list[dict[str, Any]] = json.loads(json.dumps(found[0]))
    if len(kept[0]) != len(rows):
        return f"{len(kept[0])} rows kept, {len(rows)} here"
    for place, (old, new) in enumerate(zip(kept[0], rows, strict=True), start=1):
        if list(old) != list(new):
            return f"row {place}: columns {list(old)} kept, {list(new)} here"
        for column in old:
            if not _same(old[column], new[column], comparison):
                return f"row {place}, {column}: {old[column]!r} kept, {new[column]!r} here"
    if kept[2].keys() != found[2].keys():
        return f"arrays {sorted(kept[2])} kept, {sorted(found[2])} here"
    for name, array in kept[2].items():
        other = np.asarray(found[2][name])
        if (array.shape, array.dtype) != (other.shape, other.dtype):
            return (
                f"array {name}: {array.dtype} {array.shape} kept, {other.dtype} {other.shape} here"
            )
        if array.tobytes() != other.tobytes() and not (
            comparison == ROUNDED and _near(array, other)
        ):
            return f"array {name}: other values"
    return ""


def _same(old: Any, new: Any, comparison: str) -> bool:
    """Whether two cells are the same; texts, truth values and counts always to the last digit."""
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old) == list(new) and all(_same(old[k], new[k], comparison) for k in old)
    if isinstance(old, list) and isinstance(new, list):
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and all(_same(a, b, comparison) for a, b in pairs)
    if isinstance(old, float) and isinstance(new, float) and comparison == ROUNDED:
        return _near(np.array(old), np.array(new))
    return json.dumps(old) == json.dumps(new)


def _near(one: np.ndarray, two: np.ndarray) -> bool:
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, two))
    size = np.maximum(1.0, np.maximum(np.abs(one), np.abs(two)))
    with np.errstate(invalid="ignore"):
        near = (np.abs(one - two) <= ROUNDING * size) | (one == two)
    return bool(np.all(near | (np.isnan(one) & np.isnan(two))))
