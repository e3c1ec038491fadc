"""What a printed decimal says about the number behind it, by the rule that rounded it.

``half-up`` and ``half-even`` round to the nearest and differ in ties alone (away from zero; to an even last digit).
``truncated`` cuts digits off. ``unknown`` is any of these: the region is the union of theirs, so that no verdict rests
on the choice of a rule.
"""

import math
from decimal import Decimal

from recheck.format import decimal

RULES = ("half-up", "half-even", "truncated", "unknown")


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


def _inside(end: Decimal, inwards: float, closed: bool) -> float:
    """The float nearest to an end that is inside; at the end itself only if that is `closed`."""
    value = float(end)
    beyond = Decimal(value) > end if inwards < 0 else Decimal(value) < end
    return (
        math.nextafter(value, inwards)
        if beyond or (Decimal(value) == end and not closed)
        else value
    )
