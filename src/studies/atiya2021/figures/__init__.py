"""Figures of the study, by name. Each reads a book and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recheck.book import Book

__all__ = ["FIGURES"]

#: Modules and the figures in them; a module is imported when one of its figures is drawn.
_MODULES = {
    "convergence": ("errors", "floor"),
    "tradeoff": ("figure1", "figure2"),
    "experiment4": ("reliability", "evidence", "accuracy"),
    "experiment5": ("posterior",),
}


def _figure(module: str, name: str) -> Callable[[Book], Figure]:
    return lambda book: getattr(import_module(f"{__name__}.{module}"), name)(book)


#: Every figure by name.
FIGURES = {name: _figure(module, name) for module, names in _MODULES.items() for name in names}
