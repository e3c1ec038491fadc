"""What `recheck.judge.one.judge_one` does: a study of one cell, without its tables."""

import math
import numbers
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from recheck.judge.claims import Quantity
from recheck.judge.compare import Comparer
from recheck.judge.one import Design, Judgement
from recheck.judge.outcomes import ROUNDED, cell_note, natural, proved
from recheck.judge.printed import RULES, read, shortly
from recheck.judge.published import ALONE, Margins, Protocol, as_cell, inside
from recheck.judge.replay import LARGEST, Predictive
from recheck.judge.samples import NotComparedError, Sample

#: Of the draws of uncertain variances: the same input has the same verdict.
_SEED = 1
_ID = "printed"


def judged(
    given: Mapping[str, Any],
    ours: Any,
    margin: float | None,
    *,
    exact: bool,
    distribution: str,
    comma: bool,
) -> Judgement:
    """The verdict on a printed number; `given` are arguments of `judge_one` on the printed side."""
    values, alone = _units(ours), np.isscalar(ours)
    if alone and not exact:
        raise ValueError(
            f"ours: one number is either exact, as an average that is computed again (write exact=True), or one run "
            f"(write [{ours!r}]), which says nothing of chance; given was {ours!r}"
        )
    if exact and not (alone or (len(values) == 1 and len(values[0]) == 1)):
        raise ValueError(f"exact: needed is one number, given was {shortly(ours)}")
    scale = "linear" if exact else _scale(given["scale"], values)
    units, runs = _design(given["design"])
    bracket, kind = given["bracket"], given["bracket_kind"]
    has = bracket is not None or bool(read_inside(given["printed"], comma))
    if has and units < 2:
        raise ValueError(f"design: {ALONE}; given was {given['design']!r}")
    if given["rounded"] not in RULES:
        raise ValueError(
            f"rounding: needed is one of {list(RULES)}, given was {given['rounded']!r}"
        )
    if distribution not in ("smooth", "any"):
        raise ValueError(f"distribution: needed is 'smooth' or 'any', given was {distribution!r}")
    least = _margin(margin, scale, exact)
    cell: dict[str, Any] = {**given, "bracket": bracket or "", "scale": scale, "column": _ID}
    cell |= {"units": str(units), "runs": str(runs)}
    cell["bracket_kind"] = kind if has else ""
    if bracket == "":
        raise ValueError("bracket: needed is a standard error, which is not negative; given was ''")
    cell |= as_cell(cell, comma)
    return _judged(cell, values, exact, least, distribution)


def read_inside(printed: str, comma: bool) -> str:
    """The bracket that a printed number has in its own text; empty without one."""
    try:
        found = read(printed, comma)
    except ValueError:  # is told where the cell is read
        return ""
    return found.bracket if found else ""


def _judged(
    cell: dict[str, Any],
    values: Sequence[np.ndarray],
    exact: bool,
    margin: float,
    distribution: str,
) -> Judgement:
    """The verdict of a study with this one cell, without its tables."""
    rules, logs = Protocol(), cell["scale"] == "log"
    sample = Sample(_ID, "", {f"unit {u}": one for u, one in enumerate(values, 1)})
    means = sample.means()
    errors = means.std(ddof=1) / math.sqrt(len(means)) if len(means) > 1 else math.nan
    if len(means) == 1 and len(values[0]) > 1:
        errors = values[0].std(ddof=1) / math.sqrt(len(values[0]))
    fields: dict[str, Any] = dict.fromkeys(Judgement.__dataclass_fields__, math.nan)
    fields |= {"printed": cell["printed"], "scale": cell["scale"], "note": ""}
    fields["margin"] = math.nan if exact else natural(margin, logs)
    fields |= {"ours": float(means.mean()), "ours_se": 0.0 if exact else float(errors)}
    found: Predictive | Quantity
    try:
        if exact:
            found = Quantity(float(means[0]), 0.0, math.inf, "linear", *inside(cell))
            note = ROUNDED
        else:
            compared = Comparer.of({_ID: cell}, {_ID: {"": sample}}, distribution, _SEED)
            found = compared.cell(_ID, {})
            note = cell_note(cell, sample, found)
    except NotComparedError as why:
        return Judgement(**fields | {"verdict": why.verdict, "note": str(why)})
    p, p_agree = found.p, found.p_agree(0.0 if exact else margin)
    verdict = "agrees" if p_agree <= rules.family_error else "undecided"
    verdict = "differs" if p <= rules.family_error else verdict
    low, high = (natural(end, logs) for end in found.interval(rules.interval))
    detected = found.detectable(rules.family_error, rules.power)
    detectable, factor = proved(verdict, found, (low, high), detected, logs)
    effect = natural(found.center, logs)
    if exact:
        effect = low = high = float(means[0]) - cell["value"]
    fields |= {"verdict": verdict, "effect": effect, "low": low, "high": high}
    fields |= {"p": p, "p_agree": p_agree, "factor": factor, "detectable": detectable, "note": note}
    return Judgement(**fields)


def _units(ours: Any) -> list[np.ndarray]:
    """Runs by unit, checked."""
    kind = type(ours).__name__
    if isinstance(ours, Mapping | Set | str | bytes | bool | np.bool_) or kind in (
        "DataFrame",
        "Series",
    ):
        remedy = {"DataFrame": "a column's .tolist()", "Series": ".tolist()", "bool": "0 or 1"}
        raise ValueError(
            f"ours: needed is a list of numbers, given was a {kind}: write {remedy.get(kind, 'list(ours.values())')}"
        )
    try:
        given = [ours] if np.isscalar(ours) else list(ours)
        if any(np.ma.is_masked(one) for one in (ours, *given)):
            raise ValueError(
                "ours: needed are numbers without a mask; leave out what failed (.compressed())"
            )
        units = [np.atleast_1d(np.asarray(one)) for one in given]
        if any(one.dtype.kind not in "iuf" for one in units):
            units = []
        units = [one.astype(float) for one in units]
    except (TypeError, OverflowError):
        units = []
    if not units or any(one.ndim > 1 or not one.size for one in units):
        raise ValueError(
            "ours: needed is a number, a value for each unit, or a sequence of runs for each unit; "
            f"given was {shortly(ours)}"
        )
    sizes = np.abs(np.concatenate(units))
    if not np.isfinite(sizes).all():
        raise ValueError(
            f"ours: needed are finite numbers; leave out what failed; given was {shortly(ours)}"
        )
    smallest = sizes[sizes > 0].min(initial=1.0)
    if sizes.max() > LARGEST or (smallest < 1 / LARGEST and not np.isscalar(ours)):
        raise ValueError(
            f"ours: needed are numbers between 1/{LARGEST:g} and {LARGEST:g}, given was {shortly(ours)}"
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


def _margin(margin: float | None, scale: str, exact: bool) -> float:
    """The margin on the scale of the comparison."""
    if margin is None:
        if scale == "linear" and not exact:
            raise ValueError(
                "margin: needed is the difference within which it agrees (scale='linear')"
            )
        return math.log(Margins().agree)
    least = 1.0 if scale == "log" else 0.0
    if not (isinstance(margin, numbers.Real) and least < margin < 1e9):
        raise ValueError(
            f"margin: needed is a number above {least:g} on the scale {scale!r}, given was {margin!r}"
        )
    return math.log(margin) if scale == "log" else float(margin)
