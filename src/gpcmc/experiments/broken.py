"""Runs that are wrong on purpose, which the audit has to find (its negative controls).

Small parts of Experiments 1 and 2 by the sampler's NumPy twin, in three ways: ``sound``, as it should be;
``wrong-tail``, with innovations from Student's t of three degrees of freedom, scaled to the variance of the
normal ones; ``biased-truth``, scored against truths that are off. The rows are those of the experiments, so that
the audit can take them in the place of the real ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky

from gpcmc._validation import check_option
from gpcmc.experiments.orthant_accuracy import (
    EXPERIMENT2,
    one_factor_vector,
    two_class_data,
    variance_eq44,
)
from gpcmc.experiments.pieces import Row
from gpcmc.experiments.seeds import generator, seed
from gpcmc.gp import linear, orthant_covariance, prior
from gpcmc.orthant._reference import normals, population, predict
from gpcmc.orthant.sampler import test_rows
from gpcmc.orthant.truths import linear_kernel_truth, one_factor_log_probability

KINDS = ("sound", "wrong-tail", "biased-truth")
#: Where: the smallest problem of either experiment, at the smallest published sample size.
DIMENSION, PROBLEM, SAMPLES = 50, 1, 10_000
#: The biased truth: log probabilities off by so much of their value, class probabilities by so much.
LOG_BIAS, PROBABILITY_BIAS = 0.02, 0.02
#: Degrees of freedom of the wrong tail.
FREEDOM = 3


def _heavy(rng: np.random.Generator, size: int) -> np.ndarray:
    """Student's t with variance one."""
    return rng.standard_t(FREEDOM, size) * np.sqrt((FREEDOM - 2) / FREEDOM)


def broken_runs(
    kind: str, *, root: int, instances: int, data_sets: int, runs: int
) -> tuple[list[Row], list[Row]]:
    """Run one control.

    Parameters
    ----------
    kind : {"sound", "wrong-tail", "biased-truth"}
    root : int
        Root of the random streams.
    instances : int
        Problems of Experiment 1, of dimension `DIMENSION`.
    data_sets, runs : int
        Of Problem `PROBLEM` of Experiment 2, and runs on each.

    Returns
    -------
    experiment1, experiment2 : list of dict
        Rows as of these experiments.

    Raises
    ------
    ValueError
        If `kind` is not one of these.
    """
    check_option("kind", kind, KINDS)
    draw = _heavy if kind == "wrong-tail" else normals
    biased = kind == "biased-truth"
    first, second = [], []
    for instance in range(instances):
        d, _ = one_factor_vector(root, DIMENSION, instance)
        cov = np.outer(d, d)
        np.fill_diagonal(cov, 1.0)
        path = seed(root, "controls", f"N{DIMENSION}", f"instance{instance}")
        row, _, _ = _run(cov, path, draw)
        truth = one_factor_log_probability(d) * (1.0 + LOG_BIAS * biased)
        first.append({"dimension": DIMENSION, "instance": instance} | row | {"truth": truth})
    for dataset in range(data_sets):
        path = seed(root, "experiment2", f"problem{PROBLEM}", f"dataset{dataset}")
        x, y, x_star = two_class_data(EXPERIMENT2[PROBLEM], generator(path))
        exact = linear_kernel_truth(x, y, x_star)
        gp = prior(linear(), x[:, None], x_star[:, None])
        cov = orthant_covariance(gp.K, y)
        A = test_rows(cholesky(cov, lower=True), y[:, None] * gp.K_star, 1.0 + gp.k_star_star)
        for run in range(runs):
            row, E, log_w = _run(
                cov,
                seed(root, "controls", f"problem{PROBLEM}", f"dataset{dataset}", f"run{run}"),
                draw,
            )
            rng = generator(seed(row["seed"], "test"))
            found = predict(E, log_w, A, False, rng)
            truths = exact.probability + PROBABILITY_BIAS * biased
            key = {"problem": PROBLEM, "dimension": len(y), "dataset": dataset, "run": run}
            truth = exact.log_evidence * (1.0 + LOG_BIAS * biased)
            second.append(
                key | row | {"truth": truth, "mae": float(np.mean(np.abs(found - truths)))}
            )
    return first, second


def _run(
    cov: np.ndarray, path: str, draw: Callable[[np.random.Generator, int], np.ndarray]
) -> tuple[Row, np.ndarray, np.ndarray]:
    L = np.linalg.cholesky(cov)
    G = L / np.diag(L)[:, None]
    zero = np.zeros(len(cov))
    E, log_stages, _, log_w, influence = population(
        G, zero, SAMPLES, False, 0.0, generator(path), draw
    )
    excess = variance_eq44(log_stages, SAMPLES)
    row: Row = {
        "samples": SAMPLES,
        "populations": 1,
        "count": "hard",
        "scheme": "bootstrap",
        "seed": path,
        "estimate": float(log_stages.sum()),
        "standard_error": float(np.sqrt(np.sum(influence**2)) / SAMPLES),
        "bias_eq43": -excess / 2,
        "variance_eq44": excess,
    }
    return row, E, log_w
