"""Pandoc, the converter of documents: where it is, and running it."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: What to install where there is none; the lock file has it.
PACKAGE = "pypandoc_binary"


def find_pandoc() -> str | None:
    """Where pandoc is: that of the Python package, else one that is installed; None if there is neither."""
    try:
        import pypandoc

        return str(pypandoc.get_pandoc_path())
    except (ImportError, OSError):
        return shutil.which("pandoc")


def pandoc(options: Iterable[str], text: str) -> tuple[str, list[dict[str, Any]]]:
    """What pandoc makes of a text, and its messages.

    ValueError, with the message, if it failed; FileNotFoundError, with what to install, if it is not there.
    """
    program = find_pandoc()
    if program is None:
        raise FileNotFoundError(f"pandoc is not there: pip install {PACKAGE}")
    with tempfile.TemporaryDirectory(prefix="pandoc-") as folder:
        log = Path(folder, "log.json")
        done = subprocess.run(
            [program, *options, f"--log={log}"],
            input=text,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode:
            raise ValueError(f"pandoc failed: {done.stderr.strip()}")
        return done.stdout, json.loads(log.read_text(encoding="utf-8"))
