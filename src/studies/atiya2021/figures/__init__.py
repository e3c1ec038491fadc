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
    "convergence": ("error_experiment1", "error_experiment2", "floor", "variance"),
    "tradeoff": ("figure1", "figure2", "defects"),
    "experiment4": ("reliability", "evidence", "accuracy", "seconds", "status"),
    "experiment5": ("posterior",),
}


def _figure(module: str, name: str) -> Callable[[Book], Figure]:
    def draw(book: Book) -> Figure:
        return getattr(import_module(f"{__name__}.{module}"), name)(book)

    draw.__doc__ = f"See `{__name__}.{module}.{name}`."
    return draw


#: Every figure by name.
FIGURES: dict[str, Callable[[Book], Figure]] = {
    name: _figure(module, name) for module, names in _MODULES.items() for name in names
}
