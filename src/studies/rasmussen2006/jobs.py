"""All jobs of the study: what each reads, writes and runs.

The workflow imports this module before any job starts, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.common import running
from studies.common.counts import Count
from studies.common.running import PATTERNS, Job, outputs

if TYPE_CHECKING:
    from studies.common.pieces import Check

_STUDY = "studies.rasmussen2006"
_DATA = (f"{_STUDY}.patterns", "studies.common.data.parse", "studies.common.data.registry")
#: Where the book's evidence is best, (log l, log sf): Laplace's of two classes, EP's, Laplace's of ten classes.
PRINTED = {"laplace": (2.85, 2.35), "ep": (2.6, 4.1), "ten": (2.35, 2.6)}
#: The book's grid: 17 and 23 values, a step of 0.25, and all printed coordinates on it. Its ends are ours: we
#: chose them where the corner's probabilities lie in the printed interval, so that those two numbers are no cells.
STEP, LENGTHS, AMPLITUDES = 0.25, (1.1, 17), (-0.4, 23)
#: Counts of the exact evidence on the grid. Most of its standard errors are below a tenth of a nat; the largest is
#: 0.22, and weights at three points of large amplitude are not trusted.
SURFACE = {"points": 64, "randomizations": 16}
#: Raw files of each data set.
FILES = {
    "usps": ("zip.train.gz", "zip.test.gz"),
    "ionosphere": ("ionosphere.csv",),
    "wisconsin": ("breast-cancer-wisconsin.data",),
    "pima": ("pima-indians-diabetes.csv",),
    "crabs": ("crabs.csv",),
    "sonar": ("sonar.csv",),
}
#: Arrays of digits: images, partition, and whether threes and fives alone.
DIGITS = {
    "usps": {"images": "smoothed", "partition": "book", "pair": False},
    "pair": {"images": "smoothed", "partition": "book", "pair": True},
    "pair_raw": {"images": "raw", "partition": "book", "pair": True},
    "pair_zip": {"images": "smoothed", "partition": "zip", "pair": True},
}
FUNCTIONS = {
    PATTERNS: f"{_STUDY}.patterns:patterns",
    "surface": f"{_STUDY}.binary:surface",
    "counts": f"{_STUDY}.binary:counts",
    "controls": f"{_STUDY}.controls:controls",
    "comparators": f"{_STUDY}.comparators:comparators",
    "machines": f"{_STUDY}.machines:search",
    "exact": f"{_STUDY}.exact:evidence",
    "tenclass": f"{_STUDY}.tenclass:laplace",
    "others": f"{_STUDY}.tenclass:others",
    "toy": f"{_STUDY}.toy:toy",
    "pictures": f"{_STUDY}.pictures:pictures",
    "crossvalidation": f"{_STUDY}.crossvalidation:crossvalidation",
}


def jobs(config: Mapping[str, Any]) -> dict[str, Job]:
    """Return all jobs of a configuration, which `config.check` has passed, by name."""
    study, root = config["rasmussen2006"], config["seed"]
    toy = {"root": root, "draws": Count(study["toy"]["draws"])}
    found = [
        *_patterns(
            {
                name
                for kind in study["crossvalidation"].values()
                for of in kind.values()
                for name in of
            }
        ),
        *_binary(study["surface"]),
        *_comparators(study, root),
        *_ten_classes(study["ten_classes"]),
        *(_job(f"{name}/{name}", name, name, {}, toy) for name in ("toy", "pictures")),
        *_crossvalidation(study["crossvalidation"], root),
    ]
    return {job.name: job for job in found}


def run_job(job: Job, root: Path, pieces: Path, *, verify: Check | None = None) -> None:
    """Run a job in this process, and write its outputs; see `studies.common.running.run_job`."""
    running.run_job(job, FUNCTIONS, Path(root), Path(pieces), verify=verify)


def grid(every: int) -> dict[str, list[float]]:
    """Return every so many values of the book's grid, with the corner of short lengths and large amplitudes."""
    (low, lengths), (least, amplitudes) = LENGTHS, AMPLITUDES
    of_amplitude = range(amplitudes - 1, -1, -every)
    return {
        "log_length": [round(low + STEP * k, 2) for k in range(0, lengths, every)],
        "log_amplitude": [round(least + STEP * k, 2) for k in sorted(of_amplitude)],
    }


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
    """A job whose inputs are arrays of data, by argument."""
    paths = {key: f"data/{value}.npz" for key, value in inputs.items()}
    modules = (f"{_STUDY}.{module}",)
    return Job(name, kind, outputs(name, arrays=arrays), paths, {**arguments}, modules, mem_mb)


def _patterns(data: Iterable[str]) -> Iterator[Job]:
    sets: dict[str, dict[str, Any]] = {name: {"digits": one} for name, one in DIGITS.items()}
    sets |= {name: {"name": name} for name in data if name != "usps"}
    for name, arguments in sets.items():
        files = FILES["usps" if name in DIGITS else name]
        status = {f"data{k}": f"../data/{file}.json" for k, file in enumerate(files)}
        module = f"studies.common.data.{'usps' if name in DIGITS else 'uci'}"
        where = {"arrays": f"data/{name}.npz"}
        files = ("data/registry.csv",)
        yield Job(f"data/{name}", PATTERNS, where, status, arguments, (*_DATA, module), 800, files)


def _binary(given: Mapping[str, int]) -> Iterator[Job]:
    for method in ("laplace", "ep"):
        arguments = {
            "method": method,
            "printed": [*PRINTED[method]],
            "fixed_amplitude": method == "ep",
            "grid": grid(given[method]),
        }
        inputs = {"digits": "pair"}
        yield _job(f"binary/{method}", "surface", "binary", inputs, arguments, arrays=True)
    yield _job("binary/counts", "counts", "binary", {"digits": "pair"}, {})
    inputs = {"book": "pair", "raw": "pair_raw", "zip_split": "pair_zip"}
    yield _job("binary/controls", "controls", "controls", inputs, {})


def _comparators(study: Mapping[str, Any], root: int) -> Iterator[Job]:
    inputs, given = {"digits": "pair"}, study["comparators"]
    for name, module, more in (
        ("curves", "comparators", {"shares": given["shares"]}),
        ("machines", "machines", {"searches": Count(given["searches"])}),
    ):
        yield _job(f"comparators/{name}", module, module, inputs, {"root": root, **more})
    points = study["exact"]["points"]
    for method in ("twisted-ep", "annealing"):
        arguments = {
            "method": method,
            "options": study["exact"][method],
            "points": points if method == "twisted-ep" else study["exact"]["annealing_points"],
            "root": root,
        }
        yield _job(f"exact/{method}", "exact", "exact", inputs, arguments)
    lines = grid(study["surface"]["exact"])
    points = [[x, a] for x in lines["log_length"] for a in lines["log_amplitude"]]
    arguments = {"method": "twisted-ep", "options": SURFACE, "points": points, "root": root}
    yield _job("exact/surface", "exact", "exact", inputs, arguments)


def _ten_classes(given: Mapping[str, Any]) -> Iterator[Job]:
    sizes = {key: given[key] for key in ("training", "test")}
    # a matrix for each class, and as much again for the others and for the blocks of test cases
    memory = 1000 + int(20 * 8 * given["training"] ** 2 / 1e6)
    for x, a in given["points"]:
        name = f"tenclass/n{given['training']}_l{x:g}_a{a:g}"
        arguments = {**sizes, "point": [x, a]}
        yield _job(name, "tenclass", "tenclass", {"digits": "usps"}, arguments, mem_mb=memory)
    arguments = sizes | {key: given[key] for key in ("thetas", "search", "machines")}
    yield _job("tenclass/others", "others", "tenclass", {"digits": "usps"}, arguments, mem_mb=2000)


def _crossvalidation(given: Mapping[str, Any], root: int) -> Iterator[Job]:
    """Jobs with prepared inputs, that is, scaled features and smoothed images, and with those as they come."""
    for kind, of_method in given.items():
        suffix, digits = {"prepared": ("", "pair"), "unprepared": ("_unprepared", "pair_raw")}[kind]
        for method, sets in of_method.items():
            for name, seeds in sets.items():
                arguments = {
                    **{"name": name, "prepared": kind == "prepared", "methods": [method]},
                    **{"seeds": Count(seeds), "root": root},
                }
                inputs = {"data": digits if name == "usps" else name}
                stem = f"crossvalidation/{name}{suffix}_{method}"
                yield _job(stem, "crossvalidation", "crossvalidation", inputs, arguments)
