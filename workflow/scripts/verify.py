"""Recompute a random sample of kept pieces; carry the rest over where they are the same, and drop it where not."""

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from begin import begin

results = begin(snakemake)
# parallel by jobs, one thread each
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from recheck.files import read_json, write_json
from studies.common.verify import carry_over, plan, summary, verify_job

given = snakemake.params


def verify(study: str, store: str, name: str, drawn: list[str]) -> dict:
    """Recompute the drawn pieces of one job."""
    jobs = import_module(f"studies.{study}.jobs")
    run = partial(jobs.run_job, jobs.jobs(given.config)[name], results / study)
    return verify_job(name, store, drawn, lambda check: run(Path("build"), verify=check))


for study, folder in given.stores.items():
    store = f"{folder}/pieces"
    if not Path(store).is_dir():  # nothing of this study is kept
        continue
    planned = plan(store, share=given.share, seed_root=given.seed)
    if not planned["jobs"]:  # the record of the last verification stays
        print(f"{study}: all kept pieces are what this tree would compute")
        continue
    drawn = [job["drawn"] for job in planned["jobs"].values()]
    with ProcessPoolExecutor(snakemake.threads, mp_context=get_context("fork")) as pool:
        reports = list(pool.map(partial(verify, study, store), planned["jobs"], drawn))
    commit = read_json(f"{folder}/provenance.json")["commit"]
    how = {"share": given.share, "seed_root": given.seed, "commit": commit}
    outcome = carry_over(reports, store, store, **how)
    write_json(f"{folder}/verification.json", {"plan": planned, "outcome": outcome})
    print(summary(outcome))
