"""Measures of the study, by part. Nothing else opens the raw files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PARTS", "inputs"]

_NAMES = ("evidence", "chains", "real", "prediction")


def _measure(part: str, root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """The measures of a part, its module imported at the first call."""
    return import_module(f"{__name__}.{part}").measure(root)


#: Every part, from the folders of results, published numbers and reference to the rows of its measures.
PARTS = {name: partial(_measure, name) for name in _NAMES}


def inputs(part: str, config: Mapping[str, Any]) -> list[str]:
    """Raw files that a part of `PARTS` reads, relative to the study's results, under a checked configuration."""
    from studies.filippone2014.jobs import jobs

    if part not in PARTS:
        raise ValueError(f"part: needed is one of {list(PARTS)}, given was {part!r}")
    files = [file for job in jobs(config).values() for file in job.outputs.values()]
    return sorted(file for file in files if file.startswith(f"{part}/") and file.endswith(".csv"))
