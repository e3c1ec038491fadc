"""Small tables of Experiments 1 to 3 and of the part ``other``, with numbers that can be checked by hand."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.record.files import read_csv, write_csv
from studies.common.measuring import Rows, measured
from studies.common.rows import Table, write_table

SAMPLES = (10000, 30000, 100000)
CELLS = Path(__file__).parents[2] / "data/published/atiya2021"
#: What each part of the measures reads.
PARTS = {
    "experiment1": ["experiment1", "quadrature", "inexact"],
    "experiment2": ["experiment2"],
    "experiment3": ["experiment3"],
    "other": ["defects", "ordering", "equations", "reference_check"],
}


def measure(part: str, root: Path, reference: Path | None = None) -> pd.DataFrame:
    """The measures of a part; experiments that were not made have no lines."""
    for experiment in PARTS[part]:
        if not (root / f"{experiment}.csv").exists():
            add(root, experiment, pd.DataFrame({"row": []}))
    given = Rows(root, CELLS, reference or root, PARTS[part])
    return measured(import_module(f"studies.atiya2021.measures.{part}"), given)


def add(
    root: Path, experiment: str, lines: pd.DataFrame, timing: pd.DataFrame | None = None
) -> None:
    """Write lines with their CPU seconds, below those that the experiment has already."""
    timing = pd.DataFrame({"cpu_seconds": [1.0] * len(lines)}) if timing is None else timing
    if (root / f"{experiment}.csv").exists():
        old, old_timing = (read_csv(root / f"{experiment}{end}.csv") for end in ("", "_timing"))
        lines, timing = pd.concat([old, lines]), pd.concat([old_timing, timing])
    names = [f"row{k}" for k in range(len(lines))]
    write_table(root / experiment, Table(lines.assign(row=names), timing.assign(row=names), {}))


def experiment1(root: Path, *, dimensions=(50, 200, 500), instances=4, **changes) -> None:
    """Errors of +-(instance + 1)/sqrt(M) in turn; Eq. (44) predicts half of the mean square."""
    rows, grid, wrong = [], [], []
    for dimension in dimensions:
        for instance in range(instances):
            truth = -float(dimension)
            for place, samples in enumerate(SAMPLES):
                error = (instance + 1) * samples**-0.5 * (-1) ** (instance + place)
                seed = f"1/experiment1/N{dimension}/instance{instance}/samples{samples}"
                key = {"dimension": dimension, "instance": instance, "samples": samples}
                options = {"count": "hard", "scheme": "bootstrap", "populations": 1, "seed": seed}
                found = {"truth": truth, "estimate": truth + error, "standard_error": samples**-0.5}
                formulas = {"bias_eq43": -0.5 / samples, "variance_eq44": 1.0 / samples}
                rows.append(key | options | found | formulas)
            for step in (0.2, 0.1):
                coarse = truth * (1 + 0.01 * step * (instance == 0))
                error = 100 * abs(coarse / truth - 1)
                line = {"dimension": dimension, "instance": instance, "du": step, "truth": truth}
                grid.append(line | {"coarse": coarse, "ape_percent": error})
            one = {"dimension": dimension, "problem": instance, "rule": "simpson-1e-4"}
            wrong.append(
                one | {"truth": truth, "off": -0.5 * (instance == 0), "seed": f"1/{instance}"}
            )
    add(root, "experiment1", pd.DataFrame(rows).assign(**changes))
    add(root, "quadrature", pd.DataFrame(grid))
    add(root, "inexact", pd.DataFrame(wrong))


def experiment2(root: Path, *, problems=(1, 2), datasets=3, runs=2) -> None:
    """Class errors of (dataset + 1)/sqrt(M), and log estimates that are off by +-(dataset + 1)/sqrt(M)."""
    rows = []
    for problem in problems:
        for dataset in range(datasets):
            for samples in SAMPLES:
                for run in range(runs):
                    error = (dataset + 1) * samples**-0.5
                    key = {"problem": problem, "dataset": dataset, "samples": samples, "run": run}
                    options = {"count": "hard", "scheme": "bootstrap"}
                    found = {"truth": -40.0, "estimate": -40.0 + error * (-1) ** run, "mae": error}
                    found |= {"standard_error": samples**-0.5, "bias_eq43": -0.5 / samples}
                    seed = (
                        f"1/experiment2/problem{problem}/dataset{dataset}/samples{samples}/run{run}"
                    )
                    rows.append(
                        key | options | found | {"variance_eq44": 1 / samples, "seed": seed}
                    )
    add(root, "experiment2", pd.DataFrame(rows))


def method(
    root: Path, name: str, points: list[tuple[float, float, int]], runs: int = 4, **more
) -> None:
    """A method of Experiment 3: of each size its CPU seconds, its error (both kinds), and how many runs converged."""
    rows, timing = [], []
    for size, (seconds, error, ok) in enumerate(points):
        for run in range(runs):
            scatter = error * (1 + 0.1 * (-1) ** run * (runs > 1))
            rows.append(
                {"method": name, "dataset": 0, "size": size, "run": run, "samples": 100 * 10**size}
                | {"status": "ok" if run < ok else "not converged", "ape_percent": scatter}
                | {"probability_mae": scatter, "log_evidence_error": scatter * (-1) ** run}
                | {"seed": f"1/experiment3/{name}/run{run}"}
                | more
            )
            timing.append({"cpu_seconds": seconds})
    add(root, "experiment3", pd.DataFrame(rows), pd.DataFrame(timing))


def on_data_sets(root: Path, name: str, factors, levels, read=None) -> None:
    """A method whose error by data set is level/sqrt(s/factor) after s seconds: two runs on the first, one on others.

    `read` has factors of the error of class probabilities, by ways to read a chain of the toolbox.
    """
    rows, timing = [], []
    for dataset, (factor, level) in enumerate(zip(factors, levels, strict=True)):
        for size, seconds in enumerate((1.0, 10.0, 100.0)):
            for run in range(2 if dataset == 0 else 1):
                key = {"method": name, "dataset": dataset, "size": size, "run": run}
                error = level * (seconds / factor) ** -0.5
                row = key | dict.fromkeys(("ape_percent", "probability_mae"), error)
                row |= {f"probability_mae_{way}": error * by for way, by in (read or {}).items()}
                row |= {"status": "ok", "log_evidence_error": error}
                rows.append(row | {"seed": f"1/experiment3/{name}/dataset{dataset}/run{run}"})
                timing.append({"cpu_seconds": seconds})
    add(root, "experiment3", pd.DataFrame(rows), pd.DataFrame(timing))


def experiment3(root: Path) -> None:
    """The sampler's error is exp(-3)/sqrt(s) after s seconds; slice sampling as distributed takes ten times as long."""
    level = float(np.exp(-3.0))
    method(root, "orthant", [(s, level * s**-0.5, 4) for s in (0.1, 1.0, 10.0)])
    method(
        root,
        "ess-gpml",
        [(s, level * (s / 10) ** -0.5, ok) for s, ok in ((1.0, 1), (10.0, 4), (100.0, 4))],
    )
    method(root, "ess", [(0.1, level, 4), (1.0, 0.1 * level, 4)])
    method(root, "ess-ais", [(0.1, level, 4), (1.0, 0.1 * level, 4)])
    method(root, "hmc-gpml", [(50.0, 3 * level, 0)])
    method(root, "ep", [(0.2, 0.5 * level, 1)], runs=1, seed=None)


def other(root: Path) -> None:
    """Sorting squares errors by four; one misprint; a defect that adds 0.1 nats; all else is alike."""
    rows = []
    for dataset in range(3):
        for order, factor in (("shuffled", 1.0), ("sorted", 2.0), ("interleaved", 1.0)):
            for count in ("hard", "soft"):
                error = factor * (dataset + 1) * (0.5 if count == "soft" else 1.0) * 0.01
                rows.append(
                    {"problem": 2, "dataset": dataset, "order": order, "run": 0, "count": count}
                    | {"samples": 1000, "seed": f"1/{dataset}", "log_evidence_error": error}
                    | {
                        "probability_mae": error,
                        "smallest_stage": 0.1,
                        "variance_eq44": 0.01 / factor,
                    }
                )
    add(root, "ordering", pd.DataFrame(rows))
    equations = {
        "equation": ["31", "52", "section 3.3 (small)"],
        "printed_error": [1e-16, 1.0, 1e-12],
    }
    corrected = [np.nan, 0.0, np.nan]
    checks = pd.DataFrame(equations).assign(corrected_error=corrected, verdict="x")
    add(root, "equations", checks)
    rows = []
    for samples in (50, 200):
        for replicate in range(3):
            for switched in ("all", "none", "without double-variance", "only double-variance"):
                twice = switched in ("all", "only double-variance")
                rows.append(
                    {"case": "linear", "sampler": "ess", "switched": switched}
                    | {"samples": samples, "replicate": replicate}
                    | {"status": "ok" if samples == 200 else "not converged", "seed": "1/d"}
                    | {"log_evidence_error": 0.2 * replicate, "ape_percent": 0.1}
                    | {"probability_mae": 0.01 + 0.002 * twice + 0.001 * replicate}
                )
    add(root, "defects", pd.DataFrame(rows))
    check = {"problem": [2, 2], "set": [6, 6], "method": ["best", "adapted orthant"]}
    check |= {"z": [2.0, np.nan], "max_z": [4.0, 2.5], "verdict": ["agrees", "agrees"]}
    add(root, "reference_check", pd.DataFrame(check))


def reference(folder: Path) -> None:
    """Two entries, one of which is certified."""
    rows = {"problem": [1, 1], "set": [1, 2], "verdict": ["certified", "not certified"]}
    rows |= {
        "trivial": [False, True],
        "log_evidence_se": [0.1, 9.0],
        "max_probability_se": [0.2, 9.0],
    }
    rows |= {"certifier_se": [0.3, 9.0], "z": [-1.5, 9.0], "k_hat": [np.nan, np.nan]}
    write_csv(folder / "certified/evidence.csv", pd.DataFrame(rows))


def everything(folder: Path) -> tuple[Path, Path]:
    """All of them; returns the folders of results and reference."""
    root, kept = folder / "results", folder / "reference"
    experiment1(root)
    experiment2(root)
    experiment3(root)
    other(root)
    reference(kept)
    return root, kept
