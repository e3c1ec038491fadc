"""What each defect of the toolbox that the paper used for its Markov chains does to the answers."""

from __future__ import annotations

from studies.atiya2021.names import CASES, SAMPLERS
from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds a sample, about, of all sets of defects together; others have the last.
SECONDS = {"linear hmc": 0.55, "rough hmc": 0.16, "smooth hmc": 0.14, "ess": 0.017}


def plan(config: Configuration) -> list[Line]:
    """Return a row a replicate, which has all sets of defects."""
    given = config.atiya2021.defects
    lines = []
    for case in CASES:
        data = ("defects", "rbf") if case != "linear" else ("experiment2", "problem3", "dataset0")
        for sampler in SAMPLERS:
            rate = SECONDS.get(f"{case} {sampler}", SECONDS["ess"])
            for cell in given.grid:
                for replicate in range(cell.replicates):
                    name = f"samples{cell.samples}", f"replicate{replicate}"
                    line = {
                        "row": "/".join((case, sampler, *name)),
                        "case": case,
                        "sampler": sampler,
                        "samples": cell.samples,
                        "skip": given.skip,
                        "burn_in": given.burn_in,
                        "replicate": replicate,
                        "seconds": rate * cell.samples,
                        "data": seed(config.seed, *data),
                        "seed": seed(config.seed, "defects", case, sampler, *name),
                    }
                    lines.append(line)
    return planned(lines)


def run(row: Row, inputs: Inputs) -> Result:
    """Run all sets of defects, a line each: errors against the ``reference``, and what the chains say of themselves.

    Timing has a line for every distinct set of chains; ``chains`` names the defects that shaped them.
    """
    from studies.atiya2021.defects import defects

    key = {name: row[name] for name in ("samples", "skip", "burn_in", "replicate")}
    lines, timing = defects(
        row["case"], row["sampler"], key, row["data"], row["seed"], inputs["reference"]
    )
    return Result(lines, timing=timing)
