"""What a run was made with; or what it has made: a summary, and checksums of every file."""

from pathlib import Path

import pandas as pd

from begin import begin, kept_results
from recheck.paper.summary import summary
from recheck.record.files import read_csv, read_json, write_json, write_text
from recheck.record.provenance import provenance, run_timing, write_manifest
from recheck.record.remeasured import counts
from recheck.report.book import read

results = begin(snakemake)
given = snakemake.params
if snakemake.rule == "provenance":
    paths = sorted(results.glob("*/*_timing.csv"))
    timings = {path: f"{path.parent.name}/{path.stem.removesuffix('_timing')}" for path in paths}
    raw = {"registry": "data/registry.csv", "raw": "data/raw"}
    built = read_json(snakemake.input.compiled)
    record = provenance(".", given.config, given.packages, compiled=built, **raw)
    record |= counts(pd.concat(map(read_csv, snakemake.input.remeasured)))
    write_json(snakemake.output[0], record | run_timing(timings, results / "logs"))
else:
    status = [read_json(path) for path in snakemake.input.data]
    folders = {study: kept_results(study) or results / study for study in given.studies}
    text = summary(
        {study: read(folder / "verdicts.csv") for study, folder in folders.items()},
        {study: read_csv(results / study / "remeasured.csv") for study in given.studies},
        [*snakemake.input.get("pdfs", []), *snakemake.input.get("page", [])],
        [f"place {one['instructions']}" for one in status if not one["available"]],
        scale=results.name,
        kept=all(map(kept_results, given.studies)),
    )
    write_text(snakemake.output.summary, text)
    files = [path for top in ("results", "figures") for path in Path(top, results.name).rglob("*")]
    made = [path for path in files if path.is_file() and path.parts[2] != "logs"]
    manifest = snakemake.output.manifest
    write_manifest([path for path in made if path != Path(manifest)], manifest)
