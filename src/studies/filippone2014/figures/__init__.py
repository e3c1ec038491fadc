"""Figures of the study, by name. Each reads a book and nothing else."""

from studies.common.figures import shown
from studies.filippone2014.figures.pseudo_marginal import curves, efficiency, losses

__all__ = ["FIGURES"]

#: Every figure by name, and the scale at which the paper prints it.
_SCALES = {curves: 0.65, efficiency: 0.8, losses: 0.6}
FIGURES = {draw.__name__: shown(draw, scale) for draw, scale in _SCALES.items()}
