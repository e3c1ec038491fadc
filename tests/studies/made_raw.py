"""Small raw files of Experiments 1 to 3 and of the part ``other``, with numbers that can be checked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from recheck.files import write_csv

SAMPLES = (10000, 30000, 100000)
CELLS = Path(__file__).parents[2] / "data/published/atiya2021"


def experiment1(root: Path, *, dimensions=(50, 200, 500), instances=4, **changes) -> None:
    """Errors of +-(instance + 1)/sqrt(M) in turn; Eq. (44) predicts half of the mean square."""
    for dimension in dimensions:
        rows = []
        for instance in range(instances):
            for place, samples in enumerate(SAMPLES):
                truth, error = (
                    -float(dimension),
                    (instance + 1) * samples**-0.5 * (-1) ** (instance + place),
                )
                rows.append(
                    {
                        "dimension": dimension,
                        "instance": instance,
                        "samples": samples,
                        "count": "hard",
                    }
                    | {
                        "scheme": "bootstrap",
                        "populations": 1,
                        "truth": truth,
                        "estimate": truth + error,
                    }
                    | {"seed": f"1/experiment1/N{dimension}/instance{instance}/samples{samples}"}
                    | {
                        "standard_error": samples**-0.5,
                        "bias_eq43": -0.5 / samples,
                        "variance_eq44": 1.0 / samples,
                    }
                )
        write_csv(root / f"experiment1/N{dimension}.csv", pd.DataFrame(rows).assign(**changes))
        write_csv(
            root / f"experiment1/N{dimension}_timing.csv", pd.DataFrame({"cpu_seconds": [1.0]})
        )
    steps = [
        (dimension, i, step)
        for dimension in dimensions
        for i in range(instances)
        for step in (0.2, 0.1)
    ]
    grid = pd.DataFrame(steps, columns=["dimension", "instance", "du"])
    grid["truth"] = -grid["dimension"].astype(float)
    grid["coarse"] = grid["truth"] * (1 + 0.01 * grid["du"] * (grid["instance"] == 0))
    grid["ape_percent"] = 100 * (grid["coarse"] / grid["truth"] - 1).abs()
    write_csv(root / "experiment1/quadrature.csv", grid)


def experiment2(root: Path, *, problems=(1, 2), datasets=3, runs=2) -> None:
    """Class errors of (dataset + 1)/sqrt(M), and log estimates that are off by +-(dataset + 1)/sqrt(M)."""
    for problem in problems:
        rows = [
            {
                "problem": problem,
                "dataset": dataset,
                "samples": samples,
                "run": run,
                "dimension": 100,
            }
            | {
                "count": "hard",
                "scheme": "bootstrap",
                "truth": -40.0,
                "mae": (dataset + 1) * samples**-0.5,
            }
            | {"estimate": -40.0 + (dataset + 1) * samples**-0.5 * (-1) ** run}
            | {"seed": f"1/experiment2/problem{problem}/dataset{dataset}/samples{samples}/run{run}"}
            | {
                "standard_error": samples**-0.5,
                "bias_eq43": -0.5 / samples,
                "variance_eq44": 1.0 / samples,
            }
            for dataset in range(datasets)
            for samples in SAMPLES
            for run in range(runs)
        ]
        write_csv(root / f"experiment2/problem{problem}.csv", pd.DataFrame(rows))


def method(
    root: Path, name: str, points: list[tuple[float, float, int]], runs: int = 4, **more
) -> None:
    """A method of Experiment 3: of each size its CPU seconds, its error (both kinds), and how many runs converged."""
    rows, timing = [], []
    for size, (seconds, error, ok) in enumerate(points):
        for run in range(runs):
            scatter = error * (1 + 0.1 * (-1) ** run * (runs > 1))
            rows.append(
                {"method": name, "size": size, "run": run, "samples": 100 * 10**size}
                | {"status": "ok" if run < ok else "not converged", "ape_percent": scatter}
                | {"probability_mae": scatter, "log_evidence_error": scatter * (-1) ** run}
                | {"seed": f"1/experiment3/{name}/run{run}"}
                | more
            )
            timing.append({"method": name, "size": size, "run": run, "cpu_seconds": seconds})
    write_csv(root / f"experiment3/{name}.csv", pd.DataFrame(rows))
    write_csv(root / f"experiment3/{name}_timing.csv", pd.DataFrame(timing))


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
                timing.append(key | {"cpu_seconds": seconds})
    write_csv(root / f"experiment3/{name}.csv", pd.DataFrame(rows))
    write_csv(root / f"experiment3/{name}_timing.csv", pd.DataFrame(timing))


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
    write_csv(root / "ordering.csv", pd.DataFrame(rows))
    equations = {
        "equation": ["31", "52", "section 3.3 (small)"],
        "printed_error": [1e-16, 1.0, 1e-12],
    }
    corrected = [np.nan, 0.0, np.nan]
    write_csv(
        root / "equations.csv",
        pd.DataFrame(equations).assign(corrected_error=corrected, verdict="x"),
    )
    rows = []
    for samples in (50, 200):
        for replicate in range(3):
            for switched in ("all", "none", "without double-variance", "only double-variance"):
                twice = switched in ("all", "only double-variance")
                rows.append(
                    {
                        "sampler": "ess",
                        "switched": switched,
                        "samples": samples,
                        "replicate": replicate,
                    }
                    | {"status": "ok" if samples == 200 else "not converged", "seed": "1/d"}
                    | {"log_evidence_error": 0.2 * replicate, "ape_percent": 0.1}
                    | {"probability_mae": 0.01 + 0.002 * twice + 0.001 * replicate}
                )
    write_csv(root / "defects/linear_ess.csv", pd.DataFrame(rows))
    write_csv(root / "defects/linear_ess_timing.csv", pd.DataFrame({"cpu_seconds": [1.0]}))
    check = {"problem": [2, 2], "set": [6, 6], "method": ["best", "adapted orthant"]}
    check |= {"z": [2.0, np.nan], "max_z": [4.0, 2.5], "verdict": ["agrees", "agrees"]}
    write_csv(root / "reference_check.csv", pd.DataFrame(check))


def reference(folder: Path) -> None:
    """Two entries, one of which is certified."""
    rows = {"problem": [1, 1], "set": [1, 2], "verdict": ["certified", "not certified"]}
    rows |= {
        "trivial": [False, True],
        "log_evidence_se": [0.1, 9.0],
        "max_probability_se": [0.2, 9.0],
    }
    rows |= {"certifier_se": [0.3, 9.0], "z": [-1.5, 9.0], "k_hat": [np.nan, np.nan]}
    write_csv(folder / "evidence.csv", pd.DataFrame(rows))


def everything(folder: Path) -> tuple[Path, Path]:
    """All of them; returns the folders of results and reference."""
    root, kept = folder / "results", folder / "reference"
    experiment1(root)
    experiment2(root)
    experiment3(root)
    other(root)
    reference(kept)
    return root, kept
