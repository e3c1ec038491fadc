"""Say which numbers of this run are others than those of the run before."""

from begin import begin
from studies.common.moved import moved

results = begin(snakemake)
for study in snakemake.params.studies:
    found = moved(results / study)
    if found is None:
        print(f"{study}: no run before had other measures")
    elif found.empty:
        print(f"{study}: all estimates are those of the run before")
    else:
        print(f"{study}: {len(found)} estimates moved")
        print(found.to_string(index=False, max_rows=60, na_rep="", float_format="{:.6g}".format))
