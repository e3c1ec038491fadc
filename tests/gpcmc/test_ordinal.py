"""Ordered classes: the likelihood, its evidence and its gradient, and the classifier, against truths made elsewhere.

Comparisons of an estimate with a truth allow 7 standard errors, which with 16 randomisations has a false-alarm rate of
4e-6; seeds are fixed.
"""

from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr, roots_hermitenorm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpcmc import GaussianProcessClassifier, OrdinalGaussianProcessClassifier
from gpcmc.covariance import LowRank
from gpcmc.evidence.edges import EdgedKernel, EdgedSurface
from gpcmc.gp import Prior
from gpcmc.inference import ExpectationPropagation, Twisted
from gpcmc.likelihood import PROBIT, Ordinal
from gpcmc.rectangle.classification import OrdinalTwisted

EDGES = Ordinal((-0.7, 0.4, 1.5))


def labelled(n, seed, classes=3):
    """Inputs on a line, and classes of a wave with noise."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3, 3, n))[:, None]
    f = 2.0 * np.sin(X[:, 0]) + rng.standard_normal(n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))


def kernel_matrix(n, seed, variance=2.0):
    x = np.sort(np.random.default_rng(seed).uniform(-2, 2, n))
    return variance * np.exp(-0.5 * np.subtract.outer(x, x) ** 2) + 1e-6 * np.eye(n)


def by_quadrature(K, y, likelihood, nodes=40):
    """log p(y): Gauss and Hermite's rule over independent normals, f = L z, in each of up to four coordinates."""
    z, w = roots_hermitenorm(nodes)
    w = w / w.sum()
    f = np.linalg.cholesky(K) @ np.array(list(product(z, repeat=len(y)))).T
    edges = np.array([-np.inf, *likelihood.edges, np.inf])
    p = np.prod(ndtr(edges[y + 1][:, None] - f) - ndtr(edges[y][:, None] - f), axis=0)
    return np.log(np.prod(np.array(list(product(w, repeat=len(y)))), axis=1) @ p)


# --- the likelihood


@pytest.mark.parametrize("f", [-30.0, -0.3, 0.9, 12.0])
@pytest.mark.parametrize("c", range(4))
def test_derivatives_against_40_digits(f, c):
    edges = [-mpmath.inf, *EDGES.edges, mpmath.inf]
    with mpmath.workdps(60):

        def log_p(x):
            a, b = edges[c] - x, edges[c + 1] - x
            # a difference of lower tails: upper ones are one less what is looked for
            return mpmath.log(
                mpmath.ncdf(b) - mpmath.ncdf(a) if a < 0 else mpmath.ncdf(-a) - mpmath.ncdf(-b)
            )

        truth = [float(mpmath.diff(log_p, mpmath.mpf(f), k)) for k in range(4)]
    y, at = np.array([float(c)]), np.array([f])
    slope, W = EDGES.derivatives(y, at)
    found = [EDGES.log_likelihood(y, at)[0], slope[0], -W[0], EDGES.third_derivative(y, at)[0]]
    np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-11)


def test_tilted_moments_against_the_general_rule():
    y = np.array([0.0, 1.0, 2.0, 3.0] * 3)
    mean, variance = np.linspace(-3, 3, 12), np.repeat([0.0, 0.5, 100.0], 4)
    found = EDGES.tilted(y, mean, variance)
    general = super(Ordinal, EDGES).tilted(y, mean, variance)
    for name in found._fields:
        np.testing.assert_allclose(
            getattr(found, name), getattr(general, name), rtol=1e-7, atol=1e-9
        )


def test_one_edge_at_zero_is_the_probit():
    one, f = Ordinal((0.0,)), np.linspace(-40, 40, 17)
    for c, sign in ((0.0, -1.0), (1.0, 1.0)):
        y = np.full(17, c)
        np.testing.assert_allclose(
            one.log_likelihood(y, f), PROBIT.log_likelihood(sign, f), rtol=1e-12
        )
        for a, b in zip(one.derivatives(y, f), PROBIT.derivatives(sign, f), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_probabilities_sum_to_one_far_out():
    mean, variance = np.array([-50.0, -3.0, 0.0, 45.0]), np.array([0.0, 2.0, 1e4, 1.0])
    p = EDGES.average(mean, variance)[0]
    assert p.shape == (4, 4) and (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ((), "one number or more"),
        ((1.0, 1.0), "rising"),
        ((np.nan,), "finite"),
        ((2.0, 1.0), "rising"),
    ],
)
def test_edges_are_refused(edges, message):
    with pytest.raises(ValueError, match=message):
        Ordinal(edges)


@pytest.mark.parametrize("y", [[0.0, 4.0], [0.5, 1.0], [0.0], [-1.0, 1.0]])
def test_labels_are_refused(y):
    with pytest.raises(ValueError, match="y must hold 2 class numbers from 0 to 3"):
        ExpectationPropagation(likelihood=EDGES).fit(Prior(np.eye(2)), y)


# --- evidence


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_evidence_against_quadrature(n):
    K, y = kernel_matrix(n, n), np.array([2, 0, 3, 1])[:n]
    truth = by_quadrature(K, y, EDGES, {1: 200, 2: 120, 3: 60, 4: 28}[n])
    exact = OrdinalTwisted(points=512, likelihood=EDGES).fit(Prior(K), y, rng=0)
    assert abs(exact.log_evidence - truth) < 7 * exact.log_evidence_se + 1e-6
    assert exact.log_evidence_se < 2e-3 and exact.status == "ok"
    ep = ExpectationPropagation(likelihood=EDGES).fit(Prior(K), y)
    assert ep.log_evidence == pytest.approx(truth, abs=1e-6 if n == 1 else 0.03)


def test_all_labellings_together_have_probability_one():
    K, three = kernel_matrix(3, 7), Ordinal((-0.5, 0.8))
    method = OrdinalTwisted(points=128, likelihood=three)
    found = [method.fit(Prior(K), np.array(y), rng=0) for y in product(range(3), repeat=3)]
    total = sum(np.exp(one.log_evidence) for one in found)
    error = sum(np.exp(one.log_evidence) * one.log_evidence_se for one in found)
    assert abs(total - 1.0) < 7 * error < 0.02


def test_low_rank_is_the_dense_one():
    rng = np.random.default_rng(0)
    F, D = rng.standard_normal((40, 3)), np.full(40, 0.05)
    y = rng.integers(0, 4, 40)
    for method in (
        ExpectationPropagation(likelihood=EDGES),
        OrdinalTwisted(points=256, likelihood=EDGES),
    ):
        dense = method.fit(Prior(F @ F.T + np.diag(D)), y, rng=1)
        low = method.fit(Prior(LowRank(F, D)), y, rng=1)
        error = 7 * np.hypot(dense.log_evidence_se, low.log_evidence_se) + 1e-6
        assert abs(dense.log_evidence - low.log_evidence) < error


def test_gradient_in_hyperparameters_and_edges_against_differences():
    X, y = labelled(25, 0, 4)
    kernel = EdgedKernel(ConstantKernel(2.0) * RBF(0.8), np.array([-1.0, 0.1, 1.2]))
    method = ExpectationPropagation(likelihood=Ordinal(tuple(kernel.edges)), tolerance=1e-10)
    surface = EdgedSurface(method, kernel, X, y.astype(float))
    value, gradient = surface.value_and_gradient(kernel.theta)
    h, own = 1e-5, []
    for k in range(len(kernel.theta)):
        step = h * np.eye(len(kernel.theta))[k]
        own.append(
            (surface.value(kernel.theta + step) - surface.value(kernel.theta - step)) / (2 * h)
        )
    np.testing.assert_allclose(gradient, own, rtol=1e-5, atol=1e-6)
    assert value == pytest.approx(surface.value(kernel.theta), abs=1e-9)


def test_edges_keep_their_order_whatever_theta_is():
    kernel = EdgedKernel(RBF(1.0), np.array([-1.0, 0.1, 1.2]))
    np.testing.assert_allclose(kernel.clone_with_theta(kernel.theta).edges, kernel.edges)
    far = kernel.clone_with_theta(np.array([0.0, 5.0, -9.0, 3.0])).edges
    assert (np.diff(far) > 0).all()


# --- the classifier


def test_two_classes_and_one_edge_at_zero_are_the_classifier():
    X, y = labelled(30, 1, 2)
    for inference in ("ep", "twisted-ep"):
        common = {
            "kernel": 2.0 * RBF(1.0),
            "inference": inference,
            "optimizer": None,
            "random_state": 0,
        }
        two = GaussianProcessClassifier(**common).fit(X, y)
        ordered = OrdinalGaussianProcessClassifier(**common, edges=[0.0]).fit(X, y)
        error = 7 * (two.log_marginal_likelihood_se_ + ordered.log_marginal_likelihood_se_) + 1e-7
        assert abs(two.log_marginal_likelihood_ - ordered.log_marginal_likelihood_) < error
        gap = np.abs(two.predict_proba(X) - ordered.predict_proba(X))
        assert gap.max() < (1e-7 if inference == "ep" else 1e-2)


def test_names_do_not_matter_and_their_order_does():
    X, y = labelled(60, 2, 3)
    names = np.array(["b", "c", "a"])
    plain = OrdinalGaussianProcessClassifier().fit(X, y)
    named = OrdinalGaussianProcessClassifier(categories=["b", "c", "a"]).fit(X, names[y])
    assert named.classes_.tolist() == ["b", "c", "a"]
    np.testing.assert_array_equal(named.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(named.predict(X), names[plain.predict(X)])
    mixed = OrdinalGaussianProcessClassifier().fit(X, names[y])  # sorted: another order
    assert mixed.log_marginal_likelihood_ < plain.log_marginal_likelihood_ - 1.0
    turned = OrdinalGaussianProcessClassifier(categories=[2, 1, 0]).fit(X, y)
    np.testing.assert_allclose(turned.predict_proba(X)[:, ::-1], plain.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(turned.edges_, -plain.edges_[::-1], atol=1e-2)


def test_a_fit_beats_its_start_and_tells_what_it_found():
    X, y = labelled(80, 3, 4)
    model = OrdinalGaussianProcessClassifier(random_state=0).fit(X, y)
    start = OrdinalGaussianProcessClassifier(optimizer=None).fit(X, y)
    assert model.log_marginal_likelihood_ > start.log_marginal_likelihood_
    assert model.edges_.shape == (3,) and (np.diff(model.edges_) > 0).all()
    assert model.log_marginal_likelihood() == pytest.approx(
        model.log_marginal_likelihood_, abs=1e-5
    )
    assert model.predict_proba(X).shape == (80, 4)
    assert np.abs(model.predict(X) - y).mean() < 0.6
    mean, variance = model.latent_mean_and_variance(X)
    assert mean.shape == variance.shape == (80,)
    exact = OrdinalGaussianProcessClassifier(
        model.kernel_, Twisted(points=256), edges=model.edges_, optimizer=None, random_state=0
    ).fit(X, y)
    assert abs(exact.log_marginal_likelihood_ - model.log_marginal_likelihood_) < 0.1
    assert 0 < exact.log_marginal_likelihood_se_ < 0.02
    p, error = exact.predict_proba(X[:5], return_std=True)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    assert (np.abs(p - model.predict_proba(X[:5])) < 0.01 + 7 * error).all()


def test_low_rank_fit_is_the_dense_one():
    X, y = labelled(120, 4, 3)
    dense, low = (
        OrdinalGaussianProcessClassifier(inference=how, covariance=form, random_state=0).fit(X, y)
        for how, form in (("ep", "dense"), ("ep", "low-rank"))
    )
    assert (dense.covariance_, low.covariance_) == ("dense", "low-rank")
    assert low.log_marginal_likelihood_ == pytest.approx(dense.log_marginal_likelihood_, abs=0.02)
    np.testing.assert_allclose(low.predict_proba(X), dense.predict_proba(X), atol=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inference": "laplace"}, "inference must be 'ep' or 'twisted-ep'"),
        ({"inference": ExpectationPropagation(likelihood="logistic")}, "is the ordered probit"),
        ({"optimizer": "exact"}, "optimizer='exact' is for two classes"),
        ({"categories": [0, 1]}, "categories must be the labels that y holds"),
        ({"categories": [0, 1, 1]}, "categories must be the labels"),
        ({"edges": [0.0]}, "edges must be 2, one less than the classes"),
        ({"edges": [1.0, 0.0]}, "rising"),
    ],
)
def test_bad_arguments_are_refused_by_name(change, message):
    X, y = labelled(12, 5, 3)
    with pytest.raises(ValueError, match=message):
        OrdinalGaussianProcessClassifier(**change).fit(X, y)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([OrdinalGaussianProcessClassifier()])
def test_scikit_learn(estimator, check):
    check(estimator)
