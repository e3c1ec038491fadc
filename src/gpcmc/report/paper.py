"""Typesetting of the paper, and the three lines that a run ends with."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from gpcmc.audit import ResultFiles
from gpcmc.audit.experiment4 import NAMES, problems
from gpcmc.experiments.classification import NO_DATA

__all__ = ["LATEX_PACKAGES", "build_paper", "summary", "too_wide"]

#: Points by which a line may stick out into the margin.
STICKS_OUT = 2.0

#: What to install on Debian or Ubuntu where there is no LaTeX.
LATEX_PACKAGES = (
    " ".join(
        f"texlive-{name}"
        for name in ("latex-base", "latex-recommended", "latex-extra", "fonts-recommended")
    )
    + " latexmk lmodern"
)


def build_paper(
    sources: Iterable[str | Path],
    generated: Mapping[str, Iterable[str | Path]],
    pdf: str | Path,
    *,
    epoch: int = 0,
    log: str | Path | None = None,
) -> list[str]:
    """Typeset the paper in a folder of its own, so that no LaTeX file is left in the tree.

    Parameters
    ----------
    sources : iterable of path
        ``main.tex`` and what else is in ``paper/``.
    generated : mapping of str to iterable of path
        Files by the subfolder in which the text looks for them ("" for the top, "tables",
        "figures").
    pdf : path
        Where the PDF goes.
    epoch : int
        Seconds since 1970 that LaTeX takes for now (``SOURCE_DATE_EPOCH``): the same sources give
        the same bytes.
    log : path, optional
        Where LaTeX's messages go, also if it fails.

    Returns
    -------
    list of str
        `too_wide`, of LaTeX's last run.

    Raises
    ------
    RuntimeError
        latexmk failed; the message has the end of its log.
    """
    with tempfile.TemporaryDirectory(prefix="gpcmc-paper-") as name:
        folder = Path(name)
        for source in sources:
            shutil.copy(source, folder)
        for place, paths in generated.items():
            (folder / place).mkdir(exist_ok=True)
            for path in paths:
                shutil.copy(path, folder / place)
        environment = os.environ | {
            "SOURCE_DATE_EPOCH": str(epoch),
            "FORCE_SOURCE_DATE": "1",
            "TZ": "UTC",
            "LC_ALL": "C",
            "max_print_line": "200",
        }
        command = [
            "latexmk",
            "-norc",
            "-pdf",
            "-interaction=nonstopmode",
            "-halt-on-error",
            "-file-line-error",
            "main.tex",
        ]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        messages = done.stdout.decode("utf-8", errors="replace")
        if log is not None:
            with Path(log).open("a", encoding="utf-8") as stream:
                stream.write(messages)
        if done.returncode:
            lines = [
                line for line in messages.splitlines() if line.startswith("!") or ".tex:" in line
            ]
            raise RuntimeError(
                "latexmk failed: " + "\n".join(lines[-10:] or messages.splitlines()[-10:])
            )
        shutil.copy(folder / "main.pdf", pdf)
    return too_wide(messages.rpartition("This is pdfTeX")[2])


def too_wide(messages: str) -> list[str]:
    """LaTeX's messages on boxes that stick out by more than `STICKS_OUT` points, with where they are."""
    found = re.finditer(r"Overfull \\hbox \(([\d.]+)pt.*", messages)
    return [one.group() for one in found if float(one.group(1)) > STICKS_OUT]


def summary(
    audited: pd.DataFrame,
    files: ResultFiles,
    scale: str,
    pdf: str | None,
    said: str,
) -> str:
    """The three lines that a run ends with: where the PDF is, what the audit says, what was left out and why.

    Parameters
    ----------
    audited : DataFrame
        `audit`.
    files : ResultFiles
        ``problems`` (whether their data could be had) and ``data`` (where a file goes that could
        not).
    scale : str
        Name of the scale.
    pdf : str, optional
        The PDF; None where there is no LaTeX on the machine.
    said : str
        The audit in one line, and where it is.
    """
    if pdf is not None:
        where = f"Paper: {pdf}"
    else:
        where = f"Paper: not typeset, there is no LaTeX here (Debian, Ubuntu: apt-get install {LATEX_PACKAGES})"
    left = []
    for number, problem in problems(files).items():
        if not problem.available:
            left.append(f"{NAMES[number]}: {NO_DATA}")
    missing = audited[audited["verdict"].isin(["not run", "not comparable"])]
    if len(missing):
        shown = missing["ours"].notna()
        parts = [
            ((missing["verdict"] == "not run").sum(), f"not run at scale {scale}"),
            (shown.sum(), "shown, but without the variance that a comparison needs"),
            (
                ((missing["verdict"] == "not comparable") & ~shown).sum(),
                "without a run that counts, or with other settings than published",
            ),
        ]
        text = "; ".join(f"{n} {why}" for n, why in parts if n)
        left.append(f"{len(missing)} cells not compared ({text})")
    places = [
        status["instructions"]
        for status in (json.loads(path.read_text(encoding="utf-8")) for path in files.data)
        if not status["available"]
    ]
    if places:
        left.append(f"to have the missing data, place by hand {', '.join(places)} and run again")
    return (
        "\n".join([where, f"Audit: {said}", "Left out: " + ("; ".join(left) or "nothing")]) + "\n"
    )
