"""Build the wheel of the numerical layer from a clean copy of its sources, and unpack it to build/lib."""

import sys

sys.stderr = sys.stdout = open(snakemake.log[0], "w", buffering=1)

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path


def pip(*arguments):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=sys.stdout, stderr=sys.stderr)


sources = [Path(path) for path in snakemake.input]
lib = Path("build/lib")
shutil.rmtree(lib, ignore_errors=True)
# a copy: nothing of an earlier build can slip into this one
with tempfile.TemporaryDirectory() as folder:
    for source in sources:
        target = folder / source
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    pip("wheel", folder, "--no-deps", "--no-build-isolation", "--no-index", "-w", f"{folder}/wheel")
    (wheel,) = Path(folder, "wheel").glob("*.whl")
    pip("install", "--no-deps", "--no-index", "--target", lib, wheel)

digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
made = {"wheel": wheel.name, "sources_sha256": digest, "python": sys.version}
Path(snakemake.output[0]).write_text(json.dumps(made, indent=2) + "\n")
