"""Run some rows of an experiment."""

from importlib import import_module

from begin import begin
from recheck.record.files import read_arrays, read_json, sha256
from studies.common.code import digest_of_rows
from studies.common.rows import run_rows, write_table

results = begin(snakemake)
given, made = snakemake.params, snakemake.output
built = snakemake.input.compiled
if stale := [path for path, old in read_json(built)["sources"].items() if sha256(path) != old]:
    raise SystemExit(
        f"{', '.join(stale)}: the extensions were built from another version; delete {built} and run snakemake again"
    )
if digest_of_rows(given.study, given.experiment, given.rows) != given.code:
    raise SystemExit(
        f"{made.rows}: its sources changed during the run; run snakemake again, which knows the new ones"
    )
inputs = {key: read_arrays(path) for key, path in snakemake.input.items() if key != "compiled"}
module = import_module(f"studies.{given.study}.experiments.{given.experiment}")
table = run_rows(module.run, given.rows, inputs)
write_table(made.rows.removesuffix(".csv"), table)
