"""List the jobs of a scale: what each writes and reads, its rows, and the CPU seconds that kept rows took."""

import pandas as pd

from begin import begin
from recheck.record.files import write_csv
from studies.common.kept import Kept

results = begin(snakemake)
jobs, lines = snakemake.params.jobs, []
kept = {study: Kept(f"data/reference/{study}").seconds for study in {job["study"] for job in jobs}}
for job in jobs:
    found = [kept[job["study"]].get((job["experiment"], row["row"])) for row in job["rows"]]
    line = {name: job[name] for name in ("study", "experiment", "file")}
    line |= {"reads": " ".join(sorted(job["inputs"].values())), "rows": len(found)}
    line |= {"untimed": found.count(None), "cpu_seconds": round(sum(filter(None, found)), 3)}
    lines.append(line)
write_csv(results / "jobs.csv", pd.DataFrame(lines))
