"""All jobs of the study: what each reads, writes and runs.

The workflow imports this module before any job starts, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.common import running
from studies.common.running import PATTERNS, Job, outputs
from studies.neal1997.runs import CLASSES, OUTLIERS

if TYPE_CHECKING:
    from studies.common.pieces import Check

_STUDY = "studies.neal1997"
_DATA = (f"{_STUDY}.patterns", "studies.common.data.fbm", "studies.common.data.registry")
#: The raw file of each data set.
FILES = {
    "classes_1997": "fbm-1997-01-18-cdata",
    "outliers_1997": "fbm-1997-01-18-odata",
    "classes_2022": "fbm-2022-cdata",
    "outliers_2022": "fbm-2022-odata",
}
FUNCTIONS = {
    PATTERNS: f"{_STUDY}.patterns:patterns",
    "priors": f"{_STUDY}.priors:priors",
    "bayes": f"{_STUDY}.bayes:bayes",
    "laplace": f"{_STUDY}.laplace:laplace",
    "classes": f"{_STUDY}.chains:classes",
    "outliers": f"{_STUDY}.chains:outliers",
    "exact": f"{_STUDY}.exact:exact",
}
#: Chains of a job: with 400 cases one takes about a minute.
_TOGETHER = 4


def jobs(config: Mapping[str, Any]) -> dict[str, Job]:
    """Return all jobs of a configuration, which `config.check` has passed, by name."""
    study, root = config["neal1997"], config["seed"]
    both = {"old": "classes_1997", "new": "classes_2022"}
    found = [*_patterns(), _job("bayes/rule", "bayes", both, {**study["bayes"], "root": root})]
    found.append(_job("priors/draws", "priors", {}, {"root": root}))
    for size in study["laplace"]["training"]:
        given = {"training": size}
        found.append(_job(f"laplace/n{size}", "laplace", {"data": "classes_1997"}, given))
    for kind, data in (("classes", CLASSES), ("outliers", OUTLIERS)):
        for run, chains in study[kind]["runs"].items():
            inputs = {"data": f"{kind}_{data[run].data}"}
            for first in range(0, chains, _TOGETHER):
                numbers = list(range(first, min(first + _TOGETHER, chains)))
                arguments = {
                    "run": run,
                    "chains": numbers,
                    "iterations": study[kind]["iterations"],
                    "root": root,
                }
                found.append(_job(f"{kind}/{run}_chain{first}", kind, inputs, arguments))
    for run in study["outliers"]["runs"]:
        if OUTLIERS[run].degrees is None:
            inputs = {"data": f"outliers_{OUTLIERS[run].data}"}
            found.append(_job(f"exact/{run}", "exact", inputs, {"run": run}))
    return {job.name: job for job in found}


def run_job(job: Job, root: Path, pieces: Path, *, verify: Check | None = None) -> None:
    """Run a job in this process, and write its outputs; see `studies.common.running.run_job`."""
    running.run_job(job, FUNCTIONS, Path(root), Path(pieces), verify=verify)


def _job(name: str, kind: str, inputs: Mapping[str, str], arguments: Mapping[str, Any]) -> Job:
    paths = {key: f"data/{value}.npz" for key, value in inputs.items()}
    modules = (FUNCTIONS[kind].partition(":")[0],)
    return Job(name, kind, outputs(name), paths, {**arguments}, modules)


def _patterns() -> Iterator[Job]:
    for name, file in FILES.items():
        where, status = {"arrays": f"data/{name}.npz"}, {"data": f"../data/{file}.json"}
        files = ("data/registry.csv",)
        yield Job(f"data/{name}", PATTERNS, where, status, {"name": name}, _DATA, 800, files)
