"""Put the report and audit layer, plain Python, beside the numerical one in build/lib."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import hashlib
import json
import shutil
from pathlib import Path

sources = [Path(path) for path in snakemake.input.sources]
for layer in {source.parent.name for source in sources}:
    shutil.rmtree(Path("build/lib/gpcmc", layer), ignore_errors=True)
for source in sources:
    target = Path("build/lib") / source.relative_to("src")
    target.parent.mkdir(exist_ok=True)
    shutil.copy2(source, target)

digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
Path(snakemake.output[0]).write_text(json.dumps({"sources_sha256": digest}, indent=2) + "\n")
