"""Error against CPU seconds: rows of Experiment 4 with parts of their counts, where the reference is certified.

A method has one point for each part, and one for the whole counts, which are those of Experiment 4.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from studies.atiya2021.measures.common import combine, measured
from studies.atiya2021.measures.experiment4_runs import read_runs

#: What is measured of a run, and its column.
_QUANTITIES = {"seconds": "cpu_seconds", "nats": "nats", "mae": "mae_reference"}


def measure(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures of the benchmark; the part 1 has the whole counts."""
    folders = {int(path.name.removeprefix("part")): path for path in root.glob("benchmark/part*")}
    found = [_part(root, reference, part, f"benchmark/part{part}") for part in sorted(folders)]
    if not found:
        return combine()
    parts = pd.concat(found, ignore_index=True)
    whole = _part(root, reference, 1, "experiment4")
    there = pd.MultiIndex.from_frame(parts[["problem", "method"]])
    whole = whole[pd.MultiIndex.from_frame(whole[["problem", "method"]]).isin(there)]
    rows = pd.concat([whole, parts], ignore_index=True)
    template = "benchmark/P{problem}/S{set}/{method}/part{part}/"
    given = {"unit": "experiment4/P{problem}/dataset0", "run": rows["replicate"]}
    tables = []
    for quantity, column in _QUANTITIES.items():
        there = rows[column].notna()
        own = given | {"run": rows["replicate"][there], "status": rows["status"][there]}
        tables.append(measured(rows[there], template + quantity, rows[column][there], **own))
    return combine(*tables)


def _part(root: Path, reference: Path, part: int, folder: str) -> pd.DataFrame:
    """Runs on first data sets whose reference is certified, where the prior is not trivial."""
    rows = read_runs(root, reference, folder).first
    rows = rows[rows["certified"] & ~rows["trivial"]]
    return rows.assign(part=part, method=rows["method"].str.removesuffix(f"-part{part}"))
