"""scikit-learn: Laplace's method with the logistic likelihood.

Of a problem of `run.py` the covariance is scaled to bring that near the probit. With ``fitted`` in front of the file,
its classifier is fitted.
"""

import sys

import numpy as np
import sklearn
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from work import classify, run

#: The logistic function of 1.702 f is within 0.01 of the normal distribution function of f.
SCALE = 1.702**2
NAME = "Laplace, logistic"


def laplace(given):
    kernel = ConstantKernel(SCALE * given["beta"]) * RBF(given["alpha"] / 2**0.5)
    found = GaussianProcessClassifier(kernel, optimizer=None).fit(given["X"], given["y"])
    return found.log_marginal_likelihood_value_, found.predict_proba(given["X_star"])[:, 1], {}


def fit(given):
    kernel = ConstantKernel(1.0, given["variance_bounds"])
    kernel = kernel * RBF(given["length_scale"], given["length_scale_bounds"])
    found = GaussianProcessClassifier(kernel).fit(given["X"], given["y"])
    return {
        "probability": found.predict_proba(given["X_star"])[:, 1],
        "log_evidence": found.log_marginal_likelihood_value_,
        "variance": found.kernel_.k1.constant_value,
        "length_scale": np.median(found.kernel_.k2.length_scale),
    }


if sys.argv[1] == "fitted":
    classify({NAME: fit}, sklearn.__version__)
else:
    run({NAME: laplace})
