"""Figures of the study, by name. Each reads a book and nothing else."""

from studies.neal1997.figures.examples import outliers, priors, traces

__all__ = ["FIGURES"]

#: Every figure by name.
FIGURES = {draw.__name__: draw for draw in (priors, traces, outliers)}
