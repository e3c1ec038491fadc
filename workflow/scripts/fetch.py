"""Bring one raw file to data/raw, or say why it cannot be had."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import json
import logging
import os
from pathlib import Path

from gpcmc.datasets import DataUnavailableError, fetch, read_registry

logging.basicConfig(stream=sys.stderr, level=logging.INFO)

data = snakemake.params.data
(entry,) = (
    e for e in read_registry(snakemake.input.registry) if e.file == snakemake.wildcards.file
)
try:
    fetch(
        entry,
        Path("data/raw"),
        data["mirrors"],
        root=Path.cwd(),
        retries=data["retries"],
        timeout_seconds=data["timeout_seconds"],
        deadline_seconds=data["deadline_seconds"],
    )
    status = {"file": entry.file, "sha256": entry.sha256, "available": True, "instructions": ""}
except DataUnavailableError as error:
    print(error, file=sys.stderr)
    if snakemake.params.missing_data == "fail":
        raise
    status = {
        "file": entry.file,
        "sha256": entry.sha256,
        "available": False,
        "instructions": os.path.relpath(error.target) + f" (sha256 {entry.sha256})",
    }
Path(snakemake.output.status).write_text(json.dumps(status, indent=2) + "\n")
