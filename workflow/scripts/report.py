"""Tables or figures of a study: all of them, or those that are named."""

from importlib import import_module
from pathlib import Path

from begin import begin, kept_results
from recheck.report.book import Book
from recheck.report.layout import read_layout

results = begin(snakemake)
given = snakemake.params
published, kept = Path("data/published", given.study), kept_results(given.study)
book = Book.read(results / given.study, published, given.get("parts"), kept)
if given.figures:
    from recheck.report.style import save, style

    figures = import_module(f"studies.{given.study}.figures").FIGURES
    for name in given.get("only", figures):
        stem = f"figures/{results.name}/{given.study}/{name}"
        with style():
            drawn = figures[name](book)
        save(drawn, f"{stem}.pdf", f"{stem}.png")
else:
    from recheck.report.tables import write_tables

    layout = read_layout(f"src/studies/{given.study}/layout.yaml")
    write_tables(layout, book, given.get("only"), results / given.study / "tables")
