"""What the order of the patterns and the way of counting do to the sampler (paper, sections 5.7, 6.2 and 6.5).

The paper holds it "imperative" to shuffle or interleave the classes, because listing one after the other makes
conditional probabilities extreme, and its soft count "possibly more efficient". On data sets of
Experiment 2, whose truth is known, Algorithm GPC-MC runs on the patterns sorted by class, shuffled, and
interleaved. The two ways of counting share their random numbers, and with them their samples.
"""

from __future__ import annotations

import numpy as np

from gpcmc.covariance.kernels import linear, orthant_covariance
from gpcmc.covariance.prior import prior
from gpcmc.orthant.populations import Count
from gpcmc.orthant.sampler import orthant_ratio
from gpcmc.orthant.truths import linear_kernel_truth
from studies.atiya2021.experiment1 import variance_eq44
from studies.atiya2021.problems import EXPERIMENT2, two_class_data
from studies.common.rows import Line
from studies.common.seeds import generator


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


def ordered_run(problem: int, data: str, order: str, count: Count, samples: int, seed: str) -> Line:
    """Run the sampler on patterns in an order.

    Parameters
    ----------
    problem : {1, 2, 3, 4}
        Of Experiment 2.
    data, seed : str
        Seeds of the data set and of the run.
    order : str
        A name in `orders`.
    count : {"hard", "soft"}
        The way of counting.
    samples : int
        M.

    Returns
    -------
    dict
        ``log_evidence_error`` (nats, with its sign), ``probability_mae``, ``smallest_stage`` (the smallest conditional
        probability), ``variance_eq44``.
    """
    x, y, x_star = two_class_data(EXPERIMENT2[problem], generator(data))
    truth = linear_kernel_truth(x, y, x_star)
    chosen = orders(y)[order]
    signs, gp = y[chosen], prior(linear(), x[chosen, None], x_star[:, None])
    estimate, probability, _ = orthant_ratio(
        orthant_covariance(gp.K, signs),
        signs[:, None] * gp.K_star,
        1.0 + gp.k_star_star,
        samples=samples,
        count=count,
        scheme="bootstrap",
        runs=None,
        rng=generator(seed),
    )
    stages = estimate.log_stage_probabilities
    return {
        "log_evidence_error": estimate.log_probability - truth.log_evidence,
        "probability_mae": float(np.mean(np.abs(probability - truth.probability))),
        "smallest_stage": float(np.exp(stages.min())),
        "variance_eq44": variance_eq44(stages, samples),
    }
