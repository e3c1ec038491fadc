"""What must hold when the workflow starts, beside its configuration: keys of targets, results, and raw files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from recheck.record.files import DamagedFileError, read_json
from studies.common.refusals import refuse

#: Raised whenever a result file is renamed, or a column renamed or given another meaning.
SCHEMA = 4
#: Keys of single targets, which are no part of the configuration, with what they are by default: `verify` has `share`
#: and `draw` (the seed, by default that of the configuration), `number` has `id` and `seconds`.
OPTIONS: dict[str, Any] = {"share": 0.03, "draw": None, "id": "", "seconds": 60.0}


def checked_options(given: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of single targets, complete.

    Raises
    ------
    ValueError
        With a line for each that is not what it may be.
    """
    found = {**OPTIONS, "draw": config.get("seed"), **given}
    problems = []
    for name, least, most in (("share", 0.0, 1.0), ("seconds", 0.0, 1e6)):
        value = _number(found[name])
        if not least < value <= most:
            problems.append(
                f"{name}: given {found[name]!r}; allowed is a number above {least:g}, at most {most:g}"
            )
        found[name] = value
    if not str(found["draw"]).isdigit() and "draw" in given:
        problems.append(f"draw: given {found['draw']!r}; allowed is a whole number, 0 or above")
    refuse(problems)
    return found


def _number(value: Any) -> float:
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return math.nan


def refuse_other_schema(results: str | Path) -> None:
    """Raise ValueError if a folder of results was written under another schema, or is no folder.

    What the system puts there, such as ``.DS_Store``, and what a killed run left half written, does not count.
    """
    folder = Path(results)
    if (folder.exists() and not folder.is_dir()) or folder.parent.is_file():
        raise ValueError(f"{folder}: results are written there, so that it must be a folder")
    stamp = folder / "schema.json"
    try:
        found = read_json(stamp)["version"] if stamp.exists() else "none"
    except (DamagedFileError, KeyError, TypeError):
        found = "unreadable"
    there = (path for path in folder.glob("*") if path.suffix != ".partial")
    if found != SCHEMA and any(not path.name.startswith(".") for path in there):
        raise ValueError(
            f"{folder} was written under another schema of results: {stamp} says version {found}, this tree reads and "
            f"writes version {SCHEMA}. Move the folder away, or delete it and {Path('figures', folder.name)}: nothing "
            "in it can be used."
        )


def asked_of_raw(statuses: Iterable[str], raw: str | Path = "data/raw") -> dict[str, Any]:
    """Return, for each raw file that is not as it was left, what is there now.

    It stays what it was when the files were fetched, so that nothing is fetched twice, until somebody places a file,
    or changes one. A file that was taken away is not missed: what was made from it is there.

    Parameters
    ----------
    statuses : iterable of str
        What `fetch` says of each file.
    raw : path
        Where the files are.
    """
    found: dict[str, Any] = {}
    for path in map(Path, statuses):
        if not path.exists():
            continue
        status = read_json(path)
        now = content_of(Path(raw, status["file"]))
        if now is None or now == status.get("found"):
            found |= {status["file"]: status["asked"]} if status.get("asked") else {}
        else:
            found[status["file"]] = now
    return found


def content_of(path: Path) -> str | None:
    """Return a short digest of a file; None where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else None


def content(paths: Iterable[str]) -> str:
    """Return one digest of the content of some files."""
    text = "\n".join(f"{path} {content_of(Path(path))}" for path in sorted(paths))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
