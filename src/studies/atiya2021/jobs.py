"""All jobs of the study: what each reads, writes and runs.

`jobs` derives them from a configuration that `studies.atiya2021.config.check` has passed; `run_job` runs one. The
workflow imports this module before any job starts, so it imports nothing heavy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.atiya2021.methods import MODULES, SIZES
from studies.atiya2021.names import REAL, REFERENCE, REGISTRY
from studies.common.running import Job

if TYPE_CHECKING:
    from studies.common.pieces import Check

#: All problems of Experiment 4, of the reference and of the calibration.
PROBLEMS = tuple(range(1, 10))
#: Training patterns of the problems of Experiment 2.
PATTERNS = {1: 100, 2: 200, 3: 400, 4: 800}
#: Problems and samplers of the study of the toolbox's defects.
CASES, SAMPLERS = ("linear", "smooth", "rough"), ("ess", "hmc")
#: The paper's methods, by row of Experiment 4: they also run on Problem 9 with the images as scanned.
PAPER = ("orthant", "control-variables", "ess-gpml", "hmc-gpml")
#: The largest population of the orthant sampler.
_POPULATION = 200_000
_STUDY = "studies.atiya2021"
_DATA = tuple(
    f"studies.common.data.{name}" for name in ("checking", "parse", "registry", "splitting")
)


def jobs(config: Mapping[str, Any]) -> dict[str, Job]:
    """Return all jobs of a configuration, which `config.check` has passed, by name; the reference's are among them."""
    study, root = config["atiya2021"], config["seed"]
    found = [
        *_patterns(config, root),
        *_experiment1(study["experiment1"], root),
        *_experiment2(study["experiment2"], root),
        *_experiment3(study["experiment3"], root),
        *_experiment4(study["experiment4"], config["data"]["standardise"], root),
        *_benchmark(study["experiment4"], study["benchmark"], root),
        *_experiment5(study["experiment5"], root),
        *_others(study, root),
        *_reference(study, root),
        _calibrate(study["experiment4"], root),
    ]
    return {job.name: job for job in found}


def run_job(job: Job, root: Path, pieces: Path, *, verify: Check | None = None) -> None:
    """Run a job in this process, and write its outputs with their digests.

    Parameters
    ----------
    job : Job
    root : path
        The study's results, ``results/<scale>/atiya2021``. The current folder is the root of the repository.
    pieces : path
        Where finished pieces wait, in a folder a job. They are marked as done when all outputs are written.
    verify : Check, optional
        Compare drawn pieces with kept ones (`studies.common.verify`), compute nothing else, and write no output.

    Raises
    ------
    ValueError
        If an input is damaged or an argument is not as the experiment needs it.
    """
    from studies.atiya2021.runners import run

    run(job, Path(root), Path(pieces), verify)


def on_problem(given: Mapping[str, Any], problem: int) -> dict[str, Any]:
    """Return options on a problem: a list in the configuration has one value a problem."""
    return {
        key: value[problem - 1] if isinstance(value, list) else value
        for key, value in given.items()
    }


def raw_status(problem: int) -> dict[str, str]:
    """Return where the status of each raw file of a problem is, relative to the study's results; {} if synthetic."""
    if problem not in REAL:
        return {}
    import csv

    with open(REGISTRY, newline="", encoding="utf-8") as registry:
        files = [row["file"] for row in csv.DictReader(registry) if row["name"] == REAL[problem]]
    return {f"data{k}": f"../data/{file}.json" for k, file in enumerate(files)}


def _outputs(stem: str, *, timing: bool = True, arrays: bool = False) -> dict[str, str]:
    found = {"rows": f"{stem}.csv"}
    if timing:
        found["timing"] = f"{stem}_timing.csv"
    if arrays:
        found["arrays"] = f"{stem}.npz"
    return found


def _population_mb(coordinates: int, samples: int) -> int:
    """Upper bound of a job's memory: the sampler's largest population, if nothing were ever resampled."""
    return 600 + int(8 * min(samples, _POPULATION) * (coordinates + 80) / 1e6)


def _problem(number: int) -> dict[str, str]:
    return {"problem": f"experiment4/problem{number}.npz"}


def _patterns(config: Mapping[str, Any], root: int) -> Iterator[Job]:
    named = [(number, f"problem{number}", REAL.get(number)) for number in PROBLEMS]
    for number, stem, data in [*named, (9, "problem9_raw", "usps_raw")]:
        arguments: dict[str, Any] = {"number": number, "root": root}
        if data:
            standardise = config["data"]["standardise"][REAL[number]]
            arguments |= {"standardise": standardise, "name": data}
        yield Job(
            stem,
            "problem",
            {"arrays": f"experiment4/{stem}.npz"},
            raw_status(number),
            arguments,
            (f"{_STUDY}.problems", *(_DATA if data else ())),
            files=(REGISTRY,) if data else (),
        )


def _experiment1(given: Mapping[str, Any], root: int) -> Iterator[Job]:
    options = {key: given[key] for key in ("count", "scheme")}
    largest = max(cell["samples"] for cell in given["grid"])
    modules = (f"{_STUDY}.experiment1",)
    for dimension in given["dimensions"]:
        stem = f"experiment1/N{dimension}"
        arguments = {"dimension": dimension, "root": root, "grid": given["grid"], **options}
        memory = _population_mb(dimension, largest)
        yield Job(stem, "experiment1", _outputs(stem), {}, arguments, modules, memory)
    arguments = {
        "dimensions": given["dimensions"],
        "root": root,
        "instances": max(cell["instances"] for cell in given["grid"]),
        **given["quadrature"],
    }
    stem = "experiment1/quadrature"
    yield Job(stem, "quadrature", _outputs(stem, timing=False), {}, arguments, modules)


def _experiment2(given: Mapping[str, Any], root: int) -> Iterator[Job]:
    options = {key: given[key] for key in ("count", "scheme")}
    largest = max(cell["samples"] for cell in given["grid"])
    for number in given["problems"]:
        stem = f"experiment2/problem{number}"
        arguments = {"number": number, "root": root, "grid": given["grid"], **options}
        memory = _population_mb(PATTERNS[number], largest)
        modules = (f"{_STUDY}.experiment2",)
        yield Job(stem, "experiment2", _outputs(stem, arrays=True), {}, arguments, modules, memory)


def _experiment3(given: Mapping[str, Any], root: int) -> Iterator[Job]:
    for name, row in given["methods"].items():
        own = ("method", "grid", "data_sets")
        options = {key: value for key, value in row.items() if key not in own}
        arguments = {
            "name": name,
            "root": root,
            "method": row["method"],
            "options": options,
            "grid": row.get("grid", [{}]),
            "runs": given["runs"] if "grid" in row else None,
            "data_sets": row.get("data_sets", 1),
        }
        stem = f"experiment3/{name}"
        modules = (f"{_STUDY}.experiment3", MODULES[row["method"]])
        memory = _population_mb(400, _POPULATION)
        yield Job(stem, "experiment3", _outputs(stem), {}, arguments, modules, memory)


def _experiment4(
    given: Mapping[str, Any], standardise: Mapping[str, bool], root: int
) -> Iterator[Job]:
    for number in given["problems"]:
        for name, row in given["methods"].items():
            if number not in row.get("problems", PROBLEMS):
                continue
            arguments = {
                "number": number,
                "name": name,
                "root": root,
                "hyperparameters": given["hyperparameters"],
                **method_on_problem(row, number, given["data_sets"]),
            }
            if number in REAL and arguments["data_sets"] > 1:
                arguments["standardise"] = standardise[REAL[number]]
            modules = (f"{_STUDY}.experiment4", MODULES[row["method"]])
            memory = _population_mb(1000, arguments["options"].get("samples", 0))
            images = ("", "_raw") if number == 9 and name in PAPER else ("",)
            for raw in images:
                problem = f"problem{number}{raw}"
                yield Job(
                    f"experiment4/{problem}_{name}",
                    "experiment4",
                    _outputs(f"experiment4/{problem}/{name}", arrays=True),
                    {"problem": f"experiment4/{problem}.npz"},
                    arguments | ({"data_sets": 1} if raw else {}),
                    modules,
                    memory,
                )
    spread = {"data_sets": given["spread_data_sets"]}
    arguments = {
        "root": root,
        "hyperparameters": given["hyperparameters"],
        "data_sets": {
            str(number): on_problem(spread, number)["data_sets"]
            for number in given["problems"]
            if number not in REAL
        },
    }
    stem = "experiment4/spread"
    modules = (f"{_STUDY}.spread", MODULES["ep"])
    yield Job(stem, "spread", _outputs(stem, timing=False), {}, arguments, modules)


def _benchmark(four: Mapping[str, Any], given: Mapping[str, Any], root: int) -> Iterator[Job]:
    """Rows of Experiment 4 with parts of their counts: with the whole counts, error against CPU seconds."""
    for part in given["parts"]:
        for number in given["problems"]:
            for row in given["methods"]:
                whole = method_on_problem(four["methods"][row], number, [1] * len(PROBLEMS))
                name = f"{row}-part{part}"
                arguments = {
                    "number": number,
                    "name": name,
                    "root": root,
                    "hyperparameters": four["hyperparameters"],
                    **whole,
                    "options": part_of(whole["method"], whole["options"], part),
                    "replicates": given["replicates"],
                    "data_sets": 1,
                }
                yield Job(
                    f"benchmark/problem{number}_{name}",
                    "benchmark",
                    _outputs(f"benchmark/part{part}/problem{number}/{name}", arrays=True),
                    _problem(number),
                    arguments,
                    (f"{_STUDY}.experiment4", MODULES[whole["method"]]),
                    _population_mb(1000, arguments["options"].get("samples", 0)),
                )


def part_of(method: str, options: Mapping[str, Any], part: int) -> dict[str, Any]:
    """Return options whose counts are a part of the given ones, and no smaller than a method can use."""
    counts, least = SIZES.get(method, ({"iterations": 1.0, "burn_in": 0.1}, 1000))
    scaled = {
        name: max(options[name] // (2 * part) * 2, math.ceil(least * share))  # antithetic: even
        for name, share in counts.items()
        if name in options
    }
    return dict(options) | scaled


def method_on_problem(row: Mapping[str, Any], number: int, data_sets: list[int]) -> dict[str, Any]:
    """Return what Experiment 4 needs of a row of its methods on a problem."""
    here = on_problem({key: v for key, v in row.items() if key != "problems"}, number)
    return {
        "method": here.pop("method"),
        "replicates": here.pop("replicates", None),
        "data_sets": here.pop("data_sets", data_sets[number - 1]),
        "options": here,
    }


def _experiment5(given: Mapping[str, Any], root: int) -> Iterator[Job]:
    posterior, search = given["posterior"], given["tuning"]
    for number in posterior["problems"]:
        for name, row in posterior["methods"].items():
            here = on_problem({**posterior["settings"], **row}, number)
            counts = ("chains", "iterations", "burn_in", "kept", "predictive")
            arguments = {
                "number": number,
                "name": name,
                "root": root,
                **{key: here.pop(key) for key in counts},
                "method": here.pop("method"),
                "options": here,
            }
            outputs = _outputs(f"experiment5/problem{number}/{name}", arrays=True)
            modules = (f"{_STUDY}.experiment5", MODULES["twisted-ep"])
            job = f"experiment5/problem{number}_{name}"
            yield Job(job, "experiment5", outputs, _problem(number), arguments, modules)
    rows = [search["judge"], *search["methods"].values()]
    of_search = (f"{_STUDY}.tuning", *sorted({MODULES[row["method"]] for row in rows}))
    for number in search["problems"]:
        stem = f"experiment5/problem{number}_tuning"
        arguments = {"number": number, "root": root} | {
            key: value for key, value in search.items() if key != "problems"
        }
        outputs = _outputs(stem, arrays=True)
        yield Job(stem, "tuning", outputs, _problem(number), arguments, of_search)
    # with the problems and the judge of the searches above, whose kept pieces know nothing of these rows
    rows = [search["judge"], *given["gradient"].values()]
    of_search = (f"{_STUDY}.tuning_gradient", *sorted({MODULES[row["method"]] for row in rows}))
    for number in search["problems"]:
        stem = f"experiment5/problem{number}_gradient"
        arguments = {"number": number, "root": root}
        arguments |= {"methods": given["gradient"], "judge": search["judge"]}
        outputs = _outputs(stem, arrays=True)
        yield Job(stem, "tuning_gradient", outputs, _problem(number), arguments, of_search)


def _others(study: Mapping[str, Any], root: int) -> Iterator[Job]:
    for case in CASES:
        for sampler in SAMPLERS:
            stem = f"defects/{case}_{sampler}"
            arguments = {"case": case, "sampler": sampler, "root": root, **study["defects"]}
            modules = (f"{_STUDY}.defects",)
            yield Job(stem, "defects", _outputs(stem), {}, arguments, modules)
    given = study["ordering"]
    memory = _population_mb(800, given["samples"])
    outputs = _outputs("ordering", timing=False)
    modules = (f"{_STUDY}.ordering",)
    yield Job("ordering", "ordering", outputs, {}, {"root": root, **given}, modules, memory)
    outputs = _outputs("equations", timing=False)
    yield Job("equations", "equations", outputs, {}, {"root": root}, (f"{_STUDY}.equations",))


def _reference(study: Mapping[str, Any], root: int) -> Iterator[Job]:
    hyperparameters = study["experiment4"]["hyperparameters"]
    for number in PROBLEMS:
        arguments = {"number": number, "root": root, "hyperparameters": hyperparameters}
        stem = f"reference/problem{number}"
        outputs = _outputs(stem, timing=False, arrays=True)
        modules = (f"{_STUDY}.reference",)
        memory = _population_mb(1000, 50_000)
        yield Job(stem, "reference", outputs, _problem(number), arguments, modules, memory)
    stem = "reference/truths"
    outputs = _outputs(stem, timing=False)
    modules = (f"{_STUDY}.truths",)
    memory = _population_mb(800, _POPULATION)
    yield Job(stem, "reference_truths", outputs, {}, {"root": root}, modules, memory)
    problems = study["experiment4"]["problems"]
    yield Job(
        "reference_check",
        "reference_check",
        _outputs("reference_check", timing=False),
        {f"problem{number}": _problem(number)["problem"] for number in problems},
        {
            "root": root,
            "hyperparameters": hyperparameters,
            "reference": REFERENCE,
            **study["reference_check"],
        },
        (f"{_STUDY}.reference_check",),
        files=(f"{REFERENCE}/evidence.csv", f"{REFERENCE}/probabilities.npz"),
    )


def _calibrate(given: Mapping[str, Any], root: int) -> Job:
    """Return the job that finds counts of equal CPU seconds at the first hyperparameter setting."""
    return Job(
        "calibrate",
        "calibrate",
        {"counts": "budgets.yaml"},
        {f"problem{number}": _problem(number)["problem"] for number in PROBLEMS},
        {"root": root, "alpha": 5.0, "beta": 1.0, "methods": given["methods"]},
        (
            f"{_STUDY}.calibration",
            *sorted({MODULES[r["method"]] for r in given["methods"].values()}),
        ),
    )
