"""Gaussian process classification behind scikit-learn's interface."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_array, check_option
from gpcmc.gp import prior
from gpcmc.gp.covariance import flush_subnormal
from gpcmc.inference import METHODS, Laplace, Method, Posterior, method_class
from gpcmc.inference.evidence import EvidenceSurface, maximize, surface_method
from gpcmc.inference.multiclass import MulticlassLaplace, one_hot
from gpcmc.inference.pseudo_marginal import HyperparameterPosterior, PseudoMarginal

_UNCORRELATED = 1e-3  # largest correlation of a kernel that tells nothing of other inputs


class GaussianProcessClassifier(ClassifierMixin, BaseEstimator):
    """Gaussian process classification.

    By default `fit` maximises expectation propagation's marginal likelihood over the kernel's hyperparameters, and
    predicts by expectation propagation. That needs no seed, and its probabilities are usually within a few thousandths
    of those of an exact method.

    For a marginal likelihood that is unbiased and has a standard error, choose ``inference="twisted-ep"``: the
    hyperparameters are fitted by expectation propagation, and the evidence is then estimated at the optimum. For speed
    choose ``"laplace"``. The page "Fitted hyperparameters" of the documentation has measurements of both.

    More than two classes need ``"laplace"``, which fits all of them at once with the softmax likelihood, whatever its
    options say of the likelihood. For another method put this class into ``sklearn.multiclass.OneVsRestClassifier``.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Prior covariance of the latent function; by default ``1.0 * RBF(1.0)``. An anisotropic RBF kernel,
        ``1.0 * RBF(np.ones(d))``, finds out which inputs matter. A search over ``kernel__k2__length_scale`` needs a
        kernel that is given: None has no such parameter.
    inference : str or Method
        A name in ``gpcmc.inference.METHODS`` (``"best"`` stands for ``"twisted-ep"``), or an instance of a
        method's options, for example ``gpcmc.inference.Laplace(likelihood="logistic")``.
    optimizer : "lbfgs" or None
        "lbfgs" maximises the marginal likelihood over the hyperparameters, within the kernel's bounds: Laplace's for
        Laplace's method, else expectation propagation's. None uses the kernel as it is. ``"pseudo-marginal"``
        integrates over the hyperparameters, and nothing is maximised.
    n_restarts : int
        Further starts of the optimizer, log-uniform within the kernel's bounds.
    random_state : int, Generator, RandomState or None
        Seeds the restarts and the methods that draw; nothing else uses it.

    Attributes
    ----------
    classes_ : (C,) array
        The labels, sorted; of two, the second one is the paper's class 1.
    kernel_ : Kernel
        The kernel with the hyperparameters used. ``"pseudo-marginal"`` uses many, which are in
        ``posterior_.chains``; this is then the kernel that was given.
    at_bound_ : tuple of str
        Names of the hyperparameters that the optimizer left at a bound, as in ``"k2__length_scale[1]"``, counted from
        0. Empty where all are inside, and without an optimizer.
    log_marginal_likelihood_ : float
        log p(y | X) at `kernel_`, in nats. Methods that give none (control variables, pseudo-marginal) have no such
        attribute.
    log_marginal_likelihood_se_ : float
        Its Monte Carlo standard error, in nats; 0.0 for a deterministic method, of whose bias it says nothing.
    posterior_ : Posterior
        What the inference method returned.
    n_features_in_ : int
        Number of features seen in `fit`.

    References
    ----------
    Atiya, Fayed, Abdel-Gawad (2021). Rasmussen and Williams (2006), chapters 3 and 5.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from gpcmc import GaussianProcessClassifier
    >>> X, y = make_moons(100, noise=0.3, random_state=0)
    >>> classifier = GaussianProcessClassifier().fit(X, y)
    >>> classifier.predict([[0.0, 0.5]])
    array([1])
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        inference: str | Method = "ep",
        optimizer: str | None = "lbfgs",
        n_restarts: int = 0,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.inference = inference
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        laplace = isinstance(self.inference, Laplace) or self.inference == "laplace"
        tags.classifier_tags.multi_class = laplace
        return tags

    @one_thread()
    def fit(self, X: ArrayLike, y: ArrayLike) -> GaussianProcessClassifier:
        """Infer the latent function from X (n, d) and labels y (n,) of two classes, or of more for Laplace's method.

        Raises
        ------
        ValueError
            If X is not finite, the labels are of one class, or of more than the method can have, or an argument of the
            class is not as needed.
        ConvergenceError
            If the method iterates and does not converge.
        ExtinctionError
            If no sample of the orthant sampler survives: more samples help.
        MemoryError
            If the method needs more memory than this machine has; the message says what fits.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        classes, code = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must hold two classes; got one class only: {classes.tolist()}")
        kernel, method, rng = self._kernel(), self._method(len(classes)), self._rng()
        n_restarts = self._n_restarts()
        if isinstance(method, MulticlassLaplace):
            method.check_size(len(code), len(classes))
        else:
            method.check_size(len(code))
        self.classes_ = classes
        self._X_train: FloatArray = np.asarray(X, dtype=np.float64)
        self._y_train: FloatArray = (
            np.where(code == 1, 1.0, -1.0) if len(classes) == 2 else one_hot(code)
        )
        self.at_bound_: tuple[str, ...] = ()
        fits = self.optimizer is not None and not isinstance(method, PseudoMarginal)
        if fits and kernel.n_dims:
            kernel = self._maximum(kernel, method, n_restarts, rng)
        self.kernel_ = kernel
        blocks = prior(kernel, self._X_train)
        if fits and np.abs(np.triu(blocks.K, 1)).max() < _UNCORRELATED * blocks.K.diagonal().max():
            warnings.warn(
                "no two patterns are correlated, so that every class is as probable as another everywhere: "
                "the optimizer found no slope. Scale the inputs, start from a length scale of the order of "
                "the distances between them, or set n_restarts",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.posterior_: Posterior = (
            method.fit(blocks, code)
            if isinstance(method, MulticlassLaplace)
            else method.fit(blocks, self._y_train, rng=rng)
        )
        return self

    def _maximum(
        self,
        kernel: Kernel,
        method: Method | MulticlassLaplace,
        n_restarts: int,
        rng: np.random.Generator,
    ) -> Kernel:
        """Return the kernel at the maximum of the marginal likelihood; warn of what a user should know of it."""
        approximation = surface_method(method, searching=True)
        surface = EvidenceSurface(approximation, kernel, self._X_train, self._y_train)
        found = maximize(surface, n_restarts, rng)
        self.at_bound_ = found.at_bound
        if found.at_bound:
            warnings.warn(
                f"{', '.join(found.at_bound)} ended at a bound of the kernel: the marginal likelihood has its "
                "maximum there or beyond. Widen the bounds, or fix the value. A length scale at its upper "
                "bound says that an input does not matter; a variance there, that the classes are separable",
                ConvergenceWarning,
                stacklevel=4,
            )
        if not found.converged:
            warnings.warn(
                "the optimizer stopped where the marginal likelihood still rises; try n_restarts, or a "
                "kernel with other starting values",
                ConvergenceWarning,
                stacklevel=4,
            )
        return kernel.clone_with_theta(found.theta)

    @one_thread()
    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> float | tuple[float, FloatArray]:
        """Return the marginal likelihood that the optimizer climbs, at other hyperparameters.

        It is Laplace's for Laplace's method, and expectation propagation's for all others. That of a Monte Carlo
        method itself, at `kernel_`, is ``log_marginal_likelihood_``.

        Parameters
        ----------
        theta : (p,) array, optional
            Logarithms of the hyperparameters, in the order of ``kernel_.theta``; by default these.
        eval_gradient : bool
            Also return the gradient.

        Returns
        -------
        log_likelihood : float
            In nats.
        gradient : (p,) array
            With respect to `theta`; only if `eval_gradient`.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `theta` is not as above, or makes a covariance too large for floating point.
        ConvergenceError
            If the method does not converge.
        """
        check_is_fitted(self)
        own = self.kernel_.theta
        theta = own if theta is None else check_array("theta", theta, ndim=1)
        if theta.shape != own.shape:
            raise ValueError(
                f"theta must have shape {own.shape} as kernel_.theta has; got {theta.shape}"
            )
        method = surface_method(self._method(len(self.classes_)))
        surface = EvidenceSurface(method, self.kernel_, self._X_train, self._y_train)
        return surface.value_and_gradient(theta) if eval_gradient else surface.value(theta)

    @one_thread()
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return probabilities (t, C) of the classes, in the order of ``classes_``.

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
        if len(self.classes_) > 2:
            return p
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
        p = self.predict_proba(X)
        return self.classes_[p.argmax(axis=1) if p.shape[1] > 2 else (p[:, 1] >= 0.5).astype(int)]

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
                "only. Use 'twisted-ep', 'orthant', 'ep' or another method that has one"
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

    def _method(self, classes: int) -> Method | MulticlassLaplace:
        """Return the options that `inference` names, or is; for more than two classes those of the softmax."""
        if isinstance(self.inference, Method):
            method = self.inference
        elif isinstance(self.inference, str):
            method = method_class(self.inference, argument="inference")()
        else:
            raise ValueError(
                f"inference must be a name of {', '.join(METHODS)}, or an instance of a method's options; "
                f"got {self.inference!r}"
            )
        if classes == 2:
            return method
        if isinstance(method, Laplace):
            if method.predictive != "exact":
                raise ValueError(
                    f"predictive must be 'exact' with more than two classes; got {method.predictive!r} with "
                    f"{classes} classes: MacKay's approximation is of the logistic function, and not of the softmax"
                )
            return MulticlassLaplace(method.tolerance, method.max_iterations)
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y must hold "
            f"two classes with inference={self.inference!r}; got {classes}. Use inference='laplace', or "
            "sklearn.multiclass.OneVsRestClassifier around this one"
        )

    def _n_restarts(self) -> int:
        """Return `n_restarts`, after a look at it and at `optimizer`."""
        if self.optimizer is not None:
            check_option("optimizer", self.optimizer, ("lbfgs",))
        restarts = self.n_restarts
        if isinstance(restarts, bool) or not isinstance(restarts, Integral) or restarts < 0:
            raise ValueError(f"n_restarts must be an integer >= 0; got {restarts!r}")
        return int(restarts)

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
