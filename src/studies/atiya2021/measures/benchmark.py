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
    """All measures of the benchmark: on first data sets, where the prior is not trivial; the part 1 is the whole."""
    folders = {path.name: path.name.removeprefix("part") for path in root.glob("benchmark/part*")}
    if not folders:
        return combine()
    frames = []
    for folder, part in {
        **{f"benchmark/{k}": v for k, v in folders.items()},
        "experiment4": "1",
    }.items():
        rows = read_runs(root, reference, folder).first
        rows = rows[rows["certified"] & ~rows["trivial"]]
        frames.append(
            rows.assign(part=part, method=rows["method"].str.removesuffix(f"-part{part}"))
        )
    parts, whole = pd.concat(frames[:-1]), frames[-1].set_index(["problem", "method"], drop=False)
    there = whole.index.isin(pd.MultiIndex.from_frame(parts[["problem", "method"]]))
    every = pd.concat([whole[there], parts], ignore_index=True)
    template, unit = (
        "benchmark/P{problem}/S{set}/{method}/part{part}/",
        "experiment4/P{problem}/dataset0",
    )
    return combine(
        measured(
            every.dropna(subset=column),
            template + quantity,
            column,
            unit=unit,
            run="replicate",
            status="status",
        )
        for quantity, column in _QUANTITIES.items()
    )
