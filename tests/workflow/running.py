"""Runs of the workflow in temporary copies of the project."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIRROR = ROOT.parent / "shared" / "data"
PARTS = [
    *("Snakefile", "LICENSE", "README.md", "pyproject.toml", "setup.py"),
    *("config", "data", "notebooks", "paper", "profiles", "src", "workflow"),
]
#: Files that hold CPU seconds or say when a run was made, or that print such numbers.
TIMED = re.compile(
    r"_timing\.csv|/(provenance\.json|MANIFEST\.sha256|values\.tex|origins\.tex|summary\.txt|audit\.[\w.]+)$"
    r"|/(measures|estimates|verdicts|readings|outcomes|controls|tables|appendix|data)\b|^figures/|\.pdf$|\.ipynb$"
)


def copy_project(folder):
    """The sources, with the compiled extensions of this checkout as far as there are any."""
    folder.mkdir(parents=True)
    ignore = shutil.ignore_patterns("raw", "__pycache__", "*.egg-info")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=ignore)
        elif source.exists():
            shutil.copy2(source, folder / part)
    if (ROOT / "build/cython").exists():
        shutil.copytree(ROOT / "build/cython", folder / "build/cython")
    return folder


def divide(folder):
    """Divide two jobs of the tiny scale into slices: at pieces, and at the runs of a piece."""
    plan = {
        "experiment1/N50": [["instance0"], ["instance1", "instance2"]],
        "experiment4/problem1_orthant": [["set3_run0/1"], ["set3_run0/0", "set3_run0/2"]],
    }
    store = folder / "data/reference/atiya2021/kept-tiny"
    store.mkdir(parents=True)
    (store / "slices.json").write_text(json.dumps(plan))


def environment(**changes):
    """Variables of a run: the raw data of this machine, and no other project's packages."""
    found = os.environ | {"GPCMC_DATA_MIRRORS": str(MIRROR)} | changes
    return {name: value for name, value in found.items() if name != "PYTHONPATH"}


def command(*arguments, scale="tiny", settings=(), python=sys.executable):
    """Snakemake at a scale; `settings` are further keys of the configuration."""
    return [
        *(str(python), "-m", "snakemake", *arguments),
        *("--config", f"scale={scale}", *settings),
    ]


def snakemake(folder, *arguments, scale="tiny", settings=(), python=sys.executable, **variables):
    """Run Snakemake to its end."""
    return subprocess.run(
        command(*arguments, scale=scale, settings=settings, python=python),
        cwd=folder,
        env=environment(**variables),
        text=True,
        timeout=1200,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def planned(folder, *arguments, **more):
    """The jobs of a dry run: number by rule."""
    done = snakemake(folder, *arguments, "--dry-run", "--quiet", "reason", **more)
    assert done.returncode == 0, done.stdout
    table = re.search(r"Job stats:\n.*?\n-+.*?\n(.*?)\n\n", done.stdout, flags=re.DOTALL)
    rows = [line.split() for line in table[1].splitlines()] if table else []
    return {name: int(number) for name, number in rows if name != "total"}


def made(folder):
    """Every file under results/ and figures/ but logs, by its path in the project."""
    files = [path for top in ("results", "figures") for path in (folder / top).rglob("*")]
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(files)
        if path.is_file() and path.relative_to(folder).parts[2:3] != ("logs",)
    }


def digests(folder):
    """SHA-256 of every raw result, by its path in the project."""
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in made(folder).items()
        if not TIMED.search(name)
    }
