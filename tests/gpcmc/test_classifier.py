import doctest

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.estimator_checks import parametrize_with_checks
from truths import reference

import gpcmc.classifier
from gpcmc._memory import Limit
from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.gp import prior, rbf
from gpcmc.inference import (
    METHODS,
    ExpectationPropagation,
    Laplace,
    Orthant,
    Twisted,
    infer,
    method_class,
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        GaussianProcessClassifier(),
        GaussianProcessClassifier(inference="laplace", n_restarts=1),
        GaussianProcessClassifier(inference=Twisted(8, 4), optimizer=None, surface="exact"),
        *(
            GaussianProcessClassifier(inference=method, optimizer=None)
            for method in ("laplace", "ep", Orthant(samples=2000))
        ),
    ]
)
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", [Laplace(), ExpectationPropagation()])
def test_it_says_what_the_functions_say(method):
    X, y, X_star, _, _ = reference("R", "R_alpha3_beta2_truth")
    labels = np.where(y > 0, "versicolor", "setosa")
    classifier = GaussianProcessClassifier(rbf(3, 2), inference=method, optimizer=None)
    classifier.fit(X, labels)
    result = infer(method, prior(rbf(3, 2), X, X_star), y, rng=None)
    assert list(classifier.classes_) == ["setosa", "versicolor"]
    assert classifier.log_marginal_likelihood_ == result.log_evidence
    assert classifier.log_marginal_likelihood_se_ == 0.0
    p = classifier.predict_proba(X_star)
    np.testing.assert_allclose(p[:, 1], result.probability, atol=1e-14)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    expected = np.where(result.probability >= 0.5, "versicolor", "setosa")
    assert (classifier.predict(X_star) == expected).all()


#: Options that make the methods that draw quick.
QUICK = {
    "ess": {"samples": 1600, "burn_in": 10, "temperatures": 10},
    "hmc": {"samples": 160, "burn_in": 5, "temperatures": 5, "tuning": 20},
    "control-variables": {"iterations": 100, "burn_in": 10, "adaptation_rounds": 1},
    "pseudo-marginal": {"iterations": 30, "burn_in": 20, "chains": 2, "draws": 8},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short runs
@pytest.mark.parametrize("name", METHODS)
def test_every_method_classifies(name):
    X, y, X_star, _, p = reference("R", "R_alpha3_beta2_truth")
    X, y = X[:40], y[:40]
    method = METHODS[name](**QUICK.get(name, {}))
    first, again = (
        GaussianProcessClassifier(rbf(3, 2), inference=method, optimizer=None, random_state=1).fit(
            X, y
        )
        for _ in range(2)
    )
    found = first.predict_proba(X_star)
    np.testing.assert_array_equal(found, again.predict_proba(X_star))
    assert (
        np.abs(found[:, 1] - p).mean() < 0.15
    )  # 40 of 100 patterns, and another prior for the last method
    if name in ("control-variables", "pseudo-marginal"):
        with pytest.raises(AttributeError, match="gives no marginal likelihood"):
            _ = first.log_marginal_likelihood_
        assert not hasattr(first, "log_marginal_likelihood_se_")
    else:
        assert -40 * np.log(2) < first.log_marginal_likelihood_ < -10
        assert first.log_marginal_likelihood_se_ >= 0.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short runs
@pytest.mark.parametrize("name", ["orthant", "laplace", "ep", "twisted-ep", "best"])
def test_a_name_stands_for_the_default_options(name):
    X, y, _, _, _ = reference("L")
    by_name, by_options = (
        GaussianProcessClassifier(inference=inference, optimizer=None, random_state=1).fit(X, y)
        for inference in (name, method_class(name)())
    )
    assert by_name.log_marginal_likelihood_ == by_options.log_marginal_likelihood_


def test_options_survive_a_clone():
    options = ExpectationPropagation(tolerance=1e-6)
    classifier = clone(GaussianProcessClassifier(rbf(1, 1), inference=options))
    assert classifier.inference == options


def test_the_callers_kernel_is_not_touched():
    kernel = rbf(1, 1)
    classifier = GaussianProcessClassifier(kernel, optimizer=None).fit([[0.0], [1.0]], [0, 1])
    assert classifier.kernel_ == kernel and classifier.kernel_ is not kernel
    X, y, _, _, _ = reference("R", "R_alpha3_beta2_truth")
    fitted = GaussianProcessClassifier(kernel).fit(X, y)
    assert fitted.kernel_ != kernel and kernel == rbf(1, 1)


@pytest.mark.parametrize("state", [0, None, np.random.default_rng(0), np.random.RandomState(0)])
def test_any_usual_random_state_will_do(state):
    GaussianProcessClassifier(optimizer=None, random_state=state).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"inference": "ep"}, [1, 1, 1], "y must hold two classes at least; got one class only"),
        (
            {"multi_class": "one_vs_one"},
            [1, 2, 3],
            "multi_class='one_vs_one' gives no probabilities",
        ),
        ({"multi_class": "softmax"}, [1, 2, 3], "multi_class='softmax' needs inference='laplace'"),
        ({"multi_class": "crammer"}, [1, 2, 3], "multi_class must be one of auto, one_vs_rest"),
        (
            {"inference": "vb"},
            [0, 1, 1],
            "inference must be one of orthant, twisted-ep, minimax-tilting, .*best for twisted-ep",
        ),
        (
            {"inference": Laplace},
            [0, 1, 1],
            "inference must be a name of orthant, .* or an instance",
        ),
        ({"kernel": "rbf"}, [0, 1, 1], "kernel must be one of .* or None; got 'rbf'"),
        ({"kernel": RBF}, [0, 1, 1], "kernel must be one of"),
        ({"inference": "ep", "random_state": "x"}, [0, 1, 1], "random_state must be"),
        ({"optimizer": "adam"}, [0, 1, 1], "optimizer must be one of lbfgs, .* got 'adam'"),
        ({"n_restarts": -1}, [0, 1, 1], "n_restarts must be an integer >= 0; got -1"),
        ({"n_restarts": 1.5}, [0, 1, 1], "n_restarts must be an integer >= 0"),
        ({"n_restarts": 1, "n_restarts_optimizer": 2}, [0, 1, 1], "two names of one number"),
        ({"max_iter_predict": 0}, [0, 1, 1], "max_iter_predict must be an integer >= 1"),
    ],
)
def test_bad_input_is_named(options, y, message):
    with pytest.raises(ValueError, match=message):
        GaussianProcessClassifier(**options).fit([[0.0], [1.0], [2.0]], y)


def test_the_example_of_the_docstring():
    assert doctest.testmod(gpcmc.classifier).failed == 0


def test_it_must_be_fitted_first():
    with pytest.raises(NotFittedError):
        GaussianProcessClassifier().predict([[0.0]])


def test_a_size_is_refused_before_anything_is_computed(monkeypatch):
    X, label = np.zeros((30, 2)), np.arange(30) % 3
    machine = Limit(1000.0, "this machine has")
    monkeypatch.setattr("gpcmc._validation.available_memory", lambda: machine)
    monkeypatch.setattr("gpcmc._problem.prior", None)  # not even the covariance
    classifier = GaussianProcessClassifier(rbf(1, 1), optimizer=None)
    with pytest.raises(MemoryError, match=r"ExpectationPropagation needs about .* n = 30"):
        classifier.fit(X, label == 0)
    with pytest.raises(MemoryError, match=r"Laplace's method with 3 classes needs .* n = 30"):
        classifier.set_params(inference="laplace").fit(X, label)


def test_a_size_that_low_rank_would_fit_is_told_so(monkeypatch):
    """Not for a method or an optimizer that has no form for it."""
    X, label = np.zeros((5000, 2)), np.arange(5000) % 2
    machine = Limit(1000.0, "this machine has")
    monkeypatch.setattr("gpcmc._validation.available_memory", lambda: machine)
    classifier = GaussianProcessClassifier(rbf(1, 1), optimizer=None)
    for inference, told in (("ep", True), ("laplace", True), ("twisted-ep", True), ("hmc", False)):
        with pytest.raises(MemoryError, match="n = 5000") as error:
            classifier.set_params(inference=inference).fit(X, label)
        assert ("approximation='low-rank' fits" in str(error.value)) == told
