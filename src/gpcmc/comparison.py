"""Kernels compared by their marginal likelihoods, with Monte Carlo errors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from gpcmc._arguments import method_of, uses_softmax
from gpcmc._validation import FloatArray, check_rng
from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.evidence import Optimizer
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
    log_evidence : (m,) array
        In nats.
    standard_error : (m,) array
        Its Monte Carlo error alone: zeros where the method approximates, of whose error they say nothing.
    log_bayes_factor : (m,) array
        Against the best one, which has a zero: log evidence minus its, <= 0.
    log_bayes_factor_se : (m,) array
        The Monte Carlo error of the difference.
    status : tuple of str
        Of each run; only "ok" can be compared.
    approximate : bool
        Whether the evidences are those of an approximation (expectation propagation, Laplace's method).
    """

    names: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    maximized: np.ndarray
    log_evidence: FloatArray
    standard_error: FloatArray
    log_bayes_factor: FloatArray
    log_bayes_factor_se: FloatArray
    status: tuple[str, ...]
    approximate: bool = False

    def __str__(self) -> str:
        """Return a line a kernel, the best one first, and what the numbers are."""
        width = max(6, *map(len, self.names))
        lines = [
            f"{'kernel':{width}}  {'log evidence (se)':26}  {'log Bayes factor (se)':26}  maximised  status"
        ]
        for k in np.argsort(-self.log_evidence, kind="stable"):
            evidence = self._number(self.log_evidence[k], self.standard_error[k])
            factor = self._number(self.log_bayes_factor[k], self.log_bayes_factor_se[k])
            lines.append(
                f"{self.names[k]:{width}}  {evidence:26}  {factor:26}  {self.maximized[k]:9d}  {self.status[k]}"
            )
        if self.maximized.any():
            lines.append(
                "Integrated over the latent function; maximised over the hyperparameters, which favours kernels with "
                "more of them."
            )
        return "\n".join(lines)

    def _number(self, value: float, error: float) -> str:
        return f"{value:12.3f} " + ("(approximate)" if self.approximate else f"({error:.3f})")


def compare(
    kernels: Mapping[str, Kernel] | Sequence[Kernel],
    X: ArrayLike,
    y: ArrayLike,
    *,
    inference: str | Method = "twisted-ep",
    optimizer: str | Optimizer | None = "lbfgs",
    n_restarts_optimizer: int = 0,
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
    inference, optimizer, n_restarts_optimizer, random_state
        As of `GaussianProcessClassifier`. By default the evidence is unbiased, at the maximum of expectation
        propagation's. ``optimizer=None`` compares the kernels as they are.

    Raises
    ------
    ValueError
        If there are fewer than two kernels, the method gives no marginal likelihood, or one against the rest would.

    Warns
    -----
    ConvergenceWarning
        As `GaussianProcessClassifier.fit`, for each kernel, after its name.

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
    named, classes = _named(kernels), len(np.unique(np.asarray(y)))
    if classes > 2 and not uses_softmax("auto", method_of(inference)):
        raise ValueError(
            f"y has {classes} classes, and one against the rest is no model of all of them: use inference='laplace'"
        )
    models: list[Any] = []
    generators = check_rng("random_state", random_state, optional=True).spawn(len(named))
    for (name, kernel), rng in zip(named.items(), generators, strict=True):
        model = GaussianProcessClassifier(
            kernel,
            inference,
            optimizer=optimizer,
            n_restarts_optimizer=n_restarts_optimizer,
            random_state=rng,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        for one in caught:
            if issubclass(one.category, ConvergenceWarning):
                warnings.warn(f"kernel {name!r}: {one.message}", one.category, stacklevel=2)
            else:  # where it came from
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
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
        approximate=method_of(inference).deterministic,
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
