"""Runs of the workflow in temporary copies of the project."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from studies.common.kept import DERIVED

ROOT = Path(__file__).resolve().parents[2]
MIRROR = ROOT.parent / "shared" / "data"
PARTS = [
    *("Snakefile", "LICENSE", "README.md", "pyproject.toml", "setup.py"),
    *("config", "data", "notebooks", "paper", "profiles", "src", "workflow"),
]
#: What a run reads of what is kept: the certified reference, and what was made of rows. Copies do without the rows.
READ = {"evidence.csv", "probabilities.npz", "truths.csv", "digests.json", "provenance.json"}
READ |= {f"{name}{end}" for name, end in DERIVED.items()}
#: Files that hold CPU seconds or say when a run was made, or that print such numbers.
TIMED = re.compile(
    r"_timing\.csv|/(provenance\.json|MANIFEST\.sha256|values\.tex|numbers\.json)$"
    r"|/(summary\.txt|audit\.[\w.]+|origins\.[\w.]+|paper\.html)$"
    r"|/(measures|estimates|verdicts|readings|outcomes|controls|tables|appendix|data|rows)\b|^figures/|\.pdf$|\.ipynb$"
)


def left_out(folder, names):
    """What a copy of the project does without: raw data, caches, and kept rows."""
    found = {n for n in names if n in ("raw", "__pycache__") or n.endswith(".egg-info")}
    if "data/reference" in Path(folder).as_posix():
        files = {name for name in names if Path(folder, name).is_file()}
        found |= {name for name in files if name.removesuffix(".digest") not in READ}
    return found


def copy_project(folder):
    """The sources, with the compiled extensions of this checkout as far as there are any."""
    folder.mkdir(parents=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=left_out)
        elif source.exists():
            shutil.copy2(source, folder / part)
    # what was built from them, without which all would be compiled again
    for path in [*(ROOT / "build").glob("cython"), *(ROOT / "build").glob("lib.*")]:
        shutil.copytree(path, folder / "build" / path.name)
    return folder


def link(source, target):
    """A file under a second name, or a copy of one that is written to in its place: by Snakemake, a log, a compiler."""
    if {".snakemake", "logs", "build"} & {*Path(source).parts}:
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def linked(folder, copy):
    """A copy of a project by hard links; what a test changes in it goes through `change`."""
    shutil.copytree(folder, copy, symlinks=True, copy_function=link)
    return copy


def change(path, content):
    """Give a file another content, and no other name of it."""
    content = content.encode() if isinstance(content, str) else content
    path.unlink()
    path.write_bytes(content)


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
    return jobs_of(done.stdout)


def jobs_of(said):
    """The jobs that a run or a dry run says that there are: number by rule."""
    table = re.search(r"Job stats:\n.*?\n-+.*?\n(.*?)\n\n", said, flags=re.DOTALL)
    rows = [line.split() for line in table[1].splitlines()] if table else []
    return {name: int(number) for name, number in rows if name != "total"}


def made(folder):
    """Every file under results/ and figures/ but logs, by its path in the project."""
    files = [path for top in ("results", "figures") for path in (folder / top).rglob("*")]
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(files)
        if path.is_file() and not is_note(path.relative_to(folder).parts[2:])
    }


def is_note(parts):
    """Whether a file of a run is no result: a log, or what was there before."""
    return parts[:1] == ("logs",) or any(part.startswith(".") for part in parts)


def digests(folder):
    """SHA-256 of every table of rows and of their arrays, by its path in the project."""
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in made(folder).items()
        if not TIMED.search(name)
    }
