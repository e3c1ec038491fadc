"""The verdicts of all studies as one table and one page."""

from begin import begin
from recheck.judge.published import read_published
from recheck.report.audit import write_audit
from recheck.report.book import read
from recheck.report.layout import read_layout

results = begin(snakemake)
given, made = snakemake.input, snakemake.output
studies = snakemake.params.studies
write_audit(
    {s: read(path) for s, path in zip(studies, given.verdicts, strict=True)},
    {s: read_layout(path) for s, path in zip(studies, given.layouts, strict=True)},
    {s: read_published(f"data/published/{s}") for s in studies},
    made.table,
    made.page,
    scale=results.name,
)
