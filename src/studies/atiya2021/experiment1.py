"""Experiment 1: the sampler against orthants whose probability is known (paper, section 6.1, Table 1).

The covariances have R_ij = d_i d_j off a unit diagonal, with d uniform on [-1, 1]. Eq. (63) gives the truth.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from gpcmc.orthant.populations import Count, OrthantEstimate, Scheme
from gpcmc.orthant.sampler import orthant_probability
from gpcmc.orthant.truths import one_factor_log_probability, rectangle_rule_log_probability
from studies.atiya2021.problems import one_factor
from studies.common.rows import Line
from studies.common.seeds import generator


def orthant_run(
    data: str, dimension: int, samples: int, seed: str, *, count: Count, scheme: Scheme
) -> tuple[Line, float]:
    """Run the sampler on one problem.

    Parameters
    ----------
    data, seed : str
        Seeds of the problem and of the run.
    dimension, samples : int
        N and M.
    count, scheme : str
        Options of the sampler.

    Returns
    -------
    line : dict
        What `sampler_columns` says.
    seconds : float
        CPU seconds of the sampler.
    """
    d = one_factor(data, dimension)
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    truth = one_factor_log_probability(d)
    options = {"count": count, "scheme": scheme}
    start = time.process_time()
    estimate = orthant_probability(
        cov, samples=samples, count=count, scheme=scheme, rng=generator(seed)
    )
    seconds = time.process_time() - start
    return sampler_columns(seed, truth, estimate, options), seconds


def quadrature_errors(
    data: str, dimension: int, steps: Sequence[float], limit: float
) -> list[Line]:
    """Return the error of coarse rectangle rules for Eq. (63) on one problem.

    Parameters
    ----------
    data : str
        Seed of the problem.
    dimension : int
        N.
    steps : sequence of float
        Grid steps du.
    limit : float
        The grid covers [-limit, limit].

    Returns
    -------
    list of dict
        A line a step.
    """
    d = one_factor(data, dimension)
    truth = one_factor_log_probability(d)
    coarse = {du: rectangle_rule_log_probability(d, du, limit) for du in steps}
    return [
        {"du": du, "truth": truth, "coarse": log, "ape_percent": 100 * abs((log - truth) / truth)}
        for du, log in coarse.items()
    ]


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
    seed: str, truth: float, estimate: OrthantEstimate, options: Mapping[str, str]
) -> Line:
    """Return what a line of Experiments 1 and 2 says of a run of the sampler."""
    excess = variance_eq44(estimate.log_stage_probabilities, estimate.samples)
    return {
        **options,
        "populations": estimate.populations,
        "seed": seed,
        "truth": truth,
        "estimate": estimate.log_probability,
        "standard_error": estimate.formula_error,
        "bias_eq43": -excess / 2,
        "variance_eq44": excess,
    }
