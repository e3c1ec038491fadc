"""Figures of the study, by name. Each reads a book and nothing else."""

from studies.atiya2021.figures import experiments45 as of
from studies.atiya2021.figures.experiments123 import figure1, figure2, floor
from studies.atiya2021.figures.judged import replay, table4

__all__ = ["FIGURES"]

_LATER = (of.reliability, of.evidence, of.accuracy, of.benchmark, of.posterior)
#: Every figure by name.
FIGURES = {draw.__name__: draw for draw in (floor, figure1, figure2, *_LATER, replay, table4)}
