"""GPy: expectation propagation and Laplace's method with the probit likelihood."""

import GPy
from work import run


def method(inference):
    def fit(given):
        X, y = given["X"], (given["y"] > 0).astype(float)[:, None]
        kernel = GPy.kern.RBF(X.shape[1], given["beta"], given["alpha"] / 2**0.5)
        found = GPy.core.GP(X, y, kernel, GPy.likelihoods.Bernoulli(), inference_method=inference())
        return float(found.log_likelihood()), found.predict(given["X_star"])[0][:, 0], {}

    return fit


run(
    {
        "EP": method(GPy.inference.latent_function_inference.EP),
        "Laplace": method(GPy.inference.latent_function_inference.Laplace),
    }
)
