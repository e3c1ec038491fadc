"""Gaussian process classification of ordered classes behind scikit-learn's interface."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from gpcmc import _arguments as arguments
from gpcmc._advice import advice
from gpcmc._fitting import Fitted
from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_array, check_rng
from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.covariance.kernels import evaluate
from gpcmc.covariance.pivoted import TOLERANCE
from gpcmc.evidence import Optimizer, Search, form_of
from gpcmc.evidence.edges import (
    EdgedForm,
    EdgedKernel,
    EdgedSurface,
    edges_of_shares,
    scaled_with_edges,
)
from gpcmc.evidence.surface import surface_method
from gpcmc.inference import ExpectationPropagation, Method, Posterior
from gpcmc.likelihood import Ordinal
from gpcmc.rectangle.classification import OrdinalTwisted, Twisted


class OrdinalGaussianProcessClassifier(GaussianProcessClassifier):
    """Gaussian process classification of classes that have an order: grades, stages, answers from "never" to "often".

    One latent function, plus noise of variance one, is cut into classes by edges (the ordered probit model). `fit`
    maximises expectation propagation's marginal likelihood over the kernel's hyperparameters and the edges, which stay
    in their order by construction. With ``inference="twisted-ep"`` the marginal likelihood is estimated there without
    bias and with a standard error: the probability of a rectangle between edges.

    Two classes with one edge at zero are `GaussianProcessClassifier`.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Prior covariance of the latent function, whose noise has variance one; by default ``1.0 * RBF(1.0)``.
    inference : {"ep", "twisted-ep"} or a method's options
        As of `GaussianProcessClassifier`: ``gpcmc.inference.Twisted(points=4096)``, for example.
    categories : sequence, optional
        The labels from the lowest to the highest; by default they are sorted.
    edges : (C - 1,) array, optional
        Where the search for the edges starts, in units of the noise; by default at those with which the prior has the
        shares of the classes. With ``optimizer=None`` the edges that are used.
    optimizer : "lbfgs", "fmin_l_bfgs_b", callable or None
        As of `GaussianProcessClassifier`; a callable gets the kernel's theta, then the lowest edge, then the logarithms
        of the gaps. With None the kernel is used as it is.
    n_restarts_optimizer : int
        Further starts of the optimizer, as of `GaussianProcessClassifier`.
    max_iter_predict : int or None
        Limit of the sweeps of expectation propagation.
    random_state : int, Generator, RandomState or None
        Seeds the restarts and ``"twisted-ep"``.
    covariance : {"auto", "dense", "low-rank", "sparse"}
        As of `GaussianProcessClassifier`.
    tolerance : float
        As of `GaussianProcessClassifier`.
    verbose : int
        As of `GaussianProcessClassifier`.

    Attributes
    ----------
    classes_ : (C,) array
        The labels in their order.
    n_classes_ : int
        Their number.
    edges_ : (C - 1,) array
        Between the classes, in units of the noise.
    kernel_, covariance_, at_bound_, log_marginal_likelihood_, log_marginal_likelihood_se_, posterior_, status_
        As of `GaussianProcessClassifier`.
    diagnostics_, n_features_in_
        As of `GaussianProcessClassifier`.

    References
    ----------
    Chu and Ghahramani (2005), Journal of Machine Learning Research 6, 1019.

    Examples
    --------
    >>> import numpy as np
    >>> from gpcmc import OrdinalGaussianProcessClassifier
    >>> X = np.linspace(0, 4, 40)[:, None]
    >>> y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [1.0, 2.5])]
    >>> model = OrdinalGaussianProcessClassifier(categories=["low", "middle", "high"]).fit(X, y)
    >>> model.predict([[0.2], [1.8], [3.5]]).tolist()
    ['low', 'middle', 'high']
    >>> bool(np.diff(model.edges_) > 0)
    True
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        inference: str | Method = "ep",
        *,
        categories: Sequence[Any] | None = None,
        edges: ArrayLike | None = None,
        optimizer: str | Optimizer | None = "lbfgs",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        covariance: str = "auto",
        tolerance: float = TOLERANCE,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.inference = inference
        self.categories = categories
        self.edges = edges
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.random_state = random_state
        self.covariance = covariance
        self.tolerance = tolerance
        self.verbose = verbose

    @one_thread()
    def fit(self, X: ArrayLike, y: ArrayLike) -> OrdinalGaussianProcessClassifier:
        """Infer the latent function and the edges from X (n, d) and labels y (n,) of two classes or more.

        Raises
        ------
        ValueError
            If X is not finite, the labels are of one class or not those of `categories`, the kernel does not fit X, or
            an argument of the class is not as needed.
        ConvergenceError
            If expectation propagation does not converge.
        MemoryError
            If the method needs more memory than this process may have; the message says what fits.

        Warns
        -----
        ConvergenceWarning
            As `GaussianProcessClassifier.fit`.
        """
        kernel = arguments.kernel_of(self.kernel)
        method = arguments.limited(arguments.method_of(self.inference), self.max_iter_predict)
        _check_method(method)
        if isinstance(self.optimizer, str) and self.optimizer == "exact":
            raise ValueError(
                "optimizer='exact' is for two classes without an order; use 'lbfgs', a callable or None"
            )
        optimizer = arguments.optimizer_of(self.optimizer, method)
        search = Search(
            optimizer, arguments.restarts_of(self.n_restarts_optimizer), int(self.verbose)
        )
        form = arguments.covariance_of(
            self.covariance, self.tolerance, method, search.optimizer, kernel
        )
        rng = check_rng("random_state", self.random_state, optional=True)
        X, y = self._checked(X, y=y)
        classes, code = _coded(y, self.categories)
        self.classes_, self.n_classes_, self._X_train = classes, len(classes), np.array(X)
        fitted, self.edges_ = self._fitted(kernel, method, search, form, code, rng)
        self._fits, self.kernel_ = [fitted], fitted.kernel
        self.posterior_: Posterior = fitted.posterior
        self.covariance_ = fitted.form.name
        self.status_, self.diagnostics_ = self.posterior_.status, self.posterior_.diagnostics
        self.at_bound_ = fitted.at_bound
        told = advice([""], self._fits, self._X_train)
        if told:
            warnings.warn("\n".join(told), ConvergenceWarning, stacklevel=3)
        return self

    def _fitted(
        self,
        kernel: Kernel,
        method: Method,
        search: Search,
        form_options: tuple[str, float],
        code: NDArray[np.intp],
        rng: np.random.Generator,
    ) -> tuple[Fitted, FloatArray]:
        """Search, if that is asked for, and find the posterior there; also return the edges."""
        X, labels = self._X_train, code.astype(np.float64)
        evaluate(kernel, X[:2])  # which says what does not fit
        shares = np.bincount(code) / len(code)
        edges = edges_of_shares(kernel, X, shares)
        if self.edges is not None:
            given = Ordinal(tuple(check_array("edges", self.edges, ndim=1)))
            if given.n_classes != len(shares):
                raise ValueError(
                    f"edges must be {len(shares) - 1}, one less than the classes; got {given.n_classes - 1}"
                )
            edges = given.at
        edged, found, form = EdgedKernel(kernel, edges), None, None

        def form_at(one: EdgedKernel) -> EdgedForm:
            return EdgedForm(form_of(*form_options, method, one.kernel, X, len(X)))

        if search.optimizer is not None:
            found, form = search.run(
                edged.on(surface_method(_with_edges(method, edges), searching=True)),
                edged,
                X,
                labels,
                rng,
                form_at=form_at,
                surface_of=EdgedSurface,
                scaled=partial(scaled_with_edges, shares),
            )
            edged = edged.clone_with_theta(found.theta)
        form = form_at(edged) if form is None else form
        method = _with_edges(method, edged.edges)
        start = None if found is None else found.posterior
        posterior = method.fit(form.prior(edged, X), labels, rng=rng, start=start)
        spread = 1.0
        if found is not None:
            p = len(edged.kernel.theta)
            if found.posterior is not None:
                latent = found.posterior
                average = latent.likelihood.average(latent.mean, latent.variance)[0]
                spread = float(np.ptp(average, axis=0).max())
            slope = None if found.gradient is None else found.gradient[:p]
            names = tuple(name for name in found.at_bound if not name.startswith("edges"))
            found = replace(
                found, theta=found.theta[:p], gradient=slope, at_bound=names, posterior=None
            )
        assert isinstance(form, EdgedForm)
        fitted = Fitted(edged.kernel, method, posterior, labels, form.form, found, spread, None)
        return fitted, edged.edges


def _check_method(method: Method) -> None:
    if not isinstance(method, ExpectationPropagation | Twisted):
        raise ValueError(
            "inference must be 'ep' or 'twisted-ep' (or their options) for ordered classes; got "
            f"{type(method).__name__}"
        )
    if isinstance(method, ExpectationPropagation) and method.likelihood != "probit":
        raise ValueError(
            f"inference: the likelihood of ordered classes is the ordered probit; got {method.likelihood!r}"
        )


def _with_edges(method: Method, edges: FloatArray) -> Method:
    """Return the method for ordered classes that the options stand for."""
    likelihood = Ordinal(tuple(edges))
    if isinstance(method, Twisted):
        options = {one.name: getattr(method, one.name) for one in fields(Twisted)}
        return OrdinalTwisted(**options, likelihood=likelihood)
    assert isinstance(method, ExpectationPropagation)
    return replace(method, likelihood=likelihood)


def _coded(y: Any, categories: Sequence[Any] | None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the labels in their order, and the number of each row's.

    Raises
    ------
    ValueError
        If there is one class only, or the categories are not the labels.
    """
    classes, code = arguments.classes_of(y)
    if categories is None:
        return classes, code
    try:
        given = np.asarray(categories)
    except ValueError:
        given = np.empty(0)
    if given.shape != classes.shape or sorted(given.tolist()) != sorted(classes.tolist()):
        raise ValueError(
            f"categories must be the labels that y holds, {classes.tolist()}, in their order and each once; got "
            f"{given.tolist()}"
        )
    place = np.array([int(np.flatnonzero(given == label)[0]) for label in classes])
    return given, place[code]
