"""Labels of the layout, as the tables print them."""

from functools import cache
from pathlib import Path

from recheck.report.layout import Layout, read_layout


@cache
def layout() -> Layout:
    """The layout of the study's tables."""
    return read_layout(Path(__file__).parents[1] / "layout.yaml")


def label(field: str, value: str) -> str:
    """How the tables print a value of a field."""
    return layout().labels.get(field, {}).get(value, value)
