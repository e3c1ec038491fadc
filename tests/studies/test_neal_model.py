"""The paper's models against finite differences, quadrature, exact rejection, and the joint law of prior and data.

Joint-law tests (Geweke 2004, JASA 99, 799) start from exact draws of hyperparameters, latent values and data, and
alternate the chain's own update with data drawn anew. Whatever the number of rounds, each quantity then keeps its prior
distribution over independent replicates. The band of Dvoretzky, Kiefer and Wolfowitz is at 1e-6 for each quantity, so
that the file's false-alarm rate is below 5e-5. Seeds are fixed. Other bands are stated where they are used.
"""

import math

import numpy as np
import pytest
from planted import broken
from scipy.special import expit, log_expit, logsumexp, softmax
from scipy.stats import gamma, kstest, multivariate_normal, norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from studies.neal1997.model._gibbs import logistic_normal, scan
from truths import central_differences

from gpcmc.gp import orthant_covariance
from gpcmc.orthant.truths import three_dimensional, two_dimensional
from studies.neal1997.model.classification import Classification
from studies.neal1997.model.factor import Factor
from studies.neal1997.model.hamiltonian import Point, persistent_step, trajectory
from studies.neal1997.model.kernel import SquaredExponential
from studies.neal1997.model.priors import Gamma, Hierarchy, Priors, draw_logarithms
from studies.neal1997.model.priors import gamma_log_density as log_density
from studies.neal1997.model.regression import Regression

X5 = np.array([[0.0, 0.3], [0.7, -1.0], [1.2, 0.1], [-0.6, 0.8], [0.2, 1.4]])
T5, TWO = np.array([0, 1, 2, 1, 0]), {"t": np.array([0, 1, 1, 0, 1]), "classes": 2}
GROUP = [Gamma(1.5, 6.0), Hierarchy(Gamma(0.7, 9.0), 5.0)]


def kernel(jitter=1.0, rho=(1.0, 1.0), variance=2.0):
    exponential = ConstantKernel(variance) * SquaredExponential(list(rho))
    parts = ConstantKernel(1.0, "fixed") + exponential
    return parts + WhiteKernel(jitter, "fixed") if jitter else parts


def classification(own=None, **given):
    arguments = {"X": X5, "t": T5, "priors": GROUP, "classes": 3} | given
    return Classification(own or kernel(), **arguments)


def regression(own=None, **given):
    arguments = {"X": X5, "t": np.ones(5), "priors": GROUP, "noise": Gamma(1.0, 1.0)} | given
    return Regression(own or kernel(), **arguments)


def precision_cdf(width, alpha):
    """Distribution function of x = log theta, where theta^-2 is gamma with shape alpha/2 and mean width^-2."""
    law = gamma(alpha / 2, scale=2 / (alpha * width**2))
    return lambda x: law.sf(np.exp(-2 * np.asarray(x)))


JOINT = Priors(kernel(), GROUP)


def prior_point(x):
    """The target of chains whose law is the prior `GROUP`."""
    return Point(x, *JOINT.log_density(x)) if np.abs(x).max() < 100 else None


def assert_law(values, law, more=0.0):
    """Independent draws (c,) have a law, to the band of Dvoretzky, Kiefer and Wolfowitz."""
    assert kstest(values, law).statistic < math.sqrt(math.log(2e6) / (2 * len(values))) + more


def assert_prior(x, *others):
    """Independent draws (c, p) of log hyperparameters have the prior `GROUP`; others are pairs of values and law."""
    group = (x[:, 0], precision_cdf(1.5, 6.0)), (x[:, 1], precision_cdf(0.7, 9.0))
    for values, law in (*group, (x[:, 3] - x[:, 1], precision_cdf(1.0, 5.0)), *others):
        assert_law(values, law)


@pytest.mark.parametrize("rho", [0.8, [0.4, 2.5]])
def test_the_kernel_is_scikit_learns_rbf_and_its_gradient_the_derivative(rho):
    own, other = SquaredExponential(rho), X5[:3] + 0.2
    rbf = RBF(1 / (math.sqrt(2) * np.array(rho)))
    np.testing.assert_allclose(own(X5, other), rbf(X5, other), rtol=1e-13)
    np.testing.assert_array_equal(own.diag(X5), np.ones(5))
    _, gradient = own(X5, eval_gradient=True)
    expected = central_differences(lambda theta: own.clone_with_theta(theta)(X5), own.theta, 1e-5)
    np.testing.assert_allclose(np.moveaxis(gradient, -1, 0), expected, atol=1e-8)
    assert clone(own).get_params() == own.get_params()


@pytest.mark.parametrize(("width", "alpha"), [(0.05, 0.5), (2.0, 4.0)])
def test_density_of_a_logarithm_is_that_of_a_gamma_variate(width, alpha):
    x = np.linspace(-3.0, 3.0, 7)
    law = gamma(alpha / 2, scale=2 / (alpha * width**2))
    expected = law.logpdf(np.exp(-2 * x)) + math.log(2) - 2 * x
    found = [Gamma(width, alpha).log_density(one)[0] for one in x]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_draws_have_that_law_and_a_scale_mixture_is_students_t():
    draws = draw_logarithms(math.log(0.05), 0.5, 20_000, np.random.default_rng(1))
    assert_law(draws, precision_cdf(0.05, 0.5))
    rng = np.random.default_rng(2)
    deviations = np.exp(draw_logarithms(math.log(0.3), 4.0, 20_000, rng))
    assert_law(deviations * rng.standard_normal(20_000), student(4, scale=0.3).cdf)


@pytest.mark.parametrize("second", [GROUP[1], Gamma(0.7, 3.0)])
def test_joint_prior_has_its_gradient_and_its_law(second):
    joint, rng = Priors(kernel(), [GROUP[0], second]), np.random.default_rng(3)
    x = joint.draw(rng)
    value, gradient = joint.log_density(x)
    expected = central_differences(lambda x: joint.log_density(x)[0], x, 1e-5)
    np.testing.assert_allclose(gradient, expected, rtol=1e-7)
    total = GROUP[0].log_density(x[0])[0]
    if isinstance(second, Gamma):
        total += second.log_density(x[1])[0]
    else:
        total += second.top.log_density(x[1])[0] + log_density(x[2:], x[1], 5.0)[0]
    assert value == pytest.approx(total, rel=1e-12)
    assert_law([joint.draw(rng)[0] for _ in range(4000)], precision_cdf(1.5, 6.0))


def test_map_to_the_kernel():
    joint = Priors(kernel(rho=(0.5, 2.0)), GROUP)
    np.testing.assert_allclose(np.exp(joint.start), [math.sqrt(2.0), 1.0, 0.5, 2.0])
    np.testing.assert_allclose(joint.steps, [0.1, 0.1 / math.sqrt(2), 0.1, 0.1])
    at = joint.kernel_at(np.log([3.0, 7.0, 0.2, 0.6]))
    assert at.k1.k2.k1.constant_value == pytest.approx(9.0)
    np.testing.assert_allclose(at.k1.k2.k2.rho, [0.2, 0.6])
    np.testing.assert_allclose(joint.pull_back(np.array([1.0, 2.0, 3.0])), [2.0, 0.0, 2.0, 3.0])
    shared = Priors(kernel(rho=(0.5, 2.0)), [Gamma(1.0, 1.0), Gamma(1.0, 1.0)])
    np.testing.assert_allclose(shared.kernel_at(np.zeros(2)).k1.k2.k2.rho, [1.0, 1.0])
    np.testing.assert_allclose(shared.pull_back(np.array([1.0, 2.0, 3.0])), [2.0, 5.0])


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(0.0, 1.0), (0.0, 100.0), (-30.0, 100.0), (30.0, 100.0), (-500.0, 100.0), (5.0, 1e-4)],
)
def test_adaptive_rejection_has_the_law_of_the_inverse_distribution_function(mean, variance):
    count, rng = 40_000, np.random.default_rng(4)
    draws = logistic_normal(np.full(count, mean), np.full(count, variance), rng)
    reach = 10 * math.sqrt(variance)
    grid = np.linspace(mean - reach, mean + reach + (variance if mean < 0 else 0.0), 400_001)
    weight = softmax(norm.logpdf(grid, mean, math.sqrt(variance)) + log_expit(grid))
    cumulative = np.cumsum(weight) - 0.5 * weight
    assert_law(np.interp(draws, grid, cumulative), "uniform", more=weight.max())


C2 = np.array([[4.0, 2.5], [2.5, 3.0]])


def compare_scans(C, target, rows, statistics, expected, error=0.0):
    """Means of statistics (m, states) over states (states, rows, 2) of Gibbs scans, to 5 standard errors."""
    rng, precision, latent = np.random.default_rng(6), np.linalg.inv(C), np.zeros((rows, 2))
    blocks = []
    scan(precision, latent, np.array(target), 200, rng)
    for _ in range(50):
        states = np.empty((1000, rows, 2))
        for state in states:
            scan(precision, latent, np.array(target), 1, rng)
            state[:] = latent
        blocks.append(statistics(states).mean(axis=1))
    own = np.std(blocks, axis=0, ddof=1) / math.sqrt(len(blocks))
    assert (np.abs(np.mean(blocks, axis=0) - expected) < 5 * np.hypot(own, error)).all()


def test_gibbs_scans_of_two_classes_against_quadrature():
    """n = 2. Bands of 5 standard errors from 50 blocks: a false alarm in 1e-5 for each of five moments."""

    def statistics(latent):
        a, b = np.moveaxis(latent[..., 0, :], -1, 0)
        return np.array([a, b, a**2, a * b, expit(a - b)])

    axis = np.linspace(-14.0, 14.0, 701)
    y = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    log_weight = multivariate_normal(np.zeros(2), C2).logpdf(y)
    log_weight += log_expit(y[..., 0]) + log_expit(-y[..., 1])
    weight = np.exp(log_weight - logsumexp(log_weight))
    expected = (statistics(y[..., None, :]) * weight).sum(axis=(1, 2))
    compare_scans(C2, [1, 0], 1, statistics, expected)


def test_gibbs_scans_of_three_classes_against_exact_rejection():
    """n = 2. Of 2e6 prior draws those are kept that draw the observed classes; both errors are in the band."""

    def statistics(y):
        moments = y[:, 0, 1] ** 2, y[:, 1, 0] * y[:, 1, 1], y[:, 2, 0] - y[:, 2, 1]
        return np.array([y[:, 2, 0], y[:, 0, 0], *moments])

    rng = np.random.default_rng(5)
    y = rng.standard_normal((2_000_000, 3, 2)) @ np.linalg.cholesky(C2).T
    p = softmax(y, axis=1)
    found = statistics(y[rng.random(len(y)) < p[:, 2, 0] * p[:, 0, 1]])
    error = found.std(axis=1) / math.sqrt(found.shape[1])
    compare_scans(C2, [2, 0], 3, statistics, found.mean(axis=1), error)


def assert_density(at, x, expected, law):
    """The log density at x is what is expected of the values, and that of the hyperparameters' law; so is the slope."""
    assert at(x).log_density == pytest.approx(expected + law, rel=1e-10)
    slopes = central_differences(lambda x: at(x).log_density, x, 1e-5)
    np.testing.assert_allclose(at(x).gradient, slopes, rtol=1e-6)


def test_gradient_of_the_joint_density_of_a_classification():
    rng = np.random.default_rng(7)
    model = classification()
    x, latent = model.priors.draw(rng), rng.standard_normal((3, 5))
    C = model.priors.kernel_at(x)(X5)
    expected = multivariate_normal(np.zeros(5), C).logpdf(latent).sum()
    law = model.priors.log_density(x)[0]
    assert_density(lambda x: model.state(x, latent).point, x, expected, law)


@pytest.mark.parametrize("degrees", [None, 4.0])
def test_gradient_of_the_joint_density_of_a_regression(degrees):
    rng, noise = np.random.default_rng(8), Gamma(0.5, 3.0)
    model = regression(kernel(0.1), noise=noise, t=rng.standard_normal(5), degrees=degrees)
    x = np.append(model.priors.draw(rng), -0.4)
    scales = rng.gamma(2.0, size=5)

    def at(x):
        return model.state(x, scales if degrees else np.full(5, math.exp(2 * x[-1]))).point

    variances = scales if degrees else np.full(5, math.exp(-0.8))
    C = model.priors.kernel_at(x[:-1])(X5) + np.diag(variances)
    expected = multivariate_normal(np.zeros(5), C).logpdf(model.t)
    if degrees:
        expected += log_density(0.5 * np.log(variances), -0.4, degrees)[0]
    law = model.priors.log_density(x[:-1])[0] + noise.log_density(x[-1])[0]
    assert_density(at, x, expected, law)


def test_gaussian_noise_has_the_marginal_likelihood_of_scikit_learn_and_its_gradient():
    rng = np.random.default_rng(23)
    X, t = rng.standard_normal((12, 2)), rng.standard_normal(12)
    model = regression(kernel(0.1), X=X, t=t)
    x = np.array([0.4, 0.7, -0.3, 0.6, -0.8])  # logs of eta, top level, both relevances, sigma
    point = model.state(x, np.full(12, math.exp(-1.6))).point
    of_kernel, slopes = model.priors.log_density(x[:-1])
    of_noise, slope = model.noise.log_density(x[-1])
    other = kernel(0.1) + WhiteKernel(1.0)
    other = GaussianProcessRegressor(other, alpha=0.0, optimizer=None).fit(X, t)
    units = np.array([2.0, 0.0, 1.0, 1.0, 2.0])  # variances have twice the logarithm
    free = units > 0  # all but the top level, on which targets do not depend
    expected, gradient = other.log_marginal_likelihood((units * x)[free], eval_gradient=True)
    assert point.log_density - of_kernel - of_noise == pytest.approx(expected, rel=1e-12)
    found = point.gradient - np.append(slopes, slope)
    np.testing.assert_allclose(found[free], units[free] * gradient, rtol=1e-10)
    assert found[~free] == 0


def test_gaussian_noise_predicts_as_scikit_learn():
    rng = np.random.default_rng(9)
    t, X_star = rng.standard_normal(5), rng.standard_normal((4, 2))
    model = regression(kernel(0.0), t=t, sigma=0.3)
    mean, variance = model.predict(model.start(), X_star)
    other = GaussianProcessRegressor(kernel(0.0), alpha=0.09, optimizer=None).fit(X5, t)
    expected, deviation = other.predict(X_star, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    np.testing.assert_allclose(variance, deviation**2, rtol=1e-9)
    found = model.log_predictive(model.start(), X_star, np.ones(4))
    np.testing.assert_allclose(found, norm.logpdf(1.0, mean, np.sqrt(variance + 0.09)))


def test_predictive_density_of_t_noise_is_the_convolution():
    t = np.random.default_rng(10).standard_normal(5)
    model = regression(kernel(0.1), t=t, degrees=4.0, sigma=0.1)
    state = model.start()
    mean, variance = model.predict(state, X5[:1] + 0.1)
    y = np.linspace(mean[0] - 9, mean[0] + 9, 400_001)
    density = norm.pdf(y, mean, np.sqrt(variance)) * student.pdf(0.7, 4, y, state.noise)
    found = model.log_predictive(state, X5[:1] + 0.1, np.array([0.7]))
    assert found[0] == pytest.approx(math.log(density.sum() * (y[1] - y[0])), abs=1e-8)


def test_large_jitter_makes_the_model_probit():
    """N(12), N(13): scaled up, the average of the logistic function is Phi. Band: 5 standard errors of 4e5 draws."""
    model = classification(kernel(1e6), **TWO)
    latent = 1e3 * np.array([[-1.0, 1.5, 0.3, -0.2, 2.0]])
    state = model.state(np.log([1e3, 1.0, 1.0, 1.0]), latent)
    p = model.predict_proba(state, X5, draws=400_000, rng=np.random.default_rng(11))
    K = model.priors.kernel_at(state.point.x)(X5) - 1e6 * np.eye(5)
    solved = np.linalg.solve(K + 1e6 * np.eye(5), K)
    z = latent[0] @ solved / np.sqrt(1e6 + np.diag(K - K @ solved))
    np.testing.assert_allclose(p[:, 1], norm.cdf(z), atol=5 * 0.5 / math.sqrt(4e5) + 1e-3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("y", [[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])
def test_probit_by_jitter(y):
    """N(12), N(13): with jitter 1, and a step as likelihood, the labels have the orthant's probability.

    The frequency of the orthant among 1e6 draws from the prior is compared, and the mean logistic likelihood of these
    draws, which are scaled by 1e4 so that it is a step. Bands of 5 standard errors: a false alarm in 6e-7 each.
    """
    y, scale, draws = np.array(y), 1e4, 1_000_000
    latent = ConstantKernel(0.5) + ConstantKernel(2.0) * SquaredExponential(0.8)
    exact = math.exp(three_dimensional(orthant_covariance(latent(X5[:3]), y)))
    scaled = ConstantKernel(scale**2, "fixed") * (latent + WhiteKernel(1.0, "fixed"))
    model = Classification(scaled, [Gamma(1.0, 1.0)] * 3, X5[:3], y > 0, classes=2)
    L = model.start().point.factor.cholesky
    z = y * (np.random.default_rng(24).standard_normal((draws, 3)) @ L.T)
    error = math.sqrt(exact * (1 - exact) / draws)
    assert abs((z > 0).all(axis=1).mean() - exact) < 5 * error
    assert abs(np.exp(log_expit(z).sum(axis=1)).mean() - exact) < 5 * error


def test_gibbs_scans_with_large_jitter_have_the_probit_posterior():
    """N(12), N(13): the predictive probability is a ratio of orthant probabilities in three and two dimensions.

    Bands as of the scans against quadrature. Logistic noise adds 3.3 / 1e4 to the jitter's variance of 1.
    """
    X, y, scale = X5[:2], np.array([1.0, -1.0]), 100.0
    latent = ConstantKernel(2.0) * SquaredExponential(0.5)
    R = orthant_covariance(latent(np.vstack([X, X5[3:4]])), np.append(y, 1.0))
    rho = R[0, 1] / math.sqrt(R[0, 0] * R[1, 1])
    exact = math.exp(three_dimensional(R) - two_dimensional(rho))
    C = latent(X) + np.eye(2)
    weights = np.linalg.solve(C, latent(X, X5[3:4]))[:, 0]
    deviation = scale * math.sqrt(3.0 - weights @ C @ weights)
    compare_scans(scale**2 * C, [1, 0], 1, lambda y: norm.cdf(y @ weights / deviation).T, exact)


class Scripted(np.random.Generator):
    """A generator that hands out given normals, in portions of the size that is asked for."""

    def __init__(self, normals):
        super().__init__(np.random.PCG64(0))
        self.normals = np.array(normals)

    def standard_normal(self, size):
        portion, self.normals = self.normals[:size], self.normals[size:]
        return portion


def assert_latent_law(model, state, K, atol):
    """N(19), N(20). A draw is affine in the normals, which gives its mean and covariance without sampling."""
    twice, solved = 2 * len(model.t), np.linalg.solve(K + np.diag(state.variances), K)

    def draw(normals):
        return model._latent(state.point.factor, state.variances, Scripted(normals))

    mean = draw(np.zeros(twice))
    ends = [draw(normals) for normals in np.eye(twice)]
    A = np.array(ends).T - mean[:, None]
    np.testing.assert_allclose(mean, model.t @ solved, atol=atol)
    np.testing.assert_allclose(A @ A.T, K - K @ solved, atol=atol)
    normals = np.random.default_rng(0).standard_normal(twice)
    found = draw(normals)
    np.testing.assert_allclose(found, mean + A @ normals, atol=atol)


@pytest.mark.parametrize("degrees", [None, 4.0])
def test_draws_of_latent_values_have_their_conditional_law(degrees):
    rng = np.random.default_rng(25)
    model = regression(kernel(0.1), t=rng.standard_normal(5), degrees=degrees)
    variances = rng.gamma(2.0, size=5) if degrees else np.full(5, math.exp(-0.8))
    state = model.state(np.append(model.priors.draw(rng), -0.4), variances)
    K = model.priors.kernel_at(state.point.x[:-1])(X5)
    assert_latent_law(model, state, K, atol=1e-12)


@pytest.mark.parametrize("degrees", [None, 4.0])
def test_a_smooth_kernel_needs_no_jitter(degrees):
    """Its matrix has no Cholesky factor; latent values have their law, and chains with t noise go on."""
    X = np.linspace(-1.0, 1.0, 60)[:, None]
    model = Regression(
        ConstantKernel(2.0) * SquaredExponential(1.0), [Gamma(1.5, 6.0), Gamma(1.0, 6.0)],
        Gamma(0.5, 3.0), X, np.sin(3 * X[:, 0]), degrees=degrees, sigma=0.3,
    )  # fmt: skip
    state = model.start()
    K = state.point.factor.K
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(K)
    assert_latent_law(model, state, K, atol=1e-10)
    end = model.iterate(state, leapfrogs=4, factor=0.5, rng=np.random.default_rng(26))
    assert np.isfinite(end.variances).all()


def test_persistent_moves_keep_a_known_law():
    rng, ends = np.random.default_rng(12), []
    given = {"steps": np.full(4, 0.35), "persistence": 0.9, "rng": rng}
    for _ in range(700):
        point, momentum = prior_point(JOINT.draw(rng)), rng.standard_normal(4)
        for _ in range(40):
            point, momentum, _ = persistent_step(point, momentum, prior_point, **given)
        ends.append([*point.x, *momentum])
    ends = np.array(ends)
    assert_prior(ends, (ends[:, 4:].ravel(), norm.cdf))


def test_a_momentum_that_is_not_reversed_turns_it_red(monkeypatch):
    code = broken(persistent_step, "point, -momentum, False", "point, momentum, False")
    monkeypatch.setattr(persistent_step, "__code__", code)
    with pytest.raises(AssertionError):
        test_persistent_moves_keep_a_known_law()


@pytest.mark.parametrize(("leapfrogs", "window"), [(5, 1), (5, 3), (2, 3)])
def test_trajectories_with_windows_keep_a_known_law(leapfrogs, window):
    """With steps so long that energies are far from conserved: otherwise any choice of states keeps the law."""
    rng, starts, ends, accepted = np.random.default_rng(17), [], [], []
    given = {"steps": np.full(4, 0.25), "leapfrogs": leapfrogs, "window": window, "rng": rng}
    for _ in range(700):
        point = prior_point(JOINT.draw(rng))
        starts.append(point.x[0])
        for _ in range(6):
            point, taken = trajectory(point, prior_point, **given)
            accepted.append(taken)
        ends.append(point.x)
    ends = np.array(ends)
    assert np.mean(accepted) > 0.3
    assert np.corrcoef(starts, ends[:, 0])[0, 1] < 0.8  # they go somewhere
    assert_prior(ends)


@pytest.mark.parametrize(("leapfrogs", "expected"), [(5, {1, 2, 3, 4, 5}), (2, {-2, -1, 0, 1, 2})])
def test_a_window_makes_the_number_of_steps_random(leapfrogs, expected):
    """Where all states are equal, windows of three lead so many steps away; of two steps they hold every state."""

    def flat(x):
        return Point(x, 0.0, np.zeros(1))

    steps = []
    for number in range(300):
        momentum = np.random.default_rng(number).standard_normal(1)
        rng, given = np.random.default_rng(number), {"leapfrogs": leapfrogs, "window": 3}
        end, _ = trajectory(flat(np.zeros(1)), flat, steps=np.ones(1), rng=rng, **given)
        steps.append(round(float(end.x[0] / momentum[0])))
    assert set(steps) == expected


def draw_classes(latent, rng):
    u = rng.random(latent.shape[1])
    if len(latent) == 1:
        return (u < expit(latent[0])).astype(np.int64)
    return (u > np.cumsum(softmax(latent, axis=0), axis=0)[:-1]).sum(axis=0)


@pytest.mark.parametrize(("classes", "replicates"), [(2, 400), (3, 220)])
def test_joint_law_of_hyperparameters_latent_values_and_classes(classes, replicates):
    rng, found = np.random.default_rng(13), []
    model = classification(X=X5[:3], t=np.zeros(3), classes=classes)

    def root(x):
        return np.linalg.cholesky(model.priors.kernel_at(x)(model.X))

    for _ in range(replicates):
        x = model.priors.draw(rng)
        state = model.state(x, rng.standard_normal((model.rows, 3)) @ root(x).T)
        for _ in range(4):
            model.t = draw_classes(state.latent, rng)
            state = model.iterate(state, updates=2, scans=3, persistence=0.9, factor=4.0, rng=rng)
        white = np.linalg.solve(root(state.point.x), state.latent.T)
        found.append([*state.point.x, white[0, 0], white[2, -1]])
    found = np.array(found)
    assert_prior(found, (found[:, 4], norm.cdf), (found[:, 5], norm.cdf))


@pytest.mark.parametrize(("degrees", "replicates"), [(None, 150), (4.0, 300)])
def test_joint_law_of_hyperparameters_noise_and_targets(degrees, replicates):
    rng, found, noise = np.random.default_rng(14), [], Gamma(0.8, 7.0)
    model = regression(kernel(0.01), noise=noise, X=X5[:3], t=np.zeros(3), degrees=degrees)
    for _ in range(replicates):
        x = np.append(model.priors.draw(rng), noise.draw(rng))
        variances = np.full(3, math.exp(2 * x[-1]))
        if degrees:
            variances = np.exp(2 * draw_logarithms(x[-1], degrees, 3, rng))
        for _ in range(3):
            C = model.priors.kernel_at(x[:-1])(model.X) + np.diag(variances)
            model.t = np.linalg.cholesky(C) @ rng.standard_normal(3)
            state = model.iterate(model.state(x, variances), leapfrogs=4, factor=3.0, rng=rng)
            x, variances = state.point.x, state.variances
        found.append([*x, 0.5 * np.log(variances[1]) - x[-1]])
    found = np.array(found)
    others = [(found[:, 4], precision_cdf(0.8, 7.0)), (found[:, 5], precision_cdf(1.0, 4.0))]
    assert_prior(found, *others[: 2 if degrees else 1])


def chain(model, **given):
    """Hyperparameters (600, p) along a chain."""
    state, found = model.start(), []
    for _ in range(600):
        state = model.iterate(state, **given)
        found.append(state.point.x)
    return np.array(found)


# In the next two, states are so far apart that their correlation is below 0.25: to the band they are independent draws.


def test_one_case_of_unknown_class_leaves_the_prior():
    """Whatever the hyperparameters, each of three classes has probability 1/3: the posterior is the prior."""
    given = {"scans": 2, "persistence": 0.8, "factor": 2.5, "rng": np.random.default_rng(27)}
    assert_prior(chain(classification(X=X5[:1], t=np.array([1])), **given)[20::2])


def test_a_regression_without_its_likelihood_has_the_prior(monkeypatch):
    monkeypatch.setattr(Factor, "log_density", lambda self, values: 0.0)
    monkeypatch.setattr(Factor, "curvature", lambda self, values: np.zeros_like(self.K))
    X = np.tile(X5, (6, 1))  # steps of sigma are short
    model = regression(X=X, t=np.ones(30), noise=Gamma(0.8, 7.0), sigma=0.8)
    given = {"leapfrogs": 4, "window": 2, "factor": 2.0, "rng": np.random.default_rng(28)}
    x = chain(model, **given)[30::3]
    assert_prior(x, (x[:, -1], precision_cdf(0.8, 7.0)))


def iterate_classes(state=None, model=None, **given):
    model = model or classification()
    arguments = {"persistence": 0.9, "factor": 0.5, "rng": np.random.default_rng(0)} | given
    return model.iterate(state or model.start(), **arguments)


def test_same_seed_same_chain_and_a_state_is_not_changed():
    start = classification().start()
    ends = [iterate_classes(start, scans=3) for _ in range(2)]
    np.testing.assert_array_equal(ends[0].latent, ends[1].latent)
    assert not start.latent.any() and ends[0].accepted <= 5


def test_a_step_of_the_hyperparameters_is_under_the_latent_values_that_the_scans_left():
    model = classification()
    state = model.start()
    end = iterate_classes(state, updates=1, scans=3, rng=np.random.default_rng(18))
    rng, latent = np.random.default_rng(18), state.latent.copy()
    scan(state.point.factor.precision, latent, model.t, 3, rng)
    given = {"steps": 0.5 * model.priors.steps, "persistence": 0.9, "rng": rng}
    point, momentum, accepted = persistent_step(
        model.state(state.point.x, latent).point,
        state.momentum,
        lambda x: model.state(x, latent).point,
        **given,
    )
    assert accepted
    np.testing.assert_array_equal(end.latent, latent)
    np.testing.assert_array_equal(end.point.x, point.x)
    np.testing.assert_array_equal(end.momentum, momentum)


def test_a_hyperparameter_out_of_range_is_refused_and_the_chain_stays():
    state = classification().start()
    end = iterate_classes(state, persistence=0.0, factor=1e6, scans=1)
    assert end.accepted == 0
    np.testing.assert_array_equal(end.point.x, state.point.x)


SAME = np.zeros((5, 2))
REFUSED = {
    "positive definite at.*add a WhiteKernel": lambda: classification(kernel(0.0), X=SAME).start(),
    "x must make the kernel positive definite": (
        lambda: classification(kernel(0.0), X=SAME).state(np.zeros(4), np.zeros((3, 5)))),
    "sigma = 1e-30; add a WhiteKernel": lambda: regression(kernel(0.0), X=SAME, sigma=1e-30).start(),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_a_covariance_that_is_singular_is_refused(message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()
