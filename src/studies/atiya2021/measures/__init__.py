"""Measures of the study, by part. Nothing else opens the raw files."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["PARTS", "inputs"]

_NAMES = (*(f"experiment{k}" for k in range(1, 6)), "benchmark", "other")
#: How the raw files of a part begin, if not with its name.
_BEGIN = {
    "benchmark": ("benchmark/", "experiment4/"),
    "other": ("defects/", "ordering.csv", "equations.csv", "reference_check.csv"),
}


def _measure(part: str, root: Path, published: Path, reference: Path) -> Any:
    """The table of a part, its module and pandas imported at the first call."""
    return import_module(f"{__name__}.{part}").measure(root, published, reference)


#: Every part, from the folders of results, published numbers and reference to the rows of its measures.
PARTS = {name: partial(_measure, name) for name in _NAMES}


def inputs(part: str, config: Mapping[str, Any]) -> list[str]:
    """Raw files that a part of `PARTS` reads, relative to the study's results, under a checked configuration."""
    from studies.atiya2021.jobs import jobs

    if part not in PARTS:
        raise ValueError(f"part: needed is one of {list(PARTS)}, given was {part!r}")
    begins = _BEGIN.get(part, (f"{part}/",))
    problems = config["atiya2021"]["experiment4"]["problems"]
    files = {
        file
        for job in jobs(config).values()
        # patterns of problems that are not run are made for the calibration alone
        if job.kind != "problem" or job.arguments["number"] in problems
        for file in job.outputs.values()
    }
    return sorted(file for file in files if file.startswith(begins))
