"""What a run says at its end, in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from recheck.typeset import LATEX_PACKAGES

__all__ = ["COMPARED", "VERDICTS", "audit_lines", "informative", "summary"]

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
    first = (
        f"None of {len(cells)} cells is informative (a factor of {factor:g} would not be detected)."
    )
    if len(some):
        first = (
            f"{len(some)} of {len(cells)} cells {'is' if len(some) == 1 else 'are'} informative "
            f"(a factor of {factor:g} would be detected): {_counts(some)}."
        )
    lines = [first, f"All {len(cells)} cells: {_counts(cells)}."]
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

    Parameters
    ----------
    verdicts : DataFrame
        Of all studies.
    pdfs : iterable of str
        The typeset documents; empty where there is no LaTeX.
    left_out : iterable of str
        Further reasons in words, such as data that are missing and where to put them.
    factor, scale : float, str
        What an informative cell would show (`audit_lines`), and the name of the scale.
    beside : mapping of str to int
        `recheck.remeasured.counts`.
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
    kept = ""
    if beside and beside["kept"]:
        outcomes = [
            f"{beside[f'remeasured/{word}']} {word}" for word in ("identical", "agree", "differ")
        ]
        kept = (
            f"Kept: {beside['remeasured']} of {beside['kept']} kept estimates measured again: "
            f"{', '.join(outcomes)} (remeasured.csv)\n"
        )
    return (
        f"Paper: {', '.join(pdfs) or absent}\n"
        f"Audit: {' '.join(audit_lines(verdicts, factor))}\n"
        f"{kept}"
        f"Left out: {'; '.join([*reasons, *left_out]) or 'nothing'}\n"
    )
