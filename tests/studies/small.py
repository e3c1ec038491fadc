"""Small configurations of the studies, made data for them, and what their experiments and measures make of both."""

import copy
import dataclasses
import io
import re
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from studies.atiya2021.names import data_set_seed
from studies.atiya2021.problems import synthetic_problem
from studies.common.blocks import Records, table, write_block
from studies.common.configuration import read_config
from studies.common.measuring import Rows, measured
from studies.common.plan import declared
from studies.common.rows import Table, run_row, table_of, write_table
from studies.common.seeds import generator
from studies.filippone2014 import patterns
from studies.neal1997 import bayes, chains
from studies.neal1997.runs import OUTLIERS

ROOT = Path(__file__).resolve().parents[2]
MIRROR = ROOT.parent / "shared" / "data"
SCALES = ["tiny", "smoke", "standard", "published"]
MISSING = object()
needs_data = pytest.mark.skipif(not MIRROR.exists(), reason="the real data are not here")


def load(scale, seed=1):
    """The configuration of a scale, with another seed."""
    return read_config(scale, ROOT / "config") | {"seed": seed}


def put(block, path, value):
    """Give a place in a block, such as ``methods/ep/samples``, another value, or none."""
    *where, last = (int(name) if name.isdigit() else name for name in re.split("/|__", path))
    for name in where:
        block = block[name]
    if value is MISSING:
        del block[last]
    else:
        block[last] = value


def check(study, config):
    return import_module(f"studies.{study}.config").check(config)


@cache
def modules(study, kind):
    """Modules of a study's experiments, or of the parts of its measures, by name."""
    paths = sorted((ROOT / "src/studies" / study / kind).glob("[a-z]*.py"))
    found = {path.stem: import_module(f"studies.{study}.{kind}.{path.stem}") for path in paths}
    function = {"experiments": "plan", "measures": "measure"}[kind]
    return {name: module for name, module in found.items() if hasattr(module, function)}


def configured(study, block=None, scale="tiny", seed=1, **changes):
    """The checked configuration of a scale with a block of the study; of changes, the names are places in the block."""
    config = load(scale, seed)
    config[study] = copy.deepcopy(config[study] if block is None else block)
    for path, value in changes.items():
        put(config[study], path, value)
    return check(study, config)


def plan(study, experiment, block=None, scale="tiny", seed=1, **changes):
    """Rows of an experiment."""
    config = configured(study, block, scale, seed, **changes)
    return modules(study, "experiments")[experiment].plan(config)


def run_rows(run, rows, inputs):
    """The table of some rows, numbers as numbers."""
    found = table_of([run_row(run, row, inputs) for row in rows])
    return Table(numbers(found.rows), numbers(found.timing), found.arrays)


def numbers(frame):
    """A table of texts as a reader of its file has it."""
    with warnings.catch_warnings():
        # pandas before 3.1 has to be asked for exact floats; later ones always return them, and warn
        warnings.filterwarnings("ignore", message="The 'float_precision' argument")
        text = io.StringIO(frame.to_csv(index=False))
        return pd.read_csv(text, float_precision="round_trip")


# --- Atiya, Fayed and Abdel-Gawad (2021)

QUICK = {
    "adapted": {"method": "orthant", "scheme": "adapted", "replicates": 3, "samples": 100},
    "chain": {"method": "gpml", "sampler": "ess", "samples": 8, "skip": 2, "burn_in": 2,
              "annealing_runs": 2, "replicates": 3, "data_sets": 2},
    "ep": {"method": "ep"},
}  # fmt: skip


def atiya2021(methods=QUICK, sets=((3, 3.0, 2.0),)):
    """The block of the tiny scale with few samples, and with these rows and settings of Experiment 4."""
    study, methods = load("tiny")["atiya2021"], copy.deepcopy(methods)
    few, more = {"samples": 100}, {"samples": 300}
    study["experiment1"]["grid"] = [few | {"instances": 3}, more | {"instances": 3}]
    study["experiment2"]["grid"] = [
        few | {"datasets": 2, "runs": 2},
        more | {"datasets": 3, "runs": 1},
    ]
    adapted = {
        "method": "orthant",
        "scheme": "adapted",
        "grid": [{"samples": 50}, {"samples": 100}],
    }
    study["experiment3"]["methods"] = {"adapted": adapted, "laplace": {"method": "laplace"}}
    study["ordering"] |= {"samples": 100, "data_sets": 3, "runs": 1}
    study["scaling"]["sizes"] = [{"patterns": n, "data_sets": 1} for n in (12, 16)]
    study["scaling"]["curve"] |= {"patterns": 16}
    points = {"points": 16, "randomizations": 8}
    study["scaling"]["references"] = {"twisted-ep": points, "minimax-tilting": points}
    own = study["advice"]
    own |= {"data_sets": ["linnerud"], "references": study["scaling"]["references"]}
    own["methods"] = {name: own["methods"][name] for name in ("ep", "laplace", "twisted-ep")}
    own["methods"]["twisted-ep"] |= points
    own |= {"truth": points, "rule": {"points": 64, "tolerances": [0.1], "replicates": 1}}
    own["simulated"] |= {"kernels": ["rough"], "sizes": [{"patterns": 12, "data_sets": 1}]}
    study["defects"] |= {"reference_points": 16}
    settings = [dict(zip(("set", "alpha", "beta"), one, strict=True)) for one in sets]
    study["experiment4"] |= {"methods": methods, "hyperparameters": settings, "problems": [1]}
    study["benchmark"]["methods"] = [name for name in methods if "replicates" in methods[name]]
    quick = {"method": "laplace", "samples": 2, "iterations": 24, "burn_in": 20}
    study["experiment5"]["posterior"]["methods"] = {"quick": quick}
    search = study["experiment5"]["tuning"]
    search["methods"] = {name: search["methods"][name] for name in ("ep", "orthant-500")}
    search["methods"]["orthant-500"] |= {"options": {"samples": 50}, "final": {"samples": 100}}
    return study


def first(number, root=5):
    """The first data set of a problem, as the workflow's file has it."""
    problem = synthetic_problem(number, generator(data_set_seed(number, 0, root)))
    return dataclasses.asdict(problem)


# --- Filippone and Girolami (2014)


def made_classes(n=60, d=3, noise=0.5, seed=0):
    """Cases of two classes, in the place of real ones."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return {"X": X, "y": np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)}


def filippone2014_inputs(experiment, row):
    if experiment in ("conditionals", "spread", "weights"):
        return {}
    name = f"n{row['n']}_d{row['d']}_set{row['set']}" if experiment == "chains" else ""
    name = name or row.get("data") or row["name"]
    simulated = name[0] == "n"
    data = patterns.patterns(name, seed=1, standardise={}) if simulated else made_classes()
    if experiment not in ("chains", "real"):
        return {"data": data}
    name = f"{row['kernel']}/{name}"
    root = np.eye(2 if row["kernel"] == "isotropic" else 1 + data["X"].shape[1])
    return {"data": data, "pilot": {name: root[None]}}


# --- Neal (1997)


def neal_classes(cases=60, training=40, seed=0):
    rng = np.random.default_rng(seed)
    X, t = bayes.made(cases, rng)
    noise = rng.random((cases, 2))
    return {"X": np.hstack([X, noise]), "t": t.astype(float), "training": np.array(training)}


def neal_outliers(cases=40, training=25, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(cases)
    sd = np.where(rng.random(cases) < 0.05, 1.0, 0.1)
    t = chains.true_function(x) + sd * rng.standard_normal(cases)
    return {"X": x[:, None], "t": t, "training": np.array(training)}


NEAL1997 = {
    "classes": {"runs": {"1997-400": 2, "1997-100": 1, "2022-logistic": 1}, "iterations": 8},
    "outliers": {"runs": dict.fromkeys(list(OUTLIERS)[:4], 2), "iterations": 6},
    "bayes": {"points": 60, "sets": 5},
    "laplace": {"training": [100]},
}


def neal1997_inputs(experiment, row):
    if experiment == "priors":
        return {}
    data = neal_outliers() if experiment in ("outliers", "exact") else neal_classes(70, 50)
    return dict.fromkeys(("old", "new") if experiment == "bayes" else ("data",), data)


# --- Rasmussen and Williams (2006)


def made_digits(n=30, d=5, seed=0):
    """Ten classes about centres of their own, n of each; half of the cases are for training."""
    rng = np.random.default_rng(seed)
    digit = rng.permutation(np.repeat(np.arange(10), n))
    X = rng.standard_normal((10, d))[digit] + 0.9 * rng.standard_normal((10 * n, d))
    return {"X": X, "digit": digit, "training": np.array(5 * n)}


RASMUSSEN2006 = {
    "surface": {"laplace": 8, "ep": 16, "exact": 16},
    "comparators": {"shares": [0, 0.3], "searches": 3},
    "exact": {
        "points": [[0.5, 1.0]],
        "annealing_points": [[0.5, 1.0]],
        "twisted-ep": {"points": 64, "randomizations": 4},
        "annealing": {"temperatures": 50, "runs": 30},
    },
    "ten_classes": {
        **{"training": 100, "test": 100, "points": [[0.5, 1.0]], "thetas": [1.45]},
        **{"search": False, "machines": True},
    },
    "toy": {"draws": 4},
    "crossvalidation": {
        kind: {"laplace": {"crabs": 3, "usps": 3}, "ep": {}, "svm": {}}
        for kind in ("prepared", "unprepared")
    },
}


def rasmussen2006_inputs(experiment, row):
    if experiment in ("toy", "pictures"):
        return {}
    if experiment == "faults":
        return dict.fromkeys(("book", "raw", "zip_split"), made_digits())
    if experiment == "crossvalidation" and row["data"] == "crabs":
        return {"data": made_classes(40)}
    return {"data" if experiment == "crossvalidation" else "digits": made_digits()}


# --- all of them


class Small(NamedTuple):
    """A small block of a study's configuration, and the arrays that a row of an experiment reads."""

    block: dict[str, Any]
    inputs: Callable[..., dict[str, Any]]
    seed: int = 1


SMALL = {
    "atiya2021": Small(atiya2021(), lambda *given: {"problem": first(1)}, seed=20210308),
    "cao2024": Small(load("tiny")["cao2024"], lambda *given: {}),
    "filippone2014": Small(load("tiny")["filippone2014"], filippone2014_inputs),
    "neal1997": Small(NEAL1997, neal1997_inputs),
    "rasmussen2006": Small(RASMUSSEN2006, rasmussen2006_inputs),
}


def rows_of(study, experiment, **changes):
    """Rows of an experiment of the small configuration."""
    return plan(study, experiment, SMALL[study].block, seed=SMALL[study].seed, **changes)


def write(study, experiment, blocks, folder):
    """Run rows in blocks, and write their table in the order of the plan of the small configuration.

    Every block goes through files of its own, as in the workflow.
    """
    run, inputs = modules(study, "experiments")[experiment].run, SMALL[study].inputs
    paths = []
    for k, rows in enumerate(blocks):
        records = [run_row(run, row, inputs(experiment, row)) for row in rows]
        found: Records = {experiment: {record.row: record for record in records}}
        paths.append(folder / f"{experiment}-{k}.npz")
        write_block(paths[-1], found)
    names = {row["row"] for rows in blocks for row in rows}
    order = [row["row"] for row in rows_of(study, experiment) if row["row"] in names]
    write_table(folder / experiment, table(paths, experiment, order))


def measures(study, folder, parts=None):
    """Measures of the tables in a folder, of all parts or of some."""
    published = ROOT / "data/published" / study
    given = Rows(folder, published, Path(), modules(study, "experiments"))
    known = modules(study, "measures")
    found = [measured(known[name], given) for name in parts or declared(study).measures]
    return pd.concat(found, ignore_index=True)
