"""The regressions with Gaussian noise (section 7) by quadrature."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.neal1997.config import Configuration
from studies.neal1997.runs import OUTLIERS


def plan(config: Configuration) -> list[Line]:
    """Return a row a run of the regressions that has Gaussian noise."""
    runs = [run for run in config.neal1997.outliers.runs if OUTLIERS[run].degrees is None]
    return planned({"row": run, "run": run, "release": OUTLIERS[run].data} for run in runs)


def run(row: Row, inputs: Inputs) -> Result:
    """Integrate the posterior: ``run``, ``quantity`` and ``value``."""
    from studies.neal1997.exact import integrated

    return Result(integrated(row["run"], inputs["data"]))
