"""Kept rows and the same rows run again, as pairs of estimates: what `recheck.judge.law` judges.

A number has a standard error where a column says so (``log_evidence`` and ``log_evidence_se``, an estimate and
``standard_error``). Another one has the scatter of kept replicates, rows with the same settings but their seed. What
has neither is no estimate by itself; it does not count where the row has an estimate, for both come from the same
draws. A count of work is no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from recheck.judge.law import Pair, of_errors, of_replicates
from studies.common.kept import NUMBERS, REPLICATES, ROUNDING, WORK, apart
from studies.common.rows import Row, Table

#: What ``standard_error`` is of, where a table has it.
_ESTIMATES = ("estimate", "log_evidence")


class Beside(NamedTuple):
    """What is not the same in a row.

    Attributes
    ----------
    pairs : list of Pair
        Estimates to be judged.
    unjudged : list of str
        Columns and arrays that have no error.
    wrong : str
        What no random number explains, or nothing.
    """

    pairs: list[Pair]
    unjudged: list[str]
    wrong: str


def beside(kept: Table, old: Table, new: Table, row: Row, label: str) -> Beside:
    """Return what is not the same in a row.

    Parameters
    ----------
    kept : Table
        All rows of the experiment.
    old, new : Table
        The row as it is kept, and run again.
    row : mapping
        Its settings.
    label : str
        Of the rows that would be off together: study, experiment and method.
    """
    before = old.rows.reset_index(drop=True)
    after = new.rows.map(str, na_action="ignore").fillna("").reset_index(drop=True)
    found = Beside([], [], "")
    if len(before) != len(after):
        return found._replace(wrong=f"{len(before)} lines kept, {len(after)} here")
    given = {name for name in keys(row) if name in kept.rows} - NUMBERS
    same = (kept.rows[sorted(given)] == before[sorted(given)].iloc[0]).all(axis=1)
    replicates = kept.rows[same]
    place = replicates.groupby("row").cumcount()
    nothing = pd.Series("", before.index)
    columns = before.columns.union(after.columns, sort=False)
    for column in columns[~columns.str.startswith(WORK)]:
        entries = before.get(column, nothing), after.get(column, nothing)
        for line, (one, two) in enumerate(zip(*entries, strict=True)):
            if apart(one, two) <= ROUNDING:
                continue
            others = replicates.loc[place == line, column] if column in replicates else nothing
            first, second = _number(one), _number(two)
            if first is None or second is None:
                # which words chance may put there is known from replicates alone
                if one and two and first is second and len(others) < REPLICATES:
                    _add(found, None, column)
                elif two not in set(others):
                    text = f"line {line + 1}, {column}: {one or 'nothing'} kept, {two or 'nothing'} here"
                    return found._replace(wrong=text)
                continue
            group, error = f"{label}, {column}", _error_of(column, before)
            if error in before and error in after:
                its = _number(before[error][line]) or 0.0, _number(after[error][line]) or 0.0
                if its == (0.0, 0.0):  # of a number that draws nothing
                    text = f"line {line + 1}, {column}: {one} kept, {two} here, without an error"
                    return found._replace(wrong=text)
                pair = of_errors(row["row"], group, (first, its[0]), (second, its[1]))
            else:
                values = [value for value in map(_number, others) if value is not None]
                pair = of_replicates(row["row"], group, first, second, values)
            _add(found, pair, column)
    arrays = old.arrays.keys() | new.arrays.keys()
    found.unjudged.extend(sorted(f"array {name}" for name in arrays if not _equal(old, new, name)))
    return found


def keys(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of settings, and of those within them."""
    for name, value in settings.items():
        yield name
        if isinstance(value, Mapping):
            yield from keys(value)


def _error_of(column: str, rows: pd.DataFrame) -> str:
    own = f"{column}_se"
    return "standard_error" if own not in rows and column in _ESTIMATES else own


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _add(found: Beside, pair: Pair | None, column: str) -> None:
    if pair:
        found.pairs.append(pair)
    elif column not in found.unjudged:
        found.unjudged.append(column)


def _equal(old: Table, new: Table, name: str) -> bool:
    one, two = old.arrays.get(name), new.arrays.get(name)
    return one is not None and two is not None and one.tobytes() == two.tobytes()
