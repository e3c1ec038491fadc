"""Probabilities by what the library has, and by the authors' method with more neighbours than they took."""

from __future__ import annotations

from collections.abc import Iterator

from studies.cao2024.config import Configuration
from studies.cao2024.problems import NUGGETS, SCENARIOS
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: What is called: `gpcmc.rectangle_probability`; twisted EP as an evidence; the authors' method.
LIBRARY, TWISTED, FINER = "library", "twisted-ep", "vecchia"
#: Half-widths of an interval of 95 % that is as wide as the authors' 30 replicates with 30 neighbours vary at N = 900.
TOLERANCES = {"orthant": 0.073, "shifted": 0.034, "box": 1.5}
_SMALL, _LARGE = NUGGETS


def plan(config: Configuration) -> list[Line]:
    """Return a row for each call, or a row for all estimates of one number of neighbours."""
    return planned(
        row | {"seed": seed(config.seed, "cao2024", row["row"])} for row in _rows(config)
    )


def _rows(config: Configuration) -> Iterator[Line]:
    given = config.cao2024.reference
    large = {"dimension": _LARGE, "size": given.size}
    part = given.size / 6400
    for scenario in SCENARIOS:
        for call in range(given.calls):
            yield {
                "row": f"{LIBRARY}/{scenario}-{_SMALL}/{call}",
                "seconds": 5.0,
                "scenario": scenario,
                "method": LIBRARY,
                "dimension": _SMALL,
                "size": given.small,
                "tolerance": TOLERANCES[scenario],
                "samples": given.samples,
            }
        yield {
            "row": f"{TWISTED}/{scenario}-{_LARGE}",
            "seconds": 60.0 * part,
            "scenario": scenario,
            "method": TWISTED,
            **large,
            "neighbours": given.twisted.neighbours,
            "points": given.twisted.points,
            "randomizations": given.twisted.randomizations,
        }
    one, name = given.finer, f"{SCENARIOS[0]}-{_LARGE}"
    for neighbours in one.neighbours:
        each = 5e-8 + 4e-10 * neighbours
        yield {
            "row": f"{FINER}/{name}/{neighbours}",
            "seconds": 40.0 * part**3 + each * one.estimates * one.draws * given.size,
            "megabytes": int(400 + 2800 * part**2),
            "scenario": SCENARIOS[0],
            "method": FINER,
            **large,
            "neighbours": neighbours,
            "draws": one.draws,
            "estimates": one.estimates,
        }


def run(row: Row, inputs: Inputs) -> Result:
    """Estimate the logarithm (``value``): with its standard error (``se``), or a line for each of many estimates."""
    from studies.cao2024.problems import problem
    from studies.common.seeds import generator

    rng = generator(row["seed"])
    given = problem(row["scenario"], row["size"], NUGGETS[row["dimension"]])
    line = {name: row[name] for name in ("scenario", "dimension", "size", "method", "seed")}
    if row["method"] == LIBRARY:
        from gpcmc.rectangle import rectangle_probability

        options = {"tolerance": row["tolerance"], "max_samples": row["samples"], "rng": rng}
        one = rectangle_probability(given.lower, given.upper, cov=given.cov, **options)
        told = {"se": one.standard_error, "status": one.status, "chosen": one.method}
        return Result([{**line, "value": one.log_probability, **told}])
    line["neighbours"] = row["neighbours"]
    if row["method"] == TWISTED:
        from studies.cao2024.twisted import twisted

        found = twisted(given, row["neighbours"], row["points"], row["randomizations"], rng)
        told = {
            name: found.diagnostics[name] for name in ("correction", "correction_rest", "k_hat")
        }
        told |= {
            "se": found.log_evidence_se,
            "status": found.status,
            "groups": row["randomizations"],
        }
        return Result([{**line, "value": found.log_evidence, **told}])
    from studies.cao2024.estimates import estimates

    values, before, each = estimates(
        given, FINER, row["draws"], row["estimates"], rng, row["neighbours"]
    )
    lines = [
        {**line, "estimate": k, "value": float(x), "status": "ok"} for k, x in enumerate(values)
    ]
    return Result(
        lines, timing=[{"cpu_seconds": before + len(values) * each, "one_seconds": before + each}]
    )
