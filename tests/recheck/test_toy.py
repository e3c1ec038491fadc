"""The engine alone: a study of three rows, in a process that has neither the library nor the studies.

The study is the example of the engine's STUDY.md. Its blocks are executed, or compared with the files that they quote.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
STUDY_TEXT = ROOT / "src" / "recheck" / "STUDY.md"
STUDY = Path(__file__).parent / "pi"
BLOCK = re.compile(r"(?:^`([^`\n]+)`:\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)

#: An installed library would be importable: here it is not, and neither is what the engine may not know.
ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("gpcmc", "studies", "snakemake"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
for name in ("gpcmc", "studies", "snakemake"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(name)
import recheck
assert recheck.__file__.startswith(sys.argv[1]), recheck.__file__
"""


def blocks():
    return [match.groups() for match in BLOCK.finditer(STUDY_TEXT.read_text(encoding="utf-8"))]


def test_quoted_files_are_those_of_the_study():
    quoted = {name: text for name, language, text in blocks() if language != "python"}
    assert len(quoted) == 4 and None not in quoted
    for name, text in quoted.items():
        assert (STUDY / name).read_text(encoding="utf-8") == text, name


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The study's folder after all blocks of STUDY.md were executed, and what they printed."""
    folder = tmp_path_factory.mktemp("toy") / "a study"
    shutil.copytree(STUDY, folder)
    alone = folder.parent / "path"
    shutil.copytree(ROOT / "src" / "recheck", alone / "recheck")
    code = [text for _, language, text in blocks() if language == "python"]
    (folder / "study.py").write_text("\n".join([ALONE, *code]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "study.py", str(alone)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(alone), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_from_printed_cells_to_verdicts(ran):
    verdicts = pd.read_csv(ran[0] / "results/tiny/pi/verdicts.csv").set_index("id")
    assert verdicts.loc["table1/M1024", "readings"] == "points=independent"
    assert set(verdicts["kind"]) >= {"cell", "claim"}
    assert "Verdicts of this run, at the scale tiny" in ran[1]


def test_to_tables_and_a_page(ran):
    results = ran[0] / "results/tiny"
    table = (results / "pi/tables/table1.tex").read_text()
    assert r"published & $0.12$ ($0.013$) & $0.045$ ($0.005$) & $0.035$ ($0.004$) \\" in table
    assert re.search(r"verdict & A & R & D \\\\", table)
    page = (results / "audit.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 5
    assert not re.search(r"(?:src|href)=.https?:|@import|fetch\(", page)
    assert len(pd.read_csv(results / "audit.csv")) == len(pd.read_csv(results / "pi/verdicts.csv"))
    assert (ran[0] / "figures/tiny/pi/errors.png").stat().st_size > 5000


@pytest.mark.skipif(not shutil.which("latexmk"), reason="there is no LaTeX here")
def test_to_a_typeset_paper(ran):
    assert (ran[0] / "results/tiny/paper.pdf").read_bytes().startswith(b"%PDF")
