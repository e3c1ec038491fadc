"""What is made of the rows of a study: tables, measures, estimates, verdicts, planted faults, what differs."""

from pathlib import Path

from begin import begin, kept_results
from recheck.judge.controls import controls
from recheck.judge.published import read_published
from recheck.judge.verdicts import judge
from recheck.record.files import read_csv, write_csv
from recheck.record.remeasured import remeasured
from recheck.report.book import read
from recheck.report.layout import read_layout
from studies.common.kept import Kept, changed
from studies.common.measuring import measure_parts, write_tables
from studies.common.moved import keep_last

results = begin(snakemake)
given, made, study = snakemake.params, snakemake.output, snakemake.params.study
write_tables(results / study, given.files, given.order)
folder = Path("data/published", study)
published, kept = read_published(folder), kept_results(study)
measures, estimates = measure_parts(study, given.parts, results / study, published.regions)
write_csv(made.measures, measures)
write_csv(made.estimates, estimates)
measures, estimates = read(made.measures), read(made.estimates)
found = judge(measures, estimates, published, given.seed)
write_csv(made.verdicts, found.frame)
write_csv(made.readings, found.readings)
write_csv(made.outcomes, found.outcomes)
write_csv(made.controls, controls(measures, read_csv(made.verdicts), published, given.seed))
layout = read_layout(f"src/studies/{study}/layout.yaml")
beside = remeasured(
    measures,
    read(kept / "measures.csv.gz") if kept else measures.iloc[:0],
    layout.timing,
    published.protocol.family_error,
    changed(Kept(kept), given.plans) if kept else {},
    published.regions,
    layout.sized,
)
write_csv(made.remeasured, beside)
keep_last(results / study)
