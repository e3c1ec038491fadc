"""What a run was made with; or what it has made: a summary, and checksums of every file."""

from pathlib import Path

from begin import begin

results = begin(snakemake)

import pandas as pd

from recheck.audit import summary
from recheck.files import read_csv, read_json, write_json, write_text
from recheck.provenance import provenance, run_timing, write_manifest
from recheck.published import read_published
from recheck.remeasured import counts

given = snakemake.params
if snakemake.rule == "provenance":
    paths = sorted(results.rglob("*_timing.csv"))
    timings = {path: path.relative_to(results).parts[1].split("_")[0] for path in paths}
    raw = {"registry": "data/registry.csv", "raw": "data/raw"}
    built = read_json(snakemake.input.compiled)
    record = provenance(".", given.config, given.packages, compiled=built, **raw)
    record |= counts(pd.concat(map(read_csv, snakemake.input.remeasured)))
    write_json(snakemake.output[0], record | run_timing(timings, results / "logs"))
else:
    status = [read_json(path) for path in snakemake.input.data]
    text = summary(
        read_csv(snakemake.input.audit),
        snakemake.input.get("pdfs", []),
        [f"place {one['instructions']}" for one in status if not one["available"]],
        factor=read_published(f"data/published/{given.study}").protocol.margins.informative,
        scale=results.name,
        beside=read_json(snakemake.input.provenance),
    )
    write_text(snakemake.output.summary, text)
    files = [path for top in ("results", "figures") for path in Path(top, results.name).rglob("*")]
    made = [path for path in files if path.is_file() and path.parts[2] != "logs"]
    manifest = snakemake.output.manifest
    write_manifest([path for path in made if path != Path(manifest)], manifest)
