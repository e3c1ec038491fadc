"""Tables and figures of a study, for its folders and for the paper; or one that is named, from the parts it reads."""

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from begin import begin, kept_results
from recheck.judge.published import read_published
from recheck.record.files import write_csv
from recheck.report.book import Book, read
from recheck.report.documents import draw
from recheck.report.layout import read_layout
from recheck.report.style import save, style
from recheck.report.tables import write_tables as write_shown
from studies.common.measuring import measure_parts, write_tables

results = begin(snakemake)
given, study = snakemake.params, snakemake.params.study
published, kept = Path("data/published", study), kept_results(study)
path = Path("src/studies", study, "layout.yaml")
layout, figures = read_layout(path), import_module(f"studies.{study}.figures").FIGURES


def shown(book, tables, drawn):
    """Write tables and figures of a book."""
    write_shown(layout, book, tables, results / study / "tables")
    for name in drawn:
        with style():
            figure = figures[name](book)
        save(figure, *(f"figures/{results.name}/{study}/{name}.{end}" for end in ("pdf", "png")))


if given.get("parts"):
    with TemporaryDirectory() as folder:
        tables = Path(folder)
        write_tables(tables, given.files, given.order)
        regions = read_published(published).regions
        measures, estimates = measure_parts(study, given.parts, tables, regions, results / study)
        write_csv(tables / "measures.csv", measures)
        write_csv(tables / "estimates.csv", estimates)
        # verdicts are of all measures together: where they are there, the table has them
        for judged in ("verdicts.csv", "outcomes.csv"):
            if (results / study / judged).exists():
                write_csv(tables / judged, read(results / study / judged))
        book = Book.read(tables, published, kept)
else:
    book = Book.read(results / study, published, kept)
if "only" in given.keys():  # noqa: SIM118  (a list, whose entries have names)
    named = [given.only]
    shown(book, named if given.kind == "tables" else [], named if given.kind == "figures" else [])
else:
    shown(book, None, figures)
    from_kept = given.numbers == "kept"
    draw(
        results / study,
        published,
        path,
        kept,
        from_kept,
        figures,
        results / "paper" / given.below,
    )
