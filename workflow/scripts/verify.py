"""Run kept rows again, and say which are what they were: rows that were drawn, or those behind one number."""

import sys

from begin import begin
from studies.common.kept import DIFFERENT, IDENTICAL, SAME_LAW
from studies.common.rerun import note, other_kernels, run_again

begin(snakemake)
given = snakemake.params
found = run_again(given.jobs, snakemake.threads)
if snakemake.rule == "number":
    print(given.asked.report(found))
else:
    note(found, "data/reference")
    by = found.groupby(["study", "experiment"])["outcome"].value_counts().unstack(fill_value=0)
    same, seconds = int((found["outcome"] == IDENTICAL).sum()), found["cpu_seconds"].sum()
    print(
        f"{by.to_string()}\n{same} of {len(found)} rows are identical ({seconds:.0f} CPU seconds)"
    )
for line in found[found["outcome"] != IDENTICAL].to_dict("records"):
    print("{study}, {experiment}, {row}: {difference}".format(**line), file=sys.__stderr__)
if (~found["outcome"].isin([IDENTICAL, SAME_LAW])).any():
    print(other_kernels(found["study"].unique(), "data/reference"), file=sys.__stderr__)
if (found["outcome"] == DIFFERENT).any():
    raise SystemExit(1)
