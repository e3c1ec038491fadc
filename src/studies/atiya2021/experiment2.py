"""Experiment 2: the sampler on one-dimensional classification problems (paper, section 6.2, Tables 2 and 3).

Two normal classes are classified with the linear kernel. Eq. (66) gives the truth.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpcmc.gp.covariance import linear, orthant_covariance, prior
from gpcmc.orthant.sampler import orthant_ratio
from gpcmc.orthant.truths import linear_kernel_truth
from studies.atiya2021.experiment1 import sampler_columns
from studies.atiya2021.problems import EXPERIMENT2, two_class_data
from studies.common.pieces import Piece, Pieces, join
from studies.common.seeds import generator, seed


def experiment2(
    number: int, *, root: int, grid: Sequence[dict[str, int]], pieces: Pieces, **options: Any
) -> Piece:
    """Run Experiment 2 on one problem.

    Parameters
    ----------
    number : {1, 2, 3, 4}
        Problem of section 6.2.
    root : int
        Root of the random streams.
    grid : sequence of {"samples": int, "datasets": int, "runs": int}
        Sample sizes, on how many data sets each is run, and how often on each.
    pieces : Pieces
        Finished data sets.
    **options
        `count` and `scheme` of the sampler.

    Returns
    -------
    rows, timing : list of dict
        One row a run.
    arrays : dict
        `truth_dataset<k>` (t,): exact test probabilities of each data set.
    """
    datasets = max(cell["datasets"] for cell in grid)
    return join(
        pieces.get(f"dataset{k}", partial(_data_set, number, k, root, grid, options))
        for k in range(datasets)
    )


def _data_set(
    number: int,
    dataset: int,
    root: int,
    grid: Sequence[Mapping[str, int]],
    options: Mapping[str, Any],
) -> Piece:
    """All runs on one data set."""
    path = seed(root, "experiment2", f"problem{number}", f"dataset{dataset}")
    x, y, x_star = two_class_data(EXPERIMENT2[number], generator(path))
    truth = linear_kernel_truth(x, y, x_star)
    gp = prior(linear(), x[:, None], x_star[:, None])
    cov = orthant_covariance(gp.K, y)
    rows, timing = [], []
    runs = [(c["samples"], r) for c in grid if dataset < c["datasets"] for r in range(c["runs"])]
    for samples, run in runs:
        run_seed = seed(path, f"samples{samples}", f"run{run}")
        start = time.process_time()
        estimate, probability, _ = orthant_ratio(
            cov,
            y[:, None] * gp.K_star,
            1.0 + gp.k_star_star,
            samples=samples,
            runs=None,
            rng=generator(run_seed),
            **options,
        )
        seconds = time.process_time() - start
        key = {"problem": number, "dataset": dataset, "samples": samples, "run": run}
        mae = float(np.mean(np.abs(probability - truth.probability)))  # Eq. 67
        rows.append(
            key
            | {"dimension": len(y), "test_patterns": len(x_star)}
            | sampler_columns(run_seed, truth.log_evidence, estimate, options)
            | {"mae": mae}
        )
        timing.append(key | {"cpu_seconds": seconds})
    return rows, timing, {f"truth_dataset{dataset}": truth.probability}
