"""GPy: a fitted model of benchmarks/fit.py, in GPy's own environment. Arguments: method, N, number of length scales.

GPy's optimizer is L-BFGS-B, with hyperparameters that are positive and have no other bounds. Its expectation
propagation has two modes. "alternated", the default, holds the sites while the optimizer climbs; GPy's documentation
says to repeat that, and five times is what its examples do. "nested" finds the sites anew at each evaluation.
"""

import json
import sys
import warnings

import GPy
import numpy as np
from fitting import counted, patterns, repeated

EP, LAPLACE = (
    GPy.inference.latent_function_inference.EP,
    (GPy.inference.latent_function_inference.Laplace),
)
#: The inference, and how often the optimizer starts.
METHODS = {
    "Laplace, probit": (LAPLACE, 1),
    "EP, probit, alternated": (EP, 5),
    "EP, probit, nested": (lambda: EP(ep_mode="nested"), 1),
}


def fits(method, length_scales):
    """A function of patterns that fits a model."""
    (inference, rounds), counts = METHODS[method], [0]
    counted(GPy.core.GP, "_objective_grads", counts)

    def fit(X, y):
        counts[0] = 0
        np.random.seed(0)  # noqa: NPY002 - GPy visits the sites in an order that it draws
        kernel = GPy.kern.RBF(X.shape[1], 1.0, np.ones(length_scales), ARD=length_scales > 1)
        model = GPy.core.GP(
            X,
            y[:, None].astype(float),
            kernel,
            GPy.likelihoods.Bernoulli(),
            inference_method=inference(),
        )
        for _ in range(rounds):
            model.optimize()
        return {"log_evidence": float(model.log_likelihood()), "evaluations": int(counts[0])}

    return fit


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    method, n, length_scales = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps(repeated(fits(method, length_scales), *patterns(n))))
