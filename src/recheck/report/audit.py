"""The audit of all studies: ``audit.csv`` and a page to browse, and lists of the supplement."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.judge.format import count, effect, is_number, short
from recheck.judge.published import Published, inside
from recheck.record.files import write_csv, write_text
from recheck.report.layout import Layout
from recheck.report.templates import rendered

#: Verdicts in the order in which they are listed, and how one cell and several cells are said to have them.
VERDICTS = {
    "agrees": ("agrees", "agree"),
    "differs": ("differs", "differ"),
    "depends on a reading": ("depends on a reading", "depend on a reading"),
    "undecided": ("is undecided", "are undecided"),
    "not comparable": ("is not comparable", "are not comparable"),
    "not run": ("was not run", "were not run"),
    "data not available": ("has no data here", "have no data here"),
}
#: Kinds of verdicts, as several of them are called.
KINDS = {name: f"{name}s" for name in ("cell", "contrast", "column", "claim", "spread")}
#: Verdicts on what was compared.
COMPARED = ("agrees", "differs", "depends on a reading", "undecided")
_QUANTILES = ("q05", "q25", "q50", "q75", "q95")
#: The axis of ratios reaches this factor to both sides; what is outside is drawn at the edge as an arrow.
_FACTOR = 8.0


def write_audit(
    verdicts: Mapping[str, pd.DataFrame],
    layouts: Mapping[str, Layout],
    published: Mapping[str, Published],
    csv: str | Path,
    html: str | Path,
    *,
    scale: str,
) -> None:
    """Write the verdicts of studies, by their names, as a table and as a page that needs no server and no network.

    Units are those of the layouts. The margin is that of the first study, as is the interval if all have the same;
    `scale` is the name of the scale.
    """
    table = pd.concat([frame.assign(study=name) for name, frame in verdicts.items()])
    table = table[["study", *[name for name in table if name != "study"]]]
    write_csv(csv, table)
    statements = {claim.id: claim.statement for one in published.values() for claim in one.claims}
    rows = [
        row
        | {"unit": layouts[row["study"]].unit(row["id"])}
        | {"picture": picture(row, _ends(row, published[row["study"]]))}
        | {"statement": statements.get(row["id"].removeprefix("claim/"), "")}
        for row in table.assign(informative=informative(table)).to_dict("records")
    ]
    names = ("study", "kind", "table", "verdict")
    options = {name: list(dict.fromkeys(row[name] for row in rows)) for name in names}
    lines = audit_lines(table, next(iter(published.values())).protocol.margins.informative)
    shares = {one.protocol.interval for one in published.values()}
    interval = f"{100 * shares.pop():.0f} % interval" if len(shares) == 1 else "interval"
    given = {"scale": scale, "lines": lines, "rows": rows, "options": options, "interval": interval}
    write_text(html, rendered("audit.html.j2", **given))


def _ends(row: Mapping[str, Any], study: Published) -> tuple[float, ...]:
    """The ends of the region of a claim, or of what rounds to a cell."""
    if row["kind"] == "claim":
        return study.regions.get(row["id"], ())
    return inside(study.cells.loc[row["id"]]) if row["id"] in study.cells.index else ()


def picture(row: Mapping[str, Any], ends: Sequence[float] = ()) -> str:
    """A drawing of one row of ``verdicts.csv`` as SVG: where the printed number falls in its replayed distribution.

    A thin line has nine tenths of the distribution, a bar half of it, a tick its median; a diamond is the printed
    number. Ratios have marks at a half, one and two times the median. Without a replayed distribution the interval of
    the effect is drawn, and the diamond is equality; of a claim, or a cell that is judged by its rounding, the interval
    of the quantity, with marks at the `ends` of the region. Where there is nothing to draw, it is empty.
    """
    logs, values = row["scale"] == "log", [row[name] for name in _QUANTILES]
    if all(map(is_number, values)):
        return _drawn(values, row["published"], logs)
    region = row["kind"] == "claim" or (row["kind"] == "cell" and row["printed"])
    values = [row["low"], row["ours"] if region else effect(row), row["high"]]
    if not all(map(is_number, values)):
        return ""
    if not region:
        return _drawn(values, 1.0 if logs else 0.0, logs)
    mark = row["published"] if row["kind"] == "cell" else None
    return _drawn(values, mark, False, [*filter(math.isfinite, ends)])


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
    given = {"values": values, "mark": marks[0] if marks else None, "ticks": ticks}
    return rendered("picture.svg.j2", **given, said=said, x=x, half=half)


def audit_tables(verdicts: pd.DataFrame, layout: Layout, published: Published) -> dict[str, str]:
    """All verdicts as longtables, one a kind: ``audit_cells``, ``audit_contrasts``, ``audit_claims`` and so on.

    A kind that there are none of is left out. The effect is the ratio of ours to printed, or their difference. Units
    are those of the layout, statements of claims those published.
    """
    claims = {f"claim/{claim.id}": claim for claim in published.claims}
    tables = {}
    for kind in KINDS:
        rows = verdicts[verdicts["kind"] == kind].to_dict("records")
        if not rows:
            continue
        given = {"kind": kind, "rows": rows, "layout": layout, "claims": claims}
        given |= {"interval": published.protocol.interval}
        tables[f"audit_{kind}s"] = rendered("verdicts.tex.j2", **given)
    return tables


def readings_table(published: Published, evidence: pd.DataFrame) -> str:
    """What the paper leaves unsaid or misprints: statement, levels, and what the printed cells say about each level.

    `evidence` is `recheck.judge.verdicts.Verdicts.readings`. The log likelihood is less that of the best level, and a
    dash where all cells are judged by their rounding.
    """
    cells = evidence[evidence["kind"] == "cell"]
    best = cells.groupby("choice")["log_likelihood"].transform("max")
    rows = cells.assign(less=cells["log_likelihood"] - best).to_dict("records")
    known = {(row["choice"], row["level"]): row for row in rows}
    return rendered("readings.tex.j2", choices=[*published.readings.values()], known=known)


def protocol_table(published: Published) -> str:
    """Margins, error rates and families, then the history of their changes with dates."""
    return rendered("protocol.tex.j2", rules=published.protocol)


def informative(verdicts: pd.DataFrame) -> pd.Series:
    """Which rows are informative, as booleans: a file has them as text."""
    return verdicts["informative"].astype(str) == "True"


def audit_lines(verdicts: pd.DataFrame, factor: float = 2.0) -> list[str]:
    """The audit in sentences: cells that are informative (would show this factor), all cells, contrasts and so on.

    Several studies, by the column ``study``, come one after the other.
    """
    if "study" in verdicts and verdicts["study"].nunique() > 1:
        studies = verdicts.groupby("study", sort=False)
        return [f"{name}: {line}" for name, own in studies for line in audit_lines(own, factor)]
    cells = verdicts[verdicts["kind"] == "cell"]
    some = cells[informative(cells)]
    number, is_are = len(some) or "None", "are" if len(some) > 1 else "is"
    found = f"would be detected): {_counts(some)}" if len(some) else "would not be detected)"
    lines = [
        f"{number} of {len(cells)} cells {is_are} informative (a factor of {factor:g} {found}.",
        f"All {len(cells)} cells: {_counts(cells)}.",
    ]
    for kind in ("contrast", "column", "claim", "spread"):
        rows = verdicts[verdicts["kind"] == kind]
        if len(rows):
            lines.append(f"{count(len(rows), kind)}: {_counts(rows)}.")
    return lines


def _counts(rows: pd.DataFrame) -> str:
    numbers = rows["verdict"].value_counts()
    there = [verdict for verdict in VERDICTS if verdict in numbers]
    return ", ".join(f"{numbers[v]} {VERDICTS[v][int(numbers[v] > 1)]}" for v in there) or "none"
