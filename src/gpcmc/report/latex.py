"""LaTeX from values: escaping, numbers, and tables with the rules of the booktabs package."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = [
    *("concise", "count", "decimals_for", "escape", "in_last_digit", "number", "scientific"),
    "tabular",
]

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def escape(text: str) -> str:
    """Plain text as LaTeX that prints it."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def count(value: int) -> str:
    """An integer with thin spaces between groups of three digits."""
    return f"{value:,}".replace(",", r"\,")


def decimals_for(se: float) -> int:
    """Decimal places that show two significant digits of a positive number; none for 10 and above."""
    if not se > 0 or not math.isfinite(se):
        return 0
    return max(0, 1 - math.floor(math.log10(se)))


def number(
    value: float, se: float | None = None, *, decimals: int | None = None, most: int = 12
) -> str:
    """A value and its standard error in brackets, in math mode.

    Parameters
    ----------
    value : float
        Any finite number.
    se : float, optional
        Its standard error; left out if absent, zero or not finite.
    decimals : int, optional
        Decimal places; without it, two significant digits of the standard error, or three of a
        value without one.
    most : int
        At most so many decimal places.

    Returns
    -------
    str
        For example ``$0.245$ ($0.027$)``.

    Raises
    ------
    ValueError
        The value is not finite: a missing value has to be said in words.
    """
    if not math.isfinite(value):
        raise ValueError(f"value: needed is a finite number, given was {value}")
    with_se = se is not None and math.isfinite(se) and se > 0
    if decimals is None:
        if with_se:
            decimals = decimals_for(float(se))  # type: ignore[arg-type]
        else:
            decimals = 2 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
    decimals = min(decimals, most)
    text = f"${value:.{decimals}f}$"
    return f"{text} (${se:.{decimals}f}$)" if with_se else text


def concise(value: float, se: float, *, decimals: int) -> str:
    """A value with so many decimal places, and its standard error in brackets in units of the last one.

    A standard error that rounds to none of them is left out: ``$0.1177(3)$``, or ``$0.1177$``.
    """
    if not math.isfinite(value):
        raise ValueError(f"value: needed is a finite number, given was {value}")
    units = round(se * 10**decimals) if math.isfinite(se) else 0
    return f"${value:.{decimals}f}({units})$" if units else f"${value:.{decimals}f}$"


def in_last_digit(printed: str, se: float) -> str:
    """A printed number with a standard error in units of its last digit, if there is one."""
    if not math.isfinite(se):
        return f"${printed}$"
    units = se * 10.0 ** len(printed.partition(".")[2])
    return f"${printed}({round(units) if units >= 1 else f'{units:.1g}'})$"


def scientific(value: float, digits: int = 2) -> str:
    """A positive or negative value as a mantissa of so many digits and a power of ten, in math mode."""
    if value == 0:
        return "$0$"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return rf"${mantissa}\cdot10^{{{int(exponent)}}}$"


def tabular(
    columns: str,
    header: Sequence[Sequence[str]],
    body: Sequence[Sequence[Sequence[str]]],
    rules: Sequence[str] = (),
) -> str:
    r"""A booktabs table.

    Parameters
    ----------
    columns : str
        LaTeX column specification.
    header : sequence of rows
        Rows of cells above the middle rule.
    body : sequence of groups of rows
        Groups are set apart by ``\addlinespace``.
    rules : sequence of str
        LaTeX put below the first row of the header (``\cmidrule``).

    Returns
    -------
    str
        A ``tabular`` environment; cells are LaTeX already.
    """
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    for position, row in enumerate(header):
        lines.append(" & ".join(row) + r" \\")
        if position == 0:
            lines.extend(rules)
    lines.append(r"\midrule")
    for position, group in enumerate(body):
        if position:
            lines.append(r"\addlinespace")
        lines.extend(" & ".join(row) + r" \\" for row in group)
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(lines)
