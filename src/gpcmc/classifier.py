"""Gaussian process classification behind scikit-learn's interface."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from gpcmc import _arguments as arguments
from gpcmc._advice import advice
from gpcmc._fitting import (
    Fitted,
    KernelOfEach,
    OneVsRestPosterior,
    Problem,
    evidence_of_each,
    predict_each,
    set_theta,
)
from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_array, check_positive_int, check_rng
from gpcmc.covariance.pivoted import TOLERANCE
from gpcmc.evidence import Optimizer, Search
from gpcmc.inference import Method, Posterior

#: Hyperparameters are exponentials, whose squares and ratios have to be finite.
_THETA = (-300.0, 709.0)


class GaussianProcessClassifier(ClassifierMixin, arguments.MethodOptions):
    """Gaussian process classification.

    By default `fit` maximises expectation propagation's marginal likelihood over the kernel's hyperparameters, and
    predicts by expectation propagation. That needs no seed, and its probabilities are usually within a few thousandths
    of those of an exact method. On small simulated sets with a variance above a hundred they err by about a
    hundredth in the mean, and single ones by up to a tenth.

    For a marginal likelihood that is unbiased and has a standard error, choose ``inference="twisted-ep"``: the
    hyperparameters are fitted by expectation propagation, and the evidence is then estimated at the optimum. For speed
    choose ``"laplace"``. The page "Fitted hyperparameters" of the documentation has measurements of both.

    More than two classes are fitted one against the rest, each with a kernel of its own; ``"laplace"`` fits all of them
    at once, with one kernel and the softmax likelihood. "Coming from scikit-learn" has measurements of both.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Prior covariance of the latent function; by default ``1.0 * RBF(1.0)``. An anisotropic RBF kernel,
        ``1.0 * RBF(np.ones(d))``, finds out which inputs matter. A search over ``kernel__k2__length_scale`` needs a
        kernel that is given: None has no such parameter. A kernel on other things than vectors is taken too.
    inference : str or Method
        A name in ``gpcmc.inference.METHODS`` (``"best"`` stands for ``"twisted-ep"``), or an instance of a
        method's options, for example ``gpcmc.inference.Laplace(likelihood="logistic")``. ``inference__points`` and the
        like set an option of either in `set_params`, and in a search.
    optimizer : "lbfgs", "fmin_l_bfgs_b", "exact", callable or None
        "lbfgs" (scikit-learn's name means the same) maximises the marginal likelihood over the hyperparameters, within
        the kernel's bounds: Laplace's for Laplace's method, else expectation propagation's. It starts from the kernel,
        and in the scale of the data (length scales of the median distance between inputs, variances of 1 and 100); the
        best end counts. With more than 400 patterns it begins with some of them. "exact" goes on from that maximum, and
        climbs twisted EP's unbiased estimate with common points: the same ones at all hyperparameters, drawn once by
        `random_state`, as many as ``"twisted-ep"`` has in `inference`. Where other points do not find its maximum
        higher than the start, the start is kept. It is for methods for the exact posterior: probit, two classes or one
        against the rest. The page "The exact optimum" says how far it moves. A callable ``optimizer(objective, start,
        bounds)`` returns the best theta and its objective, as in scikit-learn. None uses the kernel as it is.
        ``"pseudo-marginal"`` integrates over the hyperparameters, and nothing is maximised.
    n_restarts_optimizer : int
        Further starts of the optimizer, log-uniform within the kernel's bounds. With more than 400 patterns they climb
        with some of them.
    max_iter_predict : int or None
        Limit of the iterations of Laplace's method or expectation propagation; None leaves that of `inference`.
    warm_start, copy_X_train : bool
        Accepted for code that passes them. Iterations always start from the last ones of a search, and the training
        inputs are always copied.
    random_state : int, Generator, RandomState or None
        Seeds the restarts and the methods that draw; nothing else uses it.
    multi_class : {"auto", "one_vs_rest", "softmax"}
        How more than two classes are fitted. "auto" is "softmax" for Laplace's method, else "one_vs_rest".
    n_jobs : int or None
        Processes for the problems of one against the rest. The result is the same whatever it is.
    covariance : {"auto", "dense", "low-rank", "sparse"}
        "dense" is the matrix of all patterns, whose time grows as n^3. "low-rank" replaces it by one of low rank r and
        a diagonal, which takes n r^2: for 100,000 patterns in few dimensions, with ``"ep"``, ``"laplace"``,
        ``"twisted-ep"`` or ``"importance"``. The evidence is corrected for what is left out, and ``diagnostics_`` says
        how much that was. "sparse" regresses each latent value of a stationary kernel on 20 nearest neighbours, for
        rough kernels in few dimensions. Above 2000 patterns, for these methods and the optimizer "lbfgs" or None,
        "auto" takes low rank where the kernel that some of the patterns find has one, else the sparse form where
        neighbours say nearly all, else the dense one if it fits in memory.
    tolerance : float
        Share of the prior variance that a covariance of low rank may leave unexplained, above 0 and below 1. Where that
        needs a rank above 2000, the rank is 2000, and a warning says what is left.
    verbose : int
        1 prints how the search goes, and how long it will take if that is more than a minute; 2 each of its
        evaluations.

    Attributes
    ----------
    classes_ : (C,) array
        The labels, sorted; of two, the second one is the paper's class 1.
    n_classes_ : int
        Their number.
    covariance_ : str
        The form of covariance that was chosen, "dense", "low-rank" or "sparse".
    kernel_ : Kernel
        The kernel with the hyperparameters used; a ``CompoundKernel`` of one a class, fitted one against the rest.
        ``"pseudo-marginal"`` uses many, which are in ``posterior_.chains``; this is then the kernel that was given.
    at_bound_ : tuple of str
        Names of the hyperparameters that the optimizer left at a bound, as in ``"k2__length_scale[1]"``, counted from
        0, after the label of the class where each has a kernel. Empty where all are inside, and without an optimizer.
    log_marginal_likelihood_ : float
        log p(y | X) at `kernel_`, in nats: its maximum over the hyperparameters if they were searched for, and not an
        integral over them. It is that of the method in use: with ``inference="twisted-ep"``, twisted EP's. One against
        the rest, the mean over the classes. Methods that give none (control variables, pseudo-marginal) have no such
        attribute.
    log_marginal_likelihood_se_ : float
        Its Monte Carlo standard error, in nats; 0.0 for a deterministic method, of whose bias it says nothing.
    log_marginal_likelihood_value_ : float
        What `log_marginal_likelihood` returns at `kernel_`, by scikit-learn's name: for all methods but Laplace's the
        value of expectation propagation, which the optimizer climbs, and with ``inference="twisted-ep"`` not the
        unbiased estimate. Report ``log_marginal_likelihood_``.
    posterior_ : Posterior
        What the inference method returned; one against the rest, an object with these in ``posteriors``.
    status_ : str
        "ok", or why the numbers should not be used; `fit` warns then.
    diagnostics_ : dict of str to float
        The numbers behind it.
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
        *,
        optimizer: str | Optimizer | None = "lbfgs",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int | None = None,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        multi_class: str = "auto",
        n_jobs: int | None = None,
        covariance: str = "auto",
        tolerance: float = TOLERANCE,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.inference = inference
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.warm_start = warm_start
        self.copy_X_train = copy_X_train
        self.random_state = random_state
        self.multi_class = multi_class
        self.n_jobs = n_jobs
        self.covariance = covariance
        self.tolerance = tolerance
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not arguments.takes_vectors(self.kernel):
            tags.input_tags.two_d_array = False
        return tags

    @one_thread()
    def fit(self, X: ArrayLike, y: ArrayLike) -> GaussianProcessClassifier:
        """Infer the latent function from X (n, d) and labels y (n,) of two classes or more.

        Raises
        ------
        ValueError
            If X is not finite, the labels are of one class, the kernel does not fit X or is no covariance there, or an
            argument of the class is not as needed.
        ConvergenceError
            If the method iterates and does not converge.
        ExtinctionError
            If no sample of the orthant sampler survives; the message says what helps.
        MemoryError
            If the method needs more memory than this process may have; the message says what fits.

        Warns
        -----
        ConvergenceWarning
            If the marginal likelihood still rises at a bound, the kernel tells nothing of the classes, the columns of X
            should be scaled, or `status_` is not ok.
        """
        kernel = arguments.kernel_of(self.kernel)
        method = arguments.limited(arguments.method_of(self.inference), self.max_iter_predict)
        softmax = arguments.uses_softmax(self.multi_class, method)
        search = Search(
            arguments.optimizer_of(self.optimizer, method),
            arguments.restarts_of(self.n_restarts_optimizer),
            int(self.verbose),
        )
        form = arguments.covariance_of(
            self.covariance, self.tolerance, method, search.optimizer, kernel
        )
        rng = check_rng("random_state", self.random_state, optional=True)
        X, y = self._checked(X, y=y)
        classes, code = arguments.classes_of(y)
        if softmax and len(classes) > 2:
            method = arguments.softmax_of(method, len(classes))
        self.classes_, self.n_classes_, self._X_train = classes, len(classes), np.array(X)
        labels = [str(label) for label in classes]
        problem = Problem(self._X_train, kernel, method, search, *form)
        if len(classes) == 2 or softmax:
            self._fits = [problem.fit(code, rng)]
            self.kernel_ = self._fits[0].kernel
            self.posterior_: Posterior = self._fits[0].posterior
            labels = [""]
        else:
            self._fits = problem.fit_each(code, rng, self.n_jobs)
            self.kernel_ = KernelOfEach([one.kernel for one in self._fits])
            self.posterior_ = OneVsRestPosterior.of([f.posterior for f in self._fits], labels)
        self.covariance_ = " and ".join(sorted({one.form.name for one in self._fits}))
        self.status_, self.diagnostics_ = self.posterior_.status, self.posterior_.diagnostics
        self.at_bound_ = tuple(
            f"{label}: {name}" if label else name
            for label, one in zip(labels, self._fits, strict=True)
            for name in one.at_bound
        )
        told = advice(labels, self._fits, self._X_train)
        if told:
            warnings.warn("\n".join(told), ConvergenceWarning, stacklevel=3)
        return self

    @one_thread()
    def log_marginal_likelihood(
        self,
        theta: ArrayLike | None = None,
        eval_gradient: bool = False,
        clone_kernel: bool = True,
    ) -> float | tuple[float, FloatArray]:
        """Return the marginal likelihood that the optimizer climbs, at other hyperparameters.

        It is Laplace's for Laplace's method, and expectation propagation's for all others; one against the rest, the
        mean over the classes. That of a Monte Carlo method itself, at `kernel_`, is ``log_marginal_likelihood_``.

        With ``optimizer="exact"`` it is the unbiased estimate with the search's points, and sites for `theta`; its
        error is about ``log_marginal_likelihood_se_``, whose points are others. Its gradient holds the sites, so that
        it agrees with differences between two `theta` up to that error only.

        Parameters
        ----------
        theta : (p,) array, optional
            Logarithms of the hyperparameters, in the order of ``kernel_.theta``; by default these. One against the
            rest, those of one kernel serve every class too.
        eval_gradient : bool
            Also return the gradient.
        clone_kernel : bool
            False leaves `kernel_` at `theta`, as in scikit-learn; the posterior remains that of `fit`.

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
        if theta.shape not in (own.shape, self._fits[0].kernel.theta.shape):
            raise ValueError(
                f"theta must have shape {own.shape} as kernel_.theta has; got {theta.shape}"
            )
        if ((theta < _THETA[0]) | (theta > _THETA[1])).any():
            raise ValueError(f"theta must hold logarithms within {_THETA}; got {theta.tolist()}")
        found = evidence_of_each(self._fits, self._X_train, theta, eval_gradient)
        if not clone_kernel:
            set_theta(self._fits, theta)
        return found

    @one_thread()
    def predict_proba(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Return probabilities (t, C) of the classes, in the order of ``classes_``.

        Parameters
        ----------
        X : (t, d) array, or t things that the kernel takes
        return_std : bool
            Also return their errors (t, C): Monte Carlo standard errors, infinite where a run cannot know them, and
            what a covariance of low rank or a sparse one may have moved. Zeros for a deterministic method with the
            dense covariance: they say nothing of the uncertainty of the labels, nor of an approximation's bias.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If X is not finite or has another number of features than in `fit`.
        MemoryError
            If probabilities of so many rows at once would need more memory than this process may have.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        found = predict_each(self._fits, self._X_train, X)
        return (found.probability, found.standard_error) if return_std else found.probability

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class (t,) of each row of X (t, d); of several, the first in ``classes_``.

        Raises
        ------
        NotFittedError, ValueError, MemoryError
            As `predict_proba`.
        """
        p = self.predict_proba(X)
        return self.classes_[p.argmax(axis=1)]

    @one_thread()
    def latent_mean_and_variance(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the latent function at X (t, d): (t,) each, or (t, C) beyond two classes.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If the method keeps no Gaussian of the latent function, or X is not as in `fit`.
        MemoryError
            As `predict_proba`.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        found = [one.latent(self._X_train, X) for one in self._fits]
        if len(found) == 1:
            return found[0]
        return np.column_stack([m for m, _ in found]), np.column_stack([v for _, v in found])

    @one_thread()
    def sample_latent(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    ) -> FloatArray:
        """Draw the latent function at X (t, d) from its posterior: (t, n_samples), or (t, C, n_samples).

        One against the rest, the functions of the classes are independent of each other.

        Raises
        ------
        NotFittedError, ValueError, MemoryError
            As `latent_mean_and_variance`, or if an argument is not as above.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        rng = check_rng("random_state", random_state, optional=True)
        check_positive_int("n_samples", n_samples)
        drawn = [self._draw(one, X, n_samples, rng) for one in self._fits]
        return drawn[0] if len(drawn) == 1 else np.stack(drawn, axis=1)

    def _draw(self, one: Fitted, X: Any, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw the latent function of one problem, or those of all classes."""
        mean, _ = one.latent(self._X_train, X)
        covariance = one.joint_covariance(self._X_train, X)
        # a posterior covariance may be singular
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normals = rng.standard_normal((len(covariance), count))
        return mean[..., None] + (root @ normals).reshape(*mean.shape, count)

    @property
    def log_marginal_likelihood_(self) -> float:
        """Log p(y | X), nats."""
        return self._of_evidence("log_evidence")

    @property
    def log_marginal_likelihood_se_(self) -> float:
        """Its Monte Carlo standard error, nats."""
        return self._of_evidence("log_evidence_se")

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """What `log_marginal_likelihood` returns at `kernel_`, nats: EP's value under twisted EP too."""
        if not hasattr(self, "posterior_"):
            raise AttributeError("log_marginal_likelihood_value_ is there after `fit`")
        found = self.log_marginal_likelihood()
        assert isinstance(found, float)
        return found

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

    def _checked(self, X: Any, **given: Any) -> Any:
        """Return what scikit-learn makes of the inputs, as the kernel takes them, and of labels that are given."""
        vectors = arguments.takes_vectors(self.kernel)
        how = {"dtype": np.float64} if vectors else {"dtype": None, "ensure_2d": False}
        try:
            return validate_data(self, X, **given, **how)
        except ValueError as error:
            if "could not convert string to float" not in str(error):
                raise
            raise ValueError(
                f"X holds text ({error}): encode such columns as numbers, for example by "
                "sklearn.preprocessing.OneHotEncoder in a ColumnTransformer"
            ) from error
