"""Measures of the study, by part. Nothing else opens the raw files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.common.parts import files_below, parts

__all__ = ["PARTS", "inputs"]

#: Folders of raw files that a part reads.
_FOLDERS = {
    "classes": ["classes"],
    "outliers": ["outliers", "exact"],
    "beside": ["bayes", "laplace", "priors"],
}
PARTS = parts(__name__, _FOLDERS)


def inputs(part: str, config: Mapping[str, Any]) -> list[str]:
    """Raw files that a part of `PARTS` reads, relative to the study's results, under a checked configuration."""
    from studies.neal1997.jobs import jobs

    return files_below(part, jobs(config), _FOLDERS)
