"""The exact evidence of threes against fives, by two unbiased estimators (Figure 3.12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.rasmussen2006.config import Configuration
from studies.rasmussen2006.grid import grid, name

#: Counts of the estimator on the grid. Most of its standard errors are below a tenth of a nat; the largest is 0.22,
#: and weights at three points of large amplitude are not trusted.
GRID = {"points": 64, "randomizations": 16}


def plan(config: Configuration) -> list[Line]:
    """Return a row a point and estimator: at the points of the figure by both, and on the grid by the first."""
    given, root = config.rasmussen2006.exact, config.seed
    lengths, amplitudes = grid(config.rasmussen2006.surface.exact)
    nodes = [(x, a) for x in lengths for a in amplitudes]
    twisted, annealing = given.twisted_ep.model_dump(), given.annealing.model_dump()
    # a set of temperatures and runs takes 0.3 ms a step
    slow = 3.2e-4 * given.annealing.temperatures * given.annealing.runs
    return planned(
        [
            *_rows("figure", "twisted-ep", given.points, twisted, 5.0, root),
            *_rows("figure", "annealing", given.annealing_points, annealing, slow, root),
            *_rows("grid", "twisted-ep", nodes, GRID, 3.0, root),
        ]
    )


def _rows(
    place: str,
    method: str,
    points: Sequence[Sequence[float]],
    options: Mapping[str, int],
    seconds: float,
    root: int,
) -> Iterator[Line]:
    for x, a in points:
        yield {
            "row": f"{place}/{method}/{name((x, a))}",
            "seconds": seconds,
            "place": place,
            "method": method,
            "log_length": x,
            "log_amplitude": a,
            "options": dict(options),
            "seed": seed(root, "exact", method, name((x, a))),
        }


def run(row: Row, inputs: Inputs) -> Result:
    """Estimate the log evidence at a point.

    One line: ``place`` (``figure`` or ``grid``), ``method``, the point, the options, the estimate with its standard
    error, diagnostics and status, and Laplace's and EP's evidence.
    """
    from studies.common.seeds import generator
    from studies.rasmussen2006.exact import evidence

    point, options = (row["log_length"], row["log_amplitude"]), row["options"]
    found = evidence(row["method"], options, point, inputs["digits"], generator(row["seed"]))
    key = {k: row[k] for k in ("place", "method", "log_length", "log_amplitude")}
    return Result([{**key, **options, **found, "seed": row["seed"]}])
