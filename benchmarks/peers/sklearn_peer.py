"""scikit-learn: Laplace's method with the logistic likelihood, its covariance scaled to bring that near the probit."""

from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from work import run

#: The logistic function of 1.702 f is within 0.01 of the normal distribution function of f.
SCALE = 1.702**2


def laplace(given):
    kernel = ConstantKernel(SCALE * given["beta"]) * RBF(given["alpha"] / 2**0.5)
    found = GaussianProcessClassifier(kernel, optimizer=None).fit(given["X"], given["y"])
    return found.log_marginal_likelihood_value_, found.predict_proba(given["X_star"])[:, 1], {}


run({"Laplace, logistic": laplace})
