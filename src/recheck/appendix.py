"""LaTeX of the supplement's lists: every verdict, the readings with what speaks for them, and the protocol."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from recheck.format import Format, escape, is_number, latex, printed, short
from recheck.layout import Layout
from recheck.published import Claim, Published
from recheck.tables import tabular

_number = partial(short, tex=True)


def longtable(columns: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A booktabs table that breaks between pages; cells are LaTeX already."""
    none = [rf"\multicolumn{{{len(head)}}}{{@{{}}l@{{}}}}{{none}}"]
    return tabular(columns, [head], list(rows) or [none], breaks=True)


def _ragged(width: float) -> str:
    return rf">{{\raggedright\arraybackslash}}p{{{width}\textwidth}}"


def audit_tables(
    verdicts: pd.DataFrame, layout: Layout, published: Published | None = None
) -> dict[str, str]:
    """All verdicts as longtables: ``audit_cells``, ``audit_contrasts``, ``audit_columns``, ``audit_claims``.

    The effect is the ratio of ours to printed, or their difference. Units are those of the layout, statements of claims
    those published.
    """
    rows = {
        kind: verdicts[verdicts["kind"] == kind].to_dict("records")
        for kind in ("cell", "contrast", "column", "claim")
    }
    tables = {}
    for kind in ("cell", "contrast", "column"):
        head = [kind, "printed", "ours", "effect", r"90\,\% interval", "factor", "verdict"]
        if kind == "contrast":  # two printed numbers stand where a cell has one
            head.remove("factor")
        columns = f"@{{}}{_ragged(0.21)}{'r' * (len(head) - 2)}{_ragged(0.16)}@{{}}"
        tables[f"audit_{kind}s"] = longtable(columns, head, [_row(r, layout) for r in rows[kind]])
    claims = {f"claim/{claim.id}": claim for claim in published.claims} if published else {}
    tables["audit_claims"] = longtable(
        f"@{{}}{_ragged(0.43)}r{_ragged(0.3)}@{{}}",
        ["statement (section)", "ours", "verdict"],
        [_claim(row, claims.get(row["id"])) for row in rows["claim"]],
    )
    return tables


def readings_table(published: Published, evidence: pd.DataFrame | None = None) -> str:
    """What the paper leaves unsaid: statement, levels, and what the printed cells say about each level.

    `evidence` is `recheck.judge.Verdicts.readings`. The log likelihood is less that of the best level.
    """
    cells = [] if evidence is None else evidence[evidence["kind"] == "cell"].to_dict("records")
    known = {(row["choice"], row["level"]): row for row in cells}
    rows = []
    for choice in published.readings.values():
        title = rf"\textbf{{{escape(choice.name)}}}: {escape(choice.statement)}"
        rows.append([rf"\multicolumn{{5}}{{@{{}}p{{\textwidth}}@{{}}}}{{{title}}}"])
        found = {level: known.get((choice.name, level)) for level in choice.levels}
        best = max((one["log_likelihood"] for one in found.values() if one), default=0.0)
        for level, text in choice.levels.items():
            numbers = ["--"] * 3
            if one := found[level]:
                less = one["log_likelihood"] - best
                support = _number(less, 2) if math.isfinite(less) else "--"
                numbers = [f"{one['agrees']:g}/{one['compared']:g}", f"{one['differs']:g}", support]
            rows.append([escape(level), escape(text), *numbers])
    head = ["level", "", "agree", "differ", "log likelihood"]
    return longtable(f"@{{}}l{_ragged(0.42)}rrr@{{}}", head, rows)


def protocol_table(published: Published) -> str:
    """Margins, error rates and families, then the history of their changes with dates."""
    rules = published.protocol
    rows = [
        ["agrees within a factor of", f"${rules.margins.agree:g}$"],
        ["informative if a factor is detected of", f"${rules.margins.informative:g}$"],
        ["error rate of a family", f"${rules.family_error:g}$"],
        ["power of detectable factors", f"${rules.power:g}$"],
        ["coverage of intervals", f"${rules.interval:g}$"],
    ]
    for name, kinds in rules.families.items():
        rows.append([f"family {escape(name)}", escape(", ".join(kinds))])
    for one in rules.contrasts:
        margin = f"margin ${one.margin:g}$ ({escape(one.scale)})"
        rows.append([rf"contrast \nolinkurl{{{one.id}}}", margin])
    for change in rules.history:
        after = "after results" if change["after_results"] else "before results"
        text = f"{change['change']}; {change['why']}"
        rows.append([f"{escape(str(change['date']))}, {after}", escape(text)])
    return longtable(f"@{{}}{_ragged(0.4)}{_ragged(0.55)}@{{}}", ["rule", "value"], rows)


def _row(row: Mapping[str, Any], layout: Layout) -> list[str]:
    """A cell, contrast or column."""
    id, effect = row["id"], row["effect"]
    low, high = (_number(row[name], 2) for name in ("low", "high"))
    return [
        rf"\hypertarget{{audit:{id}}}{{}}\nolinkurl{{{id}}}",
        printed(row["printed"]) if row["printed"] else _number(row["published"]),
        _ours(row, layout.unit(id)),
        _number(math.exp(effect) if row["scale"] == "log" and is_number(effect) else effect),
        f"{low} to {high}" if is_number(row["low"]) else "--",
        *([] if row["kind"] == "contrast" else [_number(row["factor"])]),
        _verdict(row),
    ]


def _claim(row: Mapping[str, Any], claim: Claim | None) -> list[str]:
    text = rf"\nolinkurl{{{row['id'].removeprefix('claim/')}}}"
    if claim is not None:
        text = f"{escape(claim.statement)} ({escape(claim.section)})"
    target = rf"\hypertarget{{audit:{row['id']}}}{{}}"
    return [target + text, _ours(row, claim.unit if claim else ""), _verdict(row)]


def _ours(row: Mapping[str, Any], unit: str) -> str:
    known = is_number(row["ours"])
    return latex(row["ours"], row["ours_se"], Format(unit=unit)) if known else "--"


def _verdict(row: Mapping[str, Any]) -> str:
    if row["verdict"] == "depends on a reading" and row["readings"]:
        return rf"agrees under \nolinkurl{{{row['readings']}}}"
    return escape(row["verdict"])
