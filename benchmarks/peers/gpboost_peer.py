"""GPBoost: Vecchia's approximation of a field, and Laplace's method with the probit, on one thread.

The third argument is its ``gp_approx``: ``vecchia``, or ``full_scale_vecchia``, which has 200 inducing inputs in front.
Its defaults: 20 neighbours (40 for predictions), a random order, and an optimizer that starts where GPBoost finds it
best. But linear algebra is by Cholesky factors. The default, iterative, took longer on one thread, and has noise: its
evidence of the rough field was 1.5 nats off. The Gaussian covariance is exp(-(d / range)^2).
"""

import sys

import gpboost
import numpy as np
from work import field


def fit(given, searched):
    gaussian = str(given["kind"]) == "gaussian"
    scale = np.sqrt(2.0) if gaussian else 1.0
    labels = (given["y"] > 0).astype(float)
    model = gpboost.GPModel(
        gp_coords=given["X"],
        cov_function=str(given["kind"]),
        likelihood="bernoulli_probit",
        gp_approx=sys.argv[3],
        matrix_inversion_method="cholesky",
        num_parallel_threads=1,
    )
    if searched:
        model.fit(y=labels)
        variance, length = np.ravel(model.get_cov_pars())[:2]
        evidence = -model.get_current_neg_log_likelihood()
        found = model.predict(gp_coords_pred=given["X_star"], predict_response=True)
    else:
        variance, length = given["variance"], scale * given["length_scale"]
        known = np.array([variance, length])
        evidence = -model.neg_log_likelihood(cov_pars=known, y=labels)
        found = model.predict(
            gp_coords_pred=given["X_star"], cov_pars=known, y=labels, predict_response=True
        )
    return {
        "probability": found["mu"],
        "log_evidence": evidence,
        "variance": variance,
        "length_scale": length / scale,
    }


field(fit, gpboost.__version__)
