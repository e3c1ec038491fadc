"""Gaussian process classification behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from gpcmc._threads import one_thread
from gpcmc.gp import prior
from gpcmc.gp.covariance import flush_subnormal
from gpcmc.inference import METHODS, Method, Posterior, method_class
from gpcmc.inference.pseudo_marginal import HyperparameterPosterior


class GaussianProcessClassifier(ClassifierMixin, BaseEstimator):
    """Binary Gaussian process classification with the probit likelihood.

    The kernel is used as it is: no hyperparameter is tuned by `fit`. Compare
    ``log_marginal_likelihood_`` over kernels, wrap the estimator in a scikit-learn search, or use
    ``inference="pseudo-marginal"``, which integrates over an RBF kernel's two hyperparameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Prior covariance of the latent function; by default ``1.0 * RBF(1.0)``.
    inference : str or Method
        A name in ``gpcmc.inference.METHODS`` (``"best"`` stands for ``"twisted-ep"``), or an instance of a
        method's options.
    random_state : int, Generator, RandomState or None
        Seeds the methods that draw; the others ignore it.

    Attributes
    ----------
    classes_ : (2,) array
        The two labels, sorted; the second one is the paper's class 1.
    log_marginal_likelihood_ : float
        log p(y | X), in nats. Methods that give none (control variables, pseudo-marginal) have no such
        attribute.
    log_marginal_likelihood_se_ : float
        Its Monte Carlo standard error, in nats; 0.0 for a deterministic method.
    kernel_ : Kernel
        The kernel used.
    posterior_ : Posterior
        What the inference method returned.
    n_features_in_ : int
        Number of features seen in `fit`.

    References
    ----------
    Atiya, Fayed, Abdel-Gawad (2021). Rasmussen and Williams (2006), chapter 3.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        inference: str | Method = "orthant",
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.inference = inference
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @one_thread()
    def fit(self, X: ArrayLike, y: ArrayLike) -> GaussianProcessClassifier:
        """Infer the latent function from X (n, d) and labels y (n,) of two classes.

        Raises
        ------
        ValueError
            If X is not finite, the labels are of one class or of more than two, or `kernel`,
            `inference` or `random_state` is not as needed.
        ConvergenceError
            If the method iterates and does not converge.
        ExtinctionError
            If no sample of the orthant sampler survives: more samples help.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        classes, positive = np.unique(y, return_inverse=True)
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}: y must hold two classes; got {len(classes)}"
            )
        if len(classes) < 2:
            raise ValueError(f"y must hold two classes; got one class only: {classes.tolist()}")
        kernel, method, rng = self._kernel(), self._method(), self._rng()
        self.classes_ = classes
        self.kernel_ = kernel
        signs = 2.0 * positive - 1.0
        self.posterior_: Posterior = method.fit(prior(kernel, X), signs, rng=rng)
        self._X_train = X
        return self

    @one_thread()
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return probabilities (t, 2) of the classes, in the order of ``classes_``.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If X is not finite or has another number of features than in `fit`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        if isinstance(self.posterior_, HyperparameterPosterior):
            p = self.posterior_.predict_inputs(X).probability
        else:
            K_star = flush_subnormal(self.kernel_(self._X_train, X))
            p = self.posterior_.predict(K_star, self.kernel_.diag(X)).probability
        return np.column_stack([1.0 - p, p])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the more probable class (t,) of each row of X (t, d).

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If X is not finite or has another number of features than in `fit`.
        """
        second = self.predict_proba(X)[:, 1] >= 0.5
        return self.classes_[second.astype(int)]

    @property
    def log_marginal_likelihood_(self) -> float:
        """Log p(y | X), nats."""
        return self._of_evidence("log_evidence")

    @property
    def log_marginal_likelihood_se_(self) -> float:
        """Its Monte Carlo standard error, nats."""
        return self._of_evidence("log_evidence_se")

    def _of_evidence(self, name: str) -> float:
        """Return the posterior's attribute; scikit-learn's rule wants AttributeError where there is none."""
        if not hasattr(self, "posterior_"):
            raise AttributeError("log_marginal_likelihood_ is there after `fit`")
        value = getattr(self.posterior_, name)
        if value is None:
            raise AttributeError(
                f"inference={self.inference!r} gives no marginal likelihood: it samples the posterior "
                "only. Use 'orthant', 'twisted-ep', 'ep' or another method that has one"
            )
        return float(value)

    def _kernel(self) -> Kernel:
        """Return a kernel of our own, equal to the one that was given."""
        if self.kernel is None:
            return 1.0 * RBF(1.0)
        if not isinstance(self.kernel, Kernel):
            raise ValueError(
                "kernel must be one of sklearn.gaussian_process.kernels or None; got "
                f"{self.kernel!r}"
            )
        return clone(self.kernel)

    def _method(self) -> Method:
        """Return the options that `inference` names, or is."""
        if isinstance(self.inference, Method):
            return self.inference
        if isinstance(self.inference, str):
            return method_class(self.inference, argument="inference")()
        raise ValueError(
            f"inference must be a name of {', '.join(METHODS)}, or an instance of a method's options; "
            f"got {self.inference!r}"
        )

    def _rng(self) -> np.random.Generator:
        """Return the generator that `random_state` stands for."""
        state = self.random_state
        try:
            if isinstance(state, np.random.RandomState):
                return np.random.default_rng(state.randint(2**31, size=4))
            return np.random.default_rng(state)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "random_state must be an int >= 0, a Generator, a RandomState or None; got "
                f"{state!r}"
            ) from error
