"""Figures of the study, by name. Each reads a book and nothing else."""

from studies.filippone2014.figures.pseudo_marginal import curves, efficiency, losses

__all__ = ["FIGURES"]

#: Every figure by name.
FIGURES = {draw.__name__: draw for draw in (curves, efficiency, losses)}
