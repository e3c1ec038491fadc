"""The certified truths: a closed form of Experiments 1 to 3 against the adapted orthant sampler."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpcmc.covariance.kernels import linear
from gpcmc.covariance.prior import prior
from gpcmc.methods import Inference
from gpcmc.orthant.method import Orthant
from gpcmc.orthant.sampler import orthant_probability
from gpcmc.orthant.truths import linear_kernel_truth, one_factor_log_probability
from studies.atiya2021.problems import EXPERIMENT2, one_factor, two_class_data
from studies.atiya2021.reference.certify import (
    CERTIFIED,
    CERTIFIER,
    LEVEL,
    UNCERTIFIED,
    Array,
    Plan,
    certifier_columns,
    differences,
    largest_of,
    sized,
)
from studies.atiya2021.runs import infer
from studies.common.rows import Line
from studies.common.seeds import generator, seed


def certified_orthant(dimension: int, path: str, together: int, plan: Plan | None = None) -> Line:
    """Compare the closed form of a problem of Experiment 1 with the adapted orthant sampler.

    The bounds are Sidak's for so many truths together, and within one for all its test probabilities: all right
    truths pass with a probability of at least 0.9946.

    Parameters
    ----------
    dimension : int
    path : str
        Seed of the problem.
    together : int
        Truths that are certified together.
    plan : Plan, optional

    Returns
    -------
    dict
        Both values, their differences and the bounds of these, and a ``verdict``.
    """
    d = one_factor(path, dimension)
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)

    def run(samples: int, *, rng: np.random.Generator) -> Inference:
        found = orthant_probability(cov, samples=samples, scheme="adapted", rng=rng)
        work = {"samples": found.samples, "populations": found.populations}
        none = np.empty(0)
        return Inference(found.log_probability, found.formula_error, none, none, work)

    truth = _exact(one_factor_log_probability(d), np.empty(0))
    return _certified(truth, run, path, together, plan or Plan())


def certified_classes(number: int, path: str, together: int, plan: Plan | None = None) -> Line:
    """Compare the closed form of a data set of Experiment 2 with the sampler, as `certified_orthant` does.

    Experiment 3 is Problem 3 of Experiment 2.
    """
    x, y, x_star = two_class_data(EXPERIMENT2[number], generator(path))
    exact = linear_kernel_truth(x, y, x_star)
    truth = _exact(exact.log_evidence, exact.probability)
    gp = prior(linear(), x[:, None], x_star[:, None])

    def run(samples: int, *, rng: np.random.Generator) -> Inference:
        return infer(Orthant(samples=samples, scheme="adapted"), gp, y, rng=rng)

    return _certified(truth, run, path, together, plan or Plan())


def _certified(
    truth: Inference, run: Callable[..., Inference], path: str, together: int, plan: Plan
) -> Line:
    """A truth beside the sampler with as many samples as its errors ask for."""
    pilot = run(plan.pilot, rng=generator(seed(path, "pilot")))
    found = sized(run, pilot, path, plan.pilot, plan.max_samples)
    z, max_z = differences(truth, found)
    everyone = -float(np.expm1(np.log1p(-LEVEL) / together))
    limit, threshold = largest_of(1, everyone), largest_of(len(truth.probability), everyone)
    line: Line = {
        "truth": truth.log_evidence,
        "test_patterns": len(truth.probability),
        "certifier": "adapted orthant",
        **certifier_columns(found),
        "z": z,
        "max_z": max_z,
        "z_threshold": limit,
        "max_z_threshold": threshold,
    }
    small = line["certifier_se"] < CERTIFIER.evidence
    small &= line["certifier_max_probability_se"] < CERTIFIER.probability
    agrees = abs(z) < limit and max_z < threshold
    return line | {"verdict": CERTIFIED if small and agrees else UNCERTIFIED}


def _exact(log_evidence: float, probability: Array) -> Inference:
    return Inference(log_evidence, 0.0, probability, np.zeros_like(probability), {})
