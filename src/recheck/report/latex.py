r"""A number with its standard error as LaTeX: ``$0.247$ ($0.021$)``, ``$1.23\,(0.09)\times10^{-4}$``."""

import math
import re
from decimal import Decimal
from typing import Any

from recheck.judge.format import Format, digits_of, is_number
from recheck.judge.printed import decimal

_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "{}$&#%_"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}"}
)
#: Statuses as they stand in a narrow table; others stand in full.
_SHORT = {
    **{"": "--", "not run": "--", "data not available": "no data"},
    **{"not comparable": "n.comp.", "at least": "≥", "at most": "≤"},
}
_USUAL = Format()


def escape(text: str) -> str:
    """Plain text as LaTeX that prints it."""
    return text.translate(_ESCAPES)


def missing(status: str) -> str:
    """Why there is no number, in a word or two of LaTeX; a dash for what was not run."""
    word = _SHORT.get(status, status)
    return word if word == "--" else rf"\textit{{{escape(word)}}}"


def latex(value: float, se: float = math.nan, form: Format = _USUAL) -> str:
    r"""A number as LaTeX: ``$0.247$ ($0.021$)``, ``$1.23\,(0.09)\times10^{-4}$``.

    A standard error that is zero or not finite is not printed. A value that is not finite is a ValueError: a missing
    value is a word (`missing`).
    """
    number, error, power = (text.replace(" ", r"\,") for text in digits_of(value, se, form))
    unit = rf"\,{escape(form.unit)}" if form.unit else ""
    if error and not power and not form.compact:
        return f"${number}$ (${error}$){unit}"
    bracket = f"({error})" if form.compact else rf"\,({error})"
    raised = rf"\times10^{{{power}}}" if power else ""
    return f"${number}{bracket if error else ''}{raised}${unit}"


def short(value: Any, digits: int = 3) -> str:
    """A number in a list of verdicts, infinite or absent as it may be."""
    if is_number(value):
        return latex(float(value), form=Format(significant=digits))
    return {math.inf: r"$\infty$", -math.inf: r"$-\infty$"}.get(value, "--")


def printed(text: str, bracket: str = "", form: Format = _USUAL) -> str:
    """A published number and its bracket as LaTeX, with the digits that were printed; or a region in words."""
    try:
        number, error = decimal(text), decimal(bracket) if bracket and form.se else None
    except ValueError:
        return re.sub(r"-(?=[\d.])", "$-$", escape(text))
    factor = Decimal(repr(form.factor)).normalize()
    number *= factor
    shown, power = _shown(number)
    if error is None:
        return f"${shown}{power}$"
    error *= factor
    if form.compact and not power:
        last = error.scaleb(-min(int(number.as_tuple().exponent), 0))
        return f"${shown}({last.normalize():f})$"
    return f"${shown}{power}$ (${''.join(_shown(error))}$)"


def _shown(number: Decimal) -> tuple[str, str]:
    """A decimal, and the power of ten that it is a multiple of, as LaTeX; empty for most."""
    if number == 0 or abs(number) >= Decimal("1e-5"):
        return f"{number:f}", ""
    power = number.adjusted()
    return f"{number.scaleb(-power):f}", rf"\times10^{{{power}}}"
