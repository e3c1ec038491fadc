"""Build the wheel from a clean copy of the sources, and unpack it where the jobs look for it."""

import sys

sys.stderr = sys.stdout = open(snakemake.log[0], "w", buffering=1)

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, stdout=sys.stdout, stderr=sys.stderr)


def build(sources: list[str], wheel: Path, lib: Path) -> dict[str, str]:
    # a copy: nothing of an earlier build can slip into this one
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            target = Path(folder, source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
        pip("wheel", folder, "--no-deps", "--no-build-isolation", "--no-index", "-w", str(wheel))
    (built,) = wheel.glob("*.whl")
    pip("install", "--no-deps", "--no-index", "--upgrade", "--target", str(lib), str(built))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(Path(source).read_bytes())
    return {"wheel": built.name, "sources_sha256": digest.hexdigest(), "python": sys.version}


info = build(
    list(snakemake.input.sources), Path(snakemake.output.wheel), Path(snakemake.output.lib)
)
Path(snakemake.output.info).write_text(json.dumps(info, indent=2) + "\n")
