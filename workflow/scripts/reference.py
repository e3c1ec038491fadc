"""Put a complete certified reference in the place of the one that is kept with the repository."""

from pathlib import Path

from begin import begin

begin(snakemake)

from recheck.files import write_json
from recheck.provenance import provenance
from studies.atiya2021.reference import store

given, rows = snakemake.params, snakemake.input.rows
arrays = [path.removesuffix(".csv") + ".npz" for path in rows]
store(given.store, rows, arrays, *snakemake.input.truths)
raw = {"registry": "data/registry.csv", "raw": "data/raw"}
record = provenance(".", given.config, given.packages, **raw)
for path in (Path(given.store, "provenance.json"), snakemake.output[0]):
    write_json(path, record)
