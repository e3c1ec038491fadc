"""What a run was made with: commit, configuration, software, machine, raw data, digests of its files.

No clock is read but for `run_timing`: all else is the same whenever the run is repeated.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sysconfig
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import scipy.linalg  # noqa: F401  (loads the BLAS that threadpoolctl is asked about)
from threadpoolctl import threadpool_info

__all__ = [
    "PACKAGES",
    "config_digest",
    "cpu_seconds",
    "provenance",
    "run_timing",
    "web_address",
    "write_manifest",
    "write_provenance",
]

PACKAGES = (
    *("gpcmc", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "cython", "snakemake"),
    *("threadpoolctl", "pooch", "pandera", "arviz-stats", "mpmath", "jinja2", "pyyaml", "rocrate"),
)


def config_digest(config: Mapping[str, object]) -> str:
    """SHA-256 of a configuration as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()


def _answer(*command: str) -> str | None:
    """Standard output of a command, or None where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def web_address(remote: str | None) -> str | None:
    """Address of a repository on the web, of a remote by https or ssh, without user and password."""
    found = re.fullmatch(
        r"(?:(?:https?|ssh|git)://(?:[^@/]+@)?([^/:]+(?::\d+)?)/|[^@/]+@([^:/]+):)(.+?)(?:\.git)?/?",
        remote or "",
    )
    return f"https://{found.group(1) or found.group(2)}/{found.group(3)}" if found else None


def _versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _blas() -> list[dict[str, str]]:
    """The linear algebra libraries in this process, without paths and thread numbers."""
    kept = ("user_api", "internal_api", "version", "architecture", "threading_layer")
    found = [
        {name: str(library[name]) for name in kept if library.get(name)}
        for library in threadpool_info()
    ]
    return [
        json.loads(text)
        for text in sorted({json.dumps(library, sort_keys=True) for library in found})
    ]


def _raw_data(registry: Path, folder: Path) -> dict[str, dict[str, object]]:
    files: dict[str, dict[str, object]] = {}
    for row in pd.read_csv(registry, dtype=str, keep_default_na=False).to_dict("records"):
        path = folder / row["file"]
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        files[row["file"]] = {"sha256": digest, "as_registered": digest == row["sha256"]}
    return files


def provenance(
    repository: str | Path,
    config: Mapping[str, object],
    registry: str | Path,
    raw: str | Path,
    package: str | Path | None = None,
) -> dict[str, object]:
    """Collect what a run was made with.

    Parameters
    ----------
    repository : path
        Folder under version control; without git, ``commit`` and ``dirty`` are None.
    config : mapping
        The merged configuration.
    registry : path
        ``data/registry.csv`` (columns ``file`` and ``sha256`` are read).
    raw : path
        Folder of the raw files.
    package : path, optional
        JSON that the build of the package wrote.

    Returns
    -------
    dict
        Serialisable as JSON; the same run on the same machine gives the same bytes.
    """
    git = ("git", "-C", str(repository))
    commit = _answer(*git, "rev-parse", "HEAD")
    status = _answer(*git, "status", "--porcelain")
    epoch = _answer(*git, "log", "-1", "--format=%ct") if commit else None
    remote = _answer(*git, "remote", "get-url", "origin") if commit else None
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return {
        "commit": commit,
        "commit_time": int(epoch) if epoch else None,
        "dirty": bool(status) if commit else None,
        "remote": web_address(remote),
        "scale": config.get("scale"),
        "seed": config.get("seed"),
        "config": dict(config),
        "config_sha256": config_digest(config),
        "python": platform.python_version(),
        "packages": _versions(),
        "package": json.loads(Path(package).read_text(encoding="utf-8")) if package else None,
        "compiler": (_answer(compiler, "--version") or "").splitlines()[:1],
        "blas": _blas(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads_of_a_job": 1,  # as the rules of the experiments say
        "system": f"{platform.system()} {platform.machine()}",
        "raw_data": _raw_data(Path(registry), Path(raw)),
    }


def write_provenance(record: Mapping[str, object], path: str | Path) -> None:
    """Write a record as JSON with sorted keys."""
    text = json.dumps(record, indent=2, sort_keys=True, default=str)
    Path(path).write_text(text + "\n", encoding="utf-8")


def cpu_seconds(timing: Path) -> float:
    """Sum of the columns ``...cpu_seconds`` of one file ``..._timing.csv``; without data nothing was run."""
    frame = pd.read_csv(timing)
    return float(frame[[name for name in frame if name.endswith("cpu_seconds")]].sum().sum())


def run_timing(timings: Iterable[str | Path], logs: str | Path) -> dict[str, object]:
    """When a run began and ended, and the CPU time that its methods took.

    Parameters
    ----------
    timings : iterable of path
        The files ``results/<scale>/<experiment>/..._timing.csv``.
    logs : path
        Folder of the jobs' logs. A job opens its log first, so the oldest says when the first of them
        began; of a run that was interrupted that includes the pause.

    Returns
    -------
    dict
        ``start`` and ``end`` (of the last job that was timed) in UTC, ``cpu_hours`` of the methods (files
        without a timing file beside them are not in it), and ``cpu_seconds`` by experiment.
    """
    paths = [Path(path) for path in timings]
    seconds: dict[str, float] = {}
    for path in paths:
        experiment = path.parts[2]
        seconds[experiment] = seconds.get(experiment, 0.0) + cpu_seconds(path)
    began = [path.stat().st_mtime for path in Path(logs).rglob("*.log")]
    ended = [path.stat().st_mtime for path in paths]

    def moment(stamp: float) -> str:
        return datetime.fromtimestamp(stamp, UTC).isoformat(timespec="seconds")

    return {
        "start": moment(min(began)) if began else None,
        "end": moment(max(ended)) if ended else None,
        "cpu_hours": round(sum(seconds.values()) / 3600, 4),
        "cpu_seconds": {name: round(value, 1) for name, value in sorted(seconds.items())},
    }


def write_manifest(paths: Iterable[str | Path], path: str | Path) -> None:
    """Write the SHA-256 of each file, in the form and order that ``sha256sum --check`` reads."""
    lines = [
        f"{hashlib.sha256(Path(name).read_bytes()).hexdigest()}  {Path(name).as_posix()}\n"
        for name in sorted({str(name) for name in paths})
    ]
    Path(path).write_text("".join(lines), encoding="utf-8")
