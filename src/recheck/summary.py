"""What a run says at its end, in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from recheck.typeset import LATEX_PACKAGES

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
#: Those of what was compared.
COMPARED = ("agrees", "differs", "depends on a reading", "undecided")


def informative(verdicts: pd.DataFrame) -> pd.Series:
    """Which rows are informative, as booleans: a file has them as text."""
    return verdicts["informative"].astype(str) == "True"


def audit_lines(verdicts: pd.DataFrame, factor: float = 2.0) -> list[str]:
    """The audit in sentences: cells that are informative (would show this factor), all cells, contrasts and so on."""
    cells = verdicts[verdicts["kind"] == "cell"]
    some = cells[informative(cells)]
    number, is_are = len(some) or "None", "are" if len(some) > 1 else "is"
    found = f"would be detected): {_counts(some)}" if len(some) else "would not be detected)"
    lines = [
        f"{number} of {len(cells)} cells {is_are} informative (a factor of {factor:g} {found}.",
        f"All {len(cells)} cells: {_counts(cells)}.",
    ]
    for kind in ("contrast", "column", "claim"):
        rows = verdicts[verdicts["kind"] == kind]
        if len(rows):
            lines.append(f"{_several(len(rows), kind)}: {_counts(rows)}.")
    return lines


def _several(number: int, name: str) -> str:
    return f"{number} {name}{'s' if number > 1 else ''}"


def _counts(rows: pd.DataFrame) -> str:
    numbers = rows["verdict"].value_counts()
    parts = [
        f"{numbers[v]} {says[int(numbers[v] > 1)]}" for v, says in VERDICTS.items() if v in numbers
    ]
    return ", ".join(parts) or "none"


def summary(
    verdicts: pd.DataFrame,
    pdfs: Iterable[str],
    left_out: Iterable[str] = (),
    *,
    factor: float = 2.0,
    scale: str = "",
    beside: Mapping[str, int] | None = None,
) -> str:
    """A line each: where the PDFs are, what the audit found, this run beside the kept results, what was left out.

    `pdfs` is empty where there is no LaTeX. `left_out` are further reasons in words, such as data that are missing and
    where to put them. `factor` is that of `audit_lines`, `beside` is `recheck.remeasured.counts`.
    """
    absent = (
        f"not typeset: there is no LaTeX here (Debian, Ubuntu: apt-get install {LATEX_PACKAGES})"
    )
    reasons = []
    for verdict in ("not run", "data not available", "not comparable"):
        kinds = verdicts.loc[verdicts["verdict"] == verdict, "kind"].value_counts()
        if len(kinds):
            names = ", ".join(_several(number, kind) for kind, number in kinds.items())
            at = f" at scale {scale}" if scale and verdict == "not run" else ""
            reasons.append(f"{names}: {verdict}{at}")
    lines = [
        f"Paper: {', '.join(pdfs) or absent}",
        f"Audit: {' '.join(audit_lines(verdicts, factor))}",
        f"Left out: {'; '.join([*reasons, *left_out]) or 'nothing'}",
    ]
    if beside and beside["kept"]:
        words = ("identical", "agree", "differ")
        outcomes = ", ".join(f"{beside[f'remeasured/{word}']} {word}" for word in words)
        kept = f"{beside['remeasured']} of {beside['kept']} kept estimates measured again"
        lines.insert(2, f"Kept: {kept}: {outcomes} (remeasured.csv)")
    return "\n".join([*lines, ""])
