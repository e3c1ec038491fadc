"""A small book for the tests of tables, look-ups and the audit page."""

from recheck.judge.measures import as_measures, estimate
from recheck.judge.published import read_cells
from recheck.report.book import Book

CELLS = """id,table,column,printed,bracket,bracket_kind,scale,units,runs,section
table1/N50/M100,1,table1/N50,0.245,0.0268,standard error,log,50,1,6.1
table1/N200/M100,1,table1/N200,1.4e-3,3e-4,standard error,log,50,1,6.1
table1/N50/M1000,1,table1/N50,0.072,,,log,50,1,6.1
"""


def rows(id, values, reading="", **more):
    return [
        {"id": id, "reading": reading, "unit": f"u{n}", "run": 0, "value": v, "scale": "log"}
        | {"source": f"raw.csv:{n + 2}", "seed": "1/a", "status": "ok"}
        | more
        for n, v in enumerate(values)
    ]


def book_of(tmp_path, measured, kept=None, verdicts=None):
    (tmp_path / "cells.csv").write_text(CELLS)
    measures = as_measures(measured)
    return Book(
        estimate(measures), measures, read_cells(tmp_path / "cells.csv"), verdicts, kept=kept
    )
