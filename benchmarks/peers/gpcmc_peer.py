"""This library."""

import numpy as np
from work import run

from gpcmc.gp import Prior
from gpcmc.inference import METHODS, infer


def method(name, **options):
    def fit(given):
        prior = Prior(given["K"], given["K_star"], given["k_star_star"])
        found = infer(METHODS[name](**options), prior, given["y"], rng=np.random.default_rng(0))
        said = {"status": found.status, "standard_error": found.log_evidence_se or None}
        return found.log_evidence, found.probability, said

    return fit


run(
    {
        "EP": method("ep"),
        "Laplace": method("laplace"),
        "twisted EP, 64 points": method("twisted-ep", points=64),
        "twisted EP, 512 points": method("twisted-ep", points=512),
        "minimax tilting, 64 points": method("minimax-tilting", points=64),
        "orthant, 10000 samples": method("orthant", samples=10_000),
    }
)
