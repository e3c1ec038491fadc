"""One way to print a number with its standard error, as plain text; `recheck.report.latex` has it for LaTeX.

The standard error is printed with two digits, and the value with as many decimals: ``0.247 (0.021)``. A number without
a standard error has three digits. A number below a thousandth, or of a million and more, is printed with
a power of ten.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import PositiveInt

from recheck.judge.declared import Declared

_MOST = 12  # decimals
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Format(Declared, strict=True):
    """How a number is printed."""

    significant: PositiveInt | None = None  # digits of the standard error (2), or without one (3)
    se: bool = True  # whether the standard error is printed
    factor: float = 1.0  # of the value, for a head such as "in thousandths"
    integer: bool = False  # always a whole number
    compact: bool = False  # the standard error in units of the last digit, ``0.247(21)``
    unit: str = ""  # plain text that follows the number


_USUAL = Format()


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def effect(row: Mapping[str, Any]) -> float:
    """The effect of a row of verdicts as a ratio of ours to printed, or as their difference."""
    logs = row["scale"] == "log" and is_number(row["effect"])
    return math.exp(row["effect"]) if logs else row["effect"]


def full(value: object, se: float = math.nan) -> str:
    """A value and its standard error with nearly all their digits, as plain text."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.10g}" + (f" +- {se:.3g}" if math.isfinite(se) and se > 0 else "")


def plain(value: float, se: float = math.nan, form: Format = _USUAL) -> str:
    """The same as plain text: ``0.247 (0.021)``, ``1.23 (0.09) × 10⁻⁴``."""
    number, error, power = digits_of(value, se, form)
    bracket = f"({error})" if form.compact else f" ({error})"
    raised = f" × 10{power.translate(_RAISED)}" if power else ""
    text = f"{number}{bracket if error else ''}{raised}".replace("-", "\N{MINUS SIGN}")
    return text + (form.unit if form.unit in ("", "%") else f" {form.unit}")


def short(value: Any, digits: int = 3) -> str:
    """A number in a list of verdicts, infinite or absent as it may be."""
    if is_number(value):
        return plain(float(value), form=Format(significant=digits))
    return {math.inf: "∞", -math.inf: "−∞"}.get(value, "")


def count(number: float, noun: str) -> str:
    """A number of things in words: ``1 unit``, ``1 320 units``."""
    shown = plain(float(number), form=Format(significant=3, integer=float(number).is_integer()))
    return f"{shown} {noun}{'' if number == 1 else 's'}"


def aligned(lines: Iterable[Iterable[str]], left: int | None = None) -> str:
    """Cells of lines in columns: the first `left` of them (without it all) flush left, the others flush right."""
    rows = [list(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(widths) if left is None else left
    padded = [
        [
            text.ljust(width) if place < left else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    return "\n".join("  ".join(row).rstrip() for row in padded)


def digits_of(value: float, se: float, form: Format) -> tuple[str, str, str]:
    """Digits of a value, of its standard error and of the power of ten, the latter two empty without one."""
    if not math.isfinite(value):
        raise ValueError(f"value: needed is a finite number, given was {value}")
    value, se = value * form.factor, se * form.factor
    with_se = form.se and math.isfinite(se) and se > 0
    largest = max(abs(value), se if with_se else 0.0)
    power = ""
    if not form.integer and largest > 0 and not 1e-3 <= largest < 1e6:
        exponent = _exponent(largest, 12 if with_se else form.significant or 3)
        value, se, power = value / 10.0**exponent, se / 10.0**exponent, str(exponent)
    digits, leading = form.significant or (2 if with_se else 3), se if with_se else value
    decimals = digits - 1 - _exponent(leading, digits) if leading and not form.integer else 0
    decimals = min(max(decimals, 0), _MOST)
    number = _grouped(f"{value:.{decimals}f}")
    if not with_se:
        return number, "", power
    if form.compact:
        last = round(se * 10**decimals)
        return number, str(last) if last else "", power
    return number, _grouped(f"{se:.{decimals}f}"), power


def _exponent(number: float, digits: int) -> int:
    """Power of ten of the first digit, after rounding to so many digits."""
    return int(f"{abs(number):.{digits - 1}e}".split("e")[1])


def _grouped(text: str) -> str:
    """Thin groups of three digits in whole numbers of five digits and more."""
    text = text if text.strip("-0.") else text.lstrip("-")  # no negative zero
    whole = text.lstrip("-")
    return f"{int(text):,}".replace(",", " ") if whole.isdigit() and len(whole) > 4 else text
