"""Every number of the paper's text, and where each comes from."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import json
from pathlib import Path

import pandas as pd

from gpcmc.audit import ResultFiles, read_registry
from gpcmc.report import collect, trace, write_origins, write_values
from gpcmc.report.audit import Audited

given = snakemake.input
audited = Audited.read(
    {"cells": given.audit}
    | {name: given[name] for name in ("columns", "claims", "agreement", "controls")}
)
files = ResultFiles.of(dict(given.items()))
record = json.loads(Path(given.provenance).read_text())
values = collect(
    read_registry(Path(given.published[0]).parent),
    audited.cells,
    files,
    record,
    more=audited,
)
folder, reads = Path(snakemake.output.json).parent, snakemake.params.reads
judged = pd.concat([audited.cells, audited.claims])
values = trace(values, judged, files, folder, reads["tables"])
write_values(values, snakemake.output.json, snakemake.output.tex)
write_origins(values, files, record, folder, reads, snakemake.output.origins)
