"""One printed number beside ours, without a study: the verdict of `recheck.judge.judge` on a single cell.

A number that is judged alone has no family. Whoever judges several puts them into one study, where error rates are
those of the whole.
"""

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recheck.format import short
from recheck.judge import judge
from recheck.measures import as_measures, estimate
from recheck.published import ALONE, STANDARD_ERROR, Margins, Protocol, Published, as_cells
from recheck.rounding import RULES

#: Of the draws of uncertain variances: the same input has the same verdict.
_SEED = 1
_ID = "printed"


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
        Ours over printed, or ours less printed on the scale ``linear``. Of an exact number, its distance from the
        nearest end of what rounds to the printed one, positive inside.
    low, high : float
        Interval of 90 % of the true effect; of an exact number, that number.
    p, p_agree : float
        p-values of the hypotheses that the printed number is drawn as ours are, and that the effect is outside of the
        margin.
    factor : float
        Of "agrees", the factor (or difference) that the interval proves; of "undecided", what would be detected.
    detectable : float
        The factor (or difference) that this comparison detects with a probability of 80 %.
    scale, note : str
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

    def __str__(self) -> str:
        """The verdict in one line."""
        what = "ratio" if self.scale == "log" else "difference"
        size = f"{what} {short(self.effect)}, interval {short(self.low)} to {short(self.high)}"
        parts = [f"{self.verdict}: printed {self.printed}"]
        parts += [f"ours {short(self.ours)}"] if math.isfinite(self.ours) else []
        if not math.isnan(self.p) and self.note != "judged by its rounding":
            parts += [size, f"p = {self.p:.2g}", f"detectable {short(self.detectable)}"]
        return "; ".join([*parts, self.note])


def judge_one(
    printed: str,
    ours: Any,
    *,
    bracket: str | None = None,
    design: Design | tuple[int, int] = (1, 1),
    rounding: str = "half-up",
    scale: str = "log",
    margin: float | None = None,
) -> Judgement:
    """Judge one printed number.

    Parameters
    ----------
    printed : str
        As the paper prints it, for its digits say how it was rounded: ``"0.120"``.
    ours : float or sequence
        A value for each unit that was run again, or a sequence of runs for each; a single number is exact, as an
        average that can be recomputed, and agrees if it rounds to the printed one.
    bracket : str, optional
        The printed standard error over the published units, as the paper prints it; ``design`` has two or more then.
    design : Design
        Published units, and runs on each.
    rounding : str
        One of `recheck.rounding.RULES`.
    scale : str
        ``log`` (compared as a ratio; all values are positive) or ``linear`` (as a difference).
    margin : float, optional
        The factor within which a ratio agrees, 2 unless it is given; on the scale ``linear`` a difference, which has
        to be given unless ours is exact.

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
    values = _units(ours)
    exact = np.isscalar(ours)
    scale = "linear" if exact else _scale(scale, values)
    units, runs = _design(design)
    if bracket is not None and units < 2:
        raise ValueError(f"design: {ALONE}; given was {design!r}")
    if rounding not in RULES:
        raise ValueError(f"rounding: needed is one of {list(RULES)}, given was {rounding!r}")
    cell = {"id": _ID, "column": _ID, "printed": printed, "bracket": bracket or "", "scale": scale}
    cell |= {
        "units": str(units),
        "runs": str(runs),
        "table": "",
        "section": "",
        "rounded": rounding,
    }
    cell["bracket_kind"] = "" if bracket is None else STANDARD_ERROR
    own = {"se": 0.0, "df": math.inf} if exact else {}
    rows = [
        {"id": _ID, "unit": f"unit {u}", "run": r, "value": value, "scale": scale, **own}
        for u, one in enumerate(values, 1)
        for r, value in enumerate(one, 1)
    ]
    frame, protocol = as_measures(rows), Protocol(margins=_margins(margin, scale, exact))
    study = Published(as_cells(pd.DataFrame([cell]), "judge_one"), protocol=protocol)
    row = judge(frame, estimate(frame), study, _SEED).frame.iloc[0].to_dict()
    if scale == "log":
        row["effect"] = math.exp(row["effect"])
    fields = Judgement.__dataclass_fields__
    return Judgement(**{name: row[name] for name in fields})


def _units(ours: Any) -> list[np.ndarray]:
    """Runs by unit, checked."""
    try:
        given = [ours] if np.isscalar(ours) else list(ours)
        units = [np.atleast_1d(np.asarray(one, dtype=float)) for one in given]
    except (TypeError, ValueError):
        units = []
    if not units or any(one.ndim > 1 or not one.size for one in units):
        raise ValueError(
            "ours: needed is a number, a value for each unit, or a sequence of runs for each unit; "
            f"given was {ours!r}"
        )
    if not all(np.isfinite(one).all() for one in units):
        raise ValueError(
            f"ours: needed are finite numbers; leave out what failed; given was {ours!r}"
        )
    return units


def _scale(scale: str, values: Sequence[np.ndarray]) -> str:
    if scale not in ("log", "linear"):
        raise ValueError(f"scale: needed is 'log' or 'linear', given was {scale!r}")
    if scale == "log" and min(one.min() for one in values) < 0:
        raise ValueError(
            "ours: a ratio needs positive numbers; scale='linear' compares differences"
        )
    return scale


def _design(design: Design | tuple[int, int]) -> Design:
    try:
        units, runs = design
        if all(isinstance(one, numbers.Integral) and one > 0 for one in (units, runs)):
            return Design(int(units), int(runs))
    except (TypeError, ValueError):
        pass
    needed = "published units and runs on each, two positive whole numbers"
    raise ValueError(f"design: needed are {needed}; given was {design!r}")


def _margins(margin: float | None, scale: str, exact: bool) -> Margins:
    if margin is None:
        if scale == "linear" and not exact:
            raise ValueError(
                "margin: needed is the difference within which it agrees (scale='linear')"
            )
        return Margins()
    least = 1.0 if scale == "log" else 0.0
    if not (isinstance(margin, numbers.Real) and least < margin < 1e9):
        raise ValueError(
            f"margin: needed is a number above {least:g} on the scale {scale!r}, given was {margin!r}"
        )
    value = float(margin)
    return Margins(agree=value, informative=value) if scale == "log" else Margins(difference=value)
