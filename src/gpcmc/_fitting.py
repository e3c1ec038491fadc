"""The classifier's problems, fitted: two classes, all of them at once by the softmax, or one against the rest.

One against the rest, the problem of class c gives q_c, the probability that a pattern is of c and not of another. The
probabilities are these over their sum. Where the fits agree, the sum is one and every q_c stays as it is. To combine
their odds instead, q_c / (1 - q_c) over the sum, is sharper: better where classes do not overlap, far worse where they
do (benchmarks/classes.py). Nothing depends on the order of the classes or on their names: every problem has the same
random numbers, sums run over sorted terms, and the problem that is fitted first, whose optimum is a start of the
others, is that of the most frequent class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel
from sklearn.utils.parallel import Parallel, delayed

from gpcmc._memory import check_predictions
from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_covariance
from gpcmc.covariance.kernels import diagonal, evaluate
from gpcmc.evidence import (
    CommonPoints,
    Form,
    Optimum,
    Search,
    Surface,
    climb_exact,
    exact_surface,
    form_of,
    surface_method,
)
from gpcmc.evidence.scale import vectors
from gpcmc.gaussian.posterior import GaussianPosterior
from gpcmc.gaussian.softmax_mode import MulticlassLaplace
from gpcmc.inference import Method, Posterior, Prediction, PseudoMarginal
from gpcmc.likelihood.softmax import one_hot
from gpcmc.orthant import ExtinctionError
from gpcmc.posterior import OK, PosteriorRecord

_BLOCK = 200  # test inputs at a time


@dataclass(frozen=True, slots=True)
class Fitted:
    """What the fit of one problem leaves."""

    kernel: Kernel  # with the hyperparameters used
    method: Method
    posterior: Posterior
    y: FloatArray  # (n,) or (C, n) labels -1/+1, or ones and zeros of C classes
    form: Form  # of the covariance
    found: Optimum | None  # where the search ended, without its posterior; None without one
    # Of the class probabilities over the training patterns, where the search ended; 1 without one
    spread: float
    common: CommonPoints | None  # of the exact surface, where that is climbed

    @property
    def at_bound(self) -> tuple[str, ...]:
        """Names of the hyperparameters that the search left at a bound; none without one."""
        return () if self.found is None else self.found.at_bound

    def surface(self, X: Any, theta: FloatArray) -> Surface:
        """Return the log marginal likelihood that a search climbs, at training inputs X and near theta."""
        if self.common is not None:
            return exact_surface(self.kernel, X, self.y, self.common)
        method, kernel = surface_method(self.method), self.kernel.clone_with_theta(theta)
        return Surface(method, kernel, X, self.y, self.form.near(kernel, X))

    def predict(self, X: Any, X_star: Any) -> Prediction:
        """Return probabilities at test inputs: (t,) of class +1, or (t, C)."""
        self._check_size(X_star)
        at_inputs = getattr(self.posterior, "predict_inputs", None)
        if at_inputs is None or not vectors(X_star):
            return self.posterior.predict(*self._covariances(X, X_star))
        if not self.form.held:
            found: Prediction = at_inputs(X_star)
            return found
        # where no (n, n) array is made there is no (n, t) one either
        parts = [at_inputs(X_star[k : k + _BLOCK]) for k in range(0, len(X_star), _BLOCK)]
        return Prediction(
            np.concatenate([one.probability for one in parts]),
            np.concatenate([one.standard_error for one in parts]),
            np.concatenate([one.form_error + 0.0 * one.probability for one in parts]),
        )

    def latent(self, X: Any, X_star: Any) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of the latent values at test inputs, (t,) or (t, C)."""
        self._check_size(X_star)
        posterior = self._gaussian()
        if vectors(X_star):
            cross = posterior.covariance.cross(X_star)
        else:
            cross = posterior.covariance.cross_of(*self._covariances(X, X_star))
        found = posterior.predictor.latent(cross)
        several = found.variance.ndim > 1
        return found.mean, np.einsum("tcc->tc", found.variance) if several else found.variance

    def joint_covariance(self, X: Any, X_star: Any) -> FloatArray:
        """Return the posterior covariance of all latent values at test inputs, (t, t) or (t C, t C)."""
        conditioned = self._gaussian().conditioned
        K_star, _ = self._covariances(X, X_star)
        K_test, t = evaluate(self.kernel, X_star), len(X_star)
        if self.y.ndim == 1:
            return K_test - K_star.T @ np.column_stack([conditioned.solve(k) for k in K_star.T])
        classes = len(self.y)
        found = np.empty((t, classes, t, classes))
        for c in range(classes):
            for j, k in enumerate(K_star.T):
                alone = np.zeros_like(self.y)
                alone[c] = k
                found[j, c] = -(K_star.T @ conditioned.solve(alone).T)
                found[j, c, :, c] += K_test[j]
        return found.reshape(t * classes, t * classes)

    def _gaussian(self) -> GaussianPosterior:
        if not isinstance(self.posterior, GaussianPosterior):
            raise ValueError(
                f"inference: {type(self.method).__name__} keeps no Gaussian of the latent function; use 'ep' or "
                "'laplace'"
            )
        return self.posterior

    def _check_size(self, X_star: Any) -> None:
        held = 4.0 if self.y.ndim == 1 else 2.0 * len(self.y) + 2.0
        if not self.form.held:
            check_predictions(self.y.shape[-1], len(X_star), held)

    def _covariances(self, X: Any, X_star: Any) -> tuple[FloatArray, FloatArray]:
        """Return covariances (n, t) of training and test inputs, and variances (t,) of these."""
        return evaluate(self.kernel, X, X_star), diagonal(self.kernel, X_star)


@dataclass(frozen=True, slots=True)
class Problem:
    """What all problems of a fit share."""

    X: Any
    kernel: Kernel  # the search starts from its hyperparameters
    method: Method
    search: Search
    covariance: str  # one of "auto", "dense", "low-rank", "sparse"
    tolerance: float

    @one_thread()
    def fit(
        self,
        code: NDArray[np.integer],
        rng: np.random.Generator,
        starts: Sequence[FloatArray] = (),
    ) -> Fitted:
        """Search, if that is asked for, with further starts (p,), and find the posterior there.

        The code (n,) of a class is 0 or 1, or 0 to C - 1 for the softmax. `rng` is for restarts, then for a method that
        draws.
        """
        kernel, method, search = self.kernel, self.method, self.search
        two = not isinstance(method, MulticlassLaplace)
        y = np.where(code == 1, 1.0, -1.0) if two else one_hot(code)
        evaluate(kernel, self.X[:2])  # which says what does not fit
        form_at = partial(form_of, self.covariance, self.tolerance, method, X=self.X, n=y.shape[-1])
        found, form, common = None, None, None
        if (
            search.optimizer is not None
            and kernel.n_dims
            and not isinstance(method, PseudoMarginal)
        ):
            climbed = surface_method(method, searching=True)
            try:
                found, form = search.run(
                    climbed, kernel, self.X, y, rng, form_at=form_at, starts=starts
                )
            except ValueError as error:
                if str(error).startswith("kernel: "):
                    check_kernel_matrix(kernel, self.X)  # the cause, if it is that
                raise
            if search.optimizer == "exact":
                common = CommonPoints.of(method, rng)
                found = climb_exact(kernel, self.X, y, common, found, rng, search.verbose)
            kernel = kernel.clone_with_theta(found.theta)
        form = form_at(kernel) if form is None else form
        if search.verbose:
            print(f"[gpcmc] posterior by {type(method).__name__}, {kernel}", flush=True)
        labels = y if two else code
        posterior = self._posterior(kernel, form, labels, rng, found)
        spread = 1.0 if found is None else _spread(found.posterior)
        if found is not None:  # its posterior holds arrays, and functions that no pickle takes
            found = replace(found, posterior=None)
        return Fitted(kernel, method, posterior, y, form, found, spread, common)

    def _posterior(
        self,
        kernel: Kernel,
        form: Form,
        labels: NDArray[Any],
        rng: np.random.Generator,
        found: Optimum | None,
    ) -> Posterior:
        """Return the method's posterior, which starts from that of the search."""
        start = None if found is None else found.posterior
        try:
            made: Posterior = self.method.fit(
                form.prior(kernel, self.X), labels, rng=rng, start=start
            )
        except ExtinctionError as error:
            raise ExtinctionError(
                "no sample of the orthant sampler survived: use inference=Orthant(scheme='adapted'), which draws "
                "inside the limits, inference='twisted-ep', or more samples"
            ) from error
        except ValueError:
            if not form.held:  # the whole point of another form is that no (n, n) array is made
                check_kernel_matrix(kernel, self.X)  # the cause, if it is that
            raise
        return made

    def fit_each(
        self, code: NDArray[np.integer], rng: np.random.Generator, n_jobs: int | None
    ) -> list[Fitted]:
        """Fit every class (n,), 0 to C - 1, against the rest.

        `n_jobs` processes, as joblib takes them; the result has the same bits whatever it is.
        """
        seed, counts = rng.integers(2**63, size=4), np.bincount(code)
        places = [int(np.argmax(code == c)) for c in range(len(counts))]
        order = sorted(range(len(counts)), key=lambda c: (-counts[c], places[c]))
        indicators = [(code == c).astype(int) for c in order]
        first = self.fit(indicators[0], np.random.default_rng(seed))
        starts = [] if first.found is None else [first.found.theta]
        others = Parallel(n_jobs=n_jobs)(
            delayed(self.fit)(one, np.random.default_rng(seed), starts) for one in indicators[1:]
        )
        fits = dict(zip(order, [first, *others], strict=True))
        return [fits[c] for c in range(len(counts))]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneVsRestPosterior(PosteriorRecord):
    """The posteriors of one problem a class, and what they say together.

    The evidence is the mean of the problems', as scikit-learn has it; its standard error at most the mean of theirs,
    which share random numbers. Counts of work are summed, diagnostics are named ``label: diagnostic``, and the status
    is the first that is not ok. For these attributes see `PosteriorRecord`.

    Attributes
    ----------
    posteriors : tuple of Posterior
        In the order of ``classes_``.
    """

    posteriors: tuple[Posterior, ...] = field(repr=False)

    @classmethod
    def of(cls, posteriors: Sequence[Posterior], labels: Sequence[str]) -> OneVsRestPosterior:
        """Join the posteriors of classes with these labels."""
        names = sorted({name for one in posteriors for name in one.work})
        told = {
            f"{label}: {name}": value
            for label, one in zip(labels, posteriors, strict=True)
            for name, value in one.diagnostics.items()
        }
        return cls(
            log_evidence=_mean([one.log_evidence for one in posteriors]),
            log_evidence_se=_mean([one.log_evidence_se for one in posteriors]),
            work={name: sum(one.work.get(name, 0) for one in posteriors) for name in names},
            diagnostics=told,
            status=next((one.status for one in posteriors if one.status != OK), OK),
            posteriors=tuple(posteriors),
        )

    @property
    def _patterns(self) -> int:
        raise ValueError(self._told)

    def _predict(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        raise ValueError(self._told)

    @property
    def _told(self) -> str:
        return (
            "one against the rest, each class has a kernel and covariances of its own: use predict_proba of the "
            "classifier, or .posteriors[0], .posteriors[1], ..."
        )


def _spread(posterior: Any) -> float:
    """Return the range of class probabilities over the training patterns; 1 where there are none."""
    if posterior is None:
        return 1.0
    if posterior.mean.ndim > 1:
        return float(np.ptp(softmax(posterior.mean, axis=0), axis=1).max())
    return float(np.ptp(posterior.likelihood.average(posterior.mean, posterior.variance)[0]))


def _mean(values: list[float | None]) -> float | None:
    """Return the mean over sorted terms; None where one is unknown."""
    known = [value for value in values if value is not None]
    return float(np.mean(np.sort(known))) if len(known) == len(values) else None


class KernelOfEach(CompoundKernel):
    """The kernels of the classes, one against the rest; prints what they are."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompoundKernel) and list(self.kernels) == list(other.kernels)

    def __repr__(self) -> str:
        return f"KernelOfEach([{', '.join(map(repr, self.kernels))}])"


def predict_each(fits: list[Fitted], X: Any, X_star: Any) -> Prediction:
    """Return probabilities (t, C) of the classes, and their errors; of problems that share random numbers, bounds.

    Such errors may be of one sign: they are added, not their squares.
    """
    found = [one.predict(X, X_star) for one in fits]
    errors = [one.standard_error + one.form_error for one in found]
    if len(found) == 1:
        p, error = found[0].probability, errors[0]
        if p.ndim == 2:
            return Prediction(p, error)
        return Prediction(np.column_stack([1.0 - p, p]), np.column_stack([error, error]))
    return combine(np.column_stack([one.probability for one in found]), np.column_stack(errors))


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
    """Return the mean of the problems' log marginal likelihoods (nats), and its gradient in theta (p,) if asked.

    theta has the hyperparameters of all kernels one after the other, or those of one that serves all.
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


def check_kernel_matrix(kernel: Kernel, X: Any) -> None:
    """Refuse a kernel whose matrix on these inputs is not finite, not symmetric, or indefinite."""
    K = evaluate(kernel, X)
    try:
        check_covariance("kernel", K, semidefinite=True)
    except ValueError as error:
        least = float(np.linalg.eigvalsh(K)[0]) if np.isfinite(K).all() else np.nan
        raise ValueError(
            f"kernel {kernel} is no covariance on these inputs (least eigenvalue {least:.3g}): {error}. No variance "
            "mends that. ExpSineSquared, for one, is a covariance for one input alone: use a product of such kernels "
            "of single inputs, or another kernel"
        ) from error
