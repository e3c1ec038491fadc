"""Set what a run measured beside the kept results of a study, if there are any."""

from importlib import import_module

from begin import begin, kept_results

begin(snakemake)

from recheck.book import read
from recheck.files import read_json, write_csv
from recheck.layout import read_layout
from recheck.published import read_published
from recheck.remeasured import remeasured

given, study = snakemake.input, snakemake.wildcards.study
measures, kept = read(given.measures), kept_results(study)


def settings(config):
    """What each raw file was made with, by path."""
    jobs = import_module(f"studies.{study}.jobs").jobs(config).values()
    return {path: job.arguments for job in jobs for path in job.outputs.values()}


def changed():
    """Raw files whose jobs have other settings than in the kept run; all of them, if its settings have other names."""
    ours = settings(snakemake.params.config)
    try:
        theirs = settings(read_json(kept / "provenance.json")["config"])
    except KeyError:
        theirs = {}
    return {path for path in ours if theirs.get(path) != ours[path]}


published = read_published(f"data/published/{study}")
found = remeasured(
    measures,
    read(kept / "measures.csv.gz") if kept else measures.iloc[:0],
    read_layout(given.layout).timing,
    published.protocol.family_error,
    changed() if kept else (),
    published.regions,
)
write_csv(snakemake.output.remeasured, found)
