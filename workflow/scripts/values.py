"""Every number of the paper's text, and where each comes from."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import json
from pathlib import Path

from gpcmc.audit import ResultFiles, read_audit, read_registry
from gpcmc.report import collect, trace, write_origins, write_values
from gpcmc.report.audit import Audited

audited = read_audit(snakemake.input.audit)
files = ResultFiles.of(dict(snakemake.input.items()))
record = json.loads(Path(snakemake.input.provenance).read_text())
folder, reads = Path(snakemake.output.json).parent, snakemake.params.reads
values = collect(
    read_registry(Path(snakemake.input.published[0]).parent),
    audited,
    files,
    record,
    json.loads(Path(snakemake.input.timing).read_text()),
    more=Audited.read(
        {"cells": snakemake.input.audit}
        | {name: snakemake.input[name] for name in ("columns", "claims", "agreement", "controls")}
    ),
)
values = trace(values, audited, files, folder, reads["tables"])
write_values(values, snakemake.output.json, snakemake.output.tex)
write_origins(values, files, record, folder, reads, snakemake.output.origins)
