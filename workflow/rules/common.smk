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
    "*.py",
    "datasets/*.py",
    "experiments/*.py",
    "gp/*.py",
    "gp/*.pyx",
    "inference/*.py",
    "orthant/*.py",
    "orthant/*.pyx",
    "orthant/*.h",
)
REPORT_SOURCES = sources("audit/*.py", "report/*.py")

HAVE_LATEX = all(shutil.which(program) for program in ("pdflatex", "latexmk"))

with open("data/registry.csv", newline="") as registry:
    RAW_FILES = {row["file"]: row for row in DictReader(registry)}
RAW_STATUS = expand("results/{{scale}}/data/{file}.json", file=RAW_FILES)

SETS = [hyper["set"] for hyper in config["experiment4"]["hyperparameters"]]

# `gpcmc.experiments.broken.KINDS`, which cannot be imported before the package is built
BROKEN = ["sound", "wrong-tail", "biased-truth"]


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


def on_problem(given, problem):
    """Options on a problem: a list in the configuration has one value a problem."""
    return {
        key: value[problem - 1] if isinstance(value, list) else value
        for key, value in given.items()
    }


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


# What the schema cannot say. Two rows with one name would draw the same numbers and pass for two.
for name, values in {
    "experiment1.grid: samples": [cell["samples"] for cell in config["experiment1"]["grid"]],
    "experiment2.grid: samples": [cell["samples"] for cell in config["experiment2"]["grid"]],
    "experiment4.hyperparameters: set": SETS,
}.items():
    if len(set(values)) < len(values):
        raise WorkflowError(f"{name} must differ from row to row; got {values}")
for cell in config["experiment2"]["grid"]:
    if cell["datasets"] * cell["runs"] < 3:
        raise WorkflowError(f"experiment2.grid: datasets x runs must be at least 3; got {cell}")
posterior = config["experiment5"]["posterior"]
for name, given in posterior["methods"].items():
    for problem in posterior["problems"]:
        iterations = on_problem(given, problem)["iterations"]
        for what in ("kept", "predictive"):
            if posterior["settings"][what] > iterations:
                raise WorkflowError(
                    f"experiment5.posterior.settings.{what}: given {posterior['settings'][what]}; allowed are at most "
                    f"the iterations of {name} on Problem {problem}: {iterations}"
                )
