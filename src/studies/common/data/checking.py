"""The data check: what the raw files and the arrays made from them must be, asserted fact by fact.

A checksum proves that a file is the registered one; the check proves that the parsing still makes
of it what the experiments assume. Schemas (pandera) state the columns, types and admissible values
of the raw tables; the facts beside them state counts, classes, missing values, ranges, repetitions.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike

import numpy as np
import pandas as pd
import pandera.errors
import pandera.pandas as pa

from studies.common.data.parse import (
    CYTOLOGY,
    LENGTHS,
    PIXELS,
    breast_cancer_table,
    crabs_table,
    load_breast_cancer,
    load_crabs,
    load_usps,
    usps_table,
)
from studies.common.data.registry import DataUnavailableError, Entry
from studies.common.data.splitting import PAPER_SIZES

CRABS = pa.DataFrameSchema(
    {
        "rownames": pa.Column(int, unique=True),
        "sp": pa.Column(checks=pa.Check.isin(["B", "O"])),
        "sex": pa.Column(checks=pa.Check.isin(["F", "M"])),
        "index": pa.Column(int, pa.Check.in_range(1, 50)),
        **{name: pa.Column(float, pa.Check.in_range(0, 100)) for name in LENGTHS},
    },
    strict=True,
)
_SCORE = pa.Check.isin(list(range(1, 11)))
BREAST_CANCER = pa.DataFrameSchema(
    {
        "id": pa.Column(int),
        **{name: pa.Column(float, _SCORE, nullable=name == "bare_nuclei") for name in CYTOLOGY},
        "class": pa.Column(int, pa.Check.isin([2, 4])),
    },
    strict=True,
)
USPS = pa.DataFrameSchema(
    {
        "digit": pa.Column(int, pa.Check.in_range(0, 9)),
        **{name: pa.Column(float, pa.Check.in_range(-1, 1)) for name in PIXELS},
    },
    strict=True,
)

Fact = tuple[str, object, object]  # fact, expected, found


def _violations(schema: pa.DataFrameSchema, table: pd.DataFrame) -> int:
    """Count the entries that break the schema of a raw table."""
    try:
        schema.validate(table, lazy=True)
    except pandera.errors.SchemaErrors as errors:
        return len(errors.failure_cases)
    return 0


def _range(values: pd.DataFrame | pd.Series) -> str:
    return f"{np.nanmin(values.to_numpy()):g} to {np.nanmax(values.to_numpy()):g}"


def _crabs(folder: str | PathLike[str], registry: Sequence[Entry]) -> Iterator[Fact]:
    table, raw = crabs_table(folder, registry), load_crabs(folder, registry)
    yield "entries that break the table's schema", 0, _violations(CRABS, table)
    yield "rows", 200, len(table)
    yield "missing values", 0, int(table.isna().sum().sum())
    for species, sex in (("B", "M"), ("B", "F"), ("O", "M"), ("O", "F")):
        found = int(((table["sp"] == species) & (table["sex"] == sex)).sum())
        yield f"rows of species {species}, sex {sex}", 50, found
    ranges = ("7.2 to 23.1", "6.5 to 20.2", "14.7 to 47.6", "17.1 to 54.6", "6.1 to 21.6")
    for name, expected in zip(LENGTHS, ranges, strict=True):
        yield f"{name} in mm", expected, _range(table[name])
    yield "repeated measurements", 0, int(table.duplicated(subset=list(LENGTHS)).sum())
    yield "patterns x features", "200 x 6", " x ".join(map(str, raw.X.shape))
    yield "training + test patterns of the paper", sum(PAPER_SIZES[raw.name]), len(raw.y)
    yield "male (+1)", 100, int((raw.y > 0).sum())
    yield "female (-1)", 100, int((raw.y < 0).sum())


def _breast_cancer(folder: str | PathLike[str], registry: Sequence[Entry]) -> Iterator[Fact]:
    table, raw = breast_cancer_table(folder, registry), load_breast_cancer(folder, registry)
    complete, features = table.dropna(), list(CYTOLOGY)
    distinct = complete.drop_duplicates(subset=features)
    yield "entries that break the table's schema", 0, _violations(BREAST_CANCER, table)
    yield "rows", 699, len(table)
    yield "benign rows", 458, int((table["class"] == 2).sum())
    yield "malignant rows", 241, int((table["class"] == 4).sum())
    yield "missing values", 16, int(table.isna().sum().sum())
    yield "missing values of bare_nuclei", 16, int(table["bare_nuclei"].isna().sum())
    yield "range of the features", "1 to 10", _range(table[features])
    yield "complete rows", 683, len(complete)
    yield "repetitions of the features among them", 234, len(complete) - len(distinct)
    classes = complete.groupby(features)["class"].nunique()
    yield "equal features with different classes", 0, int((classes > 1).sum())
    yield "patterns x features", "449 x 9", " x ".join(map(str, raw.X.shape))
    yield "training + test patterns of the paper", sum(PAPER_SIZES[raw.name]), len(raw.y)
    yield "malignant (+1)", 236, int((raw.y > 0).sum())
    yield "benign (-1)", 213, int((raw.y < 0).sum())


def _usps(folder: str | PathLike[str], registry: Sequence[Entry]) -> Iterator[Fact]:
    table, raw = usps_table(folder, registry), load_usps(folder, registry, smoothed=False)
    yield "entries that break the table's schema", 0, _violations(USPS, table)
    rows = {"zip.train.gz": (7291, 658, 556), "zip.test.gz": (2007, 166, 160)}
    for file, (every, threes, fives) in rows.items():
        digits = table.loc[file, "digit"]
        yield f"rows of {file}", every, len(digits)
        yield f"threes of {file}", threes, int((digits == 3).sum())
        yield f"fives of {file}", fives, int((digits == 5).sum())
    yield "missing values", 0, int(table.isna().sum().sum())
    yield "range of the grey values", "-1 to 1", _range(table[list(PIXELS)])
    yield "patterns x features", "1540 x 256", " x ".join(map(str, raw.X.shape))
    yield "training + test patterns of the paper", sum(PAPER_SIZES[raw.name]), len(raw.y)
    yield "three (+1)", 824, int((raw.y > 0).sum())
    yield "five (-1)", 716, int((raw.y < 0).sum())
    yield "repeated images", 0, len(raw.X) - len(np.unique(raw.X, axis=0))
    yield "constant pixels", 0, int((np.ptp(raw.X, axis=0) == 0).sum())
    blurred = load_usps(folder, registry).X
    yield "range of the smoothed grey values", "-1 to 0.999999", _range(pd.Series(blurred.ravel()))


FACTS: dict[str, Callable[[str | PathLike[str], Sequence[Entry]], Iterator[Fact]]] = {
    "crabs": _crabs,
    "breast_cancer": _breast_cancer,
    "usps": _usps,
}


def check(
    folder: str | PathLike[str], registry: Sequence[Entry], datasets: Iterable[str] = tuple(FACTS)
) -> pd.DataFrame:
    """Compare data sets with the facts that are known about them.

    Parameters
    ----------
    folder : path-like
        Folder of the raw files.
    registry : sequence of Entry
        The registry, from `read_registry`.
    datasets : iterable of str
        Which ones; all by default.

    Returns
    -------
    DataFrame
        Columns ``dataset, fact, expected, found`` (text) and ``ok`` (nullable boolean). A data set
        of which a file is not there has one row, with ``found`` "data not available" and ``ok``
        missing: that is no failure.

    Raises
    ------
    DamagedFileError
        If a file is not the registered one.
    ValueError
        If no facts are stated about a data set.

    See Also
    --------
    require : raises if a fact is wrong.
    to_html : the table as a page.
    """
    rows: list[tuple[str, str, str, str, bool | None]] = []
    for dataset in datasets:
        if dataset not in FACTS:
            raise ValueError(
                f"dataset={dataset!r}, need one with facts to check: {list(FACTS)}. State those of "
                "a new one in a function of `FACTS`, studies/common/data/checking.py"
            )
        try:
            found = list(FACTS[dataset](folder, registry))
        except DataUnavailableError as missing:
            file = f"file {missing.entry.file}"
            rows.append((dataset, file, "present", "data not available", None))
        else:
            rows += [
                (dataset, fact, str(expected), str(value), expected == value)
                for fact, expected, value in found
            ]
    table = pd.DataFrame(rows, columns=["dataset", "fact", "expected", "found", "ok"])
    return table.astype({"ok": "boolean"})


def require(table: pd.DataFrame) -> None:
    """Raise if a fact is wrong.

    Parameters
    ----------
    table : DataFrame
        From `check`.

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
            f"data check: {len(wrong)} of {len(table)} facts are wrong: {facts}. "
            "The files are the registered ones: correct the parsing or the stated fact."
        )


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Data check</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }}
table {{ border-collapse: collapse; width: 100%; margin-bottom: 2em; }}
th, td {{ text-align: left; padding: 0.25em 0.75em; border-bottom: 1px solid #ddd; }}
tr.wrong td {{ background: #fbdcd9; font-weight: bold; }}
tr.absent td {{ background: #f3f0e3; }}
</style>
</head>
<body>
<h1>Data check</h1>
<p>{summary}</p>
{sections}
</body>
</html>
"""
_WORDS = {True: ("right", "yes"), False: ("wrong", "NO"), None: ("absent", "not checked")}


def to_html(table: pd.DataFrame) -> str:
    """Set the data check as a page of HTML that needs no other file.

    Parameters
    ----------
    table : DataFrame
        From `check`.

    Returns
    -------
    str
        The page: a summary, then a table a data set, in which a wrong fact stands out.
    """
    checked = table["ok"].dropna()
    summary = f"{int(checked.sum())} of {len(checked)} facts hold."
    if absent := sorted(set(table.loc[table["ok"].isna(), "dataset"])):
        summary += f" Data not available: {', '.join(absent)}."
    sections = []
    for dataset, facts in table.groupby("dataset", sort=False):
        lines = []
        for row in facts.itertuples():
            kind, word = _WORDS[None if pd.isna(row.ok) else bool(row.ok)]
            cells = (row.fact, row.expected, row.found, word)
            texts = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
            lines.append(f'<tr class="{kind}">{texts}</tr>')
        sections.append(
            f"<h2>{html.escape(str(dataset))}</h2>\n<table>\n"
            "<tr><th>fact</th><th>expected</th><th>found</th><th>holds</th></tr>\n"
            + "\n".join(lines)
            + "\n</table>"
        )
    return _PAGE.format(summary=html.escape(summary), sections="\n".join(sections))
