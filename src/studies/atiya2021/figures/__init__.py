"""Figures of the study, by name. Each reads a book and nothing else."""

from studies.atiya2021.figures.experiments45 import (
    accuracy,
    benchmark,
    evidence,
    posterior,
    reliability,
)
from studies.atiya2021.figures.experiments123 import errors, figure1, figure2, floor

__all__ = ["FIGURES"]

_ALL = (errors, floor, figure1, figure2, reliability, evidence, accuracy, benchmark, posterior)
#: Every figure by name.
FIGURES = {draw.__name__: draw for draw in _ALL}
