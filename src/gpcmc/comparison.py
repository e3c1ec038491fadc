"""Kernels compared by their marginal likelihoods, with Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from gpcmc._settings import Optimizer, generator_of
from gpcmc._validation import FloatArray
from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.inference import Method


@dataclass(frozen=True, slots=True)
class Comparison:
    """Log Bayes factors of kernels against the best of them.

    Each log evidence is an integral over the latent function, and, unless ``optimizer=None``, a maximum over the
    hyperparameters that are not fixed. A maximum favours a kernel with more of them: each that is well determined is
    worth a few nats. Priors over the hyperparameters do not enter.

    Attributes
    ----------
    names : tuple of str
    kernels : tuple of Kernel
        With the hyperparameters used.
    maximized : (m,) array of int
        Hyperparameters over which each was maximised.
    log_evidence, standard_error : (m,) array
        In nats; the error is Monte Carlo's alone.
    log_bayes_factor, log_bayes_factor_se : (m,) array
        Against the best one, which has zeros: log evidence minus its, <= 0, and the error of the difference.
    status : tuple of str
        Of each run; only "ok" can be compared.
    """

    names: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    maximized: np.ndarray
    log_evidence: FloatArray
    standard_error: FloatArray
    log_bayes_factor: FloatArray
    log_bayes_factor_se: FloatArray
    status: tuple[str, ...]

    def __str__(self) -> str:
        """Return a line a kernel, the best one first, and what the numbers are."""
        width = max(map(len, self.names))
        lines = [
            f"{'kernel':{width}}  log evidence (se)      log Bayes factor (se)  maximised  status"
        ]
        for k in np.argsort(-self.log_evidence, kind="stable"):
            lines.append(
                f"{self.names[k]:{width}}  {self.log_evidence[k]:12.3f} ({self.standard_error[k]:.3f})  "
                f"{self.log_bayes_factor[k]:14.3f} ({self.log_bayes_factor_se[k]:.3f})  {self.maximized[k]:9d}  "
                f"{self.status[k]}"
            )
        if self.maximized.any():
            lines.append(
                "Integrated over the latent function; maximised over the hyperparameters, which favours kernels with "
                "more of them."
            )
        return "\n".join(lines)


def compare(
    kernels: Mapping[str, Kernel] | Sequence[Kernel],
    X: ArrayLike,
    y: ArrayLike,
    *,
    inference: str | Method = "twisted-ep",
    optimizer: str | Optimizer | None = "lbfgs",
    n_restarts: int = 0,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Comparison:
    """Return log Bayes factors of kernels on the same labels, with their errors.

    Parameters
    ----------
    kernels : mapping of str to Kernel, or sequence of Kernel
        At least two.
    X : (n, d) array
    y : (n,) array
        Labels of two classes; of more only with ``inference="laplace"``, whose softmax is one model of all.
    inference, optimizer, n_restarts, random_state
        As of `GaussianProcessClassifier`. By default the evidence is unbiased, at the maximum of expectation
        propagation's. ``optimizer=None`` compares the kernels as they are.

    Raises
    ------
    ValueError
        If there are fewer than two kernels, the method gives no marginal likelihood, or one against the rest would.

    Warns
    -----
    ConvergenceWarning
        As `GaussianProcessClassifier.fit`, for each kernel.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> from gpcmc import compare
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> found = compare({"RBF": 4.0 * RBF(0.8), "linear": DotProduct(1.0)}, X, y, optimizer=None, random_state=0)
    >>> bool(found.log_bayes_factor[1] < -2), found.status
    (True, ('ok', 'ok'))
    """
    named = _named(kernels)
    models: list[Any] = []
    for kernel, rng in zip(
        named.values(), generator_of(random_state).spawn(len(named)), strict=True
    ):
        model = GaussianProcessClassifier(kernel, inference, optimizer, n_restarts, rng).fit(X, y)
        if model.n_classes_ > 2 and len(model._fits) > 1:
            raise ValueError(
                f"y has {model.n_classes_} classes, and one against the rest is no model of all of them: "
                "use inference='laplace'"
            )
        if model.posterior_.log_evidence is None:
            raise ValueError(f"inference={inference!r} gives no marginal likelihood to compare")
        models.append(model)
    value = np.array([model.log_marginal_likelihood_ for model in models])
    error = np.array([model.log_marginal_likelihood_se_ for model in models])
    best = int(value.argmax())
    return Comparison(
        names=tuple(named),
        kernels=tuple(model.kernel_ for model in models),
        maximized=np.array([k.n_dims if optimizer is not None else 0 for k in named.values()]),
        log_evidence=value,
        standard_error=error,
        log_bayes_factor=value - value[best],
        log_bayes_factor_se=np.where(
            np.arange(len(value)) == best, 0.0, np.hypot(error, error[best])
        ),
        status=tuple(model.status_ for model in models),
    )


def _named(kernels: Any) -> dict[str, Kernel]:
    """Return kernels by name."""
    if isinstance(kernels, Mapping):
        named = {str(name): one for name, one in kernels.items()}
    elif isinstance(kernels, Sequence):
        named = {str(one): one for one in kernels}
    else:
        named = {}
    if len(named) < 2 or not all(isinstance(one, Kernel) for one in named.values()):
        raise ValueError(
            f"kernels must be at least two different kernels, by name or in a list; got {kernels!r}"
        )
    return named
