"""What must not be counted as a method's time."""

from __future__ import annotations

import importlib


def import_late() -> None:
    """Load what methods load at their first use."""
    from scipy.stats import qmc  # more than half a second, which no plan pays

    importlib.import_module("arviz_stats.base")
    qmc.Sobol(1)  # direction numbers
