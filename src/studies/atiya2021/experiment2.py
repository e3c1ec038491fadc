"""Experiment 2: the sampler on one-dimensional classification problems (paper, section 6.2, Tables 2 and 3).

Two normal classes are classified with the linear kernel. Eq. (66) gives the truth.
"""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np

from gpcmc.covariance.kernels import linear, orthant_covariance
from gpcmc.covariance.prior import Prior, prior
from gpcmc.orthant.populations import Count, Scheme
from gpcmc.orthant.sampler import orthant_ratio
from gpcmc.orthant.truths import LinearKernelTruth, linear_kernel_truth
from studies.atiya2021.experiment1 import sampler_columns
from studies.atiya2021.problems import EXPERIMENT2, two_class_data
from studies.common.rows import Line
from studies.common.seeds import generator


@lru_cache(maxsize=1)
def data_set(problem: int, path: str) -> tuple[Prior, np.ndarray, LinearKernelTruth]:
    """Return covariances, labels and truth of the data set of a problem that has this seed."""
    x, y, x_star = two_class_data(EXPERIMENT2[problem], generator(path))
    truth = linear_kernel_truth(x, y, x_star)
    return prior(linear(), x[:, None], x_star[:, None]), y, truth


def classification_run(
    problem: int, data: str, samples: int, seed: str, *, count: Count, scheme: Scheme
) -> tuple[Line, float]:
    """Run the sampler on one data set.

    Parameters
    ----------
    problem : {1, 2, 3, 4}
        Problem of section 6.2.
    data, seed : str
        Seeds of the data set and of the run.
    samples : int
        M.
    count, scheme : str
        Options of the sampler.

    Returns
    -------
    line : dict
        What `sampler_columns` says, and ``mae``, the mean absolute error of class probabilities (Eq. 67).
    seconds : float
        CPU seconds of the sampler.
    """
    gp, y, truth = data_set(problem, data)
    cov, cross = orthant_covariance(gp.K, y), y[:, None] * gp.K_star
    options = {"count": count, "scheme": scheme}
    start = time.process_time()
    estimate, probability, _ = orthant_ratio(
        cov,
        cross,
        1.0 + gp.k_star_star,
        samples=samples,
        count=count,
        scheme=scheme,
        runs=None,
        rng=generator(seed),
    )
    seconds = time.process_time() - start
    line = {"dimension": len(y), "test_patterns": len(probability)}
    line |= sampler_columns(seed, truth.log_evidence, estimate, options)
    return line | {"mae": float(np.mean(np.abs(probability - truth.probability)))}, seconds
