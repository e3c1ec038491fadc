"""Made result files in the shape of a run's, with known properties, for the tests of the audit and the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from gpcmc.audit import ResultFiles

DIMENSIONS = {50: 1, 200: 2, 500: 3}
SETS = {1: (5, 1), 2: (5, 5), 3: (3, 2), 4: (0.5, 0.5), 5: (3, 1), 6: (0.5, 3)}
SAMPLES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
SIZES = {1: 50, 2: 40, 3: 50, 4: 50, 5: 50, 6: 60, 7: 30, 8: 30, 9: 40}


def experiment1(
    folder: Path, rng: np.random.Generator, *, variance_factor: float = 2.0
) -> list[Path]:
    """Normal errors whose variance is `variance_factor` times the Eq. (44) beside them; own errors are right."""
    paths = []
    for dimension in DIMENSIONS:
        truth = -dimension * np.log(2) * rng.uniform(0.9, 1.1, 50)
        rows = []
        for samples in SAMPLES:
            se = np.sqrt(dimension / samples)
            for instance, log in enumerate(truth):
                rows.append(
                    {
                        "dimension": dimension,
                        "instance": instance,
                        "samples": samples,
                        "count": "hard",
                        "scheme": "bootstrap",
                        "populations": 1,
                        "seed": f"1/N{dimension}/{instance}/{samples}",
                        "truth": log,
                        "estimate": log + se * rng.standard_normal(),
                        "standard_error": se,
                        "bias_eq43": 0.0,
                        "variance_eq44": se**2 / variance_factor,
                    }
                )
        paths.append(folder / f"N{dimension}.csv")
        pd.DataFrame(rows).to_csv(paths[-1], index=False)
    return paths


def quadrature(folder: Path, experiment1_paths: list[Path]) -> Path:
    rows = []
    for path in experiment1_paths:
        cells = pd.read_csv(path).drop_duplicates("instance")
        for _, cell in cells.iterrows():
            for du in (0.1, 0.05):
                coarse = cell["truth"] * (1 + du / 100)
                rows.append(
                    {name: cell[name] for name in ("dimension", "instance", "truth")}
                    | {"du": du, "coarse": coarse, "ape_percent": du}
                )
    pd.DataFrame(rows).to_csv(folder / "quadrature.csv", index=False)
    return folder / "quadrature.csv"


def experiment2(
    folder: Path,
    rng: np.random.Generator,
    *,
    level: float = 0.3,
    between: float = 0.2,
    data_sets: int = 4,
) -> list[Path]:
    """MAE of `level` M^-1/2 times a factor of the data set (log deviation `between`) and little run noise."""
    paths = []
    for problem, dimension in enumerate((100, 200, 400, 800), start=1):
        rows = []
        for dataset in range(data_sets):
            factor = np.exp(between * rng.standard_normal())
            for samples in SAMPLES:
                for run in range(4):
                    se = factor * np.sqrt(dimension / samples)
                    rows.append(
                        {
                            "problem": problem,
                            "dimension": dimension,
                            "dataset": dataset,
                            "run": run,
                            "samples": samples,
                            "count": "hard",
                            "scheme": "bootstrap",
                            "populations": 1,
                            "seed": f"1/{problem}/{dataset}/{samples}/{run}",
                            "truth": -0.5 * dimension,
                            "estimate": -0.5 * dimension + se * rng.standard_normal(),
                            "standard_error": se,
                            "bias_eq43": 0.0,
                            "variance_eq44": se**2 / 3,
                            "mae": level
                            * factor
                            * samples**-0.5
                            * np.exp(0.02 * rng.standard_normal()),
                        }
                    )
        paths.append(folder / f"problem{problem}.csv")
        pd.DataFrame(rows).to_csv(paths[-1], index=False)
    return paths


def experiment4(
    folder: Path,
    rng: np.random.Generator,
    *,
    methods: tuple[str, ...] = ("orthant", "laplace", "ep"),
    missing: tuple[int, ...] = (8,),
) -> tuple[list[Path], list[Path], list[Path]]:
    """Problems, rows and probabilities; the data of `missing` could not be had."""
    problems, rows_of, probabilities = [], [], []
    for number, size in SIZES.items():
        problems.append(folder / f"problem{number}.npz")
        (folder / f"problem{number}").mkdir()
        posterior = rng.uniform(0.05, 0.95, size)
        y = np.where(rng.random(size) < posterior, 1.0, -1.0)
        if number in missing:
            np.savez(problems[-1])
        else:
            bayes = posterior if number < 7 else np.full(size, np.nan)
            X = np.zeros((size, 2))
            np.savez(problems[-1], X_train=X, y_train=y, X_test=X, y_test=y, bayes_posterior=bayes)
        for method in methods:
            rows = []
            for number_of_set, (alpha, beta) in SETS.items():
                key = {
                    "problem": number,
                    "method": method,
                    "set": number_of_set,
                    "alpha": alpha,
                    "beta": beta,
                }
                path = folder / f"problem{number}" / f"{method}_set{number_of_set}.npz"
                probabilities.append(path)
                if number in missing:
                    rows.append(key | {"replicate": 0, "status": "data not available"})
                    np.savez(path)
                    continue
                replicates = 1 if method in ("laplace", "ep") else 3
                p = np.clip(posterior + 0.05 * rng.standard_normal((replicates, size)), 0.01, 0.99)
                np.savez(path, probability=p, probability_se=np.zeros_like(p))
                for replicate in range(replicates):
                    row = key | {
                        "replicate": replicate,
                        "status": "ok",
                        "trivial": number_of_set == 4,
                    }
                    row |= {"log_evidence": -0.6 * size + 0.01 * replicate, "error_rate": 0.2}
                    row["log_evidence_se"] = 0.0 if replicates == 1 else 0.01
                    row["mae_post"] = (
                        np.mean(np.abs(p[replicate] - posterior)) if number < 7 else np.nan
                    )
                    if replicates > 1:
                        row |= {"seed": f"1/{number}/{method}/{replicate}", "samples": 1000}
                    rows.append(row)
            rows_of.append(folder / f"problem{number}" / f"{method}.csv")
            pd.DataFrame(rows).to_csv(rows_of[-1], index=False)
    return problems, rows_of, probabilities


def spread(folder: Path, rng: np.random.Generator, *, between: float = 0.2) -> Path:
    rows = [
        {"problem": problem, "dataset": dataset, "set": number_of_set, "mae_post": 0.1 * factor}
        for problem in range(1, 7)
        for dataset in range(10)
        for factor in [np.exp(between * rng.standard_normal())]
        for number_of_set in SETS
    ]
    pd.DataFrame(rows).to_csv(folder / "spread.csv", index=False)
    return folder / "spread.csv"


def equations(folder: Path) -> Path:
    rows = [
        {
            "equation": "52",
            "statement": "the joint covariance has Sigma_XX*^T C' top right and C' Sigma_XX* bottom left",
            "correction": "the two blocks exchanged (as printed they conform only when N = NTEST)",
            "printed_error": 1.0,
            "corrected_error": 0.0,
            "verdict": "misprint: corrected form agrees",
        },
        {
            "equation": "48-51",
            "statement": "the conditional moments follow from the previous ones by a recursion",
            "correction": "",
            "printed_error": 1e-15,
            "corrected_error": np.nan,
            "verdict": "correct as printed",
        },
    ]
    pd.DataFrame(rows).to_csv(folder / "equations.csv", index=False)
    return folder / "equations.csv"


def raw_status(folder: Path) -> Path:
    path = folder / "breast-cancer-wisconsin.data.json"
    status = {"file": "breast-cancer-wisconsin.data", "available": False}
    path.write_text(
        json.dumps(status | {"instructions": "data/raw/breast-cancer-wisconsin.data (sha256 402c)"})
    )
    return path


def everything(folder: Path, seed: int = 1, **options: object) -> ResultFiles:
    """All result files of a run with every cell, but the data of Problem 8."""
    rng = np.random.default_rng(seed)
    for name in ("experiment1", "experiment2", "experiment4", "data"):
        (folder / name).mkdir(parents=True)
    first = experiment1(folder / "experiment1", rng)
    problems, rows, probabilities = experiment4(folder / "experiment4", rng, **options)
    return ResultFiles.of(
        {
            "experiment1": first,
            "quadrature": quadrature(folder / "experiment1", first),
            "experiment2": experiment2(folder / "experiment2", rng),
            "problems": problems,
            "experiment4": rows,
            "probabilities": probabilities,
            "spread": spread(folder / "experiment4", rng),
            "equations": equations(folder),
            "data": raw_status(folder / "data"),
        }
    )
