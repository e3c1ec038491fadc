"""Store a run with the repository, or put kept rows back."""

import shutil
from pathlib import Path

from begin import begin
from studies.common.kept import Kept, codes, keep, resume
from studies.common.plan import Plan

results = begin(snakemake)
if snakemake.rule == "resume":
    plan = Plan(snakemake.params.config)
    for study in snakemake.params.studies:
        print("\n".join(resume(Kept(f"data/reference/{study}"), plan)))
else:
    shown = [results / "paper.pdf", results / "supplement.pdf"]
    for study, plans in snakemake.params.plans.items():
        store = f"data/reference/{study}"
        code = {name: codes(study, name, rows) for name, rows in plans.items()}
        print(f"{study}: {keep(study, results, store, code)} rows kept in {store}")
        shown.append(Path("figures", results.name, study, "accuracy.png"))
    for path in filter(Path.exists, shown):  # no documents without LaTeX
        shutil.copy(path, "data/reference")
