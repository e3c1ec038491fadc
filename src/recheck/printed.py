"""Printed numbers: their values, and the places to which they are rounded."""

from __future__ import annotations

import re

__all__ = ["half_unit", "number"]

#: A printed number: digits, and the power of ten in one of the ways in which it is printed.
_NUMBER = re.compile(
    r"([+-]?\d*\.?\d+)\s*(?:(?:[eE]\^?|x\s*10\^?|\*\s*10\^?)\{?([+-]?\d+)\}?)?\s*%?"
)


def number(text: str) -> float:
    """The value of a printed number, such as ``0.0299``, ``1.4e-3`` or ``1.4e^-3``.

    Raises
    ------
    ValueError
        It is none.
    """
    found = _NUMBER.fullmatch(text.strip())
    if not found:
        raise ValueError(
            f"printed: needed is a number such as 0.0299 or 1.4e-3, given was {text!r}"
        )
    return float(f"{found[1]}e{found[2] or 0}")


def half_unit(text: str) -> float:
    """Half a unit in the last place of a printed number.

    Raises
    ------
    ValueError
        It is none.
    """
    number(text)
    found = _NUMBER.fullmatch(text.strip())
    places = len(found[1].partition(".")[2]) if found else 0
    return 0.5 * 10.0 ** (int((found and found[2]) or 0) - places)
