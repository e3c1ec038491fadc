"""The Bayes rule of the three-way problem (section 6): the best that any classifier can do."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.neal1997.config import Configuration


def plan(config: Configuration) -> list[Line]:
    """Return two rows: the rule on the test cases of both releases, and on test sets that are made anew."""
    given = config.neal1997.bayes
    rule = {"points": given.points}
    anew = {"sets": given.sets, "seed": seed(config.seed, "bayes", "anew")}
    return planned(
        [{"row": "rule", **rule}, {"row": "anew", "seconds": 0.02 * given.sets, **rule, **anew}]
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Evaluate the rule: ``data``, ``quantity`` and ``value``."""
    from studies.neal1997 import bayes

    if "sets" in row:
        lines = bayes.on_new_sets(row["points"], row["sets"], row["seed"], inputs["old"])
    else:
        lines = bayes.on_releases(row["points"], inputs["old"], inputs["new"])
    return Result(lines)
