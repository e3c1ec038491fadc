"""Figures of the study, by name. Each reads a book and nothing else."""

from studies.atiya2021.figures.asymptotic_variance import foretold
from studies.atiya2021.figures.experiment4 import accuracy, benchmark, calibration, reliability
from studies.atiya2021.figures.experiments123 import figure1, figure2, floor
from studies.atiya2021.figures.judged import replay, table4
from studies.atiya2021.figures.scaling import scaling
from studies.atiya2021.figures.whofits import whofits
from studies.common.figures import shown

__all__ = ["FIGURES"]

_ALL = (
    *(floor, figure1, figure2, reliability, accuracy, calibration, benchmark, replay, table4),
    *(scaling, foretold, whofits),
)
#: Every figure by name.
FIGURES = {draw.__name__: shown(draw) for draw in _ALL}
