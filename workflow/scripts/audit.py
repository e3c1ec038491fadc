"""The verdicts of all studies as one table and one page."""

from begin import begin

results = begin(snakemake)

from recheck.audit import write_audit
from recheck.book import read
from recheck.layout import read_layout
from recheck.published import read_published

given, made = snakemake.input, snakemake.output
studies = snakemake.params.studies
published = {s: read_published(f"data/published/{s}") for s in studies}
claims = [claim for one in published.values() for claim in one.claims]
write_audit(
    {s: read(path) for s, path in zip(studies, given.verdicts, strict=True)},
    {s: read_layout(path) for s, path in zip(studies, given.layouts, strict=True)},
    made.table,
    made.page,
    scale=results.name,
    factor=published[studies[0]].protocol.margins.informative,
    statements={claim.id: claim.statement for claim in claims},
)
