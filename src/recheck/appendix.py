"""LaTeX of the supplement's lists: every verdict, the readings with what speaks for them, and the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from recheck.format import rendered
from recheck.layout import Layout
from recheck.published import Published
from recheck.tables import tabular


def longtable(columns: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A booktabs table that breaks between pages; cells are LaTeX already."""
    return tabular(columns, [head], rows, breaks=True)


def audit_tables(
    verdicts: pd.DataFrame, layout: Layout, published: Published | None = None
) -> dict[str, str]:
    """All verdicts as longtables: ``audit_cells``, ``audit_contrasts``, ``audit_columns``, ``audit_claims``.

    The effect is the ratio of ours to printed, or their difference. Units are those of the layout, statements of claims
    those published.
    """
    claims = {f"claim/{claim.id}": claim for claim in published.claims} if published else {}
    tables = {}
    for kind in ("cell", "contrast", "column", "claim"):
        rows = verdicts[verdicts["kind"] == kind].to_dict("records")
        given = {"kind": kind, "rows": rows, "layout": layout, "claims": claims}
        tables[f"audit_{kind}s"] = rendered("verdicts.tex.j2", **given)
    return tables


def readings_table(published: Published, evidence: pd.DataFrame | None = None) -> str:
    """What the paper leaves unsaid: statement, levels, and what the printed cells say about each level.

    `evidence` is `recheck.judge.Verdicts.readings`. The log likelihood is less that of the best level.
    """
    known = {}
    if evidence is not None:
        cells = evidence[evidence["kind"] == "cell"]
        best = cells.groupby("choice")["log_likelihood"].transform("max")
        cells = cells.assign(less=cells["log_likelihood"] - best)
        known = {(row["choice"], row["level"]): row for row in cells.to_dict("records")}
    return rendered("readings.tex.j2", choices=[*published.readings.values()], known=known)


def protocol_table(published: Published) -> str:
    """Margins, error rates and families, then the history of their changes with dates."""
    return rendered("protocol.tex.j2", rules=published.protocol)
