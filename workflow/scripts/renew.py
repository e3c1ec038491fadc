"""Make kept rows again that other code made, and keep each method of an experiment as soon as it is whole."""

from begin import begin
from recheck.record.provenance import provenance
from studies.common.kept import Kept
from studies.common.plan import Plan
from studies.common.renew import made_here, renew, stale

begin(snakemake)
given = snakemake.params
plan = Plan(given.config)
groups = [
    group for study in given.studies for group in stale(Kept(f"data/reference/{study}"), plan)
]
made = made_here(
    provenance(".", given.config, given.packages, registry="data/registry.csv", raw="data/raw")
)
for line in renew(groups, plan, "data/reference", given.parts, snakemake.threads, made):
    print(line, flush=True)
