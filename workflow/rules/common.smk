# What several rules share. No rule stands here.

import hashlib
import os
import shutil
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
    "inference/*.py",
    "orthant/*.py",
    "orthant/*.pyx",
    "orthant/*.h",
)
REPORT_SOURCES = sources("audit/*.py", "report/*.py")

HAVE_LATEX = all(shutil.which(program) for program in ("pdflatex", "latexmk"))

with open("data/registry.csv", newline="") as registry:
    RAW_FILES = {row["file"]: row for row in DictReader(registry)}

SETS = [hyper["set"] for hyper in config["experiment4"]["hyperparameters"]]


wildcard_constraints:
    scale="tiny|smoke|standard|published",
    problem="[1-9]",
    dimension="[0-9]+",
    method="|".join(config["experiment4"]["methods"]),


def fetch_again(wildcards):
    """Changes, so that a raw file is looked for again, while it is missing or not the registered one."""
    raw = Path("data/raw", wildcards.file)
    status = Path("results", wildcards.scale, "data", f"{wildcards.file}.json")
    if raw.exists():
        found = hashlib.sha256(raw.read_bytes()).hexdigest()
        return None if found == RAW_FILES[wildcards.file]["sha256"] else found
    return status.stat().st_mtime_ns if status.exists() else None


def checked_data(wildcards):
    """The data check, for a problem with real data: its facts are asserted before they are used."""
    real = wildcards.problem in "789"
    return f"results/{wildcards.scale}/data_check.csv" if real else []


def method_options(wildcards):
    """Options of a method on a problem: a list in the configuration has one value a problem."""
    options = config["experiment4"]["methods"][wildcards.method]
    index = int(wildcards.problem) - 1
    return {
        key: value[index] if isinstance(value, list) else value
        for key, value in options.items()
        if key != "replicates"
    }


def method_replicates(wildcards):
    return config["experiment4"]["methods"][wildcards.method].get("replicates")


def population_mb(coordinates, samples):
    """Memory of the sampler's largest population, and of the process around it."""
    return 600 + int(8 * min(samples, 200_000) * (coordinates + 20) / 1e6)


def memory_experiment1(wildcards):
    largest = max(cell["samples"] for cell in config["experiment1"]["grid"])
    return population_mb(int(wildcards.dimension), largest)


def memory_experiment2(wildcards):
    largest = max(cell["samples"] for cell in config["experiment2"]["grid"])
    return population_mb({"1": 100, "2": 200, "3": 400, "4": 800}[wildcards.problem], largest)


def memory_experiment4(wildcards):
    return population_mb(1000, method_options(wildcards).get("samples", 0))
