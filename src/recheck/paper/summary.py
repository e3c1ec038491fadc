"""What a run ends with: a table of verdicts, what was measured again, where the documents are, and what is missing."""

from collections.abc import Iterable, Mapping

import pandas as pd

from recheck.judge.format import aligned
from recheck.paper.pandoc import PACKAGE
from recheck.paper.typeset import LATEX_PACKAGES
from recheck.record.remeasured import OUTCOMES
from recheck.report.audit import KINDS, VERDICTS


def summary(
    complete: Mapping[str, pd.DataFrame],
    again: Mapping[str, pd.DataFrame],
    documents: Iterable[str] = (),
    left_out: Iterable[str] = (),
    *,
    scale: str,
    kept: bool,
) -> str:
    """The text of a run's ``summary.txt``.

    Parameters
    ----------
    complete : mapping of str to DataFrame
        Verdicts by study: those of the complete run where it is kept, else those of this run.
    again : mapping of str to DataFrame
        What `recheck.record.remeasured.remeasured` says of this run, by study.
    documents : iterable of str
        PDFs, of which there are none without LaTeX, and the web page, which there is not without pandoc.
    left_out : iterable of str
        What is missing, in words, such as raw files and where to put them.
    scale : str
    kept : bool
        Whether `complete` are kept verdicts.
    """
    whose = "the complete run, which is kept" if kept else f"this run, at the scale {scale}"
    parts = [f"Verdicts of {whose}", _table(_verdicts(complete))]
    measured = {study: frame for study, frame in again.items() if len(frame)}
    if measured:
        parts += [f"Kept estimates that this run measured again, at the scale {scale}"]
        parts += [_table(_outcomes(measured))]
    there = list(documents)
    said = [", ".join(there)] if there else []
    if not any(one.endswith(".pdf") for one in there):
        said.append(f"no PDF: there is no LaTeX here (Debian: apt-get install {LATEX_PACKAGES})")
    if not any(one.endswith(".html") for one in there):
        said.append(f"no web page: there is no pandoc here (pip install {PACKAGE})")
    parts.append(f"Paper: {'; '.join(said)}")
    parts += [f"Missing: {one}" for one in left_out]
    return "\n\n".join(parts) + "\n"


def _verdicts(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Numbers of verdicts by study and kind, without verdicts that nothing has."""
    rows = {
        (study, name): frame.loc[frame["kind"] == kind, "verdict"].value_counts()
        for study, frame in frames.items()
        for kind, name in KINDS.items()
        if (frame["kind"] == kind).any()
    }
    table = pd.DataFrame(rows).T.reindex(columns=list(VERDICTS)).fillna(0).astype(int)
    return table.loc[:, (table > 0).any()]


def _outcomes(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    rows = {(study, "estimates"): one["outcome"].value_counts() for study, one in frames.items()}
    return pd.DataFrame(rows).T.reindex(columns=list(OUTCOMES)).fillna(0).astype(int)


def _table(frame: pd.DataFrame) -> str:
    """A table whose first two columns are the index, a study's name standing once."""
    lines, last = [["", "", *frame.columns]], ""
    for (study, name), row in frame.iterrows():
        lines.append(["" if study == last else study, name, *(str(n) if n else "-" for n in row)])
        last = study
    return aligned(lines, 2)
