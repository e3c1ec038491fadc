"""Every number of the paper's text."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import json
from pathlib import Path

from gpcmc.audit import ResultFiles, read_audit, read_registry
from gpcmc.report import collect, write_values
from gpcmc.report.audit import Audited

values = collect(
    read_registry(Path(snakemake.input.published[0]).parent),
    read_audit(snakemake.input.audit),
    ResultFiles.of(dict(snakemake.input.items())),
    json.loads(Path(snakemake.input.provenance).read_text()),
    more=Audited.read(
        {"cells": snakemake.input.audit}
        | {name: snakemake.input[name] for name in ("columns", "claims", "agreement", "controls")}
    ),
)
write_values(values, snakemake.output.json, snakemake.output.tex)
