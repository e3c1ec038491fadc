"""Hyperparameters at the maximum of the marginal likelihood, behind the classifier."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier as ScikitLearn
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import log_loss

from gpcmc import GaussianProcessClassifier
from gpcmc.gp import prior
from gpcmc.inference import ExpectationPropagation, Laplace, PseudoMarginal, Twisted
from gpcmc.inference.evidence import EvidenceSurface, maximize, surface_method

LOGISTIC = Laplace(likelihood="logistic")


def noisy_problem(seed=0, n=80, d=2):
    """Labels that depend on the first input alone, with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(np.sin(2 * X[:, 0]) + 0.4 * rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", [1.0 * RBF(1.0), 1.0 * RBF([1.0, 1.0]), 1.0 * RBF(1.0) + ConstantKernel(0.1)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_optimum_is_as_high_as_that_of_scikit_learn(kernel):
    X, y = make_moons(80, noise=0.35, random_state=2)
    peer = ScikitLearn(kernel).fit(X, y)
    classifier = GaussianProcessClassifier(kernel, LOGISTIC).fit(X, y)
    assert classifier.log_marginal_likelihood_ > peer.log_marginal_likelihood_value_ - 1e-5
    theta = peer.base_estimator_.kernel_.theta + 0.1
    value, gradient = classifier.log_marginal_likelihood(theta, eval_gradient=True)
    expected = peer.log_marginal_likelihood(theta, eval_gradient=True)
    assert (
        value == classifier.log_marginal_likelihood(theta) == pytest.approx(expected[0], rel=1e-9)
    )
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-7, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("inference", ["laplace", "ep", LOGISTIC])
def test_the_marginal_likelihood_is_flat_at_the_optimum(inference):
    X, y = noisy_problem(1)
    start = 2.0 * RBF(0.5)
    classifier = GaussianProcessClassifier(start, inference).fit(X, y)
    value, gradient = classifier.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(classifier.log_marginal_likelihood_, abs=1e-7)
    assert value > classifier.log_marginal_likelihood(start.theta) + 0.1
    assert np.abs(gradient).max() < 1e-2 and classifier.at_bound_ == ()
    nearby = classifier.kernel_.theta + np.random.default_rng(0).normal(0, 0.2, size=(10, 2))
    assert all(classifier.log_marginal_likelihood(theta) < value for theta in nearby)


@pytest.mark.slow
def test_an_input_that_is_noise_ends_at_its_bound_and_is_named():
    X, y = noisy_problem(2, n=150)
    kernel = 1.0 * RBF([1.0, 1.0], (1e-2, 1e2))
    with pytest.warns(
        ConvergenceWarning, match=r"^k2__length_scale\[1\] = 100 \(upper\) ended at a bound"
    ):
        classifier = GaussianProcessClassifier(kernel).fit(X, y)
    assert classifier.at_bound_ == ("k2__length_scale[1]",)
    informative, noise = classifier.kernel_.k2.length_scale
    assert noise == pytest.approx(100.0) and informative < 3.0
    # order of the inputs, and of a fixed hyperparameter before them
    kernel = ConstantKernel(4.0, "fixed") * RBF([1.0, 1.0], (1e-2, 1e2))
    with pytest.warns(ConvergenceWarning, match=r"^k2__length_scale\[0\] = 100 \(upper\) ended"):
        GaussianProcessClassifier(kernel, "laplace").fit(X[:, ::-1], y)


def test_separable_classes_end_with_the_largest_variance():
    X = np.linspace(-1, 1, 20)[:, None]
    with pytest.warns(ConvergenceWarning, match="k1__constant_value"):
        classifier = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, X[:, 0] > 0)
    assert "k1__constant_value" in classifier.at_bound_
    assert classifier.kernel_.k1.constant_value == pytest.approx(1e5)


def test_restarts_leave_a_poor_start_and_are_seeded():
    X, y = noisy_problem(4)
    poor = 1.0 * RBF(1e-4, (1e-4, 1e3))  # every pattern on its own: no gradient
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        surface = EvidenceSurface(Laplace(), poor, X, y)
        alone = maximize(surface, 0, np.random.default_rng(0))
        first, again = (
            GaussianProcessClassifier(poor, "laplace", n_restarts=4, random_state=5).fit(X, y)
            for _ in range(2)
        )
        other = GaussianProcessClassifier(1.0 * RBF(1.0), "laplace").fit(X, y)
    assert alone.log_evidence < first.log_marginal_likelihood_ - 5
    assert first.log_marginal_likelihood_ > other.log_marginal_likelihood_ - 1e-3
    np.testing.assert_array_equal(first.kernel_.theta, again.kernel_.theta)


@pytest.mark.slow
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


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_inputs_too_far_apart_for_the_kernel_are_noticed(inference):
    X, y = noisy_problem(9, n=40, d=3)
    narrow = RBF(1.0, (1e-2, 1e2))  # bounds that forbid the scale of the data
    with pytest.warns(
        ConvergenceWarning, match="no two patterns are correlated.* Scale the inputs"
    ):
        lost = GaussianProcessClassifier(narrow, inference).fit(1e4 * X, y)
    np.testing.assert_allclose(lost.predict_proba(X), 0.5, atol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianProcessClassifier(RBF(1e3), inference).fit(1e3 * X, y)


@pytest.mark.slow
def test_the_defaults_serve_a_newcomer():
    (X, y), (X_star, y_star) = (make_moons(n, noise=0.3, random_state=n) for n in (100, 500))
    loss = {}
    for name, options in {
        "default": {},
        "unfitted": {"optimizer": None},
        "paper": {"inference": "orthant", "optimizer": None, "random_state": 0},
        "exact": {"inference": "twisted-ep", "random_state": 0},
    }.items():
        classifier = GaussianProcessClassifier(**options).fit(X, y)
        loss[name] = log_loss(y_star, classifier.predict_proba(X_star))
    assert loss["default"] < min(loss["unfitted"], loss["paper"]) - 0.01
    assert loss["default"] == pytest.approx(loss["exact"], abs=2e-3)


def test_whose_evidence_is_climbed():
    own = ExpectationPropagation(max_sweeps=77)
    quick = replace(own, tolerance=1e-4)
    assert surface_method(LOGISTIC, searching=True) is LOGISTIC
    assert surface_method(Twisted()) == ExpectationPropagation()
    assert surface_method(own) is own
    assert surface_method(own, searching=True) == replace(own, tolerance=1e-6)
    assert surface_method(quick, searching=True) == quick


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few iterations
def test_nothing_is_fitted_where_nothing_can_be():
    X, y = noisy_problem(6, n=30)
    integrated = PseudoMarginal(iterations=12, burn_in=6, chains=2, draws=8)
    kernel = 1.0 * RBF(1.0)
    assert GaussianProcessClassifier(kernel, integrated, random_state=0).fit(X, y).kernel_ == kernel
    fixed = ConstantKernel(2.0, "fixed") * RBF(1.0, "fixed")
    classifier = GaussianProcessClassifier(fixed).fit(X, y)
    assert classifier.kernel_ == fixed and classifier.at_bound_ == ()
    value, gradient = classifier.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(classifier.log_marginal_likelihood_) and gradient.shape == (0,)


@pytest.mark.slow
def test_points_where_the_method_fails_are_avoided():
    X, y = noisy_problem(7, n=60)
    y[::3] *= -1.0  # not separable: no reason for a large variance
    kernel = 1e3 * RBF(1.0)
    kernel.k1.constant_value_bounds = (1e-5, 1e60)
    surface = EvidenceSurface(ExpectationPropagation(), kernel, X, y)
    with pytest.raises(ValueError, match="smaller variances"):
        surface.value(np.array([100.0, 8.0]))
    found = maximize(surface, 3, np.random.default_rng(0))
    narrow = EvidenceSurface(ExpectationPropagation(), 1.0 * RBF(1.0), X, y)
    assert found.log_evidence > maximize(narrow, 0, np.random.default_rng(0)).log_evidence - 1e-2
    nowhere = ConstantKernel(1e60, (1e59, 1e61)) * RBF(1e3, "fixed")
    with pytest.raises(ValueError, match="at every start of the search, 1 in all"):
        maximize(EvidenceSurface(Laplace(), nowhere, X, y), 0, np.random.default_rng(0))


def test_bad_arguments_are_named():
    X, y = noisy_problem(8, n=20)
    unbounded = RBF(1.0, (1e-2, np.inf)) + WhiteKernel(0.1)
    with pytest.raises(ValueError, match="n_restarts=2 needs a kernel with finite bounds"):
        GaussianProcessClassifier(unbounded, n_restarts=2).fit(X, y)
    with pytest.raises(NotFittedError):
        GaussianProcessClassifier().log_marginal_likelihood()
    classifier = GaussianProcessClassifier(optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match=r"theta must have shape \(2,\) as kernel_.theta has"):
        classifier.log_marginal_likelihood([0.0])
    with pytest.raises(ValueError, match="theta must be finite"):
        classifier.log_marginal_likelihood([0.0, np.nan])
