"""Tables I to III: how well chains mix on simulated data, and what an iteration takes."""

from __future__ import annotations

from collections.abc import Iterator

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.filippone2014.config import Configuration, Schemes
from studies.filippone2014.problems import PSEUDO_MARGINAL, data_path

#: CPU seconds of an iteration by the case, on average over schemes.
SECONDS = 7e-5


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set, kernel and scheme with its samples or repeats; its chains are summed up together."""
    return planned(
        {
            "row": f"{kernel}/n{one.n}_d{one.d}_set{number}/{scheme}",
            "kernel": kernel,
            "n": one.n,
            "d": one.d,
            "set": number,
            **run,
        }
        for one in config.filippone2014.chains.problems
        for number in range(one.sets)
        for kernel in one.kernels
        for scheme, run in runs(
            one, one.n, seed(data_path(config.seed, "table1", one.n, one.d, number), kernel)
        )
    )


def runs(given: Schemes, cases: int, path: str) -> Iterator[tuple[str, Line]]:
    """Yield the name of each row of one problem, and what differs between them.

    Settings are as of `studies.filippone2014.chains.mix`.
    """
    lengths = given.model_dump(include={"chains", "iterations", "burn_in"})
    seconds = SECONDS * cases * given.chains * (given.iterations + given.burn_in)
    settings = []
    for scheme in given.schemes:
        if scheme in PSEUDO_MARGINAL:
            settings += [(scheme, samples, 1, max(given.repeats)) for samples in given.samples]
        else:
            settings += [(scheme, 0, repeats, 1) for repeats in given.repeats]
    for scheme, samples, repeats, thinning in settings:
        name = f"{scheme}-{samples}-{repeats}"
        own = {"scheme": scheme, "samples": samples, "repeats": repeats, "thinning": thinning}
        yield name, {"seconds": seconds, **own, **lengths, "seed": seed(path, name)}


def run(row: Row, inputs: Inputs) -> Result:
    """Run the chains of a row from the prior: how they mix, in one line, or with thinning in two."""
    return mixed(row, inputs, {key: row[key] for key in ("n", "d", "set")})


def mixed(row: Row, inputs: Inputs, key: Line) -> Result:
    """Return a line a number of repeats: the key, what was run, and what `chains.mix` found."""
    from studies.filippone2014.chains import mix
    from studies.filippone2014.simulated import problem

    model = problem(inputs["data"], row["kernel"], row.get("cases"))
    (roots,) = (roots for name, roots in inputs["pilot"].items() if not name.endswith("/rows"))
    own = {"relevance": row["kernel"] == "ard", "scheme": row["scheme"], "samples": row["samples"]}
    found = mix(model, roots[0], row["scheme"], row, row["seed"])
    return Result([{**key, **own, "seed": row["seed"], **line} for line in found])
