"""One number of the paper's text, where it comes from, and the dictionary that notes the code that put it there."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from gpcmc.report.latex import count, decimals_for, escape, number, scientific

__all__ = ["Source", "Value", "Values", "code_of", "defined", "source_path"]


def source_path(file: str) -> str:
    """Where a file of the installed package stands in the repository."""
    return (Path("src/gpcmc") / Path(file).relative_to(Path(__file__).parents[1])).as_posix()


def code_of(function: Callable[..., object]) -> str:
    """File and line in the repository where a function, or what it wraps, begins."""
    function = inspect.unwrap(function)
    return f"{source_path(inspect.getfile(function))}:{function.__code__.co_firstlineno}"


def defined(module: str, name: str) -> str:
    """File and line in the repository where an imported module first gives a name its value."""
    lines = enumerate(inspect.getsource(sys.modules[module]).splitlines(), start=1)
    line = next(place for place, text in lines if re.match(rf"\s*{name}\b[^(]*=", text))
    return f"{source_path(str(sys.modules[module].__file__))}:{line}"


class Source(NamedTuple):
    """Where a value comes from, if the name of a file is not all that is known.

    Attributes
    ----------
    file : str
        As `Value.source`.
    rows : mapping, optional
        The entry, or the tuple of entries, that rows have in each of these columns if the value rests on them;
        empty where it rests on all. Without it they follow from the key.
    by : callable, optional
        The function that computed it.
    """

    file: str
    rows: Mapping[str, object] | None = None
    by: Callable[..., object] | None = None

    @property
    def filter(self) -> dict[str, str] | None:
        """`rows` as `Value.rows`."""
        if self.rows is None:
            return None
        return {
            name: "|".join(map(str, entry)) if isinstance(entry, tuple) else str(entry)
            for name, entry in self.rows.items()
        }


@dataclass(frozen=True, slots=True)
class Value:
    """One number of the text.

    Attributes
    ----------
    value : float, int, str or None
        In full precision; None where this run has none.
    se : float or None
        Its standard error.
    text : str
        LaTeX as printed, unit included; without a value, the reason in words.
    source : str
        The file that it was read or computed from, or a pattern of files (``*``). `collect` gives it
        relative to the run's folder, `origins.trace` from the root of the repository.
    code : str
        File and line of this package that put it into the text, ``src/gpcmc/report/values.py:123``.
    made : str or None
        File and line where the function begins that computed it, if that is another.
    line : str or None
        Its line in the file, or the lines of the rows that it summarises (``5``, ``2-11, 20``); None
        where these are not few, or in several files.
    rows : dict of str to str or None
        What selects these rows: columns, and their entries with ``|`` between; empty where all rows do. None
        where a line says it, or nothing is known.
    also : str or None
        The other end: of a number of a table or a statement the result files behind it, of a cell that was
        computed from these its row in ``audit.csv``.
    replicates : int or None
        How many result rows are behind it; rows that do not count as "ok" are among them.
    seed : str or None
        Seed of these rows, or the path that their seeds begin with.
    cell : str or None
        The audited cell or statement that it belongs to.
    verdict : str or None
        What was found there: by the audit for a cell, else in the row that it was read from.
    """

    value: float | int | str | None
    se: float | None
    text: str
    source: str
    code: str = ""
    made: str | None = None
    line: str | None = None
    rows: dict[str, str] | None = None
    also: str | None = None
    replicates: int | None = None
    seed: str | None = None
    cell: str | None = None
    verdict: str | None = None

    @property
    def digits(self) -> str:
        """Value and standard error in full, as plain text."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            return str(self.value) if self.value is not None else self.text
        error = f" +- {self.se:.3g}" if self.se else ""
        return (str(self.value) if isinstance(self.value, int) else f"{self.value:.10g}") + error

    @property
    def place(self) -> str:
        """File and line, as in ``audit.csv:5``."""
        return self.source if self.line is None else f"{self.source}:{self.line}"

    @property
    def which(self) -> str:
        """What selects its rows, where no line says it: ``samples=10000``."""
        rows = {} if self.rows is None or self.line is not None else self.rows
        return ", ".join(f"{name}={entry}" for name, entry in rows.items() if entry)


class Values(dict[str, Value]):
    """Values by key, with one way in for each kind; each notes the line of code that it came from."""

    def __setitem__(self, key: str, value: Value) -> None:
        frame = sys._getframe(1)
        while frame.f_locals.get("self") is self and frame.f_back is not None:
            frame = frame.f_back
        where = f"{source_path(frame.f_code.co_filename)}:{frame.f_lineno}"
        super().__setitem__(key, replace(value, code=where))

    def put(
        self,
        key: str,
        value: float | int | str | None,
        text: str,
        source: str | Source,
        se: float | None = None,
    ) -> None:
        """A value with its text, made already."""
        given = source if isinstance(source, Source) else Source(source)
        made = code_of(given.by) if given.by else None
        self[key] = Value(value, se, text, given.file, made=made, rows=given.filter)

    def real(
        self,
        key: str,
        value: float,
        source: str | Source,
        *,
        se: float = math.nan,
        unit: str = "",
        missing: str = "not run",
        decimals: int | None = None,
    ) -> None:
        """A number with its standard error, where it has one; one that is not finite is `missing`."""
        if math.isfinite(value):
            text = number(value, se, decimals=decimals) + unit
            self.put(key, float(value), text, source, float(se) if math.isfinite(se) else None)
        else:
            self.put(key, None, missing, source)

    def power(self, key: str, value: float, source: str | Source) -> None:
        """A positive value over many orders of magnitude."""
        if not math.isfinite(value):
            self.put(key, None, "not run", source)
        else:
            text = (
                number(value, decimals=decimals_for(value)) if value >= 1e-3 else scientific(value)
            )
            self.put(key, float(value), text, source)

    def whole(
        self, key: str, value: int | None, source: str | Source, *, missing: str = "not run"
    ) -> None:
        """A count."""
        if value is None:
            self.put(key, None, missing, source)
        else:
            self.put(key, int(value), count(int(value)), source)

    def words(
        self, key: str, text: str | None, source: str | Source, *, missing: str = "not known"
    ) -> None:
        """Plain text; none or an empty one is `missing`."""
        self.put(key, text or None, escape(text) if text else missing, source)

    def integers(self, key: str, values: Iterable[int], source: str | Source) -> None:
        """A list such as "10 000, 30 000 and 100 000"; a single one alone."""
        numbers = [int(value) for value in sorted(set(values))]
        if numbers:
            self.put(key, _listed(numbers, str), _listed(numbers, count), source)
        else:
            self.put(key, None, "not run", source)


def _listed(numbers: list[int], shown: Callable[[int], str]) -> str:
    texts = [shown(number) for number in numbers]
    return ", ".join(texts[:-1]) + " and " + texts[-1] if len(texts) > 1 else texts[0]
