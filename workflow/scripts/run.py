"""Run a block of rows; those that are there from before, made from the same, are taken over."""

from begin import begin
from recheck.record.files import read_json, sha256
from studies.common.blocks import Reader, Records, Spares, remember, write_block
from studies.common.code import read_digests
from studies.common.plan import Block

begin(snakemake)
given, path, study = snakemake.params, snakemake.output[0], snakemake.wildcards.study
built = snakemake.input.compiled
if stale := [path for path, old in read_json(built)["sources"].items() if sha256(path) != old]:
    raise SystemExit(
        f"{', '.join(stale)}: the extensions were built from another version; delete {built} and run snakemake again"
    )
read_digests("build/digests.json")
if Block(study, snakemake.wildcards.block, given.rows).code != given.code:
    raise SystemExit(
        f"{path}: its sources changed during the run; run snakemake again, which knows the new ones"
    )

records: Records = {experiment: {} for experiment, _ in given.rows}
folder = path.rpartition("/")[0]
reader, spares = Reader(records), Spares(folder)
for experiment, row in given.rows:
    inputs = given.inputs[f"{experiment}/{row['row']}"]
    made = reader.made(study, experiment, row, inputs)
    found = spares.get(made)
    records[experiment][row["row"]] = found or reader.run(study, experiment, row, inputs, made)
write_block(path, records)
remember(path)
