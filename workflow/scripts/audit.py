"""One row for every published cell."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.audit import ResultFiles, audit, read_registry, write_audit

registry = read_registry(Path(snakemake.input.published[0]).parent)
files = ResultFiles.of(dict(snakemake.input.items()))
write_audit(audit(registry, files), registry, snakemake.output[0])
