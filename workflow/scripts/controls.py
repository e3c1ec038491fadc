"""Negative controls: planted faults, and which of them the audit finds."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.audit import (
    ResultFiles,
    check_controls,
    controls,
    read_audit,
    read_claims,
    read_registry,
    write_rows,
)

given = snakemake.input
published = Path(given.published[0]).parent
found = controls(
    read_registry(published),
    ResultFiles.of(dict(given.items())),
    published,
    read_claims(given.claims),
    read_audit(given.judged),
)
check_controls(found, snakemake.wildcards.scale)
write_rows(found, snakemake.output[0])
