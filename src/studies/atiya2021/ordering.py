"""What the order of the patterns and the way of counting do to the sampler (paper, sections 5.7, 6.2 and 6.5).

The paper holds it "imperative" to shuffle or interleave the classes, because listing one after the other makes
conditional probabilities extreme, and its soft count "possibly more efficient". On data sets of
Experiment 2, whose truth is known, Algorithm GPC-MC runs on the patterns sorted by class, shuffled, and
interleaved. The two ways of counting share their random numbers, and with them their samples.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from gpcmc.gp.covariance import linear, orthant_covariance, prior
from gpcmc.orthant.sampler import Count, orthant_ratio
from gpcmc.orthant.truths import linear_kernel_truth
from studies.atiya2021.experiment1 import variance_eq44
from studies.atiya2021.problems import EXPERIMENT2, two_class_data
from studies.common.pieces import Piece, Pieces, Row, join
from studies.common.seeds import generator, seed

#: Both ways of counting share their random numbers.
COUNTS: tuple[Count, ...] = ("hard", "soft")


def orders(y: np.ndarray) -> dict[str, np.ndarray]:
    """Orders of the patterns, by name; `shuffled` is the order that they come in.

    Parameters
    ----------
    y : (n,) array
        Labels -1/+1, shuffled, as many of one as of the other.
    """
    first, second = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    return {
        "sorted": np.concatenate([first, second]),
        "shuffled": np.arange(len(y)),
        "interleaved": np.stack([first, second], axis=1).ravel(),
    }


def ordering(
    problem: int, *, root: int, data_sets: int, runs: int, samples: int, pieces: Pieces
) -> Piece:
    """Run the sampler on every order with both counts.

    Parameters
    ----------
    problem : {1, 2, 3, 4}
        Of Experiment 2.
    root : int
        Root of the random streams.
    data_sets, runs : int
        Data sets, the first ones of Experiment 2, and runs on each.
    samples : int
        Samples a run.
    pieces : Pieces
        Finished data sets.

    Returns
    -------
    rows : list of dict
        One row a data set, order, run and count: ``log_evidence_error`` (nats, with its sign),
        ``probability_mae``, ``smallest_stage`` (the smallest conditional probability), ``variance_eq44``,
        ``seed``.
    timing : list
        Empty.
    arrays : dict
        Empty.
    """
    return join(
        pieces.get(f"dataset{k}", partial(_data_set, problem, root, runs, samples, k))
        for k in range(data_sets)
    )


def _data_set(problem: int, root: int, runs: int, samples: int, dataset: int) -> Piece:
    """All orders, runs and counts on one data set."""
    path = seed(root, "experiment2", f"problem{problem}", f"dataset{dataset}")
    x, y, x_star = two_class_data(EXPERIMENT2[problem], generator(path))
    truth = linear_kernel_truth(x, y, x_star)
    rows: list[Row] = []
    for name, order in orders(y).items():
        signs = y[order]
        gp = prior(linear(), x[order, None], x_star[:, None])
        cov = orthant_covariance(gp.K, signs)
        for run, count in product(range(runs), COUNTS):
            run_seed = seed(path, "ordering", name, f"samples{samples}", f"run{run}")
            estimate, probability, _ = orthant_ratio(
                cov,
                signs[:, None] * gp.K_star,
                1.0 + gp.k_star_star,
                samples=samples,
                count=count,
                scheme="bootstrap",
                runs=None,
                rng=generator(run_seed),
            )
            stages = estimate.log_stage_probabilities
            rows.append(
                {
                    "problem": problem,
                    "dataset": dataset,
                    "order": name,
                    "run": run,
                    "count": count,
                    "samples": samples,
                    "seed": run_seed,
                    "log_evidence_error": estimate.log_probability - truth.log_evidence,
                    "probability_mae": float(np.mean(np.abs(probability - truth.probability))),
                    "smallest_stage": float(np.exp(stages.min())),
                    "variance_eq44": variance_eq44(stages, samples),
                }
            )
    return rows, [], {}
