"""The softmax under covariances of low rank, against dense matrices of all classes, differences and other methods."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from test_multiclass import IN_ROUNDING, dense, three_classes
from truths import central_differences

import gpcmc.lowrank.multiclass as low
import gpcmc.lowrank.surface as climbing
from gpcmc import GaussianProcessClassifier
from gpcmc._memory import Limit
from gpcmc._threads import one_thread
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import ConvergenceError, Laplace
from gpcmc.inference.evidence import EvidenceSurface
from gpcmc.posterior import OK
from gpcmc.gaussian.softmax_mode import MulticlassLaplace
from gpcmc.likelihood.softmax import one_hot
from gpcmc.lowrank import (
    LowRank,
    LowRankPrior,
    LowRankSurface,
    fit,
    low_rank_prior,
    maximize_low_rank,
    random_columns,
)
from gpcmc.lowrank.correction import TOO_ROUGH, GradientMatrix

METHOD = MulticlassLaplace()
ROUGH = rbf(0.5, 3.0)
KERNELS = [2.0 * RBF([0.7, 1.0]), 1.5 * Matern(1.0, nu=1.5) + WhiteKernel(0.3)]


def covariance(n, r, classes, D, seed=0):
    """One of rank r with a diagonal in [0, D], a quarter of it zero; the dense one, and labels."""
    rng = np.random.default_rng(seed)
    diagonal = rng.uniform(0.0, D, n)
    diagonal[::4] = 0.0
    K = LowRank(2.0 * rng.standard_normal((n, r)), diagonal)
    labels = np.r_[np.arange(classes), rng.integers(0, classes, n - classes)]
    return K, K.F @ K.F.T + np.diag(K.D), labels


def test_a_row_times_a_covariance():
    K, whole, _ = covariance(9, 2, 3, 1.0)
    a = np.random.default_rng(1).standard_normal((3, 9))
    np.testing.assert_allclose(a @ K, a @ whole, atol=1e-12)
    np.testing.assert_allclose(a[0] @ K, K @ a[0], atol=1e-12)


@pytest.mark.parametrize("D", [0.0, 2.0])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_evidence_mode_and_covariances_are_those_of_dense_matrices(classes, D):
    """Matrices of order C n, and the dense method."""
    K, whole, labels = covariance(40, 6, classes, D)
    ridge = whole + 1e-9 * np.eye(40)  # its inverse is needed here
    y, found = one_hot(labels), fit(METHOD, LowRankPrior(K), labels)
    prior_covariance, W, log_z = dense(ridge, found, y)
    assert found.log_evidence == pytest.approx(log_z, abs=1e-6)
    posterior = np.linalg.solve(np.eye(y.size) + prior_covariance @ W, prior_covariance)
    blocks = posterior.reshape(classes, 40, classes, 40)
    of_patterns = np.einsum("cidi->icd", blocks)
    np.testing.assert_allclose(found.covariance, of_patterns, atol=1e-7)
    np.testing.assert_allclose(found.a, y - softmax(found.mean, axis=0), atol=1e-11)
    truth = METHOD.fit(Prior(whole), labels)
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-10)
    np.testing.assert_allclose(found.mean, truth.mean, atol=1e-9)
    np.testing.assert_allclose(found.a, truth.a, atol=1e-9)


@pytest.mark.parametrize("D", [0.0, 2.0])
def test_the_matrix_of_the_gradient_is_the_dense_one(D):
    K, whole, labels = covariance(40, 6, 3, D)
    M = GradientMatrix.of(K, fit(METHOD, LowRankPrior(K), labels))
    truth = METHOD.gradient_matrix(whole, one_hot(labels), METHOD.fit(Prior(whole), labels))
    rest = truth - np.diag(truth.diagonal())
    np.testing.assert_allclose(M.diagonal, truth.diagonal(), atol=1e-10)
    np.testing.assert_allclose(M.columns(np.arange(40)), rest, atol=1e-10)
    np.testing.assert_allclose(M.times_factor(), rest @ K.F, atol=1e-9)


@pytest.mark.parametrize("classes", [3, 4])
def test_full_rank_is_the_dense_method(classes):
    X, labels = three_classes(0, n=60)
    labels[labels.size // 2 :: 5] = classes - 1
    X_star = three_classes(1, n=25)[0]
    truth = METHOD.fit(blocks := prior(ROUGH, X, X_star), labels)
    found = fit(METHOD, low_rank_prior(ROUGH, X, X_star, inducing=X), labels)
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-8)
    p, se = found.prediction.probability, found.prediction.standard_error
    np.testing.assert_allclose(p, truth.prediction.probability, atol=1e-8)
    np.testing.assert_allclose(se, truth.prediction.standard_error, atol=1e-8)
    assert set(found.diagnostics) == {"rank", "residual"}  # nothing is known of the error
    chosen = fit(METHOD, low_rank_prior(ROUGH, X, tolerance=1e-12), labels)
    later = chosen.predict(blocks.K_star, blocks.k_star_star).probability
    np.testing.assert_allclose(later, truth.prediction.probability, atol=1e-6)


@pytest.mark.parametrize("beta", [0.5, 20.0])
def test_two_classes_are_the_binary_method_with_twice_the_covariance(beta):
    X, labels = three_classes(2, n=50)
    labels = np.minimum(labels, 1)
    P = low_rank_prior(rbf(1.0, beta), X, X[:6] + 0.4, tolerance=1e-2)
    K = P.covariance
    double = Prior(2.0 * (K.F @ K.F.T + np.diag(K.D)))
    binary = Laplace(likelihood="logistic").fit(double, 2.0 * labels - 1.0)
    multiple = fit(METHOD, replace(P, finer=None), labels)
    assert multiple.log_evidence == pytest.approx(binary.log_evidence, rel=1e-11)
    contrast = np.array([-1.0, 1.0])
    np.testing.assert_allclose(contrast @ multiple.mean, binary.mean, atol=1e-9)
    variance = multiple.covariance @ contrast @ contrast
    moments = binary.latent(double.K, double.K.diagonal())
    np.testing.assert_allclose(variance, moments[1], atol=1e-9)
    halves = fit(
        Laplace(likelihood="logistic"),
        LowRankPrior(LowRank(np.sqrt(2.0) * K.F, 2.0 * K.D), P.inducing),
        2.0 * labels - 1.0,
    )
    F, D = P.inducing.rows(P.X_star)
    mean, spread = halves.latent_rows(np.sqrt(2.0) * F, 2.0 * D)
    own_mean, own_spread = multiple.latent_rows(F, D)
    np.testing.assert_allclose(own_mean @ contrast, mean, atol=1e-9)
    np.testing.assert_allclose(own_spread @ contrast @ contrast, spread, atol=1e-9)
    p = multiple.prediction.probability
    exact = halves.likelihood.predictive_probability(mean, spread)
    np.testing.assert_allclose(p[:, 1], exact, atol=2e-4)


def test_names_of_the_classes_do_not_matter():
    X, labels = three_classes(3, n=60)
    P, order = low_rank_prior(ROUGH, X, X[:9] + 0.3, tolerance=1e-2), np.array([2, 0, 1])
    straight, turned = fit(METHOD, P, labels), fit(METHOD, P, order[labels])
    assert turned.log_evidence == pytest.approx(straight.log_evidence, rel=1e-12)
    assert turned.diagnostics == pytest.approx(straight.diagnostics, rel=1e-8)
    np.testing.assert_allclose(turned.mean[order], straight.mean, atol=1e-9)
    found = turned.prediction.probability[:, order]
    np.testing.assert_allclose(found, straight.prediction.probability, atol=1e-9)


@pytest.mark.parametrize(("seed", "beta"), IN_ROUNDING)
@one_thread()
def test_separable_classes_with_a_large_variance_converge(seed, beta):
    """Newton's rises are within rounding; both methods end where rounding hides a rise."""
    X, labels = three_classes(seed, n=30)
    w, V = np.linalg.eigh(rbf(0.5, beta)(X))
    K = LowRank(V * np.sqrt(np.maximum(w, 0.0)), np.zeros(30))
    found = low.multiclass_laplace(K, one_hot(labels), METHOD)
    truth = METHOD.approximate(K.F @ K.F.T, one_hot(labels))
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-6)
    assert found.work["newton_steps"] <= 205


def test_a_start_elsewhere_does_not_change_the_result():
    K, _, labels = covariance(60, 5, 3, 1.0)
    y = one_hot(labels)
    cold = low.multiclass_laplace(K, y, METHOD)
    for scale in (0.1, 1.1, 30.0):
        other = low.multiclass_laplace(LowRank(scale * K.F, scale**2 * K.D), y, METHOD)
        warm = low.multiclass_laplace(K, y, METHOD, other)
        assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-10)
    near = low.multiclass_laplace(LowRank(1.001 * K.F, K.D), y, METHOD, cold)
    assert near.work["newton_steps"] < cold.work["newton_steps"]


# --- what the covariance leaves out


def test_correction_leaves_a_third_of_the_error():
    X, labels = three_classes(3, n=300)
    truth = METHOD.fit(Prior(ROUGH(X)), labels)
    for tolerance in (1e-2, 2e-3):
        found = fit(METHOD, low_rank_prior(ROUGH, X, tolerance=tolerance), labels)
        error, told = found.log_evidence - truth.log_evidence, found.diagnostics
        assert abs(error) < 0.35 * abs(error - told["correction"])
        assert found.status == OK and found.log_evidence_se == 0.0


def test_correction_where_a_large_variance_is_left():
    X, labels = three_classes(3, n=400)
    kernel = 50.0 * Matern(10.0, nu=1.5)
    truth = METHOD.fit(Prior(kernel(X)), labels).log_evidence
    for tolerance in (1e-2, 1e-3):
        found = fit(METHOD, low_rank_prior(kernel, X, tolerance=tolerance), labels)
        error, told = found.log_evidence - truth, found.diagnostics
        assert abs(error) < 1.6 * abs(told["correction_rest"])
    assert abs(error) < 0.4 * abs(error - told["correction"])


def test_shares_of_further_columns_are_exact_at_fixed_likelihood_terms():
    """Against matrices of order C n; the diagonal is subtracted to first order."""
    K, whole, labels = covariance(30, 3, 3, 1.0, seed=5)
    found = fit(METHOD, LowRankPrior(K), labels)
    found = replace(found, v=0.0 * found.v)
    _, W, _ = dense(whole + np.eye(30), found, one_hot(labels))
    nu = W @ found.mean.ravel() + found.a.ravel()

    def log_marginal(A):
        A = np.kron(np.eye(3), A)
        B = np.eye(len(W)) + A @ W
        return 0.5 * nu @ np.linalg.solve(B, A @ nu) - 0.5 * np.linalg.slogdet(B)[1]

    M, G = GradientMatrix.of(K, found), np.random.default_rng(1).standard_normal((30, 4))
    shares = M.shares(G)
    for k in range(4):
        more = whole + np.outer(G[:, k], G[:, k])
        gain = log_marginal(more) - log_marginal(whole) - 0.5 * M.diagonal @ G[:, k] ** 2
        assert shares[k] == pytest.approx(gain, abs=1e-8)
        whole = more


def test_all_random_columns_are_the_first_order_change():
    X, labels = three_classes(3, n=150)
    P = low_rank_prior(ROUGH, X, tolerance=1e-2)
    posterior = fit(METHOD, P, labels)
    change, error = random_columns(P, posterior, 150, np.random.default_rng(0))
    F, G, D = P.covariance.F, P.finer.F, P.covariance.D
    truth = METHOD.fit(Prior(F @ F.T + np.diag(D)), labels)
    M = METHOD.gradient_matrix(F @ F.T + np.diag(D), one_hot(labels), truth)
    E = ROUGH(X) - F @ F.T - G @ G.T
    E[np.diag_indices(150)] = 0.0
    assert error == 0.0 and change == pytest.approx(0.5 * np.sum(M * E), abs=1e-8)
    some = random_columns(P, posterior, 60, np.random.default_rng(0))
    assert abs(some[0] - change) < 5 * some[1]


def test_a_covariance_too_rough_says_so():
    X, labels = three_classes(7, n=250)
    kernel = 50.0 * Matern(2.0, nu=1.5)
    for tolerance, status in ((0.1, TOO_ROUGH), (1e-4, OK)):
        found = fit(METHOD, low_rank_prior(kernel, X, tolerance=tolerance), labels)
        assert found.status == status
    options = {"approximation": "low-rank", "optimizer": None, "tolerance": 0.1}
    with pytest.warns(ConvergenceWarning, match="covariance too rough.*lower tolerance"):
        classifier = GaussianProcessClassifier(kernel, "laplace", **options).fit(X, labels)
    assert classifier.status_ == TOO_ROUGH


# --- hyperparameters


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_central_differences(kernel):
    X, labels = three_classes(5, n=80)
    y = one_hot(labels)
    for tolerance in (3e-2, 1e-14):  # the second: exact
        Z = low_rank_prior(kernel, X, tolerance=tolerance).inducing.Z
        surface = LowRankSurface(METHOD, kernel, X, y, Z)
        value, gradient = surface.value_and_gradient(kernel.theta)
        slopes = central_differences(lambda t, s=surface: s.value(t), kernel.theta)
        np.testing.assert_allclose(gradient, slopes, atol=1e-6)
    truth, exact = EvidenceSurface(METHOD, kernel, X, y).value_and_gradient(kernel.theta)
    assert value == pytest.approx(truth, abs=1e-8)
    np.testing.assert_allclose(gradient, exact, atol=1e-6)


def test_a_class_may_be_missing_from_the_first_patterns(monkeypatch):
    X, labels = three_classes(5, n=120)
    labels[:] = np.minimum(labels, 1)
    order = np.random.default_rng(0).permutation(120)
    labels[order[-5:]] = 2
    y, kernel = one_hot(labels), 1.0 * RBF(1.0, (0.3, 10.0))
    whole = maximize_low_rank(METHOD, kernel, X, y, tolerance=1e-6)
    monkeypatch.setattr(climbing, "_FIRST", 80)
    found = maximize_low_rank(METHOD, kernel, X, y, tolerance=1e-6)
    assert found.converged
    np.testing.assert_allclose(found.theta, whole.theta, atol=0.02)
    again = maximize_low_rank(
        METHOD, kernel, X, y, tolerance=1e-3, n_restarts=1, rng=np.random.default_rng(0)
    )
    np.testing.assert_allclose(again.theta, whole.theta, atol=0.05)


# --- the classifier


def test_the_classifier_agrees_with_the_dense_one():
    X, labels = three_classes(1, n=150)
    X_star, names = three_classes(2, n=20)[0], np.array(["c", "a", "b"])
    dense_one, found = (
        GaussianProcessClassifier(1.0 * RBF(1.0), "laplace", approximation=a).fit(X, names[labels])
        for a in (None, "low-rank")
    )
    assert list(found.classes_) == ["a", "b", "c"] and found.status_ == OK
    here = dense_one.log_marginal_likelihood(found.kernel_.theta)
    assert found.log_marginal_likelihood_ == pytest.approx(here, abs=1e-3)
    assert here > dense_one.log_marginal_likelihood_ - 0.02  # the search is rougher
    assert found.log_marginal_likelihood_se_ == 0.0
    p = found.predict_proba(X_star)
    same = GaussianProcessClassifier(found.kernel_, "laplace", optimizer=None)
    truth = same.fit(X, names[labels]).predict_proba(X_star)
    np.testing.assert_allclose(p, truth, atol=2e-3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (found.predict(X_star) == found.classes_[p.argmax(axis=1)]).all()
    theta = np.zeros(2)
    value, gradient = found.log_marginal_likelihood(theta, eval_gradient=True)
    truth, slope = dense_one.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(truth, abs=0.1) == found.log_marginal_likelihood(theta)
    np.testing.assert_allclose(gradient, slope, atol=0.2)
    assert {"rank", "residual", "correction", "correction_rest"} == set(found.diagnostics_)


def test_auto_takes_low_rank_where_patterns_are_many(monkeypatch):
    X, labels = three_classes(1, n=80)
    options = {"inference": "laplace", "approximation": "auto", "optimizer": None}
    few = GaussianProcessClassifier(1.0 * RBF(1.0), **options).fit(X, labels)
    assert few.diagnostics_ == {}
    monkeypatch.setattr("gpcmc.lowrank.methods.MANY", 79)
    many = GaussianProcessClassifier(1.0 * RBF(1.0), **options).fit(X, labels)
    assert many.diagnostics_["rank"] < 80
    assert many.log_marginal_likelihood_ == pytest.approx(few.log_marginal_likelihood_, abs=0.01)


def test_the_classifier_warns_as_the_dense_one_does():
    X, labels = three_classes(1, n=100)
    options = {"inference": "laplace", "approximation": "low-rank"}
    with pytest.warns(ConvergenceWarning, match="ended at a bound of the kernel"):
        bound = GaussianProcessClassifier(1.0 * RBF(1.0, (0.01, 0.5)), **options).fit(X, labels)
    assert bound.at_bound_ == ("k2__length_scale",)
    noise = np.random.default_rng(0).integers(0, 3, 100)
    with pytest.warns(ConvergenceWarning, match="tells nothing of the classes"):
        GaussianProcessClassifier(1.0 * RBF(1.0), **options).fit(X, noise)
    with pytest.raises(ValueError, match="only supported for binary"):
        bound.latent_mean_and_variance(X)


def test_three_thousand_patterns_take_no_square_array():
    """And the probabilities of 3000 others are those of the labels' law, within 0.02 nats a pattern."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((6000, 2))
    f = np.stack([3 * np.sin(1.5 * X[:, 0]), 3 * np.cos(1.5 * X[:, 1]), X[:, 0] * X[:, 1]])
    labels = np.argmax(f + rng.gumbel(size=f.shape), axis=0)
    classifier = GaussianProcessClassifier(
        9.0 * RBF(1.5), "laplace", optimizer=None, approximation="low-rank"
    )
    tracemalloc.start()
    classifier.fit(X[:3000], labels[:3000])
    p = classifier.predict_proba(X[3000:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3000**2 / 2
    test, own = labels[3000:], softmax(f[:, 3000:], axis=0)
    gap = np.log(own[test, np.arange(3000)]) - np.log(p[np.arange(3000), test])
    assert 0.0 < gap.mean() < 0.02


# --- arguments


def test_bad_arguments_are_named(monkeypatch):
    X, labels = three_classes(9, n=30)
    P = low_rank_prior(ROUGH, X)
    for wrong in (labels[:4], labels + 1, labels + 0.5, 2 * labels, 0 * labels, labels[None]):
        with pytest.raises(ValueError, match="y must hold 30 labels 0, 1, ..., C - 1"):
            fit(METHOD, P, wrong)
    assert fit(METHOD, P, labels.astype(float)).log_evidence == fit(METHOD, P, labels).log_evidence
    with pytest.raises(ConvergenceError, match="raise max_iterations") as error:
        fit(MulticlassLaplace(max_iterations=1), P, labels)
    assert error.value.posterior.work["newton_steps"] == 1
    with pytest.raises(AttributeError, match="use gpcmc.lowrank.fit"):
        METHOD.fit(P, labels)
    bare = fit(METHOD, LowRankPrior(P.covariance), labels)
    with pytest.raises(ValueError, match="must have inducing inputs"):
        bare.predict_inputs(X)
    mackay = Laplace(likelihood="logistic", predictive="mackay")
    with pytest.raises(ValueError, match="predictive must be 'exact' with more than two classes"):
        GaussianProcessClassifier(inference=mackay, approximation="low-rank").fit(X, labels)
    monkeypatch.setattr(low, "available_memory", lambda: Limit(1e3, "this machine has"))
    with pytest.raises(MemoryError, match="tolerance: the softmax with 3 classes and a rank of"):
        fit(METHOD, P, labels)
