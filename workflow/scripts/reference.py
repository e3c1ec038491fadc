"""Put a complete certified reference in the place of the one that is kept with the repository."""

from pathlib import Path

from begin import begin
from recheck.record.files import write_json
from recheck.record.provenance import provenance
from studies.atiya2021.reference import store

begin(snakemake)
given = snakemake.params
store(given.store, snakemake.input.cells, snakemake.input.probabilities, snakemake.input.truths)
raw = {"registry": "data/registry.csv", "raw": "data/raw"}
record = provenance(".", given.config, given.packages, **raw)
for path in (Path(given.store, "provenance.json"), snakemake.output[0]):
    write_json(path, record)
