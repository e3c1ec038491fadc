"""What a run was made with: commit, configuration, software, machine, raw data, digests of its files.

Only `run_timing` depends on the clock: all else is the same whenever the run is repeated on one machine.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sysconfig
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.record.files import sha256, write_text


def provenance(
    repository: str | Path,
    config: Mapping[str, object],
    packages: Iterable[str],
    *,
    registry: str | Path,
    raw: str | Path,
    **more: Any,
) -> dict[str, Any]:
    """Collect what a run was made with, in a form that JSON can hold; `more` are further entries.

    Without git, ``commit`` and ``dirty`` are None. `config` has ``scale`` and ``seed``; packages that are absent are
    left out. `registry` is a table of raw files with columns ``file`` and ``sha256``, `raw` their folder.
    """
    git = partial(_answer, "git", "-C", str(repository))
    commit, status = git("rev-parse", "HEAD"), git("status", "--porcelain")
    epoch = git("log", "-1", "--format=%ct") if commit else None
    date = git("log", "-1", "--format=%cs") if commit else None
    remote = git("remote", "get-url", "origin") if commit else None
    digested = json.dumps(config, sort_keys=True, default=str).encode()
    installed = {name: next(iter(distributions(name=name)), None) for name in packages}
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return {
        "commit": commit,
        "commit_short": commit[:12] if commit else None,
        "commit_time": int(epoch) if epoch else None,
        "commit_date": date or None,
        "dirty": bool(status) if commit else None,
        "remote": web_address(remote),
        "scale": config.get("scale"),
        "seed": config.get("seed"),
        "config": dict(config),
        "config_sha256": hashlib.sha256(digested).hexdigest(),
        "python": platform.python_version(),
        "packages": {name: one.version for name, one in installed.items() if one},
        "compiler": next(iter((_answer(compiler, "--version") or "").splitlines()), None),
        "blas": blas(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "raw_data": _raw_data(Path(registry), Path(raw)),
        **more,
    }


def web_address(remote: str | None) -> str | None:
    """Address of a repository on the web, of a remote by https or ssh, without user and password."""
    found = re.fullmatch(
        r"(?:(?:https?|ssh|git)://(?:[^@/]+@)?([^/:]+(?::\d+)?)/|[^@/]+@([^:/]+):)(.+?)(?:\.git)?/?",
        remote or "",
    )
    return f"https://{found[1] or found[2]}/{found[3]}" if found else None


def run_timing(timings: Mapping[Path, str], logs: str | Path) -> dict[str, object]:
    """When a run began and ended in UTC, and the CPU time of its methods, in hours and by name in seconds.

    Columns ``...cpu_seconds`` of files ``..._timing.csv`` are summed by the names that `timings` has. A job opens its
    log in the folder `logs` first, so the oldest says when the run began; if it was interrupted, that includes the
    pause.
    """
    seconds: dict[str, float] = {}
    for path, name in timings.items():
        spent = pd.read_csv(path).filter(regex="cpu_seconds$").sum().sum()
        seconds[name] = seconds.get(name, 0.0) + float(spent)
    began = [path.stat().st_mtime for path in Path(logs).rglob("*.log")]
    ended = [path.stat().st_mtime for path in timings]
    first, last = (
        datetime.fromtimestamp(pick(stamps), UTC).isoformat(timespec="seconds") if stamps else None
        for pick, stamps in ((min, began), (max, ended))
    )
    return {
        "start": first,
        "end": last,
        "cpu_hours": round(sum(seconds.values()) / 3600, 4),
        "cpu_seconds": {name: round(value, 1) for name, value in sorted(seconds.items())},
    }


def write_manifest(paths: Iterable[str | Path], path: str | Path) -> None:
    """Write the SHA-256 of each file, in the form and order that ``sha256sum --check`` reads."""
    names = sorted({Path(name).as_posix() for name in paths})
    write_text(path, "".join(f"{sha256(name)}  {name}\n" for name in names))


def _answer(*command: str) -> str | None:
    """Standard output of a command, or None where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    found = re.search(r"^model name.*?:(.*)$", text, re.M)
    return found[1].strip() if found else platform.processor() or platform.machine()


def blas() -> list[dict[str, str]]:
    """Return the linear algebra libraries in this process, without paths and thread numbers."""
    import scipy.linalg  # noqa: F401  (loads the BLAS that threadpoolctl is asked about)
    from threadpoolctl import threadpool_info

    kept = ("user_api", "internal_api", "version", "architecture", "threading_layer")
    texts = {
        json.dumps({name: str(one[name]) for name in kept if one.get(name)}, sort_keys=True)
        for one in threadpool_info()
    }
    return [json.loads(text) for text in sorted(texts)]


def _raw_data(registry: Path, folder: Path) -> dict[str, dict[str, object]]:
    found = {}
    for file, registered in pd.read_csv(registry, dtype=str)[["file", "sha256"]].to_numpy():
        digest = sha256(folder / file) if (folder / file).is_file() else None
        found[file] = {"sha256": digest, "as_registered": digest == registered}
    return found
