"""GPBoost: Laplace's method with the probit, on one thread, of a field with Vecchia's approximation, or fully.

The third argument is its ``gp_approx``: ``vecchia``, or ``full_scale_vecchia``, which has 200 inducing inputs in front.
Its defaults: 20 neighbours (40 for predictions), a random order, and an optimizer that starts where GPBoost finds it
best. But linear algebra is by Cholesky factors. The default, iterative, took longer on one thread, and has noise: its
evidence of the rough field was 1.5 nats off. The Gaussian covariance is exp(-(d / range)^2).

With ``fitted`` in front of the file, patterns of heldout.py are classified: without an approximation of the covariance,
and from the start that all packages have. Its hyperparameters have no bounds.
"""

import sys

import gpboost
import numpy as np
from work import classify, field


def model(given, kind, approximation):
    return gpboost.GPModel(
        gp_coords=given["X"],
        cov_function=kind,
        likelihood="bernoulli_probit",
        gp_approx=approximation,
        matrix_inversion_method="cholesky",
        num_parallel_threads=1,
    )


def searched_for(model, given, scale, start=None):
    """A row of the fitted model; `scale` is its range over our length scale."""
    model.fit(y=(given["y"] > 0).astype(float), params=start)
    variance, *length_scales = np.ravel(model.get_cov_pars())
    found = model.predict(gp_coords_pred=given["X_star"], predict_response=True)
    return {
        "probability": found["mu"],
        "log_evidence": -model.get_current_neg_log_likelihood(),
        "variance": variance,
        "length_scale": np.median(length_scales) / scale,
    }


def fit(given, searched):
    gaussian = str(given["kind"]) == "gaussian"
    scale = np.sqrt(2.0) if gaussian else 1.0
    of_field = model(given, str(given["kind"]), sys.argv[3])
    if searched:
        return searched_for(of_field, given, scale)
    known = np.array([given["variance"], scale * given["length_scale"]])
    labels = (given["y"] > 0).astype(float)
    evidence = -of_field.neg_log_likelihood(cov_pars=known, y=labels)
    found = of_field.predict(
        gp_coords_pred=given["X_star"], cov_pars=known, y=labels, predict_response=True
    )
    return {
        "probability": found["mu"],
        "log_evidence": evidence,
        "variance": given["variance"],
        "length_scale": given["length_scale"],
    }


def classifier(given):
    kind = "gaussian_ard" if given["length_scale"].ndim else "gaussian"
    start = np.append(1.0, np.sqrt(2.0) * given["length_scale"])
    whole = model(given, kind, "none")
    return searched_for(whole, given, np.sqrt(2.0), {"init_cov_pars": start})


if sys.argv[1] == "fitted":
    classify({"Laplace": classifier}, gpboost.__version__)
else:
    field(fit, gpboost.__version__)
