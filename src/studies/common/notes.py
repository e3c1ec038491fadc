"""Notes of what was looked at and found right, so that it need not be looked at again."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

#: A file of notes keeps so many, the last ones.
_MOST = 50


def noted(path: str | Path, text: str) -> bool:
    """Return whether a text is noted in a file."""
    try:
        return _digest(text) in Path(path).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return False


def note(path: str | Path, text: str) -> None:
    """Note a text; where nothing can be written, it will be looked at again."""
    place = Path(path)
    with suppress(OSError, UnicodeDecodeError):
        place.parent.mkdir(parents=True, exist_ok=True)
        known = place.read_text(encoding="utf-8").split() if place.exists() else []
        place.write_text("\n".join([*known, _digest(text)][-_MOST:]) + "\n", encoding="utf-8")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
