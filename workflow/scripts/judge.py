"""Verdicts on what a study published, and what the printed numbers say about each reading; or planted faults."""

from pathlib import Path

from begin import begin
from recheck.judge.controls import controls
from recheck.judge.published import read_published
from recheck.judge.verdicts import judge
from recheck.record.files import read_csv, write_csv
from recheck.report.book import Book

results = begin(snakemake)
study, made, seed = snakemake.wildcards.study, snakemake.output, snakemake.params.seed
folder = Path("data/published", study)
book, published = Book.read(results / study, folder), read_published(folder)
if snakemake.rule == "judge":
    found = judge(book.measures, book.estimates.reset_index(drop=True), published, seed)
    write_csv(made.verdicts, found.frame)
    write_csv(made.readings, found.readings)
    write_csv(made.outcomes, found.outcomes)
else:
    verdicts = read_csv(snakemake.input.verdicts)
    write_csv(made.controls, controls(book.measures, verdicts, published, seed))
