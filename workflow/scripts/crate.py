"""A record of the run in a public vocabulary, with its files."""

import tomllib
from csv import DictReader
from pathlib import Path

from rocrate.rocrate import ROCrate

from begin import begin
from recheck.record.crate import run_crate
from recheck.record.files import read_json

begin(snakemake)
project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
about = {
    "name": f"{project['name']}: the re-run",
    "description": project["description"],
    "authors": project["authors"][0]["name"],
    "license": project["license"],
    "language": "snakemake",
}
with open("data/registry.csv", newline="", encoding="utf-8") as registry:
    raw = [{**row, "address": row["sources"].split()[0]} for row in DictReader(registry)]
record = read_json(snakemake.input.provenance)
manifest = snakemake.input.manifest
made = [line.split("  ", 1)[1] for line in Path(manifest).read_text().splitlines()]
crate = run_crate(about, record, snakemake.input.sources, raw, [*made, manifest])
crate.write_zip(snakemake.params.target)
# it is read again, as whoever receives it would
(run,) = ROCrate(snakemake.params.target).get_by_type("CreateAction")
print(
    f"{snakemake.params.target}: {len(run['result'])} files of the run, {len(run['object'])} read"
)
