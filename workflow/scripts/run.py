"""Run one job of a study, or a slice of one."""

import shutil
from importlib import import_module
from pathlib import Path

from begin import begin

results = begin(snakemake)

from recheck.files import read_json, sha256
from studies.common.code import digest
from studies.common.slices import Slice, gather

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
pieces = Path(given.pieces, study)
#: The job's pieces, and runs of pieces that were divided.
folders = pieces / job.name, Path("build/slices", snakemake.config["scale"], study, job.name)
if hasattr(given, "units"):  # rule slice, or one that inherits from it
    verify = Slice(job.name, given.units, *folders)
    jobs.run_job(job, results / study, pieces, verify=verify)
else:
    gather(job.name, *folders)
    jobs.run_job(job, results / study, pieces)
    shutil.rmtree(folders[1], ignore_errors=True)
