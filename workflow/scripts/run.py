"""Run one job of a study."""

from importlib import import_module
from pathlib import Path

from begin import begin

results = begin(snakemake)

from recheck.files import read_json, sha256
from studies.common.code import digest

built = snakemake.input.compiled
if stale := [path for path, old in read_json(built)["sources"].items() if sha256(path) != old]:
    raise SystemExit(
        f"{', '.join(stale)}: the extensions were built from another version; delete {built} and run snakemake again"
    )
given, study = snakemake.params, snakemake.wildcards.run.partition("/")[0]
jobs = import_module(f"studies.{study}.jobs")
job = jobs.Job(**given.job)
if digest(job.modules) != given.code:
    raise SystemExit(
        f"{job.name}: its sources changed during the run; run snakemake again, which knows the new ones"
    )
jobs.run_job(job, results / study, Path(given.pieces, study))
