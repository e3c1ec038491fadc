"""Set what a run measured beside the kept results of a study, if there are any."""

from importlib import import_module
from pathlib import Path

from begin import begin

begin(snakemake)

from recheck.book import read
from recheck.files import read_json, write_csv
from recheck.layout import read_layout
from recheck.published import read_published
from recheck.remeasured import remeasured

given, study = snakemake.input, snakemake.wildcards.study
measures, folder = read(given.measures), Path("data/reference", study, "kept")
kept = folder / "measures.csv.gz"


def settings(config):
    """What each raw file was made with, by path."""
    jobs = import_module(f"studies.{study}.jobs").jobs(config).values()
    return {path: job.arguments for job in jobs for path in job.outputs.values()}


def changed():
    """Raw files whose jobs have other settings than in the kept run; all of them, if its settings have other names."""
    ours = settings(snakemake.params.config)
    try:
        theirs = settings(read_json(folder / "provenance.json")["config"])
    except KeyError:
        theirs = {}
    return {path for path in ours if theirs.get(path) != ours[path]}


found = remeasured(
    measures,
    read(kept) if kept.exists() else measures.iloc[:0],
    read_layout(given.layout).timing,
    read_published(f"data/published/{study}").protocol.family_error,
    changed() if kept.exists() else (),
)
write_csv(snakemake.output.remeasured, found)
