"""Typesetting: the same sources give the same bytes, and an error ends with the tail of the log."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

#: What to install on Debian or Ubuntu where there is no LaTeX.
LATEX_PACKAGES = (
    "texlive-latex-base texlive-latex-recommended texlive-latex-extra texlive-fonts-recommended "
    "latexmk lmodern"
)
#: Points by which a line may stick out into the margin.
STICKS_OUT = 2.0


def typeset(
    sources: Iterable[str | Path],
    generated: Mapping[str, Iterable[str | Path]],
    pdfs: Mapping[str, str | Path],
    *,
    epoch: int = 0,
    log: str | Path | None = None,
) -> list[str]:
    """Typeset documents in a folder of their own, so that LaTeX leaves no file in the tree.

    `generated` has files beside the sources by the subfolder in which the text looks for them (``""``, ``tables``),
    `pdfs` where the PDF of each main file goes. Documents may refer to one another with ``xr-hyper``: their ``.aux``
    files are all there in a second round. `epoch` is what LaTeX takes for now, in seconds since 1970; its messages are
    appended to `log`. The answer is `too_wide` of each document. RuntimeError, with the end of the log, if it failed.
    """
    with tempfile.TemporaryDirectory(prefix="typeset-") as name:
        folder = Path(name)
        for place, paths in [("", sources), *generated.items()]:
            (folder / place).mkdir(exist_ok=True)
            for path in paths:
                shutil.copy(path, folder / place)
        for main in [*pdfs] * min(len(pdfs), 2):
            _latexmk(main, folder, epoch, log)
        wide = []
        for main, pdf in pdfs.items():
            Path(pdf).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / Path(main).with_suffix(".pdf"), pdf)
            messages = (folder / Path(main).with_suffix(".log")).read_text(errors="replace")
            wide += [f"{main}: {line}" for line in too_wide(messages)]
    return wide


def _latexmk(main: str, folder: Path, epoch: int, log: str | Path | None) -> None:
    clock = {"SOURCE_DATE_EPOCH": str(epoch), "FORCE_SOURCE_DATE": "1", "TZ": "UTC"}
    options = "-norc -pdf -interaction=nonstopmode -halt-on-error -file-line-error"
    done = subprocess.run(
        ["latexmk", *options.split(), main],
        cwd=folder,
        env=os.environ | clock | {"LC_ALL": "C", "max_print_line": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if log is not None:
        with Path(log).open("a", encoding="utf-8") as stream:
            stream.write(done.stdout)
    if done.returncode:
        lines = done.stdout.splitlines()
        errors = [line for line in lines if line.startswith("!") or ".tex:" in line]
        tail = "\n".join((errors or lines)[-10:])
        raise RuntimeError(f"{main}: latexmk failed:\n{tail}")


def too_wide(log: str) -> list[str]:
    """Messages of a log on boxes that stick out by more than `STICKS_OUT` points, with where they are."""
    found = re.finditer(r"Overfull \\hbox \(([\d.]+)pt.*", log)
    return [one.group() for one in found if float(one.group(1)) > STICKS_OUT]
