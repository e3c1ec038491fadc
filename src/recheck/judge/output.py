"""Verdicts for who reads them: a table for a terminal, JSON with its schema, a page with pictures of intervals."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from recheck.judge.format import aligned, count, effect, is_number, plain, short
from recheck.judge.measures import UNSEEN
from recheck.judge.outcomes import ROUNDED
from recheck.judge.published import Margins, Published
from recheck.judge.verdicts import COLUMNS, VERDICTS

#: Columns of verdicts that are text, and those that are whole numbers or flags; all others are numbers.
_TEXT = {
    *("id", "kind", "table", "family", "printed", "scale", "readings", "verdict", "note", "source"),
    "direction",
}
_OTHER = {"units": "integer", "runs": "integer", "informative": "boolean"}
#: The axis of a picture: half its width in pixels, and the part of it that the margin takes.
_HALF, _PART = 90.0, 0.45
_COLOURS = {"agrees": "#0072b2", "differs": "#d55e00"}


def size(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """The effect as a ratio or a difference, and its interval; of a claim, which has none, the interval of ours."""
    low, high = row["low"], row["high"]
    if row["kind"] == "claim":
        return math.nan, low, high
    if str(row["note"]).startswith(ROUNDED):
        return row["ours"] - row["published"], low - row["published"], high - row["published"]
    return effect(row), low, high


def direction(row: Mapping[str, Any]) -> str:
    """Whether ours is ``higher`` or ``lower`` than what was printed; empty where nothing says so."""
    found, equal = size(row)[0], 1.0 if row["scale"] == "log" else 0.0
    if not is_number(found) or (
        str(row["note"]).startswith(ROUNDED) and row["verdict"] == "agrees"
    ):
        return ""
    return "higher" if found > equal else "lower" if found < equal else ""


def within(row: Mapping[str, Any], margins: Margins) -> str:
    """The verdict with the margin of an agreement: ``agrees (x 1.05)``, ``agrees (± 0.01)``."""
    if row["verdict"] != "agrees" or row["kind"] in ("claim", "spread", "contrast"):
        return str(row["verdict"])
    if str(row["note"]).startswith(ROUNDED):
        return "agrees (prints so)"
    sign = "x" if row["scale"] == "log" else "±"
    return f"agrees ({sign} {margins.on(row['scale'])[0]:g})"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of text as aligned columns under their names."""
    return aligned([[*rows[0]], *(map(str, row.values()) for row in rows)]) if rows else ""


def line(row: Mapping[str, Any], study: Published, notes: bool = False) -> dict[str, str]:
    """What the table shows of a verdict."""
    ours = plain(row["ours"], row["ours_se"]) if is_number(row["ours"]) else ""
    found, low, high = size(row)
    ends = f"{short(low)} to {short(high)}" if is_number(row["effect"]) else ""
    printed = row["printed"]
    if row["kind"] == "cell" and row["id"] in study.cells.index:
        bracket = study.cells.loc[row["id"], "bracket"]
        printed += f" ({bracket.strip('()[] ')})" if bracket else ""
    shown = {"id": row["id"], "printed": printed, "ours": ours, "effect": short(found)}
    shown |= {
        "interval": ends,
        "ours is": direction(row),
        "verdict": within(row, study.protocol.margins),
    }
    shown["detectable"] = short(row["detectable"])
    seen = row["verdict"] not in UNSEEN
    if notes or not seen or "vary" in row["note"] or "percent" in row["note"]:
        shown["note"] = row["note"]
    else:
        shown["note"] = ""
    return shown


def summary(frame: pd.DataFrame, study: Published) -> str:
    """All verdicts in one line: how many there are of each kind, and in which direction those lie that differ."""
    parts = []
    for verdict in VERDICTS:
        rows = frame[frame["verdict"] == verdict]
        if rows.empty:
            continue
        said = f"{len(rows)} {verdict}"
        if verdict == "differs":
            ways = [direction(row) for row in rows.to_dict("records")]
            both = [
                f"{ways.count(way)} of ours {way}" for way in ("higher", "lower") if way in ways
            ]
            said += f" ({', '.join(both)})" if both else ""
        parts.append(said)
    margins = study.protocol.margins
    scales = set(frame["scale"][frame["kind"].isin(["cell", "column"])])
    told = [f"a factor of {margins.agree:g}"] if "log" in scales else []
    if margins.difference and "linear" in scales:
        told.append(f"a difference of {margins.difference:g}")
    margin = f"; margin: {' and '.join(told)}" if told else ""
    return f"{count(len(frame), 'verdict')}: {', '.join(parts)}{margin}"


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON can hold them: what is absent is null, infinity a word; effects are ratios or differences."""
    rows = []
    for row in frame.to_dict("records"):
        found, low, high = size(row)
        shown = row | {"direction": direction(row), "effect": found, "low": low, "high": high}
        rows.append({name: _plain(name, value) for name, value in shown.items()})
    return rows


def schema() -> dict[str, Any]:
    """JSON Schema of `records`."""
    properties: dict[str, Any] = {}
    for name in [*COLUMNS, "direction"]:
        if name in _TEXT:
            properties[name] = {"type": "string"}
        elif name in _OTHER:
            properties[name] = {"type": [_OTHER[name], "null"]}
        else:
            words = {"enum": ["inf", "-inf"]}
            properties[name] = {"anyOf": [{"type": ["number", "null"]}, words]}
    properties["verdict"] = {"enum": list(VERDICTS)}
    properties["kind"] = {"enum": ["cell", "contrast", "column", "claim", "spread"]}
    properties["scale"] = {"enum": ["log", "linear", ""]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Verdicts of recheck",
        "type": "array",
        "items": {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
    }


def _plain(name: str, value: Any) -> Any:
    if name in _TEXT:
        return value if isinstance(value, str) else ""
    if name == "informative":
        return bool(value)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return int(value) if name in _OTHER and value is not None else value


def page(frame: pd.DataFrame, study: Published, title: str) -> str:
    """One page of HTML that needs no network: the summary, and every verdict with a picture of its interval."""
    body = []
    for row in frame.to_dict("records"):
        shown = line(row, study, notes=True)
        cells = [f"<td>{html.escape(text)}</td>" for text in shown.values()]
        cells.insert(5, f"<td>{_picture(row, study)}</td>")
        colour = _COLOURS.get(row["verdict"], "#666")
        body.append(f'<tr style="border-left:4px solid {colour}">{"".join(cells)}</tr>')
    names = [
        "id",
        "printed",
        "ours",
        "effect",
        f"interval of {study.protocol.interval:.0%}",
        "",
        "ours is",
        "verdict",
        "detectable",
        "note",
    ]
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    style = (
        "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem}"
        "table{border-collapse:collapse}td,th{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #ddd}"
        ".box{overflow-x:auto}"
    )
    legend = "The grey band is the margin, the line in it equality, the bar the interval, the dot the effect."
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(summary(frame, study))}</p><p>{legend}</p>"
        f'<div class="box"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
        "</body></html>\n"
    )


def _picture(row: Mapping[str, Any], study: Published) -> str:
    """The interval of an effect beside the margin; what lies outside of the picture ends at its edge."""
    logs = row["scale"] == "log"
    found, low, high = size(row)
    ends = [low, found, high]
    if row["kind"] == "claim" or not all(
        isinstance(one, float) and not math.isnan(one) for one in ends
    ):
        return ""
    if str(row["note"]).startswith(ROUNDED):
        return ""
    margin = math.log(study.margin(row)) if logs else study.margin(row)

    def place(value: float) -> float:
        size = math.log(max(value, 1e-300)) if logs else value
        return _HALF * (1 + min(max(_PART * size / margin, -1.0), 1.0))

    left, middle, right = map(place, ends)
    colour, band = _COLOURS.get(row["verdict"], "#666"), _HALF * _PART
    said = f"{short(ends[0])} to {short(ends[2])}"
    return (
        f'<svg width="{2 * _HALF:g}" height="18" role="img" aria-label="{said}">'
        f'<rect x="{_HALF - band:.1f}" y="1" width="{2 * band:.1f}" height="16" fill="#eee"/>'
        f'<path d="M{_HALF:g} 1V17" stroke="#999"/>'
        f'<path d="M{left:.1f} 9H{max(right, left + 1):.1f}" stroke="{colour}" stroke-width="3"/>'
        f'<circle cx="{middle:.1f}" cy="9" r="4" fill="{colour}"/></svg>'
    )
