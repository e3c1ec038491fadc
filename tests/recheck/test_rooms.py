"""The rooms of the judge: which knows which, what they cost to enter, and that they know nothing of this repository."""

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_imports import imported

from recheck.judge.one import judge_one

SOURCE = Path(__file__).resolve().parents[2] / "src" / "recheck"
#: Rooms that a room may enter, beside itself.
KNOWN = {
    "judge": set(),
    "record": {"judge"},
    "report": {"judge", "record"},
    "paper": {"judge", "record", "report"},
}
WORDS = re.compile(
    r"gpcmc|snakemake|make number|data/(?:published|reference)|results/|atiya|cao2024|neal1997|rasmussen2006|filippone",
    re.I,
)


@pytest.mark.parametrize("room", KNOWN)
def test_rooms_are_entered_in_one_direction(room):
    wrong = []
    for path in (SOURCE / room).glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for other in re.findall(r"^\s*(?:from|import) recheck\.(\w+)", text, re.M):
            if other not in KNOWN[room] | {room}:
                wrong.append(f"{path.name}: {other}")
    assert not wrong
    assert list((SOURCE / room).glob("*.py"))


def test_no_word_of_this_repository_is_in_it():
    found = []
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.j2")]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if WORDS.search(line):
                found.append(f"{path.relative_to(SOURCE)}:{number}: {line.strip()}")
    assert not found


def test_heavy_libraries_are_loaded_where_they_are_used():
    code = "import sys, recheck, recheck.judge.command; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "scipy", "pydantic", "matplotlib", "jinja2"} & set(done.stdout.split())
    code = "import sys, recheck.judge.verdicts; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "scipy.stats" not in done.stdout.split()


def test_one_number_takes_a_fiftieth_of_a_second():
    """Of CPU, the fastest of three rounds, after the first."""
    values = np.exp(0.2 * np.random.default_rng(1).standard_normal(8))
    judge_one("0.9", values)
    rounds = []
    for _ in range(3):
        start = time.process_time()
        for printed in ("0.7", "0.9", "1.1", "1.3"):
            judge_one(printed, values)
        rounds.append((time.process_time() - start) / 4)
    assert min(rounds) < 0.02


def test_a_module_is_no_room(tmp_path):
    names = {path.name for path in SOURCE.iterdir() if path.suffix == ".py"}
    assert names == {"__init__.py", "__main__.py"} and list(imported(SOURCE / "__main__.py"))
