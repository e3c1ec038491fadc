"""List the jobs of a scale: what each writes and reads, its rows, and the CPU seconds that kept rows took."""

import pandas as pd

from begin import begin, kept_results
from recheck.record.files import write_csv
from studies.common.kept import Kept
from studies.common.plan import Plan, declared

results = begin(snakemake)
plan, lines = Plan(snakemake.params.config), []
for study in plan.studies:
    folder = kept_results(study)
    kept = Kept(folder).seconds if folder else {}
    for block in plan.blocks(study).values():
        if {experiment for experiment, _ in block.rows} & {*declared(study).apart}:
            continue
        found = [kept.get((experiment, row["row"])) for experiment, row in block.rows]
        line = {"study": study, "experiment": block.rows[0][0], "file": plan.path(block)}
        line |= {"reads": " ".join(plan.inputs_of(block)), "rows": len(found)}
        line |= {"untimed": found.count(None), "expected": round(block.seconds, 1)}
        lines.append(line | {"cpu_seconds": round(sum(filter(None, found)), 3)})
write_csv(results / "jobs.csv", pd.DataFrame(lines))
