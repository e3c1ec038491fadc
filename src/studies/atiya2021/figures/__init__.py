"""Figures of the study, by name. Each reads a book and nothing else."""

from studies.atiya2021.figures.experiments45 import accuracy, benchmark, reliability
from studies.atiya2021.figures.experiments123 import figure1, figure2, floor

__all__ = ["FIGURES"]

#: Every figure by name.
FIGURES = {
    draw.__name__: draw for draw in (floor, figure1, figure2, reliability, accuracy, benchmark)
}
