"""Section 4.4: chains on real data, with one length scale."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.filippone2014.config import Configuration
from studies.filippone2014.experiments.chains import mixed, runs
from studies.filippone2014.problems import real_path, used

KERNEL = "isotropic"


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set and scheme with its samples or repeats; the first so many cases, or all if it says 0."""
    return planned(
        {
            "row": f"{name}/{scheme}",
            "name": name,
            "cases": given.cases,
            "kernel": KERNEL,
            **run,
        }
        for given in config.filippone2014.real
        for name in given.data
        for scheme, run in runs(
            given, used(name, given.cases), seed(real_path(config.seed, name, given.cases), KERNEL)
        )
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Run the chains of a row, as those on simulated data."""
    return mixed(row, inputs, {key: row[key] for key in ("name", "cases")})
