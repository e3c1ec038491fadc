"""LaTeX of the supplement's lists: every verdict, the readings with what speaks for them, and the protocol."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from recheck.format import Format, escape, latex, printed
from recheck.layout import Layout
from recheck.published import Published

__all__ = ["audit_tables", "longtable", "protocol_table", "readings_table"]

_KINDS = {"cell": "audit_cells", "contrast": "audit_contrasts", "column": "audit_columns"}


def audit_tables(
    verdicts: pd.DataFrame, layout: Layout | None = None, published: Published | None = None
) -> dict[str, str]:
    """Lists of all verdicts as longtables; the effect is the ratio of ours to printed, or their difference.

    Parameters
    ----------
    verdicts : DataFrame
        ``verdicts.csv`` of one study.
    layout : Layout, optional
        For units.
    published : Published, optional
        For the statements of claims.

    Returns
    -------
    dict of str to str
        LaTeX by name: ``audit_cells``, ``audit_contrasts``, ``audit_columns``, ``audit_claims``.
    """
    layout = layout or Layout()
    tables = {}
    for kind, name in _KINDS.items():
        rows = verdicts[verdicts["kind"] == kind].to_dict("records")
        head = [kind, "printed", "ours", "effect", r"90\,\% interval", "factor", "verdict"]
        if kind == "contrast":
            head.remove("factor")
        first, last = (
            rf">{{\raggedright\arraybackslash}}p{{{width}\textwidth}}" for width in (0.21, 0.16)
        )
        columns = f"@{{}}{first}{'r' * (len(head) - 2)}{last}@{{}}"
        tables[name] = longtable(columns, head, [_row(row, layout) for row in rows])
    rows = verdicts[verdicts["kind"] == "claim"].to_dict("records")
    claims = {claim.id: claim for claim in published.claims} if published else {}
    tables["audit_claims"] = longtable(
        r"@{}>{\raggedright\arraybackslash}p{0.43\textwidth}r>{\raggedright\arraybackslash}p{0.3\textwidth}@{}",
        ["statement (section)", "ours", "verdict"],
        [_claim(row, claims.get(str(row["id"]).removeprefix("claim/"))) for row in rows],
    )
    return tables


def readings_table(published: Published, evidence: pd.DataFrame | None = None) -> str:
    """What the paper leaves unsaid: statement, levels, and what the printed numbers say about each level.

    Parameters
    ----------
    published : Published
        Its readings.
    evidence : DataFrame, optional
        ``choice``, ``level``, ``kind``, ``compared``, ``agrees``, ``differs``, ``log_likelihood``. The rows of cells
        are shown, with the log likelihood less that of the best level.
    """
    rows = []
    for choice in published.readings.values():
        title = rf"\textbf{{{escape(choice.name)}}}: {escape(choice.statement)}"
        rows.append([rf"\multicolumn{{5}}{{@{{}}p{{\textwidth}}@{{}}}}{{{title}}}"])
        found = _evidence(evidence, choice.name)
        best = max((one["log_likelihood"] for one in found.values()), default=0.0)
        for level, text in choice.levels.items():
            one = found.get(level)
            numbers = ["--"] * 3
            if one is not None:
                less = one["log_likelihood"] - best
                support = latex(less, form=Format(significant=2)) if math.isfinite(less) else "--"
                numbers = [f"{one['agrees']:g}/{one['compared']:g}", f"{one['differs']:g}", support]
            rows.append([escape(level), escape(text), *numbers])
    return longtable(
        r"@{}l>{\raggedright\arraybackslash}p{0.42\textwidth}rrr@{}",
        ["level", "", "agree", "differ", "log likelihood"],
        rows,
    )


def _evidence(evidence: pd.DataFrame | None, choice: str) -> dict[str, Mapping[str, Any]]:
    if evidence is None or not len(evidence):
        return {}
    rows = evidence[(evidence["choice"] == choice) & (evidence["kind"] == "cell")]
    return {str(row["level"]): row for row in rows.to_dict("records")}


def protocol_table(published: Published) -> str:
    """Margins, error rates and families, then the history of their changes with dates."""
    rules = published.protocol
    rows = [
        ["agrees within a factor of", f"${rules.agree:g}$"],
        ["informative if a factor is detected of", f"${rules.informative:g}$"],
        ["error rate of a family", f"${rules.family_error:g}$"],
        ["power of detectable factors", f"${rules.power:g}$"],
        ["coverage of intervals", f"${rules.interval:g}$"],
        *[
            [f"family {escape(name)}", escape(", ".join(kinds))]
            for name, kinds in rules.families.items()
        ],
    ]
    for one in rules.contrasts:
        margin = f"${one.margin:g}$"
        rows.append([rf"contrast \nolinkurl{{{one.id}}}", f"margin {margin} ({escape(one.scale)})"])
    for change in rules.history:
        after = "after results" if change["after_results"] else "before results"
        text = f"{change['change']}; {change['why']}"
        rows.append([f"{escape(str(change['date']))}, {after}", escape(text)])
    columns = r"@{}>{\raggedright\arraybackslash}p{0.4\textwidth}>{\raggedright\arraybackslash}p{0.55\textwidth}@{}"
    return longtable(columns, ["rule", "value"], rows)


def _row(row: Mapping[str, Any], layout: Layout) -> list[str]:
    """A cell, contrast or column."""
    logs = row["scale"] == "log"
    form = Format(unit=layout.unit(str(row["id"])))
    effect = row["effect"]
    if logs and _finite(effect):
        effect = math.exp(effect)
    text = row["printed"] if isinstance(row["printed"], str) else ""
    texts = [
        rf"\hypertarget{{audit:{row['id']}}}{{}}\nolinkurl{{{row['id']}}}",
        printed(text) if text else _number(row["published"]),
        latex(row["ours"], row["ours_se"], form) if _finite(row["ours"]) else "--",
        _number(effect),
        f"{_number(row['low'], 2)} to {_number(row['high'], 2)}" if _finite(row["low"]) else "--",
        _number(row["factor"]),
        _verdict(row),
    ]
    if row["kind"] == "contrast":  # two printed numbers stand where a cell has one
        del texts[5]
    return texts


def _claim(row: Mapping[str, Any], claim: Any) -> list[str]:
    id = str(row["id"])
    text = rf"\hypertarget{{audit:{id}}}{{}}\nolinkurl{{{id.removeprefix('claim/')}}}"
    if claim is not None:
        text = rf"\hypertarget{{audit:{id}}}{{}}{escape(claim.statement)} ({escape(claim.section)})"
    form = Format(unit=claim.unit if claim is not None else "")
    ours = latex(row["ours"], row["ours_se"], form) if _finite(row["ours"]) else "--"
    return [text, ours, _verdict(row)]


def _verdict(row: Mapping[str, Any]) -> str:
    readings = row["readings"] if isinstance(row["readings"], str) else ""
    verdict = str(row["verdict"])
    if verdict == "depends on a reading" and readings:
        return rf"agrees under \nolinkurl{{{readings}}}"
    return escape(verdict)


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _number(value: Any, digits: int = 3) -> str:
    if isinstance(value, float) and math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    return latex(float(value), form=Format(significant=digits)) if _finite(value) else "--"


def longtable(columns: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A booktabs table that breaks between pages; cells are LaTeX already."""
    body = [" & ".join(row) + r" \\" for row in rows] or [
        rf"\multicolumn{{{len(head)}}}{{@{{}}l@{{}}}}{{none}} \\"
    ]
    lines = [rf"\begin{{longtable}}{{{columns}}}", r"\toprule", " & ".join(head) + r" \\"]
    lines += [r"\midrule", r"\endhead", r"\bottomrule", r"\endlastfoot", *body]
    return "\n".join([*lines, r"\end{longtable}", ""])
