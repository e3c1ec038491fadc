"""The audit of all studies: ``audit.csv``, and a page that sorts and filters without a server or a network."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.files import write_csv, write_text
from recheck.format import effect, is_number, rendered, short
from recheck.layout import Layout
from recheck.summary import audit_lines, informative

_QUANTILES = ("q05", "q25", "q50", "q75", "q95")
#: The axis of ratios reaches this factor to both sides; what is outside is drawn at the edge as an arrow.
_FACTOR = 8.0


def write_audit(
    verdicts: Mapping[str, pd.DataFrame],
    layouts: Mapping[str, Layout],
    csv: str | Path,
    html: str | Path,
    *,
    scale: str = "",
    factor: float = 2.0,
    statements: Mapping[str, str] | None = None,
) -> None:
    """Write the verdicts of studies, by their names, as a table and as a page.

    Units are those of the layouts, which may be absent; `scale` is the name of the scale, `factor` that which an
    informative cell would show, `statements` has the statement of each claim by its id without ``claim/``.
    """
    table = pd.concat([frame.assign(study=name) for name, frame in verdicts.items()])
    table = table[["study", *[name for name in table if name != "study"]]]
    write_csv(csv, table)
    rows = [
        row
        | {"unit": layouts.get(row["study"], Layout()).unit(row["id"]), "picture": picture(row)}
        | {"statement": (statements or {}).get(row["id"].removeprefix("claim/"), "")}
        for row in table.assign(informative=informative(table)).to_dict("records")
    ]
    names = ("study", "kind", "table", "verdict")
    options = {name: list(dict.fromkeys(row[name] for row in rows)) for name in names}
    lines = audit_lines(table, factor)
    write_text(
        html, rendered("audit.html.j2", scale=scale, lines=lines, rows=rows, options=options)
    )


def picture(row: Mapping[str, Any]) -> str:
    """A drawing of one row of ``verdicts.csv`` as SVG: where the printed number falls in its replayed distribution.

    A thin line has nine tenths of the distribution, a bar half of it, a tick its median; a diamond is the printed
    number. Ratios have marks at a half, one and two times the median. Without a replayed distribution the interval of
    the effect is drawn, and the diamond is equality; of a claim the interval of the quantity, with marks at the ends of
    the region. Where there is nothing to draw, it is empty.
    """
    logs, values = row["scale"] == "log", [row[name] for name in _QUANTILES]
    if all(map(is_number, values)):
        return _drawn(values, row["published"], logs)
    low, high, middle = row["low"], row["high"], row["ours"]
    if row["kind"] != "claim":
        middle = effect(row)
    if not all(map(is_number, (low, high, middle))):
        return ""
    if row["kind"] != "claim":
        return _drawn([low, middle, high], 1.0 if logs else 0.0, logs)
    ends = [float(end) for end in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", row["printed"])]
    return _drawn([low, middle, high], None, False, ends)


def _drawn(values: Sequence[float], mark: Any, logs: bool, ticks: Sequence[float] = ()) -> str:
    """The drawing of quantiles, with ticks at these numbers.

    Ratios are drawn around the median on the same logarithmic axis in every row, differences on an axis of their own.
    """
    median = values[len(values) // 2]
    marks = [float(mark)] if is_number(mark) else []
    said = f"{short(values[0])} to {short(values[-1])}, middle {short(median)}"
    said += "".join(f"; printed {short(one)}" for one in marks)
    logs = logs and min([*values, *marks]) > 0
    ticks = [median / 2, median, 2 * median] if logs else ticks or [median]
    reach = math.log(_FACTOR)
    if not logs:
        reach = 1.1 * max(abs(v - median) for v in [*values, *marks, *ticks]) or 1.0

    def position(value: float) -> float:
        return (math.log(value / median) if logs else value - median) / reach

    def x(place: float) -> str:
        """Positions from -1 to 1 in the drawing; what lies outside is put at the edge."""
        return f"{180 * (0.5 + 0.46 * min(max(place, -1.0), 1.0)):.1f}"

    values, marks, ticks = ([position(one) for one in some] for some in (values, marks, ticks))
    half = f"{max(float(x(values[-2])) - float(x(values[1])), 1):.1f}"
    mark = marks[0] if marks else None
    return rendered(
        "picture.svg.j2", values=values, mark=mark, ticks=ticks, said=said, x=x, half=half
    )
