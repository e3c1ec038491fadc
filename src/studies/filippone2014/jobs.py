"""All jobs of the study: what each reads, writes and runs.

The workflow imports this module before any job starts, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.common import running
from studies.common.counts import Count
from studies.common.running import PATTERNS, Job, outputs

if TYPE_CHECKING:
    from studies.common.pieces import Check

_STUDY = "studies.filippone2014"
_DATA = (
    f"{_STUDY}.patterns",
    "studies.common.data.parse",
    "studies.common.data.registry",
    "studies.common.data.uci",
)
#: The raw file of each data set.
FILES = {
    "breast": "breast-cancer-wisconsin.data",
    "pima": "pima-indians-diabetes.csv",
    "ionosphere": "ionosphere.csv",
    "sonar": "sonar.csv",
    "crabs": "crabs.csv",
    "abalone": "abalone.csv",
}
#: Names of data sets in `studies.common.data.uci`, where they are others.
NAMES = {"breast": "wisconsin"}
PSEUDO_MARGINAL = ("laplace", "ep")
LATENT = ("sufficient", "ancillary", "surrogate")
FUNCTIONS = {
    PATTERNS: f"{_STUDY}.patterns:two_classes",
    "conditionals": f"{_STUDY}.estimates:conditionals",
    "spread": f"{_STUDY}.estimates:spread",
    "weights": f"{_STUDY}.weights:weights",
    "tune": f"{_STUDY}.chains:tune",
    "mix": f"{_STUDY}.chains:mix",
    "predict": f"{_STUDY}.prediction:predict",
    "integrate": f"{_STUDY}.quadrature:integrate",
}


def jobs(config: Mapping[str, Any]) -> dict[str, Job]:
    """Return all jobs of a configuration, which `config.check` has passed, by name."""
    study, root = config["filippone2014"], config["seed"]
    found = [
        *_patterns({*study["prediction"]["data"]}.union(*(one["data"] for one in study["real"]))),
        *_estimates(study, root),
        *_simulated(study["chains"], root),
        *(job for one in study["real"] for job in _real(one, root)),
        *_prediction(study["prediction"], root),
    ]
    return {job.name: job for job in found}


def run_job(job: Job, root: Path, pieces: Path, *, verify: Check | None = None) -> None:
    """Run a job in this process, and write its outputs; see `studies.common.running.run_job`."""
    running.run_job(job, FUNCTIONS, Path(root), Path(pieces), verify=verify)


def schemes(given: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return schemes by job, with samples, repeats and thinning: the cheap ones, which hold f, share a job."""
    found: dict[str, list[dict[str, Any]]] = {}
    for scheme in given["schemes"]:
        if scheme in PSEUDO_MARGINAL:
            for samples in given["samples"]:
                repeats = {"repeats": 1, "thinning": max(given["repeats"])}
                found[f"{scheme}-{samples}"] = [{"scheme": scheme, "samples": samples, **repeats}]
        else:
            found.setdefault("latent", []).extend(
                {"scheme": scheme, "samples": 0, "repeats": repeats, "thinning": 1}
                for repeats in given["repeats"]
            )
    return found


def _job(
    name: str,
    kind: str,
    module: str,
    inputs: Mapping[str, str],
    arguments: Mapping[str, Any],
    *,
    arrays: bool = False,
    mem_mb: int = 800,
) -> Job:
    modules = (f"{_STUDY}.{module}",)
    return Job(name, kind, outputs(name, arrays=arrays), {**inputs}, {**arguments}, modules, mem_mb)


def _patterns(names: set[str]) -> Iterator[Job]:
    for name in sorted(names):
        status = {"data0": f"../data/{FILES[name]}.json"}
        where = {"arrays": f"data/{name}.npz"}
        arguments, files = {"name": NAMES.get(name, name)}, ("data/registry.csv",)
        yield Job(f"data/{name}", PATTERNS, where, status, arguments, _DATA, 800, files)


def _estimates(study: Mapping[str, Any], root: int) -> Iterator[Job]:
    given = study["conditionals"]
    arguments = {**given, "sets": Count(given["sets"]), "d": 2, "root": root}
    yield _job("evidence/conditionals", "conditionals", "estimates", {}, arguments)
    given = {**study["spread"], "sets": Count(study["spread"]["sets"])}
    arguments = {"n": given["n"], "sets": given["sets"], "d": 2, "root": root}
    yield _job("evidence/weights", "weights", "weights", {}, arguments)
    for n in given.pop("n"):
        arguments = {**given, "n": n, "d": 2, "root": root}
        yield _job(f"evidence/spread_n{n}", "spread", "estimates", {}, arguments, mem_mb=1500)


def _simulated(given: Mapping[str, Any], root: int) -> Iterator[Job]:
    for one in given["problems"]:
        n, d = one["n"], one["d"]
        lengths = {key: one[key] for key in ("chains", "iterations", "burn_in")}
        for number in range(one["sets"]):
            for kernel in one["kernels"]:
                problem = {"n": n, "d": d, "set": number, "relevance": kernel == "ard"}
                stem = f"{kernel}_n{n}_d{d}_set{number}"
                pilot = {**given["pilot"], "method": "ep"}
                yield from _chains("chains", stem, problem, {}, one, lengths, pilot, root)


def _real(given: Mapping[str, Any], root: int) -> Iterator[Job]:
    lengths = {key: given[key] for key in ("chains", "iterations", "burn_in")}
    for name in given["data"]:
        problem = {"name": name, "cases": given["cases"], "relevance": False}
        inputs = {"data": f"data/{name}.npz"}
        pilot = {**given["pilot"], "method": "laplace"}
        yield from _chains("real", name, problem, inputs, given, lengths, pilot, root)


def _chains(
    part: str,
    stem: str,
    problem: Mapping[str, Any],
    inputs: Mapping[str, str],
    given: Mapping[str, Any],
    lengths: Mapping[str, int],
    pilot: Mapping[str, Any],
    root: int,
) -> Iterator[Job]:
    """The pilot of a problem, and its chains."""
    arguments = {"problem": problem, "root": root}
    name = f"pilot/{part}_{stem}"
    yield _job(name, "tune", "chains", inputs, arguments | dict(pilot), arrays=True)
    inputs = {**inputs, "tuned": f"{name}.npz"}
    for job, some in schemes(given).items():
        own = {**arguments, "schemes": some, **lengths}
        yield _job(f"{part}/{stem}_{job}", "mix", "chains", inputs, own, mem_mb=1500)


def _prediction(given: Mapping[str, Any], root: int) -> Iterator[Job]:
    for name in given["data"]:
        for size in given["sizes"]:
            inputs, stem = {"data": f"data/{name}.npz"}, f"prediction/{name}_n{size}"
            splits = Count(given["splits"])
            common = {"name": name, "sizes": [size], "splits": splits, "root": root}
            own = {**common, "chain": given["chain"]}
            yield _job(stem, "predict", "prediction", inputs, own)
            own = {**common, "quadrature": given["quadrature"]}
            yield _job(f"{stem}_quadrature", "integrate", "quadrature", inputs, own)
