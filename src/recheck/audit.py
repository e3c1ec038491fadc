"""The audit of all studies: ``audit.csv``, and a page that sorts and filters without a server or a network."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.files import read_csv, write_csv, write_text
from recheck.format import Format, plain
from recheck.layout import Layout
from recheck.summary import audit_lines, informative

__all__ = ["audit_table", "picture", "read_verdicts", "write_audit"]

_QUANTILES = ("q05", "q25", "q50", "q75", "q95")
_TEXTS = [
    "id",
    "kind",
    "table",
    "family",
    "printed",
    "scale",
    "readings",
    "verdict",
    "note",
    "source",
]
_WIDTH, _HEIGHT = 180.0, 24.0
#: The axis of ratios reaches this factor to both sides; what is outside is drawn at the edge as an arrow.
_FACTOR = 8.0


def read_verdicts(path: str | Path) -> pd.DataFrame:
    """Read ``verdicts.csv``, texts as texts: a printed ``0.020`` keeps its digits, and table 1 is no number."""
    frame = read_csv(path, dtype=dict.fromkeys(_TEXTS, str))
    return frame.fillna({name: "" for name in _TEXTS if name in frame})


def audit_table(verdicts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Verdicts of studies, by name, one below the other with a first column ``study``."""
    frames = [frame.assign(study=name).reset_index(drop=True) for name, frame in verdicts.items()]
    table = pd.concat(frames, ignore_index=True)
    return table[["study", *[name for name in table if name != "study"]]]


def write_audit(
    verdicts: Mapping[str, pd.DataFrame],
    layouts: Mapping[str, Layout],
    csv: str | Path,
    html: str | Path,
    *,
    scale: str = "",
    factor: float = 2.0,
    folder: str = "",
    statements: Mapping[str, str] | None = None,
) -> None:
    """Write the audit as a table and as a page.

    Parameters
    ----------
    verdicts : mapping of str to DataFrame
        ``verdicts.csv`` of each study.
    layouts : mapping of str to Layout
        Of each study, for units; may be empty.
    csv, html : path
        Where they go.
    scale : str
        Name of the scale.
    factor : float
        The factor that an informative cell would show.
    folder : str
        Folder of the studies' results as seen from the page; sources are linked below ``<folder>/<study>``.
    statements : mapping of str to str
        The statement of each claim, by its id in the verdicts or without ``claim/``.
    """
    from jinja2 import Environment, StrictUndefined

    table = audit_table(verdicts)
    write_csv(csv, table)
    source = files("recheck").joinpath("audit.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    rows = [
        _row(row, layouts.get(row["study"], Layout()), folder, statements or {})
        for row in table.assign(informative=informative(table)).to_dict("records")
    ]
    options = {
        name: list(dict.fromkeys(row[name] for row in rows))
        for name in ("study", "kind", "table", "verdict")
    }
    page = environment.from_string(source).render(
        scale=scale, lines=audit_lines(table, factor), rows=rows, options=options
    )
    write_text(html, page + "\n")


def _row(
    row: Mapping[str, Any], layout: Layout, folder: str, statements: Mapping[str, str]
) -> dict[str, Any]:
    """What the page shows of one verdict."""
    text = {
        name: _text(row[name]) for name in ("study", "kind", "table", "id", "printed", "verdict")
    }
    unit = Format(unit=layout.unit(text["id"]))
    ours = plain(row["ours"], row["ours_se"], unit) if _finite(row["ours"]) else ""
    logs = row["scale"] == "log"
    effect = (
        (math.exp(row["effect"]) if logs else row["effect"]) if _finite(row["effect"]) else math.nan
    )
    claim = text["kind"] == "claim"
    sources = [one for one in _text(row["source"]).split("; ") if one]
    base = "/".join(filter(None, (folder, text["study"])))
    return {
        **text,
        "unit": unit.unit,
        "ours": ours,
        "ours_value": row["ours"],
        "n": f"{row['units']:g} units, {row['runs']:g} runs" if _finite(row["units"]) else "",
        "picture": picture(row),
        "effect": "" if claim else _number(effect),
        "effect_value": "" if claim else effect,
        "interval": f"{_number(row['low'], 2)} … {_number(row['high'], 2)}"
        if _finite(row["low"])
        else "",
        "p": _number(row["p_adjusted"], 2),
        "p_value": row["p_adjusted"],
        "factor": _number(row["factor"]),
        "factor_value": row["factor"],
        "informative": "yes" if row["informative"] else "no",
        "readings": _text(row["readings"]),
        "note": _text(row["note"]),
        "statement": statements.get(
            text["id"], statements.get(text["id"].removeprefix("claim/"), "")
        ),
        "sources": [(f"{base}/{one.partition(':')[0]}", one) for one in sources],
    }


def _text(value: Any) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _number(value: float, digits: int = 3) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return plain(float(value), form=Format(significant=digits)) if _finite(value) else ""


def picture(row: Mapping[str, Any]) -> str:
    """A drawing of one row as SVG: where the printed number falls in its replayed distribution.

    A thin line has nine tenths of the distribution, a bar half of it, a tick its median. A diamond is the printed
    number. Ratios have a logarithmic axis with marks at a half, one and two times the median. Where there is no
    replayed distribution, the interval of the effect is drawn, and the diamond is equality; of a claim the
    interval of the quantity, with marks at the ends of the region.

    Parameters
    ----------
    row : mapping
        Of ``verdicts.csv``.

    Returns
    -------
    str
        SVG; empty where there is nothing to draw.
    """
    logs = row.get("scale") == "log"
    values: list[Any] = [row.get(name) for name in _QUANTILES]
    if all(map(_finite, values)):
        return _drawn([float(value) for value in values], row.get("published"), logs)
    if not (_finite(row.get("low")) and _finite(row.get("high"))):
        return ""
    low, high = float(row["low"]), float(row["high"])
    if row.get("kind") == "claim":
        ends = [
            float(end) for end in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", _text(row.get("printed")))
        ]
        return _drawn([low, row["ours"], high], None, False, ends) if _finite(row["ours"]) else ""
    middle = math.exp(row["effect"]) if logs else row["effect"]
    return _drawn([low, middle, high], 1.0 if logs else 0.0, logs)


def _drawn(values: list[float], mark: Any, logs: bool, ticks: Sequence[float] = ()) -> str:
    """The drawing of quantiles, with ticks at these numbers.

    Ratios are drawn around the median on the same logarithmic axis in every row, differences on an axis of their own.
    """
    median = values[len(values) // 2]
    marks = [float(mark)] if _finite(mark) else []
    said = f"{_number(values[0])} to {_number(values[-1])}, middle {_number(median)}"
    said += "".join(f"; printed {_number(one)}" for one in marks)
    if logs and min([*values, *marks]) > 0:
        ticks, reach = [median / 2, median, 2 * median], math.log(_FACTOR)
        values, marks, ticks = (
            [math.log(v / median) / reach for v in some] for some in (values, marks, ticks)
        )
    else:
        ticks = ticks or [median]
        reach = 1.1 * max(abs(v - median) for v in [*values, *marks, *ticks]) or 1.0
        values, marks, ticks = (
            [(v - median) / reach for v in some] for some in (values, marks, ticks)
        )
    return _svg(values, marks[0] if marks else None, ticks, said)


def _svg(values: Sequence[float], at: float | None, ticks: Iterable[float], said: str) -> str:
    """Positions from -1 to 1 as a drawing; what lies outside is put at the edge."""

    def x(position: float) -> str:
        return f"{_WIDTH * (0.5 + 0.46 * min(max(position, -1.0), 1.0)):.1f}"

    low, *half, high = map(x, values)
    median, middle = half[len(half) // 2], _HEIGHT / 2
    parts = [
        f'<line class="tick" x1="{x(t)}" x2="{x(t)}" y1="1" y2="{_HEIGHT - 1:g}"/>' for t in ticks
    ]
    parts.append(f'<line class="range" x1="{low}" x2="{high}" y1="{middle:g}" y2="{middle:g}"/>')
    if len(half) == 3:
        width = max(float(half[2]) - float(half[0]), 1)
        parts.append(
            f'<rect class="half" x="{half[0]}" y="{middle - 4:g}" width="{width:.1f}" height="8"/>'
        )
    ends = f'y1="{middle - 6:g}" y2="{middle + 6:g}"'
    parts.append(f'<line class="median" x1="{median}" x2="{median}" {ends}/>')
    if at is not None and abs(at) <= 1:
        place = f"translate({x(at)} {middle:g})"
        parts.append(f'<path class="printed" transform="{place}" d="M0-6 5 0 0 6-5 0Z"/>')
    elif at is not None:
        place = f"translate({x(at)} {middle:g}) scale({1 if at > 0 else -1} 1)"
        parts.append(f'<path class="printed" transform="{place}" d="M8 0-2-6-2 6Z"/>')
    size = f'width="{_WIDTH:g}" height="{_HEIGHT:g}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}"'
    return f'<svg {size} role="img"><title>{said}</title>{"".join(parts)}</svg>'
