"""Set what a run measured beside the kept results of a study, if there are any."""

from begin import begin, kept_results
from recheck.judge.published import read_published
from recheck.record.files import write_csv
from recheck.record.remeasured import remeasured
from recheck.report.book import read
from recheck.report.layout import read_layout
from studies.common.kept import Kept, changed

begin(snakemake)
given, study = snakemake.input, snakemake.wildcards.study
measures, kept = read(given.measures), kept_results(study)
layout = read_layout(given.layout)
published = read_published(f"data/published/{study}")
found = remeasured(
    measures,
    read(kept / "measures.csv.gz") if kept else measures.iloc[:0],
    layout.timing,
    published.protocol.family_error,
    changed(Kept(kept), snakemake.params.plans) if kept else {},
    published.regions,
    layout.sized,
)
write_csv(snakemake.output.remeasured, found)
