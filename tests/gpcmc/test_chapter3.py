"""Closed forms of chapter 3 of Rasmussen and Williams (2006), and properties that its text states.

Figures 3.1, 3.9 and 3.13; sections 3.2, 3.3, 3.4.2, 3.4.3; exercises 3.10.2, 3 and 5.
"""

import numpy as np
import pytest
from problems import random_problem
from scipy.optimize import root
from scipy.special import expit, ndtr, softmax
from scipy.stats import norm
from test_multiclass import three_classes
from textbook import log_sigmoid

from gpcmc.covariance.dense import Dense, SoftmaxConditioned
from gpcmc.gaussian import ep
from gpcmc.gaussian.posterior import GaussianPosterior
from gpcmc.gp import Prior, linear, prior, rbf
from gpcmc.inference import ExpectationPropagation, Laplace, MulticlassLaplace
from gpcmc.likelihood import LIKELIHOODS
from gpcmc.likelihood.softmax import Softmax, one_hot

LINKS = pytest.mark.parametrize("link", ["probit", "logistic"])
METHODS = {
    "ep": ExpectationPropagation(),
    "probit": Laplace(),
    "logistic": Laplace(likelihood="logistic"),
    "mackay": Laplace(likelihood="logistic", predictive="mackay"),
}
SIGMOIDS = {"ep": ndtr, "probit": ndtr, "logistic": expit, "mackay": expit}


# --- linear models


def two_weights():
    """Twelve patterns as in figure 3.1: their direction is near (1, 1), no line parts them."""
    rng = np.random.default_rng(37)
    X = rng.uniform(-5.0, 5.0, (12, 2))
    return X, np.where(X.sum(axis=1) + 4.0 * rng.standard_normal(12) > 0, 1.0, -1.0)


def log_posterior(link, w, X, y):
    """Eq. (3.6) without its constant, the prior N(0, I); columns of w are weights."""
    return log_sigmoid(link, y[:, None] * (X @ w))[0].sum(axis=0) - 0.5 * (w**2).sum(axis=0)


def mode_of_the_weights(link, X, y, precision=1.0):
    def slope(w):
        return X.T @ (y * log_sigmoid(link, y * (X @ w))[1]) - precision * w

    return root(slope, np.zeros(2), tol=1e-13).x


def average_over_weights(link, X, y, X_star):
    """Return log Z, E[w] and Eq. (3.7), by Gauss and Legendre's rule over the plane of weights."""
    node, weight = np.polynomial.legendre.leggauss(160)
    w = 7.0 * np.stack(np.meshgrid(node, node)).reshape(2, -1)
    mass = 49.0 * np.outer(weight, weight).ravel() / (2 * np.pi)
    mass *= np.exp(log_posterior(link, w, X, y))
    p = np.exp(log_sigmoid(link, X_star @ w)[0]) @ mass / mass.sum()
    return np.log(mass.sum()), w @ mass / mass.sum(), p


@LINKS
def test_the_log_posterior_of_the_weights_lies_below_its_tangents(link):
    """Section 3.2: concave by the prior's 1 at least, it has no line above but the tangent."""
    X, y = two_weights()
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 10.0):
        for w in 2.0 * rng.standard_normal((20, 2)):
            slope = X.T @ LIKELIHOODS[link].derivatives(y, X @ w)[0] - w
            step = size * rng.standard_normal((2, 30))
            rise = log_posterior(link, w[:, None] + step, X, y)
            rise -= log_posterior(link, w[:, None], X, y)
            assert (rise <= slope @ step - 0.5 * (step**2).sum(axis=0) + 1e-11).all()


@LINKS
def test_the_mode_with_a_linear_kernel_is_that_of_the_weights(link):
    """K = X X' has rank two: the Gaussian over twelve latent values is one over two weights."""
    X, y = two_weights()
    w = mode_of_the_weights(link, X, y)
    precision = np.eye(2) + X.T @ (log_sigmoid(link, y * (X @ w))[2][:, None] * X)
    log_z = log_posterior(link, w[:, None], X, y)[0] - 0.5 * np.linalg.slogdet(precision)[1]
    X_star = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, -2.0]])
    blocks = prior(linear(), X, X_star)
    posterior = Laplace(likelihood=link).fit(blocks, y)
    mean, variance = posterior.latent(blocks.K_star, blocks.k_star_star)
    np.testing.assert_allclose(posterior.mean, X @ w, rtol=1e-9)
    np.testing.assert_allclose(mean, X_star @ w, rtol=1e-9)
    expected = np.diag(X_star @ np.linalg.inv(precision) @ X_star.T)
    np.testing.assert_allclose(variance, expected, rtol=1e-9)
    assert posterior.log_evidence == pytest.approx(log_z, rel=1e-11)


# the largest errors in log Z, in E[w], and in a probability within the square, rounded up
WEIGHT_ERRORS = {
    "ep": (0.06, 1e-3, 8e-3),
    "probit": (0.07, 0.18, 0.065),
    "logistic": (0.09, 0.19, 0.05),
}


@pytest.mark.parametrize("name", WEIGHT_ERRORS)
def test_predictions_average_over_both_weights(name):
    """Eq. (3.7), figure 3.1."""
    X, y = two_weights()
    X_star = np.stack(np.meshgrid(np.linspace(-5, 5, 7), np.linspace(-5, 5, 7)), axis=-1)
    X_star = np.vstack([np.eye(2), X_star.reshape(-1, 2)])
    blocks = prior(linear(), X, X_star)
    posterior = METHODS[name].fit(blocks, y)
    weights = posterior.latent(blocks.K_star, blocks.k_star_star)[0][:2]
    link = "probit" if name == "ep" else name
    exact = average_over_weights(link, X, y, X_star)
    found = posterior.log_evidence, weights, posterior.prediction.probability
    errors = [np.abs(a - b).max() for a, b in zip(found, exact, strict=True)]
    assert (np.array(errors) < WEIGHT_ERRORS[name]).all()


@LINKS
def test_contours_of_the_averaged_probability_are_bent(link):
    """Figure 3.1(d): where the mode has one probability, the average falls on both sides."""
    X, y = two_weights()
    w = mode_of_the_weights(link, X, y)
    along = np.array([-w[1], w[0]]) / np.linalg.norm(w)
    away = np.array([0.0, 3.0, 6.0, 12.0, 24.0])
    for side in (1.0, -1.0):
        X_star = w / (w @ w) + side * away[:, None] * along
        blocks = prior(linear(), X, X_star)
        posterior = Laplace(likelihood=link).fit(blocks, y)
        mean, _ = posterior.latent(blocks.K_star, blocks.k_star_star)
        np.testing.assert_allclose(mean, 1.0, rtol=1e-9)
        for p in (posterior.prediction.probability, average_over_weights(link, X, y, X_star)[2]):
            assert (np.diff(p) < -0.01).all() and p[-1] > 0.5


@LINKS
def test_without_a_prior_weights_are_those_of_largest_likelihood_or_infinite(link):
    """Section 3.2: infinite where a line separates the classes; predictions then are hard."""
    X, y = two_weights()
    largest = mode_of_the_weights(link, X, y, precision=0.0)
    scales = np.array([10.0, 30.0, 100.0])
    method = Laplace(likelihood=link)
    apart = np.where(X.sum(axis=1) > 0, 1.0, -1.0)
    weights, separated = (
        [s**2 * X.T @ method.fit(Prior(s**2 * X @ X.T), labels).a for s in scales]
        for labels in (y, apart)
    )
    far = [np.linalg.norm(w - largest) for w in weights]
    np.testing.assert_allclose(far * scales**2, far[-1] * scales[-1] ** 2, rtol=0.05)
    lengths = np.linalg.norm(separated, axis=1)
    assert (np.diff(lengths) > 1.0).all()
    hardest = [log_sigmoid(link, apart * (X @ w))[0].min() for w in separated]
    assert (np.diff(hardest) > 0).all() and hardest[-1] > -0.01


def test_the_mode_with_several_classes_is_that_of_their_weights():
    """Eq. (3.8), with a linear kernel for every class."""
    X, labels = three_classes(2, n=15)
    y = one_hot(labels)

    def slope(w):
        return ((y - softmax(w.reshape(3, 2) @ X.T, axis=0)) @ X).ravel() - w

    w = root(slope, np.zeros(6), tol=1e-13).x.reshape(3, 2)
    posterior = MulticlassLaplace().approximate(Dense(X @ X.T), y)
    np.testing.assert_allclose(posterior.a @ X, w, atol=1e-10)
    np.testing.assert_allclose(posterior.mean, w @ X.T, atol=1e-10)


# --- averaged and MAP predictions


@pytest.mark.parametrize("beta", [0.01, 4.0, 1e4])
@pytest.mark.parametrize("name", METHODS)
def test_averaging_keeps_the_class_and_is_less_extreme(name, beta):
    """Section 3.4.2, figure 3.9."""
    rng = np.random.default_rng(5)
    X, X_star = rng.standard_normal((30, 2)), rng.uniform(-3.0, 3.0, (200, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(30) > 0, 1.0, -1.0)
    blocks = prior(rbf(1.5, beta), X, X_star)
    posterior = METHODS[name].fit(blocks, y)
    averaged = posterior.prediction.probability - 0.5
    mode = SIGMOIDS[name](posterior.latent(blocks.K_star, blocks.k_star_star)[0]) - 0.5
    np.testing.assert_array_equal(np.sign(averaged), np.sign(mode))
    assert (np.abs(averaged) < np.abs(mode)).all()
    assert 0.2 < np.mean(averaged > 0) < 0.8


@pytest.mark.parametrize("name", ["probit", "logistic", "mackay"])
def test_variance_moves_a_prediction_towards_one_half(name):
    """Section 3.4.2: it begins at the sigmoid of the mean, and moves nowhere if that is 1/2."""
    average = METHODS[name].record.predictive_probability
    mean = np.array([[-20.0], [-2.0], [-0.01], [0.01], [1.0], [5.0]])
    variance = np.append(0.0, np.logspace(-3, 5, 33))
    p = average(mean, variance)
    np.testing.assert_allclose(p[:, 0], SIGMOIDS[name](mean[:, 0]), rtol=1e-12)
    assert (np.diff(np.sign(mean) * (p - 0.5), axis=1) <= 0).all()
    assert np.abs(p[:, -1] - 0.5).max() < 0.03
    np.testing.assert_allclose(average(np.zeros(34), variance), 0.5, rtol=1e-14)


# --- the matrix B


@pytest.mark.parametrize(("name", "largest"), [("logistic", 0.25), ("probit", 1.0), ("ep", 1.0)])
@pytest.mark.parametrize("alpha", [0.3, 3.0, 300.0])
@pytest.mark.parametrize("beta", [0.1, 1e3])
def test_eigenvalues_of_B_are_between_their_bounds(name, largest, alpha, beta):
    """Sections 3.4.3, 3.6.3: 1 and 1 + n max(K) max(W), where W is 1/4 at most if logistic."""
    K, y = random_problem(6, n=25, alpha=alpha, beta=beta)
    L = METHODS[name].fit(Prior(K), y).conditioned.L
    values = np.linalg.eigvalsh(L @ L.T)
    assert values[0] > 1.0 - 1e-13 * values[-1]
    assert values[-1] <= 1.0 + 25 * K.max() * largest
    assert values[-1] > 1.01


@pytest.mark.parametrize("k", [0.01, 3.0, 1e4])
def test_as_many_patterns_of_each_class_at_one_input_attain_the_bound(k):
    """The mode is zero there, where the logistic likelihood has its largest curvature."""
    posterior = METHODS["logistic"].fit(Prior(np.full((10, 10), k)), np.tile([1.0, -1.0], 5))
    L = posterior.conditioned.L
    values = np.linalg.eigvalsh(L @ L.T)
    np.testing.assert_allclose(values, [1.0] * 9 + [1.0 + 10 * k / 4], rtol=1e-10)


# --- one likelihood term


def test_a_cavity_does_not_depend_on_its_own_site():
    """Exercise 3.10.5: another site in a pattern's place changes its marginal, and leaves its cavity as it was."""
    K, y = random_problem(3, n=12)
    tau, nu = ExpectationPropagation().approximate(Dense(K), y).sites

    def marginals_and_cavities(tau, nu):
        conditioned = Dense(K).conditioned(tau)
        a, mean = conditioned.shifted(nu)
        return np.array([[conditioned.variance, mean], ep.cavities(conditioned, a, mean)[::-1]])

    before = marginals_and_cavities(tau, nu)
    for i in range(len(y)):
        other_tau, other_nu = tau.copy(), nu.copy()
        other_tau[i], other_nu[i] = 3.0 * tau[i] + 0.1, -nu[i] - 0.5
        after = marginals_and_cavities(other_tau, other_nu)
        np.testing.assert_allclose(after[1, :, i], before[1, :, i], rtol=1e-9)
        assert (np.abs(after[0, :, i] - before[0, :, i]) > 1e-2).all()
        # those of the others change
        assert np.abs(np.delete(after[1] - before[1], i, axis=1)).max() > 1e-3


# --- the softmax


def test_the_covariance_of_a_class_is_singular_in_one_direction():
    """Exercise 3.10.2: diag(pi) - pi pi' is that of the indicators, and the vector of ones has the eigenvalue zero."""
    rng = np.random.default_rng(0)
    for C in (2, 3, 10):
        pi = softmax(3.0 * rng.standard_normal(C))
        gap = np.eye(C) - pi
        covariance = np.einsum("k,ki,kj->ij", pi, gap, gap)
        np.testing.assert_allclose(covariance, np.diag(pi) - np.outer(pi, pi), atol=1e-15)
        values = np.linalg.eigvalsh(covariance)
        assert abs(values[0]) < 1e-15 and values[1] > 1e-6
        np.testing.assert_allclose(covariance @ np.ones(C), 0.0, atol=1e-15)


def made_posterior(a, E, M, softmax):
    """Return a posterior of three classes from its parts, to be asked at some K_star."""
    K = np.eye(len(M))
    return GaussianPosterior(
        log_evidence=0.0, mean=np.zeros(a.shape), a=a, covariance=Dense(K), likelihood=softmax,
        conditioned=SoftmaxConditioned(K, E, M, 0.0), y=np.eye(3), method=MulticlassLaplace(), work={},
    )  # fmt: skip


@pytest.mark.parametrize("favoured", range(3))
@pytest.mark.parametrize("largest", range(3))
def test_the_class_depends_on_the_covariance_too(largest, favoured):
    """Exercise 3.10.3: the mean lies a little in the region of one class, and the covariance favours any of the three.

    Where two latent values rise and fall together, both classes share the probability of a rise, and the third has that
    of a fall alone.
    """
    means, shared = 0.1 * np.eye(3)[largest], [c for c in range(3) if c != favoured]
    # asked at K_star = [[1]], k_star_star = [1]: the latent values of `shared` are their means plus one variate of
    # deviation 10; that of the third has deviation 1
    E = np.zeros((3, 1, 1))
    E[shared] = 1.0
    posterior = made_posterior(means[:, None], E, np.array([[0.1]]), Softmax(4096, 8))
    mean, covariance = posterior.latent([[1.0]], [1.0])
    np.testing.assert_allclose(mean[0], means)
    expected = np.diag(np.eye(3)[favoured])
    expected[np.ix_(shared, shared)] = 100.0
    np.testing.assert_allclose(covariance[0], expected, atol=1e-12)
    z, w = np.meshgrid(np.linspace(-8, 8, 4001), np.linspace(-8, 8, 161), indexing="ij")
    weight = norm.pdf(z) * norm.pdf(w)
    f = means[:, None, None] + 10.0 * z
    f[favoured] = means[favoured] + w
    exact = np.sum(softmax(f, axis=0) * weight, axis=(1, 2)) / weight.sum()
    found = posterior.predict([[1.0]], [1.0])
    assert mean[0].argmax() == largest
    assert found.probability[0].argmax() == exact.argmax() == favoured
    np.testing.assert_allclose(found.probability[0], exact, atol=2e-3)


def test_decision_regions_of_the_softmax():
    """Figure 3.13, z2 = f2 - f1 and z3 = f3 - f1; there is no spread, so that the average is the softmax itself."""
    z2, z3 = (axis.ravel() for axis in np.meshgrid(np.linspace(-3, 3, 41), np.linspace(-3, 3, 38)))
    a = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    posterior = made_posterior(a, np.zeros((3, 2, 2)), np.eye(2), Softmax(1, 1))
    p = posterior.predict(np.stack([z2, z3]), np.zeros(len(z2))).probability
    np.testing.assert_allclose(p[:, 0], 1.0 / (1.0 + np.exp(z2) + np.exp(z3)), rtol=1e-14)
    apart = np.min(np.abs([z2, z3, z2 - z3]), axis=0) > 1e-9  # not on a boundary
    regions = [(z2 < 0) & (z3 < 0), (z2 > 0) & (z2 > z3), (z3 > 0) & (z3 > z2)]
    for c, region in enumerate(regions):
        np.testing.assert_array_equal((p.argmax(axis=1) == c)[apart], region[apart])
    # p > 1/3 has the boundary exp(z2) + exp(z3) = 2
    np.testing.assert_array_equal(p[:, 0] > 1 / 3, np.exp(z2) + np.exp(z3) < 2)
    on = np.log(np.linspace(0.1, 1.9, 7))
    edge = posterior.predict(np.stack([on, np.log(2.0 - np.exp(on))]), np.zeros(7)).probability
    np.testing.assert_allclose(edge[:, 0], 1 / 3, rtol=1e-14)
