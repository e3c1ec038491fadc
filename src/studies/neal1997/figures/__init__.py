"""Figures of the study, by name. Each reads a book and nothing else."""

from studies.common.figures import shown
from studies.neal1997.figures.examples import outliers, priors, traces

__all__ = ["FIGURES"]

#: Every figure by name.
FIGURES = {draw.__name__: shown(draw, 0.8) for draw in (priors, traces, outliers)}
