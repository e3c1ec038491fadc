"""The arguments of the classifier: what they may be, and options of a method that can be set one by one."""

from __future__ import annotations

from dataclasses import fields, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, Kernel
from sklearn.utils.multiclass import check_classification_targets

from gpcmc._validation import check_option, check_positive_int
from gpcmc.covariance.kernels import check_kernel
from gpcmc.covariance.pivoted import check_tolerance
from gpcmc.evidence import Optimizer
from gpcmc.gaussian.softmax_mode import MulticlassLaplace
from gpcmc.inference import (
    METHODS,
    ExpectationPropagation,
    Laplace,
    Method,
    PseudoMarginal,
    method_class,
)


class MethodOptions(BaseEstimator):
    """An estimator whose argument `inference` is a method, with options that ``set_params`` and a search can set.

    A method's options are frozen: ``inference__points=256`` puts another instance in its place.
    """

    inference: str | Method

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments by name, and those of `kernel` and of the method where `deep`."""
        found: dict[str, Any] = super().get_params(deep)
        method = found["inference"]
        if deep and isinstance(method, Method):
            found |= {f"inference__{name}": getattr(method, name) for name in _options(method)}
        return found

    def set_params(self, **params: Any) -> MethodOptions:
        """Set arguments by name; ``inference__points`` is an option of the method."""
        nested = {
            key[11:]: params.pop(key) for key in list(params) if key.startswith("inference__")
        }
        super().set_params(**params)
        if nested:
            self.inference = _with_options("inference", method_of(self.inference), nested)
        return self


def _options(method: Method) -> list[str]:
    return [field.name for field in fields(method) if field.init]  # type: ignore[arg-type]


def _with_options(name: str, method: Method, given: dict[str, Any]) -> Method:
    """Return the method with other options; one that is a method itself may have its options set too."""
    own: dict[str, Any] = {}
    within: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        head, _, tail = key.partition("__")
        if head not in _options(method):
            raise ValueError(
                f"{name}__{head} is no option of {type(method).__name__}; its options are "
                f"{', '.join(_options(method))}"
            )
        if tail:
            within.setdefault(head, {})[tail] = value
        else:
            own[head] = value
    for head, inner in within.items():
        held = own.get(head, getattr(method, head))
        if not isinstance(held, Method):
            raise ValueError(f"{name}__{head} has no options of its own; got {sorted(inner)}")
        own[head] = _with_options(f"{name}__{head}", held, inner)
    return replace(method, **own)  # type: ignore[type-var]


def method_of(inference: Any) -> Method:
    """Return the options that a name stands for, or the instance itself."""
    if isinstance(inference, Method):
        return inference
    if isinstance(inference, str):
        return method_class(inference, argument="inference")()
    raise ValueError(
        f"inference must be a name of {', '.join(METHODS)}, or an instance of a method's options; "
        f"got {inference!r}"
    )


def limited(method: Method, iterations: Any) -> Method:
    """Return the method with scikit-learn's limit of iterations, if one was given and the method has one."""
    if iterations is None:
        return method
    iterations = check_positive_int("max_iter_predict", iterations)
    if isinstance(method, Laplace):
        return replace(method, max_iterations=iterations)
    if isinstance(method, ExpectationPropagation):
        return replace(method, max_sweeps=iterations)
    return method


def kernel_of(kernel: Any) -> Kernel:
    """Return a kernel of our own, equal to the one that was given, whose hyperparameters are good."""
    if kernel is None:
        return 1.0 * RBF(1.0)
    if not isinstance(kernel, Kernel):
        raise ValueError(
            "kernel must be one of sklearn.gaussian_process.kernels, such as 1.0 * RBF(1.0) (a name will not do), or "
            f"None; got {kernel!r}"
        )
    if isinstance(kernel, CompoundKernel):
        raise ValueError(
            "kernel cannot be a CompoundKernel: that is a list of kernels, one a class; give one kernel, with which "
            "each class starts"
        )
    return check_kernel(clone(kernel))


def classes_of(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes, sorted, and the number of each label's; labels of one class are refused."""
    with np.errstate(invalid="ignore"):  # labels that no integer holds
        check_classification_targets(y)
    classes, code = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y must hold two classes at least; got one class only: {classes.tolist()}"
        )
    return classes, code


def takes_vectors(kernel: Any) -> bool:
    """Return whether the inputs must be rows of numbers."""
    return not isinstance(kernel, Kernel) or bool(kernel.requires_vector_input)


def optimizer_of(optimizer: Any, method: Method) -> str | Optimizer | None:
    """Return "lbfgs", "exact", an own optimizer, or None."""
    if optimizer is None or callable(optimizer):
        return optimizer
    if not isinstance(optimizer, str) or optimizer not in ("lbfgs", "fmin_l_bfgs_b", "exact"):
        raise ValueError(
            "optimizer must be one of lbfgs, fmin_l_bfgs_b (the same, by scikit-learn's name), exact, a callable "
            f"or None; got {optimizer!r}"
        )
    if optimizer == "exact":
        _check_exact(method)
        return "exact"
    return "lbfgs"


def restarts_of(value: Any) -> int:
    """Return the number of further starts."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ValueError(f"n_restarts_optimizer must be an integer >= 0; got {value!r}")
    return int(value)


def covariance_of(
    covariance: Any, tolerance: Any, method: Method, optimizer: Any, kernel: Kernel
) -> tuple[str, float]:
    """Return "auto", "dense", "low-rank" or "sparse", and the tolerance; what has no form but the dense one gets that.

    Raises
    ------
    ValueError
        If "low-rank" or "sparse" was asked for, and another argument does not go with it.
    """
    check_option("covariance", covariance, ("auto", "dense", "low-rank", "sparse"))
    tolerance = check_tolerance(tolerance)
    reason = ""
    if not method.any_form:
        reason = (
            "with this method: another form is for 'ep', 'laplace', 'twisted-ep', 'minimax-tilting' or 'importance'; "
            f"got {type(method).__name__}"
        )
    elif callable(optimizer) or optimizer == "exact":
        reason = f"with optimizer={optimizer!r}: inducing inputs or neighbours are chosen anew by 'lbfgs' alone"
    elif not kernel.requires_vector_input:
        reason = f"with kernel {kernel}, whose inputs are no vectors"
    if reason and covariance in ("low-rank", "sparse"):
        raise ValueError(f"covariance must be 'auto' or 'dense' {reason}")
    return ("dense" if reason else covariance), tolerance


def uses_softmax(multi_class: Any, method: Method) -> bool:
    """Return whether more than two classes are fitted at once."""
    if multi_class == "one_vs_one":
        raise ValueError(
            "multi_class='one_vs_one' gives no probabilities; use 'one_vs_rest', or "
            "sklearn.multiclass.OneVsOneClassifier around this class"
        )
    check_option("multi_class", multi_class, ("auto", "one_vs_rest", "softmax"))
    laplace = isinstance(method, Laplace)
    if multi_class == "softmax" and not laplace:
        raise ValueError(
            "multi_class='softmax' needs inference='laplace', the only method with that likelihood; got "
            f"{type(method).__name__}"
        )
    return laplace and multi_class != "one_vs_rest"


def softmax_of(method: Method, classes: int) -> MulticlassLaplace:
    """Return the options of the softmax that those of Laplace's method for two classes stand for."""
    assert isinstance(method, Laplace)
    if method.predictive != "exact":
        raise ValueError(
            f"predictive must be 'exact' with more than two classes; got {method.predictive!r} with "
            f"{classes} classes: MacKay's approximation is of the logistic function, and not of the softmax"
        )
    return MulticlassLaplace(method.tolerance, method.max_iterations)


def _check_exact(method: Method) -> None:
    """Refuse a method whose evidence twisted EP's is not."""
    name = type(method).__name__
    remedy = "use inference='twisted-ep', or optimizer='lbfgs'"
    if isinstance(method, Laplace) and method.likelihood != "probit":
        raise ValueError(
            f"optimizer='exact' needs the probit likelihood, whose evidence is an orthant probability; got "
            f"likelihood={method.likelihood!r}: {remedy}"
        )
    if isinstance(method, Laplace | ExpectationPropagation):
        raise ValueError(
            f"optimizer='exact' needs a method for the exact posterior of two classes; got {name}, an approximation "
            f"that climbs its own evidence, with the softmax for several classes as without: {remedy}"
        )
    if isinstance(method, PseudoMarginal):
        raise ValueError(
            f"optimizer='exact' needs a method with one set of hyperparameters; {name} integrates over them, and "
            f"nothing is maximised: {remedy}"
        )
