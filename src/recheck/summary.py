"""What a run says at its end, in three lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from recheck.typeset import LATEX_PACKAGES

__all__ = ["COMPARED", "audit_lines", "informative", "summary"]

#: Verdicts of what was compared, in the order in which they are listed.
COMPARED = ("agrees", "differs", "depends on a reading", "undecided")
_WORDS = {
    "agrees": ("agrees", "agree"),
    "differs": ("differs", "differ"),
    "depends on a reading": ("depends on a reading", "depend on a reading"),
    "undecided": ("is undecided", "are undecided"),
    "not comparable": ("is not comparable", "are not comparable"),
    "not run": ("was not run", "were not run"),
    "data not available": ("has no data here", "have no data here"),
}


def informative(verdicts: pd.DataFrame) -> pd.Series:
    """Which rows are informative, as booleans: a file has them as text."""
    return verdicts["informative"].astype(str) == "True"


def audit_lines(verdicts: pd.DataFrame, factor: float = 2.0) -> list[str]:
    """The audit in sentences: informative cells, all cells, contrasts, columns, claims.

    Parameters
    ----------
    verdicts : DataFrame
        ``verdicts.csv``, or that of several studies one below the other.
    factor : float
        The factor that an informative cell would show.
    """
    cells = verdicts[verdicts["kind"] == "cell"]
    telling = cells[informative(cells)]
    verb = "is" if len(telling) == 1 else "are"
    lines = [
        f"{len(telling)} of {len(cells)} cells {verb} informative (a factor of {factor:g} would be detected): "
        f"{_counts(telling)}."
        if len(telling)
        else f"None of {len(cells)} cells is informative (a factor of {factor:g} would not be detected).",
        f"All {len(cells)} cells: {_counts(cells)}.",
    ]
    for kind in ("contrast", "column", "claim"):
        rows = verdicts[verdicts["kind"] == kind]
        if len(rows):
            lines.append(f"{len(rows)} {kind}{'s' if len(rows) > 1 else ''}: {_counts(rows)}.")
    return lines


def _counts(rows: pd.DataFrame) -> str:
    numbers = rows["verdict"].value_counts()
    parts = [
        f"{numbers[v]} {words[int(numbers[v] > 1)]}" for v, words in _WORDS.items() if v in numbers
    ]
    return ", ".join(parts) or "none"


def summary(
    verdicts: pd.DataFrame,
    pdfs: Iterable[str],
    left_out: Iterable[str] = (),
    *,
    factor: float = 2.0,
    scale: str = "",
) -> str:
    """Three lines: where the PDFs are, what the audit found, what was left out and why.

    Parameters
    ----------
    verdicts : DataFrame
        Of all studies.
    pdfs : iterable of str
        The typeset documents; empty where there is no LaTeX.
    left_out : iterable of str
        Further reasons in words, such as data that are missing and where to put them.
    factor : float
        As `audit_lines`.
    scale : str
        Name of the scale.
    """
    where = ", ".join(pdfs)
    if not where:
        where = f"not typeset: there is no LaTeX here (Debian, Ubuntu: apt-get install {LATEX_PACKAGES})"
    reasons = []
    for verdict in ("not run", "data not available", "not comparable"):
        rows = verdicts[verdicts["verdict"] == verdict]
        if len(rows):
            kinds = _kinds(rows["kind"].value_counts())
            at = f" at scale {scale}" if scale and verdict == "not run" else ""
            reasons.append(f"{kinds}: {verdict}{at}")
    left = "; ".join([*reasons, *left_out]) or "nothing"
    lines = [
        f"Paper: {where}",
        f"Audit: {' '.join(audit_lines(verdicts, factor))}",
        f"Left out: {left}",
    ]
    return "\n".join(lines) + "\n"


def _kinds(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in numbers.items())
