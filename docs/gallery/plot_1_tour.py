"""
A five-minute tour
==================

Fit a classifier, look at its probabilities, and ask how far they are from exact ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import cross_val_score

from gpcmc import GaussianProcessClassifier, orthant_probability
from gpcmc.gp import orthant_covariance
from gpcmc.inference import Twisted

# %%
# Fit
# ---
# By default the classifier maximises expectation propagation's marginal likelihood over the kernel's hyperparameters,
# and predicts by expectation propagation. That is deterministic: it needs no seed.

X, y = make_moons(80, noise=0.3, random_state=0)
kernel = 1.0 * RBF(1.0)
classifier = GaussianProcessClassifier(kernel).fit(X, y)
print(classifier.kernel_)
print(f"log marginal likelihood {classifier.log_marginal_likelihood_:.2f} nats")

# %%
# It is a scikit-learn estimator, and works in pipelines and searches.

print(f"accuracy {cross_val_score(classifier, X, y, cv=3).mean():.2f}")

# %%
# Look
# ----

horizontal, vertical = np.meshgrid(np.linspace(-2, 3, 30), np.linspace(-1.5, 2, 25))
grid = np.column_stack([horizontal.ravel(), vertical.ravel()])
probability = classifier.predict_proba(grid)[:, 1]

figure, axes = plt.subplots()
shades = axes.contourf(
    horizontal,
    vertical,
    probability.reshape(horizontal.shape),
    levels=np.linspace(0, 1, 11),
    cmap="RdBu_r",
)
figure.colorbar(shades, label="probability of class 1")
axes.scatter(*X.T, c=y, cmap="RdBu_r", edgecolors="black")
axes.set(xlabel="$x_1$", ylabel="$x_2$", title="Expectation propagation")

# %%
# Check
# -----
# Expectation propagation is an approximation. The sampler ``twisted-ep`` is unbiased, and tells its own error. Keep the
# kernel that was found, and estimate the same quantities without the approximation.

exact = GaussianProcessClassifier(
    classifier.kernel_, inference=Twisted(points=256), optimizer=None, random_state=0
).fit(X, y)
print(f"expectation propagation {classifier.log_marginal_likelihood_:.4f}")
print(
    f"twisted-ep              {exact.log_marginal_likelihood_:.4f} ({exact.log_marginal_likelihood_se_:.4f})"
)

difference = probability - exact.predict_proba(grid)[:, 1]
print(f"largest difference of a probability {np.abs(difference).max():.4f}")
assert np.abs(difference).max() < 0.05

# %%

figure, axes = plt.subplots()
shades = axes.contourf(horizontal, vertical, difference.reshape(horizontal.shape), cmap="PuOr")
figure.colorbar(shades, label="expectation propagation minus exact")
axes.scatter(*X.T, c=y, cmap="RdBu_r", edgecolors="black")
axes.set(xlabel="$x_1$", ylabel="$x_2$", title="What the approximation gets wrong")

# %%
# Orthants
# --------
# The marginal likelihood is the probability that a Gaussian vector with one entry a pattern has no negative entry. The
# sampler of such probabilities can be used alone.

cov = orthant_covariance(classifier.kernel_(X), np.where(y == 1, 1.0, -1.0))
estimate = orthant_probability(cov, samples=5000, scheme="adapted", rng=np.random.default_rng(0))
print(f"P(v >= 0): its logarithm is {estimate.log_probability:.3f} ({estimate.standard_error:.3f})")
