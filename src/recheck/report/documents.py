"""Tables, figures and lists of a study, drawn for a document."""

from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from recheck.judge.published import read_published
from recheck.record.files import read_csv, write_text
from recheck.report.audit import audit_tables, protocol_table, readings_table
from recheck.report.book import Book, read
from recheck.report.latex import escape
from recheck.report.layout import Layout, read_layout
from recheck.report.style import save, style
from recheck.report.tables import tabular, write_tables


def draw(
    study: Path,
    published: Path,
    layout: Path,
    kept: Path | None,
    from_kept: bool,
    figures: Mapping[str, Callable[[Book], Figure]],
    into: Path,
) -> None:
    """Draw all tables, figures and lists of a study.

    Tables that set this run beside the kept one are those of the run. All other tables, the figures and the lists are
    drawn from `kept` where `from_kept` says so and there is any, else from the run's results, the folder `study`.
    """
    declared = read_layout(layout)
    book = Book.read(study, published, kept)
    shown = (from_kept and book.kept) or book
    beside = [
        name
        for name, table in declared.tables.items()
        if any("kept" in block.show for block in table.blocks)
    ]
    if taken := {"verdicts", "protocol", "controls"} & declared.tables.keys():
        raise ValueError(f"{layout}: tables: {sorted(taken)} are names of lists; rename")
    write_tables(declared, book, beside, into)
    write_tables(declared, shown, [name for name in declared.tables if name not in beside], into)
    for name, one in figures.items():
        with style():
            figure = one(shown)
        save(figure, into / f"{name}.pdf", into / f"{name}.png")
    _lists(kept if kept and from_kept else study, published, declared, into)


def _lists(folder: Path, published: Path, layout: Layout, into: Path) -> None:
    """The verdicts, the protocol and the negative controls, as LaTeX."""
    known = read_published(published)
    verdicts = audit_tables(read(folder / "verdicts.csv"), layout, known)
    write_text(into / "verdicts.tex", "\n".join(verdicts.values()))
    evidence = readings_table(known, read_csv(folder / "readings.csv"))
    write_text(into / "protocol.tex", protocol_table(known) + evidence)
    columns = ["control", "trials", "expected", "low", "high", "found"]
    rows = read_csv(folder / "controls.csv")[columns].to_numpy().tolist()
    body = [[escape(f"{v:.3g}" if isinstance(v, float) else str(v)) for v in row] for row in rows]
    write_text(into / "controls.tex", tabular("@{}lrrrrr@{}", [columns], body, breaks=True))
