"""Reports of users of such classifiers, each as the smallest input that showed the fault, with the right value."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, ConstantKernel, ExpSineSquared
from sklearn.gaussian_process.tests._mini_sequence_kernel import MiniSeqKernel
from sklearn.model_selection import GridSearchCV

import gpcmc._memory
from gpcmc import GaussianProcessClassifier
from gpcmc._memory import Limit
from gpcmc.inference import EllipticalSlice, ImportanceSampling, Laplace, Orthant, PseudoMarginal
from gpcmc.posterior import NOT_CONVERGED, OK

MOONS = make_moons(60, noise=0.3, random_state=0)
FIXED = {"kernel": 4.0 * RBF(0.7), "optimizer": None, "random_state": 0}


def told(call):
    """Return the result of a call, and its warnings about convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(w.message) for w in caught if w.category is ConvergenceWarning]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("optimizer", [None, "fmin_l_bfgs_b"])
def test_kernels_on_strings_are_taken(optimizer):
    words, y = ["A", "AB", "B", "AA", "BB", "ABB"], [1, 0, 1, 1, 1, 0]
    model = GaussianProcessClassifier(3.0 * MiniSeqKernel(), optimizer=optimizer).fit(words, y)
    K = model.kernel_(np.array(words))
    direct = model.posterior_.predict(K, K.diagonal()).probability
    np.testing.assert_array_equal(model.predict_proba(words)[:, 1], direct)
    assert direct[1] < direct[0]


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"kernel": CompoundKernel([RBF(), RBF()])}, 2, "kernel cannot be a CompoundKernel"),
        ({"kernel": RBF(np.ones(3))}, 2, r"kernel RBF.* does not fit X of shape \(60, 2\)"),
        (
            {"kernel": 30.0 * ExpSineSquared()},
            2,
            "no covariance on these inputs .* one input alone",
        ),
        ({"inference": Orthant(samples=2), **FIXED}, 2, r"inference=Orthant\(scheme='adapted'\)"),
    ],
)
def test_the_message_names_the_cause(options, X, message):
    X, y = MOONS
    with pytest.raises((ValueError, RuntimeError), match=message):
        GaussianProcessClassifier(**options).fit(X * 3.0, y)


def test_latent_moments_are_public():
    X, y = MOONS
    model = GaussianProcessClassifier(**FIXED).fit(X, y)
    mean, variance = model.latent_mean_and_variance(X[:5])
    K = model.kernel_(X)
    assert mean == pytest.approx(K[:5] @ model.posterior_.a, abs=1e-12)
    Sigma = np.linalg.inv(np.linalg.inv(K + 1e-10 * np.eye(60)) + np.diag(model.posterior_.S))
    assert variance == pytest.approx(Sigma.diagonal()[:5], abs=1e-5)
    told(lambda: model.set_params(inference="orthant", inference__samples=2000).fit(X, y))
    with pytest.raises(ValueError, match="keeps no Gaussian of the latent function"):
        model.latent_mean_and_variance(X)


def test_options_of_a_method_can_be_searched():
    X, y = MOONS
    model = GaussianProcessClassifier(FIXED["kernel"], "laplace", optimizer=None)
    grid = {"inference__likelihood": ["probit", "logistic"]}
    search = GridSearchCV(model, grid, cv=2, scoring="neg_log_loss").fit(X, y)
    assert search.best_estimator_.inference == Laplace(**{
        "likelihood": search.best_params_["inference__likelihood"]
    })  # fmt: skip
    model.set_params(inference="twisted-ep", inference__points=256)
    assert model.get_params()["inference__points"] == clone(model).inference.points == 256
    model.set_params(inference=PseudoMarginal(), inference__predictor__samples=64)
    assert model.inference.predictor.samples == 64
    with pytest.raises(ValueError, match="inference__point is no option of PseudoMarginal"):
        model.set_params(inference__point=1)


def test_an_own_optimizer_is_called_as_in_scikit_learn():
    X, y = MOONS
    seen = []

    def steepest(objective, start, bounds):
        value, slope = objective(start)
        seen.append((value, objective(start, eval_gradient=False)))
        return np.clip(start - 0.01 * slope, *bounds.T), value

    kernel = 1.0 * RBF(1.0)
    model = GaussianProcessClassifier(kernel, optimizer=steepest, n_restarts=1).fit(X, y)
    assert len(seen) == 2 and all(a == pytest.approx(b, rel=1e-9) for a, b in seen)
    value = model.log_marginal_likelihood(kernel.theta)
    assert -seen[0][0] == pytest.approx(value, abs=1e-5)


def test_ties_are_the_same_in_predict_and_predict_proba():
    model = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit([[-1.0], [1.0]], ["a", "b"])
    at = [[0.0], [1e3], [-1e3]]
    np.testing.assert_array_equal(model.predict_proba(at), 0.5)
    assert list(model.predict(at)) == ["a", "a", "a"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "inference", ["ep", "laplace", Orthant(samples=2000, scheme="adapted"), "twisted-ep"]
)
def test_names_of_classes_do_not_matter(inference):
    X, y = make_blobs(45, centers=[(-2, 0), (2, 0), (0, 2.5)], cluster_std=1.2, random_state=0)
    names = np.array([2, 0, 1])
    options = {"inference": inference, "optimizer": None, "random_state": 3}
    first = GaussianProcessClassifier(2.0 * RBF(1.5), **options).fit(X, y)
    other = GaussianProcessClassifier(2.0 * RBF(1.5), **options).fit(X, names[y])
    grid = np.column_stack([one.ravel() for one in np.meshgrid(*2 * [np.linspace(-4, 4, 12)])])
    p, error = first.predict_proba(grid, return_std=True)
    np.testing.assert_allclose(other.predict_proba(grid)[:, names], p, atol=1e-9)
    assert error.shape == p.shape and (error >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(first.predict(grid), p.argmax(axis=1))
    if inference in ("ep", "laplace"):
        np.testing.assert_allclose(first.predict_proba([[1e3, 0.0]]), 1 / 3, rtol=1e-15)


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
    assert isinstance(pickle.loads(pickle.dumps(model)).predict(X)[0], str)


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


def test_few_effective_samples_are_not_enough_for_importance_sampling():
    X, y = MOONS
    options = {**FIXED, "kernel": 0.3 * RBF(1.0)}
    method = ImportanceSampling(samples=90)
    model, _ = told(lambda: GaussianProcessClassifier(inference=method, **options).fit(X, y))
    assert model.diagnostics_["effective_samples"] < 100
    assert model.status_ == NOT_CONVERGED


def test_a_lone_eve_shows_in_the_errors_of_probabilities():
    X, y = MOONS
    X = 3.0 * X
    model, _ = told(
        lambda: GaussianProcessClassifier(inference=Orthant(samples=20), **FIXED).fit(X, y)
    )
    assert model.diagnostics_["effective_eves"] < 2
    assert (model.predict_proba(X, return_std=True)[1] == np.inf).all()
    assert model.log_marginal_likelihood_se_ == np.inf


def test_hard_counts_repeat():
    X, y = MOONS
    method = Orthant(samples=3000, count="hard")
    model, _ = told(lambda: GaussianProcessClassifier(inference=method, **FIXED).fit(X, y))
    p = model.predict_proba(X)
    for other in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), p)
    np.testing.assert_array_equal(
        [model.predict_proba(X[k : k + 1])[0] for k in (0, 7, 59)], p[[0, 7, 59]]
    )


@pytest.mark.parametrize(
    ("start", "unit"), [(1e5 * RBF(1.0), 1.0), (1.0 * RBF(1e4), 1.0), (None, 1e-3), (None, 1e3)]
)
def test_a_start_far_off_finds_the_same_maximum(start, unit):
    X, y = MOONS
    best = GaussianProcessClassifier(inference="laplace").fit(X, y)
    model, found = told(lambda: GaussianProcessClassifier(start, "laplace").fit(X * unit, y))
    assert model.log_marginal_likelihood_ == pytest.approx(best.log_marginal_likelihood_, abs=1e-3)
    assert model.kernel_.k2.length_scale == pytest.approx(
        unit * best.kernel_.k2.length_scale, rel=0.02
    )
    assert not found


@pytest.mark.parametrize(
    ("scale", "message"),
    [(RBF(1e3, (1e2, 1e5)), "far above all distances"), (RBF(1e-4, (1e-5, 1e-3)), "far below all")],
)
def test_a_length_scale_far_off_is_named(scale, message):
    X, y = MOONS
    _, found = told(lambda: GaussianProcessClassifier(1.0 * scale, "laplace").fit(X, y))
    assert len(found) == 1 and message in found[0]


def test_a_bound_is_named_with_side_and_value():
    X, y = make_blobs(40, centers=[(-4, 0), (4, 0)], cluster_std=0.5, random_state=0)
    kernel = ConstantKernel(1.0, (0.1, 4.0)) * RBF(1.0)
    model, found = told(lambda: GaussianProcessClassifier(kernel, "laplace").fit(X, y))
    assert "k1__constant_value = 4 (upper)" in found[0] and "separable" in found[0]
    assert "k1__constant_value" in model.at_bound_


def test_predictions_that_do_not_fit_are_refused(monkeypatch):
    X, y = MOONS
    model = GaussianProcessClassifier(**FIXED).fit(X, y)
    limit = Limit(8.0 * 4 * 60 * 10, "this machine has")
    monkeypatch.setattr(gpcmc._memory, "available_memory", lambda: limit)
    assert len(model.predict_proba(X[:10])) == 10
    with pytest.raises(MemoryError, match="Predict at most 10 at a time"):
        model.predict_proba(X[:11])


def test_a_search_says_where_it_is(capsys):
    X, y = MOONS
    GaussianProcessClassifier(inference="laplace", verbose=1).fit(X, y)
    said = capsys.readouterr().out
    assert "evaluation 1: log marginal likelihood" in said and "posterior by Laplace" in said
