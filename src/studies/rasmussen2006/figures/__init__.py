"""Figures of the study, by name. Each reads a book and nothing else."""

from studies.common.figures import shown
from studies.rasmussen2006.figures.chapter3 import (
    evidence,
    exact,
    latents,
    lone,
    predictions,
    rejects,
    surfaces,
    tenclass,
    terms,
)

__all__ = ["FIGURES"]

#: Every figure by name.
FIGURES = {
    draw.__name__: shown(draw, 0.7)
    for draw in (
        *(evidence, surfaces, latents, predictions, rejects),
        *(exact, terms, lone, tenclass),
    )
}
