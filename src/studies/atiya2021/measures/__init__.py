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

_NAMES = ("experiment1", "experiment2", "experiment3", "experiment4", "experiment5", "other")
#: How the raw files of the last part begin; those of the others begin with the name of the part.
_OTHER = ("defects/", "ordering.csv", "equations.csv", "reference_check.csv")


def _measure(part: str, root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """The measures of a part, its module imported at the first call."""
    return import_module(f"{__name__}.{part}").measure(root, published, reference)


#: Every part, from the folders of results, published numbers and reference to the rows of its measures.
PARTS = {name: partial(_measure, name) for name in _NAMES}


def inputs(part: str, config: Mapping[str, Any]) -> list[str]:
    """Raw files that a part reads, relative to the study's results.

    Parameters
    ----------
    part : str
        A key of `PARTS`.
    config : mapping
        The configuration, as `studies.atiya2021.config.check` returns it.

    Raises
    ------
    ValueError
        There is no such part.
    """
    from studies.atiya2021.jobs import jobs

    if part not in PARTS:
        raise ValueError(f"part: needed is one of {list(PARTS)}, given was {part!r}")
    begins = _OTHER if part == "other" else (f"{part}/",)
    problems = config["atiya2021"]["experiment4"]["problems"]
    files = {
        file
        for job in jobs(config).values()
        # patterns of problems that are not run are made for the calibration alone
        if job.kind != "problem" or job.arguments["number"] in problems
        for file in job.outputs.values()
    }
    return sorted(file for file in files if file.startswith(begins))
