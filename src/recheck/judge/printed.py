r"""The one reader of printed numbers: what stands in a cell of a table, and what may be behind its digits.

`read` takes a number as papers and their tables write it: ``0.92 ± 0.03``, ``−1.4 × 10⁻³``, ``$\mathbf{82.2}$``,
``<.001``, ``85 %``, ``1,234``, ``[0.1, 0.3]``. `region` says which numbers print so: ``half-up`` and ``half-even``
round to the nearest and differ in ties alone (away from zero; to an even last digit); ``truncated`` cuts digits off;
``unknown`` is any of these, the union of their regions, so that no verdict rests on the choice of a rule.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

RULES = ("half-up", "half-even", "truncated", "unknown")
#: Signs before a number, in the order in which they are looked for.
RELATIONS = ("<=", ">=", "<", ">", "~")
#: What stands where there is no number.
ABSENT = frozenset(
    [
        "",
        "-",
        "--",
        "---",
        ".",
        "..",
        "...",
        "n/a",
        "na",
        "n.a.",
        "nan",
        "none",
        "null",
        "nr",
        "n.r.",
    ]
)
#: Characters of a cell, digits of a number, and its size: more is no printed number.
_LONGEST, _DIGITS, _LARGEST = 200, 25, 290
_LINES = 20  # of a message
_RAISED = "⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹"
_LOWERED = str.maketrans(_RAISED, "-+0123456789")
#: One character for all that look or mean alike.
_ALIKE = str.maketrans(
    dict.fromkeys("−–—‐‑‒﹣－", "-")
    | dict.fromkeys("\u00a0\u2007\u2008\u2009\u200a\u202f\u205f\u3000\t\n\r", " ")
    | dict.fromkeys("×·⋅∙✕✖", "x")
    | dict.fromkeys("≈∼≃～", "~")
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", "")
    | {
        "≤": "<=",
        "≥": ">=",
        "⩽": "<=",
        "⩾": ">=",
        "＜": "<",
        "＞": ">",
        "％": "%",
        "（": "(",
        "）": ")",
    }
)
_LATEX = (
    (r"\\(?:pm|textpm)(?![A-Za-z])|\+/-|\+-", "±"),
    (r"\\(?:times|cdot|texttimes)(?![A-Za-z])", "x"),
    (r"\\(?:leq|le|leqslant)(?![A-Za-z])", "<="),
    (r"\\(?:geq|ge|geqslant)(?![A-Za-z])", ">="),
    (r"\\(?:textless|lt)(?![A-Za-z])|&lt;", "<"),
    (r"\\(?:textgreater|gt)(?![A-Za-z])|&gt;", ">"),
    (r"\\(?:sim|approx|textasciitilde)(?![A-Za-z])", "~"),
    (r"\\(?:textminus|minus)(?![A-Za-z])|&minus;", "-"),
    (r"\{,\}", ","),
    (r"\\%", "%"),
    (r"\\[,;:! ]|\\(?:quad|qquad|hfill|phantom\{[^{}]*\}|hphantom\{[^{}]*\})|&nbsp;", " "),
    (r"\\(?:left|right|big|Big)(?![A-Za-z])|\\footnotemark(?:\[[^\]]*\])?", ""),
    (r"\\(?:SI|qty)\s*\{([^{}]*)\}\s*\{\s*\\percent\s*\}", r"\1%"),
    # what is raised stays so: a footnote's 1 is no digit of the number
    (r"\\(?:textsuperscript|tnote)(?![A-Za-z])\s*(?=\{)", "^"),
    (r"<sup>([^<]*)</sup>", r"^{\1}"),
    (r"\\textsubscript(?![A-Za-z])\s*(?=\{)", "_"),
    (r"<sub>([^<]*)</sub>", r"_{\1}"),
)
_BOLD = re.compile(
    r"\\(?:textbf|mathbf|bm|boldsymbol|bf|bfseries)(?![A-Za-z])\s*|__|</?(?:b|strong)>"
)
_STYLE = re.compile(
    r"\\(?:textit|textsf|texttt|textrm|mathit|mathrm|mathsf|emph|underline|uline|num|text|mbox|ensuremath|"
    r"it|rm|small|footnotesize|scriptsize|tiny|color\{[^{}]*\}|textcolor\{[^{}]*\}|cellcolor(?:\[[^\]]*\])?\{[^{}]*\})"
    r"(?![A-Za-z])\s*|</?(?:i|em|u|span)>"
)
_MARKS = re.compile(
    r"(?:\^?\{?(?:\\(?:ast|star|dagger|ddagger)|[*†‡§¶])+\}?|\^\{?\s*[a-z]{1,2}\s*\}?)+$|[ᵃᵇᶜᵈ]+$"
)
#: An error below the line: ``82.2_{\pm 0.7}``, ``75.1_{(0.2)}``.
_BELOW = re.compile(r"\s*_\s*\{?\s*[(\[]?\s*(±?)\s*(\d[\d.,]*\s*%?|\.\d+\s*%?)\s*[)\]]?\s*\}?$")
_PLAIN = r"[+-]?(?:\d+\.?\d*|\.\d+)"
_POWER = r"(?:\s*(?:[eE]|[x*]\s*10)\s*\^?\s*\{?\s*([+-]?\s*\d{1,4})\s*\}?)"
_NUMBER = re.compile(rf"({_PLAIN}){_POWER}?|10\s*\^\s*\{{?\s*([+-]?\d{{1,4}})\s*\}}?")
_GROUPS = re.compile(r"(?<![\d.])(\d{1,3})((?:[,' ]\d{3})+)(?![\d])")
_POINTS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:\.\d{3})+(?![\d.])")
_N = rf"{_PLAIN}{_POWER}?".replace("(", "(?:").replace("(?:?:", "(?:")
_BETWEEN = r"\s*(?:,|;|\.\.+|\bto\b|(?<=[\d.%])\s*-(?=\s*[-+.\d]))\s*"
_CI = r"(?:(?:\d\d(?:\.\d)?\s*%?\s*)?(?:ci|cri|hdi)\s*[:=,]?)?\s*"
_WHOLE = re.compile(
    rf"(?P<value>{_N}|10\s*\^\s*\{{?\s*[+-]?\d+\s*\}}?)\s*(?P<percent>%)?"
    rf"(?:\s*±\s*(?P<error>{_N})\s*(?P<percent2>%)?"
    rf"|[(\[{{]\s*(?:sd|se|s\.d\.|s\.e\.|±)?\s*=?\s*(?P<bracket>{_N})\s*(?P<percent3>%)?\s*[)\]}}]"
    rf"|\s*[,;]?\s*{_CI}:?\s*[(\[{{]\s*{_CI}(?P<low>{_N})\s*%?{_BETWEEN}(?P<high>{_N})\s*%?\s*[)\]}}])?"
    rf"(?P<power>\s*x\s*10\s*\^\s*\{{?\s*[+-]?\d+\s*\}}?)?",
    re.IGNORECASE,
)
_INTERVAL = re.compile(
    rf"[(\[{{]\s*(?P<low>{_N})\s*(?P<percent>%)?{_BETWEEN}(?P<high>{_N})\s*(?P<percent2>%)?\s*[)\]}}]"
)
_COMMON = re.compile(
    rf"\(\s*({_N}\s*%?\s*±\s*{_N}\s*%?)\s*\)\s*(x\s*10\s*\^\s*\{{?\s*[+-]?\d+\s*\}}?|e[+-]?\d+|%)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Printed:
    """A printed number.

    Attributes
    ----------
    digits : str
        The number, as `decimal` reads it, with the digits that were printed: ``"0.120"``. Of an interval alone it is
        the middle. A percentage is a share: ``"85%"`` has the digits ``0.85``.
    bracket : str
        The digits of what stands behind ``±`` or in brackets, of two ends half their distance; empty without one.
    relation : str
        One of `RELATIONS`, or empty.
    notes : tuple of str
        What was left out or understood: ``bold``, ``stars``, ``percent``, ``thousands``, ``interval``.
    """

    digits: str
    bracket: str = ""
    relation: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The number as `read` takes it."""
        return self.relation + self.digits + (f" ± {self.bracket}" if self.bracket else "")


def read(text: str, comma: bool = False) -> Printed | None:
    """Read one printed number; None where a cell says that there is none.

    `comma` says that decimals stand behind a comma: it is never guessed. ValueError quotes the text and has the remedy.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"needed is a number, given were {len(text)} characters: {text[:40]!r}...")
    notes: dict[str, None] = {}
    bare = _bare(text, notes)
    if bare.lower() in ABSENT:
        return None
    # spaces are folded, for patterns that allow them would try all of them
    bare = re.sub(r"\s{2,}", " ", _with_point(bare, comma, text, notes))
    relation = next((sign for sign in RELATIONS if bare.startswith(sign)), "")
    bare = bare[len(relation) :].strip()
    common = _COMMON.fullmatch(bare)
    if common and common[2]:  # a power, or a percent sign, that both have
        inner, power = common[1], common[2]
        value, error = inner.split("±")
        bare = f"{value.strip()}{power} ± {error.strip()}{power}"
    elif common:
        bare = common[1]
    half: Decimal | None
    if found := _INTERVAL.fullmatch(bare):
        notes["interval"] = None
        low, high = decimal(found["low"]), decimal(found["high"])
        middle, half, percent = (
            (low + high) / 2,
            (high - low) / 2,
            found["percent2"] or found["percent"],
        )
    elif found := _WHOLE.fullmatch(bare):
        middle, half, percent = _parts(found, notes)
    else:
        raise ValueError(_refusal(text, bare))
    if half is not None and half < 0:
        raise ValueError(f"needed is a bracket that is not negative; given was {shortly(text)}")
    if percent:
        notes["percent"] = None
        middle, half = middle.scaleb(-2), None if half is None else half.scaleb(-2)
    for one in (middle, half):
        if one and (abs(one.adjusted()) > _LARGEST or len(one.as_tuple().digits) > _DIGITS):
            raise ValueError(
                f"needed is a number of at most {_DIGITS} digits between 1e-{_LARGEST} and 1e{_LARGEST}; "
                f"given was {shortly(text)}"
            )
    return Printed(_text(middle), "" if half is None else _text(half), relation, tuple(notes))


def decimal(text: str) -> Decimal:
    """A number in one of the ways in which papers print it: ``1.4e-3``, ``1.4e^-3``, ``1.4 x 10^{-3}``, ``1.``."""
    found = _NUMBER.fullmatch(text.strip("()[] "))
    if not found:
        raise ValueError(
            f"printed: needed is a number such as 0.029 or 1.4e-3, given was {shortly(text)}"
        )
    if found[3]:
        return Decimal(1).scaleb(int(found[3]))
    number = Decimal(found[1].removesuffix("."))
    return number.scaleb(int(found[2].replace(" ", ""))) if found[2] else number


def half_unit(text: str) -> float:
    """Half a unit in the last place of a printed number."""
    return 0.5 * 10.0 ** int(decimal(text).as_tuple().exponent)


def region(printed: str, rule: str) -> tuple[float, float]:
    """Return the smallest and the largest float that print so.

    Zero has numbers of either sign behind it. ValueError of a rule that is none of `RULES`, or of what is no number.
    """
    if rule not in RULES:
        raise ValueError(f"rounding: needed is one of {list(RULES)}, given was {rule!r}")
    number = decimal(printed)
    exponent = int(number.as_tuple().exponent)
    unit, size = Decimal(1).scaleb(exponent), abs(number)
    nearest, even = rule.startswith("half"), not int(size.scaleb(-exponent)) % 2
    low = size if rule == "truncated" else size - unit / 2
    high = size + unit / 2 if nearest else size + unit
    closed = rule == "half-even" and even
    largest = _inside(high, -math.inf, closed)
    if not number:
        return -largest, largest
    smallest = _inside(low, math.inf, closed or rule != "half-even")
    return (-largest, -smallest) if number < 0 else (smallest, largest)


def shortly(text: object) -> str:
    """A text as a message quotes it."""
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def refuse(wrong: Sequence[str], *more: str) -> None:
    """Raise a ValueError with a line for each thing that is wrong, of many the first ones, and `more`; none of none."""
    if wrong:
        rest = [f"and {len(wrong) - _LINES} more"] if len(wrong) > _LINES else []
        raise ValueError("\n".join([*wrong[:_LINES], *rest, *more]))


def _bare(text: str, notes: dict[str, None]) -> str:
    """The text without what is only for the eye, in the characters of a keyboard."""
    bare = re.sub(f"[{_RAISED}]+", lambda run: "^" + run[0].translate(_LOWERED), text)
    bare = bare.translate(_ALIKE).replace("$", "")
    for command, sign in _LATEX:
        bare = re.sub(command, sign, bare)
    framed = re.sub(r"(\*{1,3})(?=[-+<>~.\d])([^*]+)\1", r"\2", bare)  # Markdown's bold and italics
    if framed != bare:
        notes["bold"], bare = None, framed
    for pattern, what in ((_BOLD, "bold"), (_STYLE, "")):
        bare, count = pattern.subn("", bare)
        if count and what:
            notes[what] = None
    unmarked = _MARKS.sub("", bare.rstrip())
    if unmarked != bare.rstrip() and re.search(r"\d", unmarked):
        notes["stars"], bare = None, unmarked
    bare = _BELOW.sub(lambda found: f" ± {found[2]}" if found[1] else f" ({found[2]})", bare)
    # braces that only group; those of a power are read with it
    while (inner := re.sub(r"(?<![\^\w])\{([^{}]*)\}", r"\1", bare)) != bare:
        bare = inner
    return bare.strip()


def _with_point(bare: str, comma: bool, text: str, notes: dict[str, None]) -> str:
    """The text with a point before decimals, and no mark between thousands."""
    if comma:
        bare = _POINTS.sub(lambda found: found[0].replace(".", ""), bare)
        if re.search(r"(?<!\.)\.(?!\.)", bare):
            needed = "needed is a comma before decimals, and a point between thousands alone"
            raise ValueError(f"{needed}; given was {shortly(text)}")
        return re.sub(r"(?<=\d),(?=\d)|(?<![\d\s]),(?=\d)", ".", bare)
    if re.search(r"[(\[{].*,", bare):  # the comma between two ends
        if re.search(r"[(\[{]\s*\d+,\d+\s*[)\]}]", bare):
            raise ValueError(
                f"needed are two ends such as [1; 2], or --comma if a comma stands before decimals; "
                f"given was {shortly(text)}"
            )
    else:
        grouped = _GROUPS.sub(lambda found: found[1] + re.sub("[,' ]", "", found[2]), bare)
        if grouped != bare:
            if re.match(r"[^\d]*0[,']", bare):
                raise ValueError(_refusal(text, bare))
            notes["thousands"], bare = None, grouped
    return bare


def _parts(
    found: re.Match[str], notes: dict[str, None]
) -> tuple[Decimal, Decimal | None, str | None]:
    value, half = decimal(found["value"]), None
    if error := found["error"] or found["bracket"]:
        half = decimal(error)
        # 0.247(21) is 0.247 with an error of 21 in its last digits
        concise = found["bracket"] and re.search(r"\d\(\d+\)", found[0])
        if concise and int(value.as_tuple().exponent) < 0:
            notes["error in the last digits"] = None
            half = half.scaleb(int(value.as_tuple().exponent))
    elif found["low"]:
        notes["interval"] = None
        low, high = decimal(found["low"]), decimal(found["high"])
        if not low <= value <= high:
            raise ValueError(
                f"needed is a number within its interval; given was {shortly(found[0])}"
            )
        half = (high - low) / 2
    if power := found["power"]:
        by = int(re.sub(r"[^\d+-]", "", power.split("^")[1]))
        value, half = value.scaleb(by), None if half is None else half.scaleb(by)
    return value, half, found["percent"] or found["percent2"] or found["percent3"]


def _refusal(text: str, bare: str) -> str:
    needed = "needed is a number such as 0.029, 1.4e-3, <.001 or 0.92 ± 0.03"
    if re.search(r"\d,\d", bare):
        needed = "needed is a point before decimals; or say that a comma stands there (--comma, of ours --our-comma)"
    elif re.search(r"\d\s+[A-Za-z]", bare):
        needed += ", without words or units"
    return f"{needed}; given was {shortly(text)}"


def _text(number: Decimal) -> str:
    """A decimal as text that has as many digits: plain, or with a power of ten where that is shorter."""
    if -7 <= number.adjusted() <= 20 and int(number.as_tuple().exponent) <= 0:
        return f"{number:f}"
    return f"{number:e}".replace("e+", "e")


def _inside(end: Decimal, inwards: float, closed: bool) -> float:
    """The float nearest to an end that is inside; at the end itself only if that is `closed`."""
    value = float(end)
    beyond = Decimal(value) > end if inwards < 0 else Decimal(value) < end
    return (
        math.nextafter(value, inwards)
        if beyond or (Decimal(value) == end and not closed)
        else value
    )
