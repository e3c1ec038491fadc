"""Typeset the paper and its supplement, with the kept numbers or with those of this run.

Tables, figures and lists of another study than the first are in a folder of its name, ``tables/<study>``. Tables that
set this run beside the kept one are those of the run. All other tables, the figures and the lists of verdicts are drawn
from the results whose numbers the text prints.
"""

import sys
from importlib import import_module
from pathlib import Path

from begin import begin, kept_results

results = begin(snakemake)

from recheck.audit import audit_tables, protocol_table, readings_table
from recheck.book import Book, read
from recheck.files import read_csv, read_json, write_text
from recheck.format import escape
from recheck.layout import read_layout
from recheck.published import read_published
from recheck.style import save, style
from recheck.tables import tabular, write_tables
from recheck.typeset import typeset

given, drawn = snakemake.input, results / "paper"


def lists(study: str, into: Path, folder: Path) -> None:
    """The verdicts, the protocol and the negative controls of a study, as LaTeX."""
    published = read_published(Path("data/published", study))
    layout = read_layout(f"src/studies/{study}/layout.yaml")
    verdicts = audit_tables(read(folder / "verdicts.csv"), layout, published)
    write_text(into / "verdicts.tex", "\n".join(verdicts.values()))
    evidence = readings_table(published, read_csv(folder / "readings.csv"))
    write_text(into / "protocol.tex", protocol_table(published) + evidence)
    columns = ["control", "trials", "expected", "low", "high", "found"]
    rows = read_csv(folder / "controls.csv")[columns].to_numpy().tolist()
    body = [[escape(f"{v:.3g}" if isinstance(v, float) else str(v)) for v in row] for row in rows]
    write_text(into / "controls.tex", tabular("@{}lrrrrr@{}", [columns], body, breaks=True))


def draw(study: str, into: Path) -> None:
    """Tables, figures and lists of a study."""
    data, kept = Path("data/published", study), kept_results(study)
    folder = kept if snakemake.params.numbers == "kept" and kept else results / study
    layout = read_layout(f"src/studies/{study}/layout.yaml")
    book = Book.read(results / study, data, None, kept)
    shown = book.kept if folder == kept else book
    beside = [
        name
        for name, table in layout.tables.items()
        if any("kept" in block.show for block in table.blocks)
    ]
    if taken := {"verdicts", "protocol", "controls"} & layout.tables.keys():
        raise ValueError(
            f"{study}: layout.yaml: tables: {sorted(taken)} are names of lists; rename"
        )
    write_tables(layout, book, beside, into)
    write_tables(layout, shown, [name for name in layout.tables if name not in beside], into)
    figures = import_module(f"studies.{study}.figures").FIGURES
    for name, one in figures.items():
        with style():
            figure = one(shown)
        save(figure, into / f"{name}.pdf", into / f"{name}.png")
    lists(study, into, folder)


files = {"": given.values}
for number, study in enumerate(snakemake.params.studies):
    below = f"/{study}" if number else ""
    draw(study, Path(f"{drawn}{below}"))
    for kind, ending in {"tables": "tex", "figures": "pdf"}.items():
        files[kind + below] = sorted(Path(f"{drawn}{below}").glob(f"*.{ending}"))
wide = typeset(
    given.text,
    files,
    {"main.tex": snakemake.output.paper, "supplement.tex": snakemake.output.supplement},
    epoch=read_json(given.provenance)["commit_time"] or 0,
    log=snakemake.log[0],
)
# on the terminal too: the paper is there, but a table or a line is in its margin
for message in wide:
    print(message, file=sys.__stderr__)
