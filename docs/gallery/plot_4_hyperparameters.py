"""
Hyperparameters: maximise, or integrate
=======================================

The classifier maximises a marginal likelihood over the kernel's hyperparameters. ``pseudo-marginal`` draws them from
their posterior instead, and averages the predictions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.gaussian_process.kernels import RBF

from gpcmc import GaussianProcessClassifier
from gpcmc.inference import Laplace, PseudoMarginal

X, y = make_moons(40, noise=0.35, random_state=2)
X = (X - X.mean(axis=0)) / X.std(axis=0)
kernel = 1.0 * RBF(1.0)

# %%
# The marginal likelihood as a surface, and its maximum. Both axes are logarithms, the order is that of
# ``kernel_.theta``: variance, length scale.

fitted = GaussianProcessClassifier(kernel, inference="laplace").fit(X, y)
variances, lengths = np.linspace(-2, 7, 12), np.linspace(-2, 3, 12)
surface = [[fitted.log_marginal_likelihood([v, s]) for v in variances] for s in lengths]
print(fitted.kernel_, fitted.at_bound_)

# %%
# Markov chains over the same two logarithms. Each step estimates the marginal likelihood without bias, by importance
# sampling from Laplace's Gaussian; the chain is exact all the same.

options = PseudoMarginal(
    method="laplace",
    samples=16,
    iterations=2000,
    burn_in=400,
    chains=4,
    draws=20,
    predictor=Laplace(),
)
averaged = GaussianProcessClassifier(kernel, inference=options, random_state=0).fit(X, y)
chains = averaged.posterior_.chains
print(chains.status, {name: round(value, 2) for name, value in chains.diagnostics.items()})

# %%

figure, axes = plt.subplots()
levels = np.max(surface) - np.arange(10, -0.5, -1)
lines = axes.contour(variances, lengths, surface, levels=levels, cmap="viridis")
figure.colorbar(lines, label="log marginal likelihood (Laplace), nats")
axes.plot(*chains.theta.reshape(-1, 2).T, ".", color="grey", markersize=3, label="posterior draws")
axes.plot(*fitted.kernel_.theta, "r*", markersize=12, label="maximum")
axes.set(xlabel="log variance", ylabel="log length scale", xlim=(-2, 7), ylim=(-2, 3))
axes.legend()

# %%
# Averaged predictions are less sure of themselves.

where = np.array([[-1.0, 1.0], [0.0, 0.0], [1.5, -0.5]])
print(
    np.column_stack([fitted.predict_proba(where)[:, 1], averaged.predict_proba(where)[:, 1]]).round(
        3
    )
)
