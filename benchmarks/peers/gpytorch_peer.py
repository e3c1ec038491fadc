"""GPyTorch: the sparse variational method with the probit, of patterns of heldout.py, all of which are in each step.

As GPflow's in gpflow_peer.py: inducing inputs are k-means of the patterns, and steps of the natural gradient and of
Adam take turns. It is in BoTorch's environment, which needs it.
"""

import gpytorch
import numpy as np
import torch
from gpytorch.variational import NaturalVariationalDistribution, VariationalStrategy
from scipy.cluster.vq import kmeans2
from work import INDUCING, RATE, ascended, classify, gamma

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, inducing, kernel):
        posterior = NaturalVariationalDistribution(len(inducing))
        super().__init__(
            VariationalStrategy(self, inducing, posterior, learn_inducing_locations=False)
        )
        self.mean, self.kernel = gpytorch.means.ZeroMean(), kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


def classifier(given):
    torch.manual_seed(0)
    X, labels = torch.from_numpy(given["X"]), torch.from_numpy((given["y"] > 0).astype(float))
    start, n = torch.from_numpy(np.atleast_1d(given["length_scale"])), len(X)
    positive = gpytorch.constraints.Positive(torch.exp, torch.log)
    each = len(start) if given["length_scale"].ndim else None
    rbf = gpytorch.kernels.RBFKernel(ard_num_dims=each, lengthscale_constraint=positive)
    kernel = gpytorch.kernels.ScaleKernel(rbf, outputscale_constraint=positive)
    rbf.lengthscale, kernel.outputscale = start, 1.0
    inducing = kmeans2(given["X"], min(INDUCING, n), minit="points", rng=0)[0]
    model = Sparse(torch.from_numpy(inducing), kernel)
    likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, n)
    natural = gpytorch.optim.NGD(model.variational_parameters(), num_data=n, lr=gamma(0))
    adam = torch.optim.Adam(kernel.parameters(), lr=RATE)
    model.train()

    def step(k):
        for group in natural.param_groups:
            group["lr"] = gamma(k)
        natural.zero_grad()
        adam.zero_grad()
        loss = -bound(model(X), labels)
        loss.backward()
        natural.step()
        adam.step()
        return -n * loss.item()

    status = ascended(step)
    with torch.no_grad():
        reached = n * bound(model(X), labels).item()
        model.eval()
        found = likelihood(model(torch.from_numpy(given["X_star"])))
    return {
        "status": status,
        "probability": found.mean.numpy(),
        "log_evidence": reached,
        "variance": kernel.outputscale.item(),
        "length_scale": float(rbf.lengthscale.detach().median()),
    }


classify({"variational": classifier}, gpytorch.__version__)
