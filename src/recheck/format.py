"""One way to print a number with its standard error, for LaTeX and for plain text.

The standard error is printed with two digits, and the value with as many decimals: ``0.247 (0.021)``. A number without
a standard error has three digits. A number below a thousandth, or of a million and more, is printed with
a power of ten.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, model_validator

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
_MOST = 12  # decimals
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Model = TypeVar("Model", bound="Declared")


class Declared(BaseModel):
    """A mapping of a file that somebody wrote; unknown keys are refused by name."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        known = cls.model_fields.keys()
        if isinstance(given, Mapping) and (strange := sorted(map(str, given.keys() - known))):
            raise ValueError(f"{strange} are unknown; known are {sorted(known)}")
        return given


def checked(model: type[Model], content: Any, where: str) -> Model:
    """The content of a file as a model; ValueError has a line for each thing that is wrong, with its place."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = []
        for one in error.errors():
            place = [str(part + 1) if isinstance(part, int) else part for part in one["loc"]]
            message, given = one["msg"].removeprefix("Value error, "), one["input"]
            shown = "" if isinstance(given, Mapping) else f"; given was {given!r}"
            lines.append(f"{': '.join([where, *place])}: {message}{shown}")
        raise ValueError("\n".join(lines)) from None


class Format(Declared, strict=True):
    """How a number is printed."""

    significant: PositiveInt | None = None  # digits of the standard error (2), or without one (3)
    se: bool = True  # whether the standard error is printed
    factor: float = 1.0  # of the value, for a head such as "in thousandths"
    integer: bool = False  # always a whole number
    compact: bool = False  # the standard error in units of the last digit, ``0.247(21)``
    unit: str = ""  # plain text that follows the number


_USUAL = Format()


def escape(text: str) -> str:
    """Plain text as LaTeX that prints it."""
    return text.translate(_ESCAPES)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def effect(row: Mapping[str, Any]) -> float:
    """The effect of a row of verdicts as a ratio of ours to printed, or as their difference."""
    logs = row["scale"] == "log" and is_number(row["effect"])
    return math.exp(row["effect"]) if logs else row["effect"]


def missing(status: str) -> str:
    """Why there is no number, in a word or two of LaTeX; a dash for what was not run."""
    word = _SHORT.get(status, status)
    return word if word == "--" else rf"\textit{{{escape(word)}}}"


def full(value: object, se: float = math.nan) -> str:
    """A value and its standard error with nearly all their digits, as plain text."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.10g}" + (f" +- {se:.3g}" if math.isfinite(se) and se > 0 else "")


def latex(value: float, se: float = math.nan, form: Format = _USUAL) -> str:
    r"""A number as LaTeX: ``$0.247$ ($0.021$)``, ``$1.23\,(0.09)\times10^{-4}$``.

    A standard error that is zero or not finite is not printed. A value that is not finite is a ValueError: a missing
    value is a word (`missing`).
    """
    number, error, power = (text.replace(" ", r"\,") for text in _digits(value, se, form))
    unit = rf"\,{escape(form.unit)}" if form.unit else ""
    if error and not power and not form.compact:
        return f"${number}$ (${error}$){unit}"
    bracket = f"({error})" if form.compact else rf"\,({error})"
    raised = rf"\times10^{{{power}}}" if power else ""
    return f"${number}{bracket if error else ''}{raised}${unit}"


def plain(value: float, se: float = math.nan, form: Format = _USUAL) -> str:
    """The same as plain text: ``0.247 (0.021)``, ``1.23 (0.09) × 10⁻⁴``."""
    number, error, power = _digits(value, se, form)
    bracket = f"({error})" if form.compact else f" ({error})"
    raised = f" × 10{power.translate(_RAISED)}" if power else ""
    text = f"{number}{bracket if error else ''}{raised}".replace("-", "\N{MINUS SIGN}")
    return text + (form.unit if form.unit in ("", "%") else f" {form.unit}")


def short(value: Any, digits: int = 3, *, tex: bool = False) -> str:
    """A number in a list of verdicts, infinite or absent as it may be."""
    if is_number(value):
        return (latex if tex else plain)(float(value), form=Format(significant=digits))
    infinite = {math.inf: ("∞", r"$\infty$"), -math.inf: ("−∞", r"$-\infty$")}
    return infinite.get(value, ("", "--"))[tex]


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


def decimal(text: str) -> Decimal:
    """A printed number in one of the ways in which papers print it: ``1.4e-3``, ``1.4e^-3``, ``1.4 x 10^{-3}``."""
    bare = re.sub(r"\s*(?:[eE]|[x*]\s*10)\^?\{?([+-]?\d+)\}?", r"e\1", text.strip("()[] "))
    if not re.fullmatch(r"[+-]?\d*\.?\d+(?:e[+-]?\d+)?", bare):
        raise ValueError(f"printed: needed is a number such as 0.029 or 1.4e-3, given was {text!r}")
    return Decimal(bare)


def _shown(number: Decimal) -> tuple[str, str]:
    """A decimal, and the power of ten that it is a multiple of, as LaTeX; empty for most."""
    if number == 0 or abs(number) >= Decimal("1e-5"):
        return f"{number:f}", ""
    power = number.adjusted()
    return f"{number.scaleb(-power):f}", rf"\times10^{{{power}}}"


def _digits(value: float, se: float, form: Format) -> tuple[str, str, str]:
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
