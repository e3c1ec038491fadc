"""Put a complete certified reference in the place of the one that is kept with the repository."""

from pathlib import Path

from begin import begin
from recheck.record.files import write_json
from recheck.record.provenance import provenance
from studies.atiya2021.reference.cells import store
from studies.common.measuring import write_tables

results = begin(snakemake)
given = snakemake.params
write_tables(results / "atiya2021", given.files, given.order)
cells, truths = (results / "atiya2021" / name for name in ("reference_cells", "reference_truths"))
store(given.store, f"{cells}.csv", f"{cells}.npz", f"{truths}.csv")
raw = {"registry": "data/registry.csv", "raw": "data/raw"}
record = provenance(".", given.config, given.packages, **raw)
for path in (Path(given.store, "provenance.json"), snakemake.output[0]):
    write_json(path, record)
