"""This library: methods at known hyperparameters, or with ``fitted`` in front of the file, its classifier."""

import sys
from importlib.metadata import version

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from work import classify, run

from gpcmc import GaussianProcessClassifier
from gpcmc.gp import Prior
from gpcmc.inference import METHODS, infer


def method(name, **options):
    def fit(given):
        prior = Prior(given["K"], given["K_star"], given["k_star_star"])
        found = infer(METHODS[name](**options), prior, given["y"], rng=np.random.default_rng(0))
        said = {"status": found.status, "standard_error": found.log_evidence_se or None}
        return found.log_evidence, found.probability, said

    return fit


def fitted(given):
    kernel = ConstantKernel(1.0, given["variance_bounds"])
    kernel = kernel * RBF(given["length_scale"], given["length_scale_bounds"])
    found = GaussianProcessClassifier(kernel).fit(given["X"], given["y"])
    return {
        "status": found.status_,
        "probability": found.predict_proba(given["X_star"])[:, 1],
        "log_evidence": found.log_marginal_likelihood_,
        "variance": found.kernel_.k1.constant_value,
        "length_scale": np.median(found.kernel_.k2.length_scale),
    }


if sys.argv[1] == "fitted":
    classify({"EP": fitted}, version("gpcmc"))
else:
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
