"""One file for a repository of record: the sources, the results of a scale with the PDF, and their checksums."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

__all__ = ["write_archive"]

#: Folders that are no sources, where there is no version control to say what is.
_MADE = ("build", "figures", "results")


def write_archive(root: str | Path, scale: str, target: str | Path) -> int:
    """Write a compressed tar file whose bytes depend on its files alone.

    It holds the sources (those of the commit, where the folder is under version control), ``results/<scale>``
    without logs, ``figures/<scale>``, and ``MANIFEST.sha256`` of all these. The run's ``codecheck.yml`` is in the
    root too. Raw data are left out: not all of them may be passed on, and ``data/registry.csv`` names and
    verifies them.

    Parameters
    ----------
    root : path
        The project.
    scale : str
    target : path
        Also names the folder in the archive, without its endings.

    Returns
    -------
    int
        Files in the archive.

    Raises
    ------
    ValueError
        If there are no results of that scale; or under version control, if the sources differ from the commit or
        the results were not made from it (``provenance.json`` says from which).
    RuntimeError
        If git fails.
    """
    root, target = Path(root), Path(target)
    versioned = (root / ".git").exists()
    files = _committed(root) if versioned else _sources(root)
    results = [
        path
        for folder in (root / "results" / scale, root / "figures" / scale)
        for path in folder.rglob("*")
        if path.is_file() and "logs" not in path.relative_to(folder).parts
    ]
    if not results:
        raise ValueError(
            f"scale must name a scale with results; got {scale!r}, and results/{scale} is empty"
        )
    if versioned:
        _check_commit(root, scale)
    files |= {path.relative_to(root).as_posix(): (path.read_bytes(), False) for path in results}
    if (
        manifest := f"results/{scale}/codecheck.yml"
    ) in files:  # a checker looks for it in the root
        files["codecheck.yml"] = files[manifest]
    lines = [f"{hashlib.sha256(files[name][0]).hexdigest()}  {name}\n" for name in sorted(files)]
    files["MANIFEST.sha256"] = ("".join(lines).encode(), False)
    folder = target.name.partition(".")[0]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            content, executable = files[name]
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(content)
            entry.mode = 0o755 if executable else 0o644
            tar.addfile(entry, io.BytesIO(content))
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    partial.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    os.replace(partial, target)
    return len(files)


def _git(root: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(root), *arguments], check=False, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"git {' '.join(arguments)} failed: {done.stderr.decode().strip()}")
    return done.stdout


def _check_commit(root: Path, scale: str) -> None:
    """Refuse results that say of themselves that they come from other sources."""
    results = f"results/{scale}"
    made = json.loads((root / results / "provenance.json").read_text(encoding="utf-8"))
    commit = _git(root, "rev-parse", "HEAD").decode().strip()
    if (made["commit"], made["dirty"]) != (commit, False):
        raise ValueError(
            f"{results} must be made from the sources of the commit, which is {commit}; its provenance.json says "
            f"{made['commit']}{' with uncommitted changes' if made['dirty'] else ''}. Check out the commit of the "
            f"results; or delete {results}/provenance.json and run `make archive SCALE={scale}` again, which makes "
            "what has changed anew and records this commit"
        )


def _committed(root: Path) -> dict[str, tuple[bytes, bool]]:
    """Contents of the commit's files, and whether they may be executed."""
    changed = _git(root, "status", "--porcelain", "--untracked-files=no").decode().split("\n")[:-1]
    if changed:
        raise ValueError(
            f"the sources must be those of the commit; these files differ from it: {changed}"
        )
    found = {}
    with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", "HEAD"))) as tar:
        for member in tar:
            if (stream := tar.extractfile(member)) is not None:  # not a folder
                found[member.name] = (stream.read(), bool(member.mode & 0o100))
    return found


def _sources(root: Path) -> dict[str, tuple[bytes, bool]]:
    """Contents of all files but hidden ones, those that are made, and the raw data."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
        raw = name.parts[:2] == ("data", "raw")
        if path.is_file() and not (hidden or raw or name.parts[0] in _MADE or path.suffix == ".so"):
            found[name.as_posix()] = (path.read_bytes(), os.access(path, os.X_OK))
    return found
