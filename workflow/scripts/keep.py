"""Store a run with the repository, or put kept rows back."""

import shutil
from pathlib import Path

from begin import begin
from studies.common.kept import Kept, codes, keep, resume

results = begin(snakemake)
if snakemake.rule == "resume":
    for study, places in snakemake.params.places.items():
        print("\n".join(resume(Kept(f"data/reference/{study}"), places, results / study)))
else:
    shown = [results / "paper.pdf", results / "supplement.pdf"]
    for study, plans in snakemake.params.plans.items():
        store = f"data/reference/{study}"
        code = {name: codes(study, name, rows) for name, rows in plans.items()}
        print(f"{study}: {keep(study, results, store, code)} rows kept in {store}")
        shown.append(Path("figures", results.name, study, "accuracy.png"))
    for path in filter(Path.exists, shown):  # no documents without LaTeX
        shutil.copy(path, "data/reference")
