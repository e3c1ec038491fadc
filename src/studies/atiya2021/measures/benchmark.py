"""Error against CPU seconds: rows of Experiment 4 with parts of their counts, where the reference is certified.

A method has one point for each part, and one for the whole counts, which are those of Experiment 4.
"""

from pathlib import Path

import pandas as pd

from studies.atiya2021.measures.common import combine, measured
from studies.atiya2021.measures.experiment4_runs import read_runs

#: What is measured of a run, and its column.
_QUANTITIES = {"seconds": "cpu_seconds", "nats": "nats", "mae": "mae_reference"}


def measure(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures of the benchmark: on first data sets, where the prior is not trivial; the part 1 is the whole."""
    folders = [f"benchmark/{path.name}" for path in root.glob("benchmark/part*")]
    if not folders:
        return combine()
    frames = []
    for folder in [*folders, "experiment4"]:
        rows = read_runs(root, reference, folder).first
        part = folder.partition("/part")[2] or "1"
        methods = rows["method"].str.removesuffix(f"-part{part}")
        rows = rows.assign(part=part, method=methods)
        frames.append(rows[rows["certified"] & ~rows["trivial"]])
    every, keys = pd.concat(frames, ignore_index=True), ["problem", "method"]
    every = every[(every["part"] != "1").groupby([every[key] for key in keys]).transform("any")]
    given = {"unit": "experiment4/P{problem}/dataset0", "run": "replicate", "status": "status"}
    path = "benchmark/P{problem}/S{set}/{method}/part{part}/"
    return combine(
        measured(every.dropna(subset=column), path + quantity, column, **given)
        for quantity, column in _QUANTITIES.items()
    )
