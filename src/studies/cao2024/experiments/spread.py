"""Many estimates of one probability by each method: how much they vary (N = 900)."""

from __future__ import annotations

from collections.abc import Iterator

from studies.cao2024.config import Configuration
from studies.cao2024.problems import LIMITS, NUGGETS
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: Methods, with the levels of the nugget that each is run under.
METHODS = {
    "minimax-tilting": ("paper", "code"),
    "separation": ("paper",),
    "twisted-ep": ("paper",),
}
#: Cheaper runs, for the variation between units alone: what their names begin with, and of which methods they are.
BETWEEN, VARYING = "between-", ("minimax-tilting", "separation")


def plan(config: Configuration) -> list[Line]:
    """Return a row a unit: so many estimates of the probability of one problem."""
    return planned(_rows(config))


def _rows(config: Configuration) -> Iterator[Line]:
    given = config.cao2024.spread
    draws, units = (one.model_dump(by_alias=True) for one in (given.draws, given.units))
    kinds = [(name, name, draws[name], units[name], levels) for name, levels in METHODS.items()]
    few = given.between
    kinds += [(BETWEEN + name, name, few.draws, few.units, ("paper",)) for name in VARYING]
    for name, method, count, number, levels in kinds:
        # 30,000 draws a second in 900 dimensions
        seconds = given.estimates * count * (given.size / 900) ** 2 / 25000
        for limits in LIMITS:
            for nugget in levels:
                for unit in range(number):
                    path = seed(config.seed, "cao2024", limits, f"unit{unit}")
                    yield {
                        "row": f"{name}/{limits}/{nugget}/unit{unit}",
                        "seconds": seconds,
                        "kind": name,
                        "method": method,
                        "limits": limits,
                        "nugget": nugget,
                        "unit": unit,
                        "size": given.size,
                        "draws": count,
                        "estimates": given.estimates,
                        "problem": path,
                        "seed": seed(path, name, nugget),
                    }


def run(row: Row, inputs: Inputs) -> Result:
    """Estimate: a line an estimate, its logarithm under ``value``; each unit of shifted limits is another problem."""
    from studies.cao2024.estimates import estimates
    from studies.cao2024.problems import problem
    from studies.common.seeds import generator

    given = problem(row["limits"], row["size"], NUGGETS[row["nugget"]], generator(row["problem"]))
    found = estimates(given, row["method"], row["draws"], row["estimates"], generator(row["seed"]))
    names = ("kind", "limits", "nugget", "unit", "size", "draws", "seed")
    key = {name: row[name] for name in names}
    return Result([{**key, "estimate": k, "value": float(x)} for k, x in enumerate(found)])
