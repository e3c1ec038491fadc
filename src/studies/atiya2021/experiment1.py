"""Experiment 1: the sampler against orthants whose probability is known (paper, section 6.1, Table 1).

The covariances have R_ij = d_i d_j off a unit diagonal, with d uniform on [-1, 1]. Eq. (63) gives the truth.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpcmc.orthant.sampler import OrthantEstimate, orthant_probability
from gpcmc.orthant.truths import one_factor_log_probability, rectangle_rule_log_probability
from studies.atiya2021.problems import one_factor_vector
from studies.common.pieces import Piece, Pieces, Row, join
from studies.common.seeds import generator, seed


def experiment1(
    dimension: int, *, root: int, grid: Sequence[dict[str, int]], pieces: Pieces, **options: Any
) -> Piece:
    """Run Experiment 1 at one dimension.

    Parameters
    ----------
    dimension : int
    root : int
        Root of the random streams.
    grid : sequence of {"samples": int, "instances": int}
        Sample sizes, and on how many problems each is run.
    pieces : Pieces
        Finished problems.
    **options
        `count` and `scheme` of the sampler.

    Returns
    -------
    rows, timing : list of dict
        One row a run.
    arrays : dict
        Empty.
    """

    def one(instance: int) -> Piece:
        d, path = one_factor_vector(root, dimension, instance)
        cov = np.outer(d, d)
        np.fill_diagonal(cov, 1.0)
        truth = one_factor_log_probability(d)
        rows, timing = [], []
        for cell in grid:
            if instance >= cell["instances"]:
                continue
            samples = cell["samples"]
            run_seed = seed(path, f"samples{samples}")
            start = time.process_time()
            estimate = orthant_probability(cov, samples=samples, rng=generator(run_seed), **options)
            seconds = time.process_time() - start
            key = {"dimension": dimension, "instance": instance, "samples": samples}
            rows.append(key | sampler_columns(run_seed, truth, estimate, options))
            timing.append(key | {"cpu_seconds": seconds})
        return rows, timing, {}

    instances = max(cell["instances"] for cell in grid)
    return join(pieces.get(f"instance{k}", partial(one, k)) for k in range(instances))


def quadrature_errors(
    dimensions: Sequence[int], *, root: int, instances: int, steps: Sequence[float], limit: float
) -> Piece:
    """Return the error of coarse rectangle rules for Eq. (63), problem by problem.

    The published column for N = 500 has an error that does not fall with the number of samples, as
    an inexact "truth" would give; this shows how large such an error is for a given grid.

    Parameters
    ----------
    dimensions : sequence of int
    root, instances : int
        The problems of Experiment 1 that these name.
    steps : sequence of float
        Grid steps du.
    limit : float
        The grid covers [-limit, limit].

    Returns
    -------
    rows : list of dict
        One row a problem and step.
    timing, arrays
        Empty.
    """
    rows = []
    for dimension in dimensions:
        for instance in range(instances):
            d, path = one_factor_vector(root, dimension, instance)
            truth = one_factor_log_probability(d)
            for du in steps:
                coarse = rectangle_rule_log_probability(d, du, limit)
                rows.append(
                    {
                        "dimension": dimension,
                        "instance": instance,
                        "seed": path,
                        "du": du,
                        "truth": truth,
                        "coarse": coarse,
                        "ape_percent": 100 * abs((coarse - truth) / truth),
                    }
                )
    return rows, [], {}


def variance_eq44(log_stages: np.ndarray, samples: int) -> float:
    """Return the paper's variance of the log estimate (Eq. 44); its bias (Eq. 43) is minus half of that.

    Parameters
    ----------
    log_stages : (n,) array
        Logs of the conditional probabilities of the stages.
    samples : int
        M.
    """
    p = np.exp(log_stages)
    return float(np.sum((1.0 - p) / p)) / samples


def sampler_columns(
    run_seed: str, truth: float, estimate: OrthantEstimate, options: Mapping[str, Any]
) -> Row:
    """Return what a row of Experiments 1 and 2 says of a run of the sampler."""
    excess = variance_eq44(estimate.log_stage_probabilities, estimate.samples)
    return {
        **options,
        "populations": estimate.populations,
        "seed": run_seed,
        "truth": truth,
        "estimate": estimate.log_probability,
        "standard_error": estimate.standard_error,
        "bias_eq43": -excess / 2,
        "variance_eq44": excess,
    }
