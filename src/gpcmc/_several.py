"""Several classes, one against the rest: a problem of two classes for each, and probabilities that sum to one.

The problem of class c gives q_c, the probability that a pattern is of c and not of another. The probabilities are these
over their sum. Where the fits agree, the sum is one and every q_c stays as it is. To combine their odds instead,
q_c / (1 - q_c) over the sum, is sharper: better where classes do not overlap, far worse where they do
(benchmarks/classes.py). Nothing depends on the order of the classes: every problem has the same random numbers, and
sums run over sorted terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.parallel import Parallel, delayed

from gpcmc._problem import Fitted, fit_problem
from gpcmc._search import Search
from gpcmc._validation import FloatArray
from gpcmc.inference import Method, Posterior, Prediction
from gpcmc.posterior import OK


@dataclass(frozen=True, slots=True)
class OneVsRestPosterior:
    """The posteriors of one problem a class.

    Attributes
    ----------
    posteriors : tuple of Posterior
        In the order of ``classes_``.
    labels : tuple of str
        Of the classes, for `diagnostics`.
    """

    posteriors: tuple[Posterior, ...]
    labels: tuple[str, ...]

    @property
    def log_evidence(self) -> float | None:
        """The mean of the problems' log marginal likelihoods (nats), as scikit-learn has it."""
        return self._mean([one.log_evidence for one in self.posteriors])

    @property
    def log_evidence_se(self) -> float | None:
        """Its standard error: at most the mean of theirs, which share random numbers."""
        return self._mean([one.log_evidence_se for one in self.posteriors])

    @property
    def work(self) -> dict[str, int]:
        """Counts of what was done, summed."""
        names = sorted({name for one in self.posteriors for name in one.work})
        return {name: sum(one.work.get(name, 0) for one in self.posteriors) for name in names}

    @property
    def diagnostics(self) -> dict[str, float]:
        """Those of every problem, named ``label: diagnostic``."""
        pairs = zip(self.labels, self.posteriors, strict=True)
        return {f"{label}: {k}": v for label, one in pairs for k, v in one.diagnostics.items()}

    @property
    def status(self) -> str:
        """The first that is not ok, else that."""
        return next((one.status for one in self.posteriors if one.status != OK), OK)

    @staticmethod
    def _mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(np.sort(known))) if len(known) == len(values) else None


def fit_each(
    X: Any,
    code: np.ndarray,
    kernel: Kernel,
    method: Method,
    search: Search,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> list[Fitted]:
    """Fit every class against the rest; see `fit_problem`.

    Parameters
    ----------
    n_jobs : int or None
        Processes, as joblib takes them. The result has the same bits whatever it is.
    """
    seed = rng.integers(2**63, size=4)
    run = Parallel(n_jobs=n_jobs)
    found: list[Fitted] = run(
        delayed(fit_problem)(
            X, (code == c).astype(int), kernel, method, search, np.random.default_rng(seed)
        )
        for c in range(int(code.max()) + 1)
    )
    return found


def predict_each(fits: list[Fitted], X: Any, X_star: Any) -> Prediction:
    """Return probabilities (t, C) of the classes, and standard errors; of problems that share random numbers, bounds.

    Such errors may be of one sign: they are added, not their squares.
    """
    found = [one.predict(X, X_star) for one in fits]
    if len(found) == 1:
        p, error = found[0].probability, found[0].standard_error
        if p.ndim == 2:
            return found[0]
        return Prediction(np.column_stack([1.0 - p, p]), np.column_stack([error, error]))
    q = np.column_stack([one.probability for one in found])
    return combine(q, np.column_stack([one.standard_error for one in found]))


def combine(q: FloatArray, error: FloatArray) -> Prediction:
    """Return q (t, C) over its sum, and the errors of the quotients.

    Where all are zero in floating point each class is as probable as another.
    """
    total = np.sort(q, axis=1).sum(axis=1, keepdims=True)
    p = np.divide(q, total, out=np.full_like(q, 1.0 / q.shape[1]), where=total > 0)
    with np.errstate(invalid="ignore"):  # an infinite error times a share of zero
        others = np.nansum(error, axis=1, keepdims=True) - error
        bound = ((1.0 - p) * error + p * others) / np.maximum(total, np.finfo(float).tiny)
    unknown = np.isinf(error).any(axis=1, keepdims=True)
    return Prediction(p, np.where(unknown, np.inf, np.nan_to_num(bound, posinf=np.inf)))


def evidence_of_each(
    fits: list[Fitted], X: Any, theta: FloatArray, eval_gradient: bool
) -> float | tuple[float, FloatArray]:
    """Return the mean of the problems' log marginal likelihoods (nats), and its gradient in theta if asked.

    Parameters
    ----------
    fits : list of Fitted
    X : (n, d) array, or n things that the kernel takes
    theta : (p,) array
        Of all kernels one after the other, or of one that serves all.
    eval_gradient : bool
    """
    values, gradients = [], []
    for one, part in zip(fits, _parts(fits, theta), strict=True):
        surface = one.surface(X, part)
        if eval_gradient:
            value, gradient = surface.value_and_gradient(part)
            gradients.append(gradient / len(fits))
        else:
            value = surface.value(part)
        values.append(value)
    mean: Any = np.mean(values)  # NumPy's: scikit-learn's tests subtract a float32 from it
    if not eval_gradient:
        return mean
    shared = len(theta) == len(gradients[0])
    return mean, np.sum(gradients, axis=0) if shared else np.concatenate(gradients)


def set_theta(fits: list[Fitted], theta: FloatArray) -> None:
    """Give the kernels other hyperparameters, as `evidence_of_each` takes them."""
    for one, part in zip(fits, _parts(fits, theta), strict=True):
        one.kernel.theta = part


def _parts(fits: list[Fitted], theta: FloatArray) -> list[FloatArray]:
    shared = len(theta) == len(fits[0].kernel.theta)
    return [theta] * len(fits) if shared else np.split(theta, len(fits))
