# What several rules share. No rule stands here.

import hashlib
import json
import os
import shutil

import yaml
from csv import DictReader
from glob import glob
from pathlib import Path

# The jobs compute with the package that the rules in package.smk build, whatever the environment has installed.
os.environ.update(PYTHONPATH=str(Path("build/lib").resolve()))


def sources(*patterns):
    """The package's files that match, in a fixed order."""
    return sorted(path for pattern in patterns for path in glob(f"src/gpcmc/{pattern}"))


# Two layers, so that a change to a figure does not make the experiments run again.
NUMERICAL_SOURCES = sources(
    # not the classifier: no job uses it
    "__init__.py",
    "_validation.py",
    "datasets/*.py",
    "experiments/*.py",
    "gp/*.py",
    "gp/*.pyx",
    "inference/*.py",
    "orthant/*.py",
    "orthant/*.pyx",
    "orthant/*.h",
)
REPORT_SOURCES = sources("classifier.py", "audit/*.py", "report/*.py")

HAVE_LATEX = all(shutil.which(program) for program in ("pdflatex", "latexmk"))

with open("data/registry.csv", newline="") as registry:
    RAW_FILES = {row["file"]: row for row in DictReader(registry)}
RAW_STATUS = expand("results/{{scale}}/data/{file}.json", file=RAW_FILES)

SETS = [hyper["set"] for hyper in config["experiment4"]["hyperparameters"]]

# `gpcmc.experiments.broken.KINDS`, which cannot be imported before the package is built
BROKEN = ["sound", "wrong-tail", "biased-truth"]
# and `gpcmc.inference.gpml.DEFECTS` without the double variance
SINGLE_VARIANCE = ["right-end-point", "stale-energy", "shrinking-step"]


wildcard_constraints:
    # every count comes from the configured scale: no other one may be asked for
    scale=config["scale"],
    problem="[1-9][0-9]*",
    dimension="[0-9]+",
    method="[a-z0-9-]+",
    case="linear|smooth|rough",
    sampler="ess|hmc",
    kind="|".join(BROKEN),


def fetch_again(wildcards):
    """Changes, so that a raw file is looked for again, while it is missing or not the registered one."""
    raw = Path("data/raw", wildcards.file)
    status = Path("results", wildcards.scale, "data", f"{wildcards.file}.json")
    if status.exists() and not json.loads(status.read_text())["available"]:
        return ["missing", status.stat().st_mtime_ns]
    if raw.exists():
        found = hashlib.sha256(raw.read_bytes()).hexdigest()
        if found != RAW_FILES[wildcards.file]["sha256"]:
            return ["damaged", found]
    return None


DATASETS = {"7": "crabs", "8": "breast_cancer", "9": "usps"}


def raw_status(wildcards):
    """Whether the raw files of a problem with real data are there."""
    return [
        f"results/{wildcards.scale}/data/{file}.json"
        for file, row in RAW_FILES.items()
        if row["name"] == DATASETS.get(wildcards.problem)
    ]


def standardise(wildcards):
    return config["data"]["standardise"].get(DATASETS.get(wildcards.problem))


def timing_of(paths):
    """Where the CPU seconds of result files are."""
    return [path.removesuffix(".csv") + "_timing.csv" for path in paths]


def row_on(given, problem):
    """What `experiment4` needs of a row on a problem."""
    here = on_problem(given, problem)
    return {
        "method": here.pop("method"),
        "replicates": here.pop("replicates", None),
        "data_sets": here.pop("data_sets", config["experiment4"]["data_sets"][problem - 1]),
        "options": here,
    }


def method_row(wildcards):
    return row_on(config["experiment4"]["methods"][wildcards.method], int(wildcards.problem))


def single_variance_row(wildcards):
    """A row of the toolbox without its double variance: the first run of each, on at most three data sets."""
    given = method_row(wildcards)
    return given | {
        "options": given["options"] | {"defects": SINGLE_VARIANCE},
        "replicates": 1,
        "data_sets": min(given["data_sets"], 3),
    }


def tradeoff_row(wildcards):
    """What `tradeoff` needs of a row of Experiment 3."""
    here = dict(config["experiment3"]["methods"][wildcards.method])
    # a method that draws nothing at random runs once
    runs = config["experiment3"]["runs"] if "grid" in here else None
    return {
        "method": here.pop("method"),
        "grid": here.pop("grid", [{}]),
        "runs": runs,
        "options": here,
    }


def posterior_row(wildcards):
    """What `hyperparameter_posterior` needs of a row on a problem."""
    given = config["experiment5"]["posterior"]
    row = given["settings"] | given["methods"][wildcards.method]
    here = on_problem(row, int(wildcards.problem))
    lengths = {
        key: here.pop(key) for key in ("chains", "iterations", "burn_in", "kept", "predictive")
    }
    return {"method": here.pop("method"), "options": here} | lengths


def population_mb(coordinates, samples):
    """Upper bound of a job's memory: the sampler's largest population, if nothing were ever resampled."""
    return 600 + int(8 * min(samples, 200_000) * (coordinates + 80) / 1e6)


def memory_experiment1(wildcards):
    largest = max(cell["samples"] for cell in config["experiment1"]["grid"])
    return population_mb(int(wildcards.dimension), largest)


def memory_experiment2(wildcards):
    largest = max(cell["samples"] for cell in config["experiment2"]["grid"])
    return population_mb({"1": 100, "2": 200, "3": 400, "4": 800}[wildcards.problem], largest)


def memory_experiment4(wildcards):
    return population_mb(1000, method_row(wildcards)["options"].get("samples", 0))


KEPT = f"data/reference/{config['scale']}"


def stored(what, command):
    """An input function: what is kept, or before any job a word on what would keep it."""

    def paths(wildcards):
        folder = f"{KEPT}/{what}"
        if found := sorted(
            path for path in glob(f"{folder}/**", recursive=True) if Path(path).is_file()
        ):
            return found
        raise WorkflowError(f"Nothing is kept in {folder}: `{command}` stores a run there.")

    return paths


def beyond_the_schema():
    """What is wrong that the schema cannot say, a line each."""
    one, two, four = (config[f"experiment{number}"] for number in (1, 2, 4))
    # two rows with one name would draw the same numbers and pass for two
    for (key, name), rows in {
        ("experiment1.grid", "samples"): one["grid"],
        ("experiment2.grid", "samples"): two["grid"],
        ("experiment4.hyperparameters", "set"): four["hyperparameters"],
    }.items():
        values = [row[name] for row in rows]
        if len(set(values)) < len(values):
            yield f"{key}: given {name} {values}; allowed is a different one in each row"
    for cell in two["grid"]:
        if cell["datasets"] * cell["runs"] < 3:
            yield f"experiment2.grid: given {cell}; allowed are at least 3 datasets x runs"
    known, standardised = set(DATASETS.values()), set(config["data"]["standardise"])
    for name in sorted(known - standardised):
        yield f"data.standardise.{name}: not given; allowed is true or false"
    for name in sorted(standardised - known):
        yield f"data.standardise.{name}: unknown key; known are {sorted(known)}"
    for name, row in four["methods"].items():
        key = f"experiment4.methods.{name}" if "data_sets" in row else "experiment4"
        for problem in four["problems"]:
            drawn = row_on(row, problem)["data_sets"]
            if str(problem) in DATASETS and drawn != 1:
                yield (
                    f"{key}.data_sets: given {drawn}; allowed is 1 on Problem {problem}, whose data are real: a list "
                    "has one value a problem"
                )
    posterior = config["experiment5"]["posterior"]
    for problem in posterior["problems"]:
        settings = on_problem(posterior["settings"], problem)
        iterations, name = min(
            (on_problem(row, problem)["iterations"], name)
            for name, row in posterior["methods"].items()
        )
        for what in ("kept", "predictive"):
            if settings[what] > iterations:
                yield (
                    f"experiment5.posterior.settings.{what}: given {settings[what]}; allowed are at most the "
                    f"iterations of {name} on Problem {problem}: {iterations}"
                )


refuse(list(beyond_the_schema()))
