"""The evidence of ordered classes as a function of the kernel's hyperparameters and of the edges between classes.

The edges are searched for as the lowest of them and the logarithms of the gaps: whatever these are, the edges rise.
The parameters of a search are the kernel's theta and then these. As the evidence of expectation propagation is flat in
its sites, its gradient in an edge is that of the normalisers alone, with the cavities held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.covariance import Prior
from gpcmc.covariance.kernels import diagonal
from gpcmc.evidence.forms import Climbed, Form, dense
from gpcmc.evidence.scale import scaled_starts
from gpcmc.evidence.surface import Surface
from gpcmc.gaussian.ep import ExpectationPropagation, cavities
from gpcmc.likelihood import Ordinal

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

# Of the lowest edge, and of the logarithms of gaps: in units of the noise.
_LOWEST, _GAP = (-300.0, 300.0), (-9.0, 6.0)


@dataclass(frozen=True, slots=True)
class EdgedKernel:
    """A kernel and edges, with scikit-learn's names of what a search needs.

    Attributes
    ----------
    kernel : Kernel
    edges : (C - 1,) array
    """

    kernel: Kernel
    edges: FloatArray

    @property
    def theta(self) -> FloatArray:
        """The kernel's, the lowest edge, and the logarithms of the gaps."""
        return np.concatenate([self.kernel.theta, self.edges[:1], np.log(np.diff(self.edges))])

    @property
    def bounds(self) -> FloatArray:
        """Of `theta` (p, 2)."""
        own = np.array([_LOWEST] + [_GAP] * (len(self.edges) - 1))
        return np.vstack([self.kernel.bounds, own]) if len(self.kernel.theta) else own

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The kernel's, and the edges."""
        from sklearn.gaussian_process.kernels import Hyperparameter

        count = len(self.edges)
        own = Hyperparameter("edges", "numeric", np.array([_LOWEST] * count), count)
        return [*self.kernel.hyperparameters, own]

    def clone_with_theta(self, theta: FloatArray) -> EdgedKernel:
        """Return the same at another theta."""
        p = len(self.kernel.theta)
        own = theta[p:]
        edges = own[0] + np.concatenate([[0.0], np.cumsum(np.exp(own[1:]))])
        return EdgedKernel(self.kernel.clone_with_theta(theta[:p]), edges)

    def on(self, method: Any) -> ExpectationPropagation:
        """Return a method with these edges."""
        assert isinstance(method, ExpectationPropagation)
        return replace(method, likelihood=Ordinal(tuple(self.edges)))

    def chained(self, slopes: FloatArray) -> FloatArray:
        """Return derivatives in the edges (C - 1,) as those in the lowest one and in the logarithms of the gaps."""
        behind = np.cumsum(slopes[::-1])[::-1]
        return np.concatenate([behind[:1], np.diff(self.edges) * behind[1:]])

    def __repr__(self) -> str:
        return f"{self.kernel}, edges {np.array2string(self.edges, precision=3)}"


@dataclass(slots=True)
class EdgedSurface(Surface):
    """The surface of an `EdgedKernel`: the method is expectation propagation, and labels are numbers of classes."""

    def __post_init__(self) -> None:
        if self.form is None:
            self.form = _of_kernel(dense(self.kernel.kernel, self.X), self.kernel)

    @one_thread()
    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z (nats) and its gradient (p,) at theta; see `Surface`."""
        covariance, posterior = self._approximate(theta)
        M = posterior.method.gradient(covariance, self.y, posterior)
        m, cavity = cavities(posterior.conditioned, posterior.a, posterior.mean)
        slopes = posterior.likelihood.edge_slopes(self.y, m, cavity)
        own = self.kernel.clone_with_theta(theta).chained(slopes)
        return posterior.log_evidence, np.concatenate([covariance.contract(M), own])

    def _approximate(self, theta: FloatArray) -> Any:
        self.method = self.kernel.clone_with_theta(theta).on(self.method)
        return Surface._approximate(self, theta)


@dataclass(frozen=True, slots=True)
class EdgedForm(Form):
    """A form of the kernel's covariance, for kernels with edges.

    Attributes
    ----------
    form : Form
    """

    form: Form

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the form."""
        return self.form.name

    @property
    def held(self) -> bool:
        """As of the form."""
        return self.form.held

    def prior(self, kernel: Any, X: Any) -> Prior:
        """Return that of the kernel."""
        return self.form.prior(kernel.kernel, X)

    def around(self, kernel: Any, X: Any, y: FloatArray, method: Any) -> Climbed:
        """Return what makes the covariances of a climb."""
        return _of_kernel(self.form.around(kernel.kernel, X, y, kernel.on(method)), kernel)

    def near(self, kernel: Any, X: Any) -> Climbed:
        """Return what makes covariances near the kernel."""
        return _of_kernel(self.form.near(kernel.kernel, X), kernel)


def _of_kernel(climbed: Climbed, kernel: EdgedKernel) -> Climbed:
    """Return what makes covariances from the kernel's part of theta."""
    p = len(kernel.kernel.theta)
    return lambda theta: climbed(theta[:p])


def edges_of_shares(kernel: Kernel, X: Any, shares: FloatArray) -> FloatArray:
    """Return the edges (C - 1,) at which the prior has these shares of the classes (C,)."""
    below = np.cumsum(shares)[:-1]
    deviation = float(np.sqrt(1.0 + np.mean(diagonal(kernel, X))))
    edges: FloatArray = deviation * ndtri(np.clip(below, 1e-12, 1.0 - 1e-12))
    return edges


def scaled_with_edges(shares: FloatArray, kernel: EdgedKernel, X: Any) -> list[FloatArray]:
    """Return the starts of `scaled_starts`, each with the edges of the shares."""
    found = []
    for theta in scaled_starts(kernel.kernel, X):
        own = kernel.kernel.clone_with_theta(theta)
        found.append(EdgedKernel(own, edges_of_shares(own, X, shares)).theta)
    return found
