"""The classifier: scikit-learn's checks, arguments, several classes, warnings, reports of users, and threads."""

import copy
import doctest
import pickle
import threading
import time
import warnings
from unittest import SkipTest

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier as ScikitLearn
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    ExpSineSquared,
    WhiteKernel,
)
from sklearn.gaussian_process.tests._mini_sequence_kernel import MiniSeqKernel
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits
from truths import reference

import gpcmc._memory
import gpcmc.classifier
from gpcmc._memory import Limit
from gpcmc._threads import one_thread
from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.gp import prior, rbf
from gpcmc.inference import (
    METHODS,
    EllipticalSlice,
    ExpectationPropagation,
    ImportanceSampling,
    Laplace,
    Orthant,
    PseudoMarginal,
    Twisted,
    infer,
)
from gpcmc.posterior import NOT_CONVERGED, OK

QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LOGISTIC = Laplace(likelihood="logistic")
MOONS = make_moons(60, noise=0.3, random_state=0)
FIXED = {"kernel": 4.0 * RBF(0.7), "optimizer": None, "random_state": 0}


def told(call):
    """Return the result of a call, and its warnings about convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(w.message) for w in caught if w.category is ConvergenceWarning]


def noisy_problem(seed=0, n=80, d=2):
    """Labels that depend on the first input alone, with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(np.sin(2 * X[:, 0]) + 0.4 * rng.standard_normal(n) > 0, 1.0, -1.0)


# --- as an estimator of scikit-learn


@QUIET
@parametrize_with_checks(
    [GaussianProcessClassifier(), GaussianProcessClassifier(inference="laplace", optimizer=None)]
)
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@QUIET
@pytest.mark.parametrize(
    "options",
    [
        # one hyperparameter is left to search
        {"kernel": 1.0 * RBF(1.0, "fixed"), "inference": Twisted(8, 4), "optimizer": "exact"},
        {"inference": Orthant(samples=2000), "optimizer": None},
        {"inference": "laplace", "multi_class": "one_vs_rest"},
        {"covariance": "low-rank", "optimizer": None},
    ],
)
def test_others_pass_the_checks_that_are_quick(options):
    """Of parameters, tags, attributes, input types and errors; not those that fit again and again."""
    slow = {
        f"check_{name}": "slow"
        for name in (
            "classifiers_train", "classifiers_classes", "fit2d_1sample", "methods_subset_invariance",
            "methods_sample_order_invariance", "dict_unchanged", "estimators_nan_inf", "sample_weights_list",
            "estimators_pickle", "classifiers_regression_target", "pipeline_consistency", "dtype_object",
            "estimators_dtypes", "estimators_fit_returns_self", "readonly_memmap_input", "fit_check_is_fitted",
            "positive_only_tag_during_fit",
        )
    }  # fmt: skip
    failed = {}
    for estimator, check in estimator_checks_generator(
        GaussianProcessClassifier(**options), expected_failed_checks=slow, mark="skip"
    ):
        try:
            check(estimator)
        except SkipTest:
            pass
        except Exception as error:
            failed[repr(check)] = error
    assert failed == {}


def test_the_example_of_the_docstring():
    assert doctest.testmod(gpcmc.classifier).failed == 0


def test_options_survive_a_clone_and_the_callers_kernel_is_not_touched():
    options = ExpectationPropagation(tolerance=1e-6)
    assert clone(GaussianProcessClassifier(rbf(1, 1), inference=options)).inference == options
    kernel = rbf(1, 1)
    model = GaussianProcessClassifier(kernel, optimizer=None).fit([[0.0], [1.0]], [0, 1])
    assert model.kernel_ == kernel and model.kernel_ is not kernel
    X, y, _, _, _ = reference("R", "R_alpha3_beta2_truth")
    assert GaussianProcessClassifier(kernel).fit(X, y).kernel_ != kernel == rbf(1, 1)
    with pytest.raises(NotFittedError):
        GaussianProcessClassifier().predict([[0.0]])
    with pytest.raises(NotFittedError):
        GaussianProcessClassifier().log_marginal_likelihood()


def test_options_of_a_method_can_be_searched():
    X, y = MOONS
    model = GaussianProcessClassifier(FIXED["kernel"], "laplace", optimizer=None)
    grid = {"inference__likelihood": ["probit", "logistic"]}
    search = GridSearchCV(model, grid, cv=2, scoring="neg_log_loss").fit(X, y)
    chosen = search.best_params_["inference__likelihood"]
    assert search.best_estimator_.inference == Laplace(likelihood=chosen)
    model.set_params(inference="twisted-ep", inference__points=256)
    assert model.get_params()["inference__points"] == clone(model).inference.points == 256
    model.set_params(inference=PseudoMarginal(), inference__predictor__samples=64)
    assert model.inference.predictor.samples == 64
    with pytest.raises(ValueError, match="inference__point is no option of PseudoMarginal"):
        model.set_params(inference__point=1)


# --- arguments


@pytest.mark.parametrize("state", [0, None, np.random.default_rng(0), np.random.RandomState(0)])
def test_any_usual_random_state_will_do(state):
    GaussianProcessClassifier(optimizer=None, random_state=state).fit([[0.0], [1.0]], [0, 1])


THREE, TWO = [1, 2, 3], [0, 1, 1]
TWISTED = {"inference": Twisted(points=64), "optimizer": "exact"}


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"inference": "ep"}, [1, 1, 1], "y must hold two classes at least; got one class only"),
        ({"multi_class": "one_vs_one"}, THREE, "multi_class='one_vs_one' gives no probabilities"),
        ({"multi_class": "softmax"}, THREE, "multi_class='softmax' needs inference='laplace'"),
        ({"multi_class": "crammer"}, THREE, "multi_class must be one of auto, one_vs_rest"),
        (
            {"inference": "vb"},
            TWO,
            "inference must be one of orthant, twisted-ep, minimax-tilting, .*best for twisted-ep",
        ),
        ({"inference": Laplace}, TWO, "inference must be a name of orthant, .* or an instance"),
        ({"kernel": "rbf"}, TWO, r"kernel must be one of .*1\.0 \* RBF\(1\.0\).* got 'rbf'"),
        ({"kernel": RBF}, TWO, "kernel must be one of"),
        ({"kernel": RBF(-1.0)}, TWO, "length_scale must be a finite number > 0; got -1.0"),
        ({"kernel": 0.0 * RBF(1.0)}, TWO, "k1__constant_value must be a finite number > 0; got 0"),
        ({"kernel": RBF(np.nan)}, TWO, "length_scale must be a finite number > 0; got nan"),
        ({"random_state": "x"}, TWO, "random_state must be"),
        ({"optimizer": "adam"}, TWO, "optimizer must be one of lbfgs, .* got 'adam'"),
        ({"n_restarts_optimizer": -1}, TWO, "n_restarts_optimizer must be an integer >= 0; got -1"),
        ({"n_restarts_optimizer": 1.5}, TWO, "n_restarts_optimizer must be an integer >= 0"),
        ({"max_iter_predict": 0}, TWO, "max_iter_predict must be an integer >= 1"),
        ({"covariance": "banded"}, TWO, "covariance must be one of auto, dense, low-rank, sparse"),
        ({"covariance": None}, TWO, "covariance must be one of auto, dense, low-rank, sparse"),
        ({"tolerance": 1.0}, TWO, "tolerance is the share of the prior variance"),
        (
            {"covariance": "low-rank", "inference": "hmc"},
            TWO,
            "covariance must be 'auto' or 'dense' with this method",
        ),
        (
            {"covariance": "low-rank", "optimizer": minimize},
            TWO,
            "covariance must be 'auto' or 'dense' with optimizer",
        ),
        (TWISTED | {"inference": "ep"}, TWO, "optimizer='exact' needs .*got ExpectationPropa"),
        (
            TWISTED | {"inference": "laplace", "multi_class": "softmax"},
            TWO,
            "optimizer='exact' needs .*softmax",
        ),
        (TWISTED | {"inference": LOGISTIC}, TWO, "optimizer='exact' needs the probit"),
        (TWISTED | {"inference": PseudoMarginal()}, TWO, "PseudoMarginal integrates over them"),
        (TWISTED | {"covariance": "low-rank"}, TWO, "covariance must be 'auto' or 'dense' with"),
        (
            {"kernel": RBF(1.0, (1e-2, np.inf)) + WhiteKernel(0.1), "n_restarts_optimizer": 2},
            TWO,
            "n_restarts_optimizer=2 needs a kernel with finite bounds",
        ),
    ],
)
def test_bad_arguments_are_named(options, y, message):
    with pytest.raises(ValueError, match=message):
        GaussianProcessClassifier(**options).fit([[0.0], [1.0], [2.0]], y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": CompoundKernel([RBF(), RBF()])}, "kernel cannot be a CompoundKernel"),
        ({"kernel": RBF(np.ones(3))}, r"kernel RBF.* does not fit inputs of shape \(2, 2\)"),
        ({"kernel": 30.0 * ExpSineSquared()}, "no covariance on these inputs .* one input alone"),
        ({"inference": Orthant(samples=2), **FIXED}, r"inference=Orthant\(scheme='adapted'\)"),
    ],
)
def test_the_message_names_the_cause(options, message):
    X, y = MOONS
    with pytest.raises((ValueError, RuntimeError), match=message):
        GaussianProcessClassifier(**options).fit(X * 3.0, y)


def test_text_and_theta_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="X holds text .* encode such columns"):
        GaussianProcessClassifier().fit(np.array([["a", 1.0], ["b", 2.0]], dtype=object), [0, 1])
    X, y = noisy_problem(8, n=20)
    model = GaussianProcessClassifier(optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match=r"theta must have shape \(2,\) as kernel_.theta has"):
        model.log_marginal_likelihood([0.0])
    with pytest.raises(ValueError, match="theta must be finite"):
        model.log_marginal_likelihood([0.0, np.nan])


def test_sizes_that_do_not_fit_in_memory(monkeypatch):
    """Refused before the covariance is made; above 2000 patterns "auto" takes the other form, and does not refuse."""
    X, label = np.zeros((30, 2)), np.arange(30) % 3
    machine = Limit(1000.0, "this machine has")
    monkeypatch.setattr("gpcmc._validation.available_memory", lambda: machine)
    model = GaussianProcessClassifier(rbf(1, 1), optimizer=None)
    with pytest.raises(MemoryError, match=r"ExpectationPropagation needs about .* n = 30"):
        model.fit(X, label == 0)
    with pytest.raises(MemoryError, match=r"Laplace's method .*needs .* n = 30"):
        model.set_params(inference="laplace").fit(X, label)
    monkeypatch.setattr("gpcmc.evidence.forms.available_memory", lambda: machine)
    X = np.random.default_rng(0).standard_normal((2100, 1))
    fitted = GaussianProcessClassifier(rbf(1, 1), optimizer=None).fit(X, X[:, 0] > 0.3)
    assert fitted.covariance_ == "low-rank"
    with pytest.raises(MemoryError, match="n = 2100"):
        GaussianProcessClassifier(rbf(1, 1), "hmc", optimizer=None).fit(X, X[:, 0] > 0)


def test_predictions_that_do_not_fit_are_refused(monkeypatch):
    X, y = MOONS
    model = GaussianProcessClassifier(**FIXED).fit(X, y)
    limit = Limit(8.0 * 4 * 60 * 10, "this machine has")
    monkeypatch.setattr(gpcmc._memory, "available_memory", lambda: limit)
    assert len(model.predict_proba(X[:10])) == 10
    with pytest.raises(MemoryError, match="Predict at most 10 at a time"):
        model.predict_proba(X[:11])


# --- methods behind it


@pytest.mark.parametrize("method", [Laplace(), ExpectationPropagation()])
def test_it_says_what_the_functions_say(method):
    X, y, X_star, _, _ = reference("R", "R_alpha3_beta2_truth")
    labels = np.where(y > 0, "versicolor", "setosa")
    model = GaussianProcessClassifier(rbf(3, 2), inference=method, optimizer=None).fit(X, labels)
    result = infer(method, prior(rbf(3, 2), X, X_star), y, rng=None)
    assert list(model.classes_) == ["setosa", "versicolor"] and model.covariance_ == "dense"
    assert model.log_marginal_likelihood_ == result.log_evidence
    assert model.log_marginal_likelihood_se_ == 0.0
    p = model.predict_proba(X_star)
    np.testing.assert_allclose(p[:, 1], result.probability, atol=1e-14)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    expected = np.where(result.probability >= 0.5, "versicolor", "setosa")
    assert (model.predict(X_star) == expected).all()


#: Options that make the methods that draw quick.
QUICK = {
    "ess": {"samples": 1600, "burn_in": 10, "temperatures": 10},
    "hmc": {"samples": 160, "burn_in": 5, "temperatures": 5, "tuning": 20},
    "control-variables": {"iterations": 100, "burn_in": 10, "adaptation_rounds": 1},
    "pseudo-marginal": {"iterations": 30, "burn_in": 20, "chains": 2, "draws": 8},
}


@QUIET
@pytest.mark.parametrize("name", METHODS)
def test_every_method_classifies(name):
    X, y, X_star, _, p = reference("R", "R_alpha3_beta2_truth")
    X, y = X[:40], y[:40]
    options = {"inference": METHODS[name](**QUICK.get(name, {})), "optimizer": None}
    first, again = (
        GaussianProcessClassifier(rbf(3, 2), random_state=1, **options).fit(X, y) for _ in range(2)
    )
    found = first.predict_proba(X_star)
    np.testing.assert_array_equal(found, again.predict_proba(X_star))
    # 40 of 100 patterns, and another prior for the last method
    assert np.abs(found[:, 1] - p).mean() < 0.15
    if name in ("control-variables", "pseudo-marginal"):
        with pytest.raises(AttributeError, match="gives no marginal likelihood"):
            _ = first.log_marginal_likelihood_
        assert not hasattr(first, "log_marginal_likelihood_se_")
    else:
        assert -40 * np.log(2) < first.log_marginal_likelihood_ < -10
        assert first.log_marginal_likelihood_se_ >= 0.0


@QUIET
@pytest.mark.parametrize("optimizer", [None, "fmin_l_bfgs_b"])
def test_kernels_on_strings_are_taken(optimizer):
    words, y = ["A", "AB", "B", "AA", "BB", "ABB"], [1, 0, 1, 1, 1, 0]
    model = GaussianProcessClassifier(3.0 * MiniSeqKernel(), optimizer=optimizer).fit(words, y)
    K = model.kernel_(np.array(words))
    direct = model.posterior_.predict(K, K.diagonal()).probability
    np.testing.assert_array_equal(model.predict_proba(words)[:, 1], direct)
    assert direct[1] < direct[0]
    assert model.sample_latent(words, 3).shape == (6, 3)


def test_ties_are_the_same_in_predict_and_predict_proba():
    model = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit([[-1.0], [1.0]], ["a", "b"])
    at = [[0.0], [1e3], [-1e3]]
    np.testing.assert_array_equal(model.predict_proba(at), 0.5)
    assert list(model.predict(at)) == ["a", "a", "a"]


def test_hard_counts_repeat():
    X, y = MOONS
    method = Orthant(samples=3000, count="hard")
    model, _ = told(lambda: GaussianProcessClassifier(inference=method, **FIXED).fit(X, y))
    p = model.predict_proba(X)
    for other in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), p)
    some = [model.predict_proba(X[k : k + 1])[0] for k in (0, 7, 59)]
    np.testing.assert_array_equal(some, p[[0, 7, 59]])


def test_low_rank_behind_the_classifier():
    X, y = noisy_problem(3, n=300)
    dense, low = (
        GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None, covariance=form).fit(X, y)
        for form in ("dense", "low-rank")
    )
    assert (dense.covariance_, low.covariance_) == ("dense", "low-rank")
    assert low.diagnostics_["rank"] < 200 and low.status_ == OK
    assert low.log_marginal_likelihood_ == pytest.approx(dense.log_marginal_likelihood_, abs=0.01)
    p, error = low.predict_proba(X, return_std=True)
    assert np.abs(p - dense.predict_proba(X)).max() < 1e-3 and 0.0 < error.max() < 0.01
    for model in (dense, low):
        mean, variance = model.latent_mean_and_variance(X[:9])
        assert mean == pytest.approx(dense.latent_mean_and_variance(X[:9])[0], abs=0.05)
        assert (variance > 0).all()
    value, slope = low.log_marginal_likelihood(low.kernel_.theta, eval_gradient=True)
    expected = dense.log_marginal_likelihood(low.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(expected[0], abs=0.05)
    np.testing.assert_allclose(slope, expected[1], atol=0.1)
    searched = GaussianProcessClassifier(covariance="low-rank").fit(X, y)
    best = GaussianProcessClassifier().fit(X, y)
    np.testing.assert_allclose(searched.kernel_.theta, best.kernel_.theta, atol=1e-6)


# --- latent values


def test_latent_moments_are_public():
    X, y = MOONS
    model = GaussianProcessClassifier(**FIXED).fit(X, y)
    mean, variance = model.latent_mean_and_variance(X[:5])
    K = model.kernel_(X)
    assert mean == pytest.approx(K[:5] @ model.posterior_.a, abs=1e-12)
    Sigma = np.linalg.inv(np.linalg.inv(K + 1e-10 * np.eye(60)) + np.diag(model.posterior_.S))
    assert variance == pytest.approx(Sigma.diagonal()[:5], abs=1e-5)
    f = model.sample_latent(X[:5], 20_000, random_state=1)
    np.testing.assert_allclose(np.cov(f), Sigma[:5, :5], atol=0.05 * variance.max())
    told(lambda: model.set_params(inference="orthant", inference__samples=2000).fit(X, y))
    for ask in (model.latent_mean_and_variance, model.sample_latent):
        with pytest.raises(ValueError, match="Orthant keeps no Gaussian of the latent function"):
            ask(X)


@QUIET
@pytest.mark.parametrize("inference", ["ep", "laplace"])
@pytest.mark.parametrize("covariance", ["dense", "low-rank"])
def test_latent_moments_and_draws_of_several_classes(inference, covariance):
    """20,000 draws: means within 5 standard errors, variances within 5 %, 24 comparisons each."""
    X, y = load_iris(return_X_y=True)
    X, y, at = X[::3, :2], y[::3], X[1::19, :2]
    options = {"optimizer": None, "covariance": covariance}
    model = GaussianProcessClassifier(2.0 * RBF(1.0), inference, **options).fit(X, y)
    mean, variance = model.latent_mean_and_variance(at)
    f = model.sample_latent(at, 20_000)
    assert mean.shape == variance.shape == (8, 3) and f.shape == (8, 3, 20_000)
    assert (np.abs(f.mean(axis=2) - mean) < 5 * np.sqrt(variance / 20_000)).all()
    np.testing.assert_allclose(f.var(axis=2), variance, rtol=0.05)
    assert (model.sample_latent(at, 2) == model.sample_latent(at, 2)).all()
    if inference == "laplace":  # the softmax of draws is what its probabilities average
        p = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(p.mean(axis=2), model.predict_proba(at), atol=0.01)


# --- several classes


@QUIET
@pytest.mark.parametrize(
    "inference", ["ep", "laplace", Orthant(samples=2000, scheme="adapted"), "twisted-ep"]
)
@pytest.mark.parametrize("optimizer", [None, "lbfgs"])
def test_names_of_classes_do_not_matter(inference, optimizer):
    if optimizer and inference not in ("ep", "laplace"):
        pytest.skip("the search is that of 'ep'")
    X, y = make_blobs(45, centers=[(-2, 0), (2, 0), (0, 2.5)], cluster_std=1.2, random_state=0)
    names = np.array([2, 0, 1])
    options = {"inference": inference, "optimizer": optimizer, "random_state": 3}
    first = GaussianProcessClassifier(2.0 * RBF(1.5), **options).fit(X, y)
    other = GaussianProcessClassifier(2.0 * RBF(1.5), **options).fit(X, names[y])
    grid = np.column_stack([one.ravel() for one in np.meshgrid(*2 * [np.linspace(-4, 4, 12)])])
    p, error = first.predict_proba(grid, return_std=True)
    # the softmax's search sums over classes in another order
    near = 1e-4 if optimizer and inference == "laplace" else 1e-9
    np.testing.assert_allclose(other.predict_proba(grid)[:, names], p, atol=near)
    assert error.shape == p.shape and (error >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(first.predict(grid), p.argmax(axis=1))
    if inference in ("ep", "laplace"):
        np.testing.assert_allclose(first.predict_proba([[1e3, 0.0]]), 1 / 3, rtol=1e-12)


def test_more_classes_are_fitted_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    X, label = X[::3, :2], np.array(["setosa", "versicolor", "virginica"])[y[::3]]
    kernel = 2.0 * RBF(1.0)
    model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, label)
    each = [
        GaussianProcessClassifier(kernel, optimizer=None).fit(X, label == c) for c in model.classes_
    ]
    q = np.column_stack([one.predict_proba(X)[:, 1] for one in each])
    np.testing.assert_allclose(model.predict_proba(X), q / q.sum(axis=1, keepdims=True), rtol=1e-14)
    alone = [one.log_marginal_likelihood_ for one in each]
    assert model.log_marginal_likelihood_ == pytest.approx(np.mean(alone), rel=1e-14)
    theta = model.kernel_.theta + 0.1
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    ahead = model.log_marginal_likelihood(theta + 1e-5 * gradient)
    assert ahead - value == pytest.approx(1e-5 * gradient @ gradient, rel=1e-3)
    assert model.kernel_ == CompoundKernel([kernel] * 3)
    assert repr(model.kernel_).count("RBF(length_scale=1)") == 3
    posterior = model.posterior_
    assert posterior.work["sweeps"] == sum(one.work["sweeps"] for one in posterior.posteriors)
    with pytest.raises(ValueError, match=r"\.posteriors\[0\]"):
        posterior.predict(np.eye(50), np.ones(50))
    assert isinstance(pickle.loads(pickle.dumps(model)).predict(X)[0], str)


@QUIET
def test_classes_start_from_each_others_optimum_and_in_any_number_of_processes():
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], y[::2]
    model = GaussianProcessClassifier().fit(X, y)
    for c, fitted in enumerate(model._fits):
        alone = GaussianProcessClassifier().fit(X, y == c)
        assert fitted.found.log_evidence > alone.log_marginal_likelihood_ - 1e-3
    parallel = GaussianProcessClassifier(n_jobs=2).fit(X, y)
    assert (parallel.kernel_.theta == model.kernel_.theta).all()
    np.testing.assert_array_equal(parallel.predict_proba(X), model.predict_proba(X))


# --- the search, as a user sees it


@QUIET
@pytest.mark.parametrize(
    "kernel", [1.0 * RBF(1.0), 1.0 * RBF([1.0, 1.0]), 1.0 * RBF(1.0) + ConstantKernel(0.1)]
)
def test_the_optimum_is_as_high_as_that_of_scikit_learn(kernel):
    X, y = make_moons(80, noise=0.35, random_state=2)
    peer = ScikitLearn(kernel).fit(X, y)
    model = GaussianProcessClassifier(kernel, LOGISTIC).fit(X, y)
    assert model.log_marginal_likelihood_ > peer.log_marginal_likelihood_value_ - 1e-5
    theta = peer.base_estimator_.kernel_.theta + 0.1
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    expected = peer.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == model.log_marginal_likelihood(theta) == pytest.approx(expected[0], rel=1e-9)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("inference", ["laplace", "ep", LOGISTIC])
def test_the_marginal_likelihood_is_flat_at_the_optimum(inference):
    X, y = noisy_problem(1)
    start = 2.0 * RBF(0.5)
    model = GaussianProcessClassifier(start, inference).fit(X, y)
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_, abs=1e-7)
    assert value > model.log_marginal_likelihood(start.theta) + 0.1
    assert np.abs(gradient).max() < 1e-2 and model.at_bound_ == ()
    nearby = model.kernel_.theta + np.random.default_rng(0).normal(0, 0.2, size=(10, 2))
    assert all(model.log_marginal_likelihood(theta) < value for theta in nearby)


def test_restarts_are_seeded_and_find_no_less():
    X, y = noisy_problem(4)
    poor = 1.0 * RBF(1e-4, (1e-4, 1e3))  # every pattern on its own: no gradient
    first, again = (
        GaussianProcessClassifier(poor, "laplace", n_restarts_optimizer=4, random_state=5).fit(X, y)
        for _ in range(2)
    )
    other = GaussianProcessClassifier(1.0 * RBF(1.0), "laplace").fit(X, y)
    assert first.log_marginal_likelihood_ > other.log_marginal_likelihood_ - 1e-3
    np.testing.assert_array_equal(first.kernel_.theta, again.kernel_.theta)


def test_a_monte_carlo_method_reports_its_evidence_at_the_optimum_of_ep():
    X, y = noisy_problem(5)
    by_ep = GaussianProcessClassifier().fit(X, y)
    exact = GaussianProcessClassifier(inference="twisted-ep", random_state=1).fit(X, y)
    np.testing.assert_allclose(exact.kernel_.theta, by_ep.kernel_.theta)
    expected = Twisted().fit(prior(exact.kernel_, X), y, rng=np.random.default_rng(1))
    assert exact.log_marginal_likelihood_ == expected.log_evidence
    assert 0.0 < exact.log_marginal_likelihood_se_ == expected.log_evidence_se < 0.05
    # the surface that was climbed is EP's, which is near and not the same
    surface = exact.log_marginal_likelihood()
    assert surface == pytest.approx(by_ep.log_marginal_likelihood_, abs=1e-6)
    difference = abs(surface - exact.log_marginal_likelihood_)
    assert 5 * exact.log_marginal_likelihood_se_ < difference < 0.5


def test_the_defaults_serve_a_newcomer():
    (X, y), (X_star, y_star) = (make_moons(n, noise=0.3, random_state=n) for n in (100, 500))
    loss = {}
    for name, options in {
        "default": {},
        "unfitted": {"optimizer": None},
        "paper": {"inference": "orthant", "optimizer": None, "random_state": 0},
        "exact": {"inference": "twisted-ep", "random_state": 0},
    }.items():
        model = GaussianProcessClassifier(**options).fit(X, y)
        loss[name] = log_loss(y_star, model.predict_proba(X_star))
    assert loss["default"] < min(loss["unfitted"], loss["paper"]) - 0.01
    assert loss["default"] == pytest.approx(loss["exact"], abs=2e-3)


@QUIET
def test_nothing_is_fitted_where_nothing_can_be():
    X, y = noisy_problem(6, n=30)
    integrated = PseudoMarginal(iterations=12, burn_in=6, chains=2, draws=8)
    kernel = 1.0 * RBF(1.0)
    assert GaussianProcessClassifier(kernel, integrated, random_state=0).fit(X, y).kernel_ == kernel
    fixed = ConstantKernel(2.0, "fixed") * RBF(1.0, "fixed")
    model = GaussianProcessClassifier(fixed).fit(X, y)
    assert model.kernel_ == fixed and model.at_bound_ == ()
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_) and gradient.shape == (0,)


def test_an_own_optimizer_is_called_as_in_scikit_learn():
    X, y = MOONS
    seen = []

    def steepest(objective, start, bounds):
        value, slope = objective(start)
        seen.append((value, objective(start, eval_gradient=False)))
        return np.clip(start - 0.01 * slope, *bounds.T), value

    kernel = 1.0 * RBF(1.0)
    options = {"optimizer": steepest, "n_restarts_optimizer": 1}
    model = GaussianProcessClassifier(kernel, **options).fit(X, y)
    assert len(seen) == 2 and all(a == pytest.approx(b, rel=1e-9) for a, b in seen)
    value = model.log_marginal_likelihood(kernel.theta)
    assert -seen[0][0] == pytest.approx(value, abs=1e-5)


def test_a_search_says_where_it_is_and_how_long_it_will_take(capsys, monkeypatch):
    X, y = noisy_problem(2, n=500)
    monkeypatch.setattr("gpcmc.evidence.search._LONG", 1e-3)
    GaussianProcessClassifier(inference="laplace", verbose=1).fit(X, y)
    said = capsys.readouterr().out
    assert "evaluation 1: log marginal likelihood" in said and "posterior by Laplace" in said
    assert "500 patterns will take about" in said and "Faster: " in said
    GaussianProcessClassifier(inference="laplace").fit(X[:50], y[:50])
    assert capsys.readouterr().out == ""


def exact(**options):
    given = {"inference": Twisted(points=64), "optimizer": "exact", "random_state": 1}
    return GaussianProcessClassifier(1.0 * RBF(1.0), **(given | options))


def test_the_exact_surface_is_climbed():
    X, y = noisy_problem(2, 60)
    fitted, before = exact().fit(X, y), exact(optimizer="lbfgs").fit(X, y)
    found = fitted._fits[0].found
    assert found.converged and found.evaluations > before._fits[0].found.evaluations
    # the value at the end of the search, and the estimate there, whose points are others
    se = fitted.log_marginal_likelihood_se_
    assert found.log_evidence == pytest.approx(fitted.log_marginal_likelihood_, abs=7 * se)
    assert fitted.log_marginal_likelihood_value_ == pytest.approx(found.log_evidence, abs=1e-9)
    # it is higher than expectation propagation's optimum by more than the error, and flat
    one, two = (
        Twisted(points=1024).fit(prior(m.kernel_, X), y, rng=np.random.default_rng(7))
        for m in (before, fitted)
    )
    gain = two.log_evidence - one.log_evidence
    error = np.hypot(two.log_evidence_se, one.log_evidence_se)
    assert 0.5 > gain > -5 * error
    _, gradient = fitted.log_marginal_likelihood(eval_gradient=True)
    assert np.abs(gradient).max() < 0.05
    again = clone(fitted).fit(X, y)
    assert again.optimizer == "exact" and (again.kernel_.theta == fitted.kernel_.theta).all()
    assert again.log_marginal_likelihood_ == fitted.log_marginal_likelihood_
    code = np.digitize(X[:24, 0], [-0.4, 0.4])
    several, _ = told(lambda: exact(inference=Twisted(16, 4)).fit(X[:24], code))
    value, gradient = several.log_marginal_likelihood(eval_gradient=True)
    assert np.isfinite(value) and gradient.shape == (6,)


# --- what it warns of, and what not


def test_a_bound_is_named_where_the_evidence_rises_beyond_it():
    X, y = make_blobs(40, centers=[(-4, 0), (4, 0)], cluster_std=0.5, random_state=0)
    kernel = ConstantKernel(1.0, (0.1, 4.0)) * RBF(1.0)
    model, found = told(lambda: GaussianProcessClassifier(kernel, "laplace").fit(X, y))
    assert "k1__constant_value = 4 (upper)" in found[0] and "separable" in found[0]
    assert "k1__constant_value" in model.at_bound_
    # order of the inputs, and of a fixed hyperparameter before them
    X, y = noisy_problem(2, n=150)
    kernel = ConstantKernel(4.0, "fixed") * RBF([1.0, 1.0], (1e-2, 2.0))
    model, found = told(lambda: GaussianProcessClassifier(kernel, "laplace").fit(X[:, ::-1], y))
    assert found[0].startswith("k2__length_scale[0] = 2 (upper) ended at a bound")
    assert model.at_bound_ == ("k2__length_scale[0]",)


def test_a_bound_is_not_worth_a_word_where_the_evidence_is_flat():
    """Separable classes, and an input that is noise: the attribute names the bounds, and no warning does."""
    X = np.linspace(-1, 1, 20)[:, None]
    model, found = told(lambda: GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, X[:, 0] > 0))
    assert "k1__constant_value" in model.at_bound_ and not found
    assert model.kernel_.k1.constant_value == pytest.approx(1e5)
    wider = 1.0 * RBF(1.0)
    wider.k1.constant_value_bounds = (1e-5, 1e8)
    gain = GaussianProcessClassifier(wider).fit(X, X[:, 0] > 0).log_marginal_likelihood_
    assert 0.0 <= gain - model.log_marginal_likelihood_ < 0.1
    X, y = noisy_problem(2, n=150)
    kernel = 1.0 * RBF([1.0, 1.0], (1e-2, 1e2))
    model, found = told(lambda: GaussianProcessClassifier(kernel).fit(X, y))
    informative, noise = model.kernel_.k2.length_scale
    assert informative < 3.0 and noise > 30.0 and not found


def test_columns_that_are_not_in_one_scale_are_named():
    X, y = noisy_problem(6, n=120, d=3)
    X *= [0.01, 1.0, 240.0]
    raw, found = told(lambda: GaussianProcessClassifier().fit(X, y))
    assert "standard deviations from 0.00995 to 253" in found[0] and "StandardScaler" in found[0]
    scaled = StandardScaler().fit_transform(X)
    standardised, found = told(lambda: GaussianProcessClassifier().fit(scaled, y))
    assert standardised.log_marginal_likelihood_ > raw.log_marginal_likelihood_ + 2 and not found
    # nor where it does not matter
    X[:, 0] = scaled[:, 0] * 240.0
    X[:, 2] = 0.01 * scaled[:, 2]
    _, found = told(lambda: GaussianProcessClassifier().fit(X, y))
    assert not any("scale" in line for line in found)


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_inputs_too_far_apart_for_the_kernel_are_noticed(inference):
    X, y = noisy_problem(9, n=40, d=3)
    narrow = RBF(1.0, (1e-2, 1e2))  # bounds that forbid the scale of the data
    model, found = told(lambda: GaussianProcessClassifier(narrow, inference).fit(1e4 * X, y))
    assert "no two patterns are correlated" in found[0] and "Widen the bounds" in found[0]
    np.testing.assert_allclose(model.predict_proba(X), 0.5, atol=1e-3)
    _, found = told(lambda: GaussianProcessClassifier(RBF(1e3), inference).fit(1e3 * X, y))
    assert not found


@pytest.mark.parametrize(
    ("scale", "message"),
    [(RBF(1e3, (1e2, 1e5)), "far above all distances"), (RBF(1e-4, (1e-5, 1e-3)), "far below all")],
)
def test_a_length_scale_far_off_is_named(scale, message):
    X, y = MOONS
    _, found = told(lambda: GaussianProcessClassifier(1.0 * scale, "laplace").fit(X, y))
    assert len(found) == 1 and message in found[0]


def test_what_tells_something_of_the_classes_is_not_said_to_tell_nothing():
    """Rare positives: the evidence is near that of the shares, and probabilities are far from each other."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = np.zeros(200)
    X[:3], y[:3] = 3.0 + 0.1 * rng.standard_normal((3, 2)), 1
    model, found = told(lambda: GaussianProcessClassifier().fit(X, y))
    p = model.predict_proba(np.vstack([X, [[3.0, 3.0]]]))[:, 1]
    assert p[-1] > 0.3 > 0.1 > p[3:200].min() and not any("nothing" in line for line in found)
    noise = rng.integers(2, size=200)
    _, found = told(lambda: GaussianProcessClassifier().fit(X, noise))
    assert len(found) <= 1


def test_one_line_a_kind_and_not_one_a_class():
    X, y = make_blobs(60, centers=4, cluster_std=0.2, random_state=0)
    kernel = ConstantKernel(1.0, (0.1, 2.0)) * RBF(1.0)
    model, found = told(lambda: GaussianProcessClassifier(kernel).fit(X, y))
    assert len(model.at_bound_) >= 4 and all(": k1__" in name for name in model.at_bound_)
    assert len(found) == 1 and found[0].count("ended at a bound") == 1
    assert "(and likewise 1, 2, 3)" in found[0]


@pytest.mark.parametrize(
    ("method", "remedy"),
    [
        (Orthant(samples=1000), "more samples help"),
        (
            EllipticalSlice(samples=40, burn_in=5, chains=2, thin=2, temperatures=0),
            "more samples help",
        ),
        (ImportanceSampling(samples=64), "."),
    ],
)
def test_a_status_that_is_not_ok_is_a_warning(method, remedy):
    X, y = MOONS
    options = {**FIXED, "kernel": 50.0 * RBF(0.3)}
    model, found = told(lambda: GaussianProcessClassifier(inference=method, **options).fit(X, y))
    assert model.status_ == model.posterior_.status != OK
    assert model.diagnostics_ == model.posterior_.diagnostics
    assert len(found) == 1 and model.status_ in found[0] and remedy in found[0]
    assert type(method).__name__ in found[0]


def test_few_effective_samples_are_not_enough():
    X, y = MOONS
    options = {**FIXED, "kernel": 0.3 * RBF(1.0)}
    method = ImportanceSampling(samples=90)
    model, _ = told(lambda: GaussianProcessClassifier(inference=method, **options).fit(X, y))
    assert model.diagnostics_["effective_samples"] < 100
    assert model.status_ == NOT_CONVERGED
    lone = Orthant(samples=20)
    model, _ = told(lambda: GaussianProcessClassifier(inference=lone, **FIXED).fit(3.0 * X, y))
    assert model.diagnostics_["effective_eves"] < 2
    assert (model.predict_proba(3.0 * X, return_std=True)[1] == np.inf).all()
    assert model.log_marginal_likelihood_se_ == np.inf


# --- threads, and floating-point errors


def threads():
    return [(one["filepath"], one["num_threads"]) for one in threadpool_info()]


def test_the_limit_on_threads_is_the_processs_and_is_put_back():
    with threadpool_limits(2):
        before, inside, errors = threads(), [], []

        def work(k):
            for _ in range(20):
                try:
                    with one_thread():
                        time.sleep(1e-4 * k)
                        inside.extend(number for _, number in threads())
                except Exception as error:
                    errors.append(error)

        workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
        assert not errors and set(inside) == {1} and threads() == before
        with pytest.raises(ValueError, match="inside"), one_thread():
            raise ValueError("inside")
        assert threads() == before


def test_fits_in_threads_have_the_same_bits_and_leave_the_process_as_it_was():
    X, y = noisy_problem(1, n=150)
    serial = [GaussianProcessClassifier().fit(X + k, y).predict_proba(X) for k in range(4)]
    found = {}

    def work(k):
        found[k] = GaussianProcessClassifier().fit(X + k, y).predict_proba(X)

    with threadpool_limits(2):
        before = threads()
        workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
        assert threads() == before
    for k, p in enumerate(serial):
        np.testing.assert_array_equal(found[k], p)


@QUIET
@pytest.mark.parametrize("name", ["ep", "laplace", "twisted-ep", "orthant", "importance"])
def test_floating_point_errors_that_a_caller_made_errors_do_not_end_a_fit(name):
    X, y = MOONS
    plain = GaussianProcessClassifier(30.0 * RBF(0.3), name, random_state=0).fit(50.0 * X, y)
    with np.errstate(all="raise"):
        model = GaussianProcessClassifier(30.0 * RBF(0.3), name, random_state=0).fit(50.0 * X, y)
        p = model.predict_proba(1e3 * X)
    np.testing.assert_array_equal(p, plain.predict_proba(1e3 * X))
