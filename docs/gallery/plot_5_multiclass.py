"""
Three classes
=============

By default each class is fitted against the rest, with a kernel of its own. Laplace's method fits all classes at once,
with one kernel and the softmax likelihood.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.gaussian_process.kernels import RBF

from gpcmc import GaussianProcessClassifier

X, y = make_blobs(60, centers=[(-2, 0), (2, 0), (0, 2.5)], cluster_std=1.2, random_state=0)
kernel = 1.0 * RBF(2.0)
softmax = GaussianProcessClassifier(kernel, inference="laplace").fit(X, y)
print(softmax.kernel_)
print(f"log marginal likelihood {softmax.log_marginal_likelihood_:.2f}")

# %%
# The default: one problem a class, by expectation propagation.

rest = GaussianProcessClassifier(kernel).fit(X, y)
print(rest.kernel_)
points = np.array([(-2.0, 0.0), (0.0, 0.8), (0.0, 5.0)])
print(softmax.predict_proba(points).round(2))
print(rest.predict_proba(points).round(2))
np.testing.assert_allclose(softmax.predict_proba(points).sum(axis=1), 1)

# %%

horizontal, vertical = np.meshgrid(np.linspace(-5, 5, 40), np.linspace(-3, 5.5, 40))
grid = np.column_stack([horizontal.ravel(), vertical.ravel()])
image = softmax.predict_proba(grid).reshape(*horizontal.shape, 3)
figure, axes = plt.subplots()
axes.imshow(image, origin="lower", extent=(-5, 5, -3, 5.5), aspect="auto")
for label, marker in enumerate("os^"):
    axes.scatter(*X[y == label].T, marker=marker, edgecolors="white", color=np.eye(3)[label])
axes.set(
    xlabel="$x_1$", ylabel="$x_2$", title="Probabilities of three classes as red, green and blue"
)
