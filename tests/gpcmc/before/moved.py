"""Quantities that moved on purpose when the parts became one engine, with the reason of each.

A row is listed by patterns of its problem and its quantity. What is listed may differ; everything else must not.
"""

import re

MOVED = [
    (r"low rank, .*", r".*: probability", "probabilities of low rank are corrected"),
    (r"several classes", r".*low rank: probability", "probabilities of low rank are corrected"),
    (
        r"classifier, n = 600, low-rank",
        r".*: probability",
        "probabilities of low rank are corrected",
    ),
    (r"low rank, ard, n = 300", r".*: status", 'the status "covariance too rough" is told'),
    (r"refused arguments", r".*: rng a seed", "a seed is accepted as rng"),
    (r"refused rectangles", r"orthant: rng", "a seed is accepted as rng"),
    (r"refused low rank", r".* has no form|Sobol' points", "every method takes every form"),
    (r"refused by the classifier", r"two numbers of restarts|surface unknown", "one name is left"),
    (
        r"rectangle, thin, n = 12",
        r"twisted-ep: log probability|guaranteed interval holds it",
        "sharp sites lost digits: off by .003, with an error of 5e-5; now by 1e-9",
    ),
    (
        r"gradient, smooth",
        r"ep, dense, 0: gradient",
        "2.8e-8 apart: both stopped at a tolerance of 1e-8",
    ),
    (r"search, ard, .*", r"theta|at a bound", "another place of a flat surface, the same evidence"),
]


def reason(problem, quantity):
    """Why a row may differ, or None."""
    for problems, quantities, why in MOVED:
        if re.fullmatch(problems, problem) and re.fullmatch(quantities, quantity):
            return why
    return None
