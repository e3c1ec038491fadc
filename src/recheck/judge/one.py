"""One printed number beside ours, without a study: the verdict of `recheck.judge.verdicts.judge` on a single cell.

A number that is judged alone has no family. Whoever judges several puts them into one study, where error rates are
those of the whole.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple


class Design(NamedTuple):
    """What is behind a printed number: the mean over so many units, each the mean of so many runs."""

    units: int = 1
    runs: int = 1


@dataclass(frozen=True)
class Judgement:
    """A verdict on one printed number.

    Attributes
    ----------
    verdict : str
        ``agrees``, ``differs``, ``undecided`` or ``not comparable``.
    printed : str
    ours, ours_se : float
        Our mean over units, and its standard error.
    effect : float
        Ours over printed, or ours less printed on the scale ``linear``, and of an exact number.
    low, high : float
        Interval of 90 % of the true effect, which contains the effect.
    p, p_agree : float
        p-values of the hypotheses that the printed number is drawn as ours are, and that the effect is outside of the
        margin.
    factor : float
        Of "agrees", the factor (or difference) that the interval proves; of "undecided", what would be detected.
    detectable : float
        The factor (or difference) that this comparison detects with a probability of 80 %.
    scale, note : str
    margin : float
        The factor (or difference) within which it agrees.
    """

    verdict: str
    printed: str
    ours: float
    ours_se: float
    effect: float
    low: float
    high: float
    p: float
    p_agree: float
    factor: float
    detectable: float
    scale: str
    note: str
    margin: float

    def __str__(self) -> str:
        """The verdict in one line."""
        from recheck.judge.format import short

        what = "ratio" if self.scale == "log" else "difference"
        size = f"{what} {short(self.effect)}, interval {short(self.low)} to {short(self.high)}"
        within = ""
        if self.verdict == "agrees" and math.isfinite(self.margin):
            within = (
                f" within a factor of {self.margin:g}"
                if self.scale == "log"
                else f" within {self.margin:g}"
            )
        parts = [f"{self.verdict}{within}: printed {self.printed}"]
        parts += [f"ours {short(self.ours)}"] if math.isfinite(self.ours) else []
        if not math.isnan(self.p) and self.note != "judged by its rounding":
            parts += [size, f"p = {self.p:.2g}", f"detectable {short(self.detectable)}"]
        return "; ".join([*parts, self.note])


def judge_one(
    printed: str,
    ours: Any,
    *,
    bracket: str | None = None,
    bracket_kind: str = "standard error",
    design: Design | tuple[int, int] = (1, 1),
    rounding: str = "half-up",
    scale: str = "log",
    margin: float | None = None,
    exact: bool = False,
    distribution: str = "smooth",
    comma: bool = False,
) -> Judgement:
    """Judge one printed number.

    Parameters
    ----------
    printed : str
        As the paper prints it, for its digits say how it was rounded: ``"0.120"``, ``"<.001"``, ``"0.92 ± 0.03"``.
    ours : sequence or float
        A value for each unit that was run again, or a sequence of runs for each. Items with the values 0 and 1 are
        counted. A single number has to be `exact`.
    bracket : str, optional
        What stands behind ± or in brackets, as the paper prints it; ``design`` has two units or more then.
    bracket_kind : str
        What the bracket is: ``standard error`` over the published units, ``standard deviation`` between them, or
        ``interval 95%``, half of it.
    design : Design
        Published units, and runs on each.
    rounding : str
        One of `recheck.judge.printed.RULES`.
    scale : str
        ``log`` (compared as a ratio; all values are positive) or ``linear`` (as a difference).
    margin : float, optional
        The factor within which a ratio agrees, 2 unless it is given; on the scale ``linear`` a difference, which has
        to be given unless ours is exact.
    exact : bool
        Ours is one number without chance, as an average that can be computed again: it agrees if it prints so.
    distribution : str
        ``smooth``, or ``any``: it differs then only if the order of our values shows it, whatever their distribution.
    comma : bool
        Decimals stand behind a comma.

    Returns
    -------
    Judgement

    Raises
    ------
    ValueError
        If an argument is wrong: it names the argument, what was given and what is needed.
    """
    if not isinstance(printed, str):
        raise ValueError(
            f"printed: needed is text as the paper prints it, such as '0.120', whose last digit says how it was "
            f"rounded; given was {printed!r}"
        )
    if not (bracket is None or isinstance(bracket, str)):
        raise ValueError(
            f"bracket: needed is text as the paper prints it, such as '0.06', or None; given was {bracket!r}"
        )
    # SciPy takes longer to load than to judge with
    from recheck.judge.alone import judged

    cell: dict[str, Any] = {"printed": printed, "bracket": bracket, "bracket_kind": bracket_kind}
    cell |= {"design": design, "rounded": rounding, "scale": scale}
    return judged(cell, ours, margin, exact=exact, distribution=distribution, comma=comma)
