"""Facts of the data sets: how a table is measured, and where it is not as ``data/facts.yaml`` says.

A checksum proves that a file is the registered one. The facts prove that parsing still makes of it what the
experiments assume.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd

COLUMNS = ["dataset", "fact", "expected", "found", "ok"]


def _word(value: object) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _tally(things: Iterable[tuple[object, ...]]) -> str:
    counts = sorted(Counter(things).items())
    return ", ".join(f"{' '.join(map(_word, thing))} {count}" for thing, count in counts)


def _kind(column: pd.Series) -> str:
    return {"i": "int", "f": "float"}.get(getattr(column.dtype, "kind", ""), "text")


def _range(table: pd.DataFrame) -> str:
    values = table.to_numpy(dtype=np.float64)
    return f"{_word(np.nanmin(values))} to {_word(np.nanmax(values))}"


def _sha256(table: pd.DataFrame) -> str:
    return hashlib.sha256(table.to_numpy(dtype="<f8").tobytes()).hexdigest()


#: What may be said about a table, or about some of its columns.
MEASURES: dict[str, Callable[[pd.DataFrame], str]] = {
    "shape": lambda table: " x ".join(map(str, table.shape)),
    "columns": lambda table: " ".join(table.columns),
    "kinds": lambda table: _tally((_kind(table[name]),) for name in table),
    "missing values": lambda table: str(int(table.isna().sum().sum())),
    "values": lambda table: " ".join(map(_word, np.unique(table.dropna().to_numpy()))),
    "counts": lambda table: _tally(table.itertuples(index=False, name=None)),
    "range": _range,
    "repeated rows": lambda table: str(int(table.duplicated().sum())),
    "constant columns": lambda table: str(int((table.nunique() == 1).sum())),
    "sha256": _sha256,
}


def compare(
    dataset: str, part: str, table: pd.DataFrame, facts: Mapping[str, object]
) -> pd.DataFrame:
    """Compare a table with the facts that are stated about it.

    Parameters
    ----------
    dataset, part : str
        Data set, and which of its files or arrays the table is.
    table, facts : DataFrame, mapping
        What was found; what is expected of ``<measure>``, ``<measure> of <column> <column> ...`` or ``<measure> of
        <first> to <last>``, where the measure is one of `MEASURES`.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`: texts and, in ``ok``, a bool. What cannot be measured is no right fact.
    """
    rows = []
    for fact, expected in facts.items():
        measure, _, names = fact.partition(" of ")
        first, to, last = names.partition(" to ")
        try:
            columns = table.loc[:, first:last] if to else table[names.split()] if names else table
            found = MEASURES[measure](columns)
        except (KeyError, TypeError, ValueError) as error:
            found = f"not to be measured: {error!r}"
        rows.append((dataset, f"{part}: {fact}", str(expected), found, str(expected) == found))
    return pd.DataFrame(rows, columns=COLUMNS)


def require(table: pd.DataFrame) -> None:
    """Raise if a fact is wrong in a table of `compare` or of `studies.common.data.check`.

    Raises
    ------
    ValueError
        Names every wrong fact, what was expected and what was found.
    """
    wrong = table[~table["ok"].fillna(True).astype(bool)]
    if len(wrong):
        facts = "; ".join(
            f"{row.dataset}: {row.fact}: expected {row.expected}, found {row.found}"
            for row in wrong.itertuples()
        )
        raise ValueError(
            f"data check: {len(wrong)} of {len(table)} facts are wrong: {facts}. The files are the registered ones: "
            "correct the parsing (studies/common/data/parse.py) or the stated fact (data/facts.yaml)."
        )


def to_html(table: pd.DataFrame) -> str:
    """Set a table of `studies.common.data.check` as a page of HTML, self-contained; a wrong fact stands out."""
    checked = table["ok"].dropna()
    summary = f"Data check: {int(checked.sum())} of {len(checked)} facts hold."
    if absent := sorted(set(table.loc[table["ok"].isna(), "dataset"])):
        summary += f" Data not available: {', '.join(absent)}."
    words = ["not checked" if pd.isna(ok) else "yes" if ok else "NO" for ok in table["ok"]]
    page = table.drop(columns="ok").assign(holds=words).style.set_uuid("facts").hide(axis="index")
    page = page.set_caption(summary).format(escape="html")
    wrong = "background: #fbdcd9; font-weight: bold"
    page = page.apply(lambda row: [wrong * (row["holds"] == "NO")] * len(row), axis="columns")
    return page.to_html(doctype_html=True, bold_headers=True)
