"""Set what a run measured beside the kept results of a study, if there are any."""

from pathlib import Path

from begin import begin

begin(snakemake)

from recheck.book import read
from recheck.files import write_csv
from recheck.layout import read_layout
from recheck.published import read_published
from recheck.remeasured import remeasured

given, study = snakemake.input, snakemake.wildcards.study
measures, kept = read(given.measures), Path("data/reference", study, "kept/measures.csv.gz")
found = remeasured(
    measures,
    read(kept) if kept.exists() else measures.iloc[:0],
    read_layout(given.layout).timing,
    read_published(f"data/published/{study}").protocol.family_error,
)
write_csv(snakemake.output.remeasured, found)
