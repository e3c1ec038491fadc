"""Neal's models against finite differences, quadrature, exact rejection, and the joint law of prior and data.

Joint-law tests (Geweke 2004, JASA 99, 799) start from exact draws of hyperparameters, latent values and data, and
alternate the chain's own update with data drawn anew. Whatever the number of rounds, each quantity then keeps its prior
distribution over independent replicates. The band of Dvoretzky, Kiefer and Wolfowitz is at 1e-6 for each quantity, so
that the file's false-alarm rate is below 5e-5. Seeds are fixed. Other bands are stated where they are used.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from gpcmc.neal._gibbs import logistic_normal, scan
from scipy.special import expit, log_expit, logsumexp, softmax
from scipy.stats import gamma, invgamma, kstest, levy, multivariate_normal, norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from gpcmc.gp import orthant_covariance
from gpcmc.neal import (
    Classification,
    Gamma,
    Hierarchy,
    Linear,
    PowerExponential,
    Priors,
    Regression,
)
from gpcmc.neal.factor import Factor
from gpcmc.neal.hamiltonian import Point, persistent_step, trajectory
from gpcmc.neal.priors import draw_logarithms, gamma_log_density
from gpcmc.orthant.truths import three_dimensional, two_dimensional

X5 = np.array([[0.0, 0.3], [0.7, -1.0], [1.2, 0.1], [-0.6, 0.8], [0.2, 1.4]])
GROUP = [Gamma(1.5, 6.0), Hierarchy(Gamma(0.7, 9.0), 5.0)]


def kernel(jitter=1.0, rho=(1.0, 1.0), power=2.0, constant=1.0, variance=2.0):
    exponential = ConstantKernel(variance) * PowerExponential(list(rho), power)
    parts = ConstantKernel(constant, "fixed") + exponential
    return parts + WhiteKernel(jitter, "fixed") if jitter else parts


def classification(**given):
    arguments = {"X": X5, "t": [0, 1, 2, 1, 0], "priors": GROUP, "classes": 3} | given
    return Classification(kernel(), **arguments)


def regression(**given):
    arguments = {"X": X5, "t": np.ones(5), "priors": GROUP, "noise": Gamma(1.0, 1.0)} | given
    return Regression(kernel(), **arguments)


def band(replicates, level=1e-6):
    """Largest distance of an empirical distribution function from the truth (Dvoretzky, Kiefer, Wolfowitz)."""
    return math.sqrt(math.log(2 / level) / (2 * replicates))


def differences(function, x, h=1e-5):
    steps = h * np.eye(len(x))
    return np.array([(function(x + e) - function(x - e)) / (2 * h) for e in steps])


def precision_cdf(width, alpha):
    """Distribution function of x = log theta, where theta^-2 is gamma with shape alpha/2 and mean width^-2."""
    law = gamma(alpha / 2, scale=2 / (alpha * width**2))
    return lambda x: law.sf(np.exp(-2 * np.asarray(x)))


# ---------------------------------------------------------------------- kernel


def test_power_two_is_scikit_learns_rbf_and_power_one_a_product_of_exponentials():
    rho, other = np.array([0.4, 2.5]), X5[:3] + 0.2
    rbf = RBF(1 / (math.sqrt(2) * rho))
    np.testing.assert_allclose(PowerExponential(rho)(X5, other), rbf(X5, other), rtol=1e-13)
    found = PowerExponential(rho, 1.0)(X5, other)
    expected = np.exp(-np.abs(X5[:, None] - other) @ rho)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("rho", [0.8, [0.4, 2.5]])
@pytest.mark.parametrize("power", [0.7, 1.0, 2.0])
def test_kernel_gradient_is_the_derivative(rho, power):
    own = PowerExponential(rho, power)
    _, gradient = own(X5, eval_gradient=True)

    def value(theta):
        return own.clone_with_theta(theta)(X5)

    np.testing.assert_allclose(
        np.moveaxis(gradient, -1, 0), differences(value, own.theta), atol=1e-8
    )


@pytest.mark.parametrize("scale", [0.8, [0.4, 2.5]])
def test_the_linear_kernel_and_its_gradient(scale):
    own, other = Linear(scale), X5[:3] + 0.2
    s = np.broadcast_to(scale, 2)
    np.testing.assert_allclose(own(X5, other), X5 @ np.diag(s**2) @ other.T, rtol=1e-13)
    np.testing.assert_allclose(own.diag(X5), np.diag(own(X5)), rtol=1e-13)
    K, gradient = own(X5, eval_gradient=True)
    np.testing.assert_array_equal(K, own(X5))

    def value(theta):
        return own.clone_with_theta(theta)(X5)

    np.testing.assert_allclose(
        np.moveaxis(gradient, -1, 0), differences(value, own.theta), atol=1e-8
    )
    if np.ndim(scale) == 0:
        dot = ConstantKernel(scale**2) * DotProduct(0.0, "fixed")
        np.testing.assert_allclose(K, dot(X5), rtol=1e-13)


def test_the_linear_kernel_is_one_of_scikit_learns():
    own = Linear([0.4, 2.5])
    assert clone(own).get_params() == own.get_params()
    assert Linear(1.0, "fixed")(X5, eval_gradient=True)[1].shape == (5, 5, 0)
    assert not (own + WhiteKernel(1.0)).is_stationary()
    assert "0.4" in repr(own)


def test_kernel_is_one_of_scikit_learns():
    own = PowerExponential([0.4, 2.5], 1.5)
    assert clone(own).get_params() == own.get_params()
    assert PowerExponential(1.0, rho_bounds="fixed")(X5, eval_gradient=True)[1].shape == (5, 5, 0)
    np.testing.assert_array_equal(own.diag(X5), np.ones(5))
    assert "1.5" in repr(own)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (PowerExponential(1.0, 2.1), "power must be above 0"),
        (PowerExponential(0.0), "rho must be positive"),
        (PowerExponential([1.0, 2.0, 3.0]), "rho must have one value for each of 2 inputs"),
        (Linear(-1.0), "scale must be positive and finite"),
        (Linear([1.0, math.inf]), "scale must be positive and finite"),
        (Linear([1.0]), "scale must have one value for each of 2 inputs"),
    ],
)
def test_kernel_refuses(given, message):
    with pytest.raises(ValueError, match=message):
        given(X5)


@pytest.mark.parametrize("given", [Linear(), PowerExponential()])
def test_kernel_refuses_other_inputs(given):
    with pytest.raises(ValueError, match="Y must have 2 columns as X has; got 1"):
        given(X5, X5[:, :1])
    with pytest.raises(ValueError, match="eval_gradient must be False where Y is given"):
        given(X5, X5, eval_gradient=True)


# ---------------------------------------------------------------------- priors


@pytest.mark.parametrize(("width", "alpha"), [(0.05, 0.5), (2.0, 4.0)])
def test_density_of_a_logarithm_is_that_of_a_gamma_variate(width, alpha):
    x = np.linspace(-3.0, 3.0, 7)
    law = gamma(alpha / 2, scale=2 / (alpha * width**2))
    expected = law.logpdf(np.exp(-2 * x)) + math.log(2) - 2 * x
    found = [Gamma(width, alpha).log_density(one)[0] for one in x]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_draws_have_that_law():
    draws = draw_logarithms(math.log(0.05), 0.5, 20_000, np.random.default_rng(1))
    assert kstest(draws, precision_cdf(0.05, 0.5)).statistic < band(20_000)


def test_scale_mixture_is_students_t():
    rng = np.random.default_rng(2)
    deviations = np.exp(draw_logarithms(math.log(0.3), 4.0, 20_000, rng))
    draws = deviations * rng.standard_normal(20_000)
    assert kstest(draws, student(4, scale=0.3).cdf).statistic < band(20_000)


@pytest.mark.parametrize(
    "priors", [GROUP, [Gamma(1.5, 6.0), Hierarchy(0.7, 5.0)], [Gamma(1.5, 6.0), Gamma(0.7, 3.0)]]
)
def test_joint_prior_has_its_gradient_and_its_law(priors):
    joint = Priors(kernel(), priors)
    rng = np.random.default_rng(3)
    x = joint.draw(rng)
    value, gradient = joint.log_density(x)
    np.testing.assert_allclose(
        gradient, differences(lambda x: joint.log_density(x)[0], x), rtol=1e-7
    )
    total = Gamma(1.5, 6.0).log_density(x[0])[0]
    if isinstance(priors[1], Gamma):
        total += priors[1].log_density(x[1])[0]
    else:
        top = math.log(0.7)
        if isinstance(priors[1].top, Gamma):
            top = x[1]
            total += priors[1].top.log_density(top)[0]
        total += gamma_log_density(x[-2:], top, 5.0)[0]
    assert value == pytest.approx(total, rel=1e-12)
    draws = np.array([joint.draw(rng) for _ in range(4000)])
    assert kstest(draws[:, 0], precision_cdf(1.5, 6.0)).statistic < band(4000)


def test_a_scaled_group_has_the_mean_precision_of_the_documentation():
    found = {
        (alpha, p): Hierarchy.scaled(0.3, 0.7, alpha, p).top.width ** -2 * 0.09
        for alpha in (0.5, 1.0, 2.0, 4.0)
        for p in (1, 2, 5)
    }
    expected = {(0.5, p): p**4 for p in (1, 2, 5)} | {(1.0, p): p**2 for p in (1, 2, 5)}
    expected |= {(2.0, 1): 1.0, (2.0, 2): 2.0, (2.0, 5): 5 * math.log(5)}
    expected |= {(4.0, p): 2 * p for p in (1, 2, 5)}
    assert found == pytest.approx(expected, rel=1e-13)
    one = Hierarchy.scaled(0.3, 0.7, 4.0, 5)
    assert (one.top.alpha, one.alpha) == (0.7, 4.0)


def test_a_sum_over_a_scaled_group_has_the_scale_of_its_width():
    """theta_u^2 is inverse gamma: of finite mean for alpha > 2, and Lévy's stable law for alpha = 1."""
    heavy, light = (Hierarchy.scaled(0.3, 0.7, alpha, 6).top.width ** 2 for alpha in (1.0, 5.0))
    assert 6 * invgamma(2.5, scale=2.5 * light).mean() == pytest.approx(0.09)
    # p variates of scale c sum to one of scale p^2 c
    logs = draw_logarithms(0.5 * math.log(heavy), 1.0, 60_000, np.random.default_rng(21))
    sums = np.exp(2 * logs).reshape(-1, 6).sum(axis=1)
    assert kstest(sums, levy(scale=0.09).cdf).statistic < band(10_000)


def test_map_to_the_kernel():
    joint = Priors(kernel(rho=(0.5, 2.0)), GROUP)
    np.testing.assert_allclose(np.exp(joint.start), [math.sqrt(2.0), 1.0, 0.5, 2.0])
    np.testing.assert_allclose(joint.steps, [0.1, 0.1 / math.sqrt(2), 0.1, 0.1])
    x = np.log([3.0, 7.0, 0.2, 0.6])
    at = joint.kernel_at(x)
    assert at.k1.k2.k1.constant_value == pytest.approx(9.0)
    np.testing.assert_allclose(at.k1.k2.k2.rho, [0.2, 0.6])
    np.testing.assert_allclose(joint.pull_back(np.array([1.0, 2.0, 3.0])), [2.0, 0.0, 2.0, 3.0])
    shared = Priors(kernel(rho=(0.5, 2.0)), [Gamma(1.0, 1.0), Gamma(1.0, 1.0)])
    np.testing.assert_allclose(shared.kernel_at(np.zeros(2)).k1.k2.k2.rho, [1.0, 1.0])
    np.testing.assert_allclose(shared.pull_back(np.array([1.0, 2.0, 3.0])), [2.0, 5.0])


def test_a_hierarchy_of_the_scales_of_a_linear_part():
    """The joint density of a regression on a sum, whose members of both groups have priors of their own."""
    parts = Linear([0.5, 2.0]) + ConstantKernel(2.0) * PowerExponential([1.0, 1.0])
    group = Hierarchy(Gamma(0.7, 9.0), 5.0)
    model = Regression(
        parts, [group, Gamma(1.5, 6.0), Hierarchy(0.7, 5.0)], Gamma(0.5, 3.0), X5, np.ones(5)
    )
    np.testing.assert_allclose(np.exp(model.priors.start[1:3]), [0.5, 2.0])
    x = np.append(model.priors.draw(np.random.default_rng(22)), -0.4)
    variances = np.exp([2 * x[-1]] * 5)

    def value(x):
        return model.state(x, np.exp([2 * x[-1]] * 5)).point.log_density

    s = np.exp(x[1:3])
    rest = ConstantKernel(math.exp(2 * x[3])) * PowerExponential(np.exp(x[4:6]))
    C = X5 @ np.diag(s**2) @ X5.T + rest(X5) + np.diag(variances)
    expected = multivariate_normal(np.zeros(5), C).logpdf(np.ones(5))
    expected += model.priors.log_density(x[:-1])[0] + model.noise.log_density(x[-1])[0]
    assert value(x) == pytest.approx(expected, rel=1e-10)
    gradient = model.state(x, variances).point.gradient
    np.testing.assert_allclose(gradient, differences(value, x), rtol=1e-6)


# ---------------------------------------------------------------------- adaptive rejection


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
    found = kstest(np.interp(draws, grid, cumulative), "uniform").statistic
    assert found < band(count) + weight.max()


def test_gibbs_scans_of_two_classes_against_quadrature():
    """n = 2. Bands of 5 standard errors from 50 blocks: a false alarm in 1e-5 for each of five moments."""
    C = np.array([[4.0, 2.5], [2.5, 3.0]])
    target = np.array([1, 0])
    axis = np.linspace(-14.0, 14.0, 701)
    y = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    log_weight = multivariate_normal(np.zeros(2), C).logpdf(y)
    log_weight += log_expit(y[..., 0]) + log_expit(-y[..., 1])
    weight = np.exp(log_weight - logsumexp(log_weight))
    statistics = [
        lambda y: y[..., 0],
        lambda y: y[..., 1],
        lambda y: y[..., 0] ** 2,
        lambda y: y[..., 0] * y[..., 1],
        lambda y: expit(y[..., 0] - y[..., 1]),
    ]
    expected = np.array([(f(y) * weight).sum() for f in statistics])
    _compare(C, target, np.zeros((1, 2)), statistics, expected, lambda latent: latent[0])


@pytest.mark.slow
def test_gibbs_scans_of_three_classes_against_exact_rejection():
    """n = 2. Of 2e6 prior draws those are kept that draw the observed classes; both errors are in the band."""
    C = np.array([[4.0, 2.5], [2.5, 3.0]])
    target = np.array([2, 0])
    rng = np.random.default_rng(5)
    y = rng.standard_normal((2_000_000, 3, 2)) @ np.linalg.cholesky(C).T
    p = softmax(y, axis=1)
    y = y[rng.random(len(y)) < p[:, 2, 0] * p[:, 0, 1]]
    statistics = [
        lambda y: y[..., 2, 0],
        lambda y: y[..., 0, 0],
        lambda y: y[..., 0, 1] ** 2,
        lambda y: y[..., 1, 0] * y[..., 1, 1],
        lambda y: y[..., 2, 0] - y[..., 2, 1],
    ]
    found = np.array([f(y) for f in statistics])
    error = found.std(axis=1) / math.sqrt(len(y))
    _compare(
        C, target, np.zeros((3, 2)), statistics, found.mean(axis=1), lambda latent: latent, error
    )


def _compare(C, target, latent, statistics, expected, view, error=0.0):
    rng, precision = np.random.default_rng(6), np.linalg.inv(C)
    blocks = np.zeros((50, len(statistics)))
    scan(precision, latent, target, 200, rng)
    for block in blocks:
        states = []
        for _ in range(1000):
            scan(precision, latent, target, 1, rng)
            states.append(view(latent).copy())
        block[:] = [f(np.array(states)).mean() for f in statistics]
    own = blocks.std(axis=0, ddof=1) / math.sqrt(len(blocks))
    assert (np.abs(blocks.mean(axis=0) - expected) < 5 * np.hypot(own, error)).all()


# ---------------------------------------------------------------------- densities


def test_gradient_of_the_joint_density_of_a_classification():
    rng = np.random.default_rng(7)
    model = Classification(kernel(power=1.3), GROUP, X5, [0, 1, 2, 1, 0], classes=3)
    x, latent = model.priors.draw(rng), rng.standard_normal((3, 5))

    def value(x):
        return model.state(x, latent).point.log_density

    C = model.priors.kernel_at(x)(X5)
    expected = multivariate_normal(np.zeros(5), C).logpdf(latent).sum()
    assert value(x) == pytest.approx(expected + model.priors.log_density(x)[0], rel=1e-10)
    gradient = model.state(x, latent).point.gradient
    np.testing.assert_allclose(gradient, differences(value, x), rtol=1e-6)


@pytest.mark.parametrize("degrees", [None, 4.0])
def test_gradient_of_the_joint_density_of_a_regression(degrees):
    rng = np.random.default_rng(8)
    noise = Gamma(0.5, 3.0)
    model = Regression(kernel(0.1), GROUP, noise, X5, rng.standard_normal(5), degrees=degrees)
    x = np.append(model.priors.draw(rng), -0.4)
    scales = rng.gamma(2.0, size=5)

    def at(x):
        return model.state(x, scales if degrees else np.full(5, math.exp(2 * x[-1]))).point

    def value(x):
        return at(x).log_density

    variances = scales if degrees else np.full(5, math.exp(-0.8))
    C = model.priors.kernel_at(x[:-1])(X5) + np.diag(variances)
    expected = multivariate_normal(np.zeros(5), C).logpdf(model.t)
    expected += model.priors.log_density(x[:-1])[0] + noise.log_density(x[-1])[0]
    if degrees:
        expected += gamma_log_density(0.5 * np.log(variances), -0.4, degrees)[0]
    assert value(x) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(at(x).gradient, differences(value, x), rtol=1e-6)


def test_gaussian_noise_has_the_marginal_likelihood_of_scikit_learn_and_its_gradient():
    rng = np.random.default_rng(23)
    X, t = rng.standard_normal((12, 2)), rng.standard_normal(12)
    priors, noise = [Gamma(1.5, 6.0), Hierarchy(0.7, 5.0)], Gamma(0.5, 3.0)
    model = Regression(kernel(0.1), priors, noise, X, t)
    x = np.array([0.4, -0.3, 0.6, -0.8])  # logs of eta, both relevances, sigma
    point = model.state(x, np.full(12, math.exp(-1.6))).point
    of_kernel, slopes = model.priors.log_density(x[:-1])
    of_noise, slope = noise.log_density(x[-1])
    other = GaussianProcessRegressor(
        kernel(0.1) + WhiteKernel(1.0), alpha=0.0, optimizer=None, normalize_y=False
    ).fit(X, t)
    units = np.array([2.0, 1.0, 1.0, 2.0])  # variances have twice the logarithm
    expected, gradient = other.log_marginal_likelihood(units * x, eval_gradient=True)
    assert point.log_density - of_kernel - of_noise == pytest.approx(expected, rel=1e-12)
    found = point.gradient - np.append(slopes, slope)
    np.testing.assert_allclose(found, units * gradient, rtol=1e-10)


def test_gaussian_noise_predicts_as_scikit_learn():
    rng = np.random.default_rng(9)
    t, X_star = rng.standard_normal(5), rng.standard_normal((4, 2))
    model = Regression(kernel(0.0), GROUP, Gamma(0.5, 3.0), X5, t, sigma=0.3)
    mean, variance = model.predict(model.start(), X_star)
    other = GaussianProcessRegressor(kernel(0.0), alpha=0.09, optimizer=None).fit(X5, t)
    expected, deviation = other.predict(X_star, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    np.testing.assert_allclose(variance, deviation**2, rtol=1e-9)
    found = model.log_predictive(model.start(), X_star, np.ones(4))
    np.testing.assert_allclose(found, norm.logpdf(1.0, mean, np.sqrt(variance + 0.09)))


def test_predictive_density_of_t_noise_is_the_convolution():
    rng = np.random.default_rng(10)
    model = Regression(kernel(0.1), GROUP, Gamma(0.5, 3.0), X5, rng.standard_normal(5), degrees=4.0)
    state = model.start()
    mean, variance = model.predict(state, X5[:1] + 0.1)
    y = np.linspace(mean[0] - 9, mean[0] + 9, 400_001)
    density = norm.pdf(y, mean, np.sqrt(variance)) * student.pdf(0.7, 4, y, state.noise)
    found = model.log_predictive(state, X5[:1] + 0.1, [0.7])
    assert found[0] == pytest.approx(math.log(density.sum() * (y[1] - y[0])), abs=1e-8)


def test_large_jitter_makes_the_model_probit():
    """N(12), N(13): scaled up, the average of the logistic function is Phi. Band: 5 standard errors of 4e5 draws."""
    model = Classification(kernel(1e6), GROUP, X5, [0, 1, 1, 0, 1], classes=2)
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
    latent = ConstantKernel(0.5) + ConstantKernel(2.0) * PowerExponential(0.8)
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
    latent = ConstantKernel(2.0) * PowerExponential(0.5)
    R = orthant_covariance(latent(np.vstack([X, X5[3:4]])), np.append(y, 1.0))
    rho = R[0, 1] / math.sqrt(R[0, 0] * R[1, 1])
    exact = math.exp(three_dimensional(R) - two_dimensional(rho))
    C = latent(X) + np.eye(2)
    weights = np.linalg.solve(C, latent(X, X5[3:4]))[:, 0]
    deviation = math.sqrt(3.0 - weights @ C @ weights)

    def predictive(values):
        return norm.cdf(values @ weights / (scale * deviation))

    target = (y > 0).astype(np.int64)
    _compare(
        scale**2 * C, target, np.zeros((1, 2)), [predictive], [exact], lambda latent: latent[0]
    )


class Scripted(np.random.Generator):
    """A generator that hands out given normals, in portions of the size that is asked for."""

    def __init__(self, normals):
        super().__init__(np.random.PCG64(0))
        self.normals = np.array(normals)

    def standard_normal(self, size):
        portion, self.normals = self.normals[:size], self.normals[size:]
        return portion


def linear_map(model, state):
    """Mean (n,) and columns (n, 2n) of the map from unit normals to latent values."""
    twice = 2 * len(model.t)
    mean = model.draw_latent(state, Scripted(np.zeros(twice)))
    ends = [model.draw_latent(state, Scripted(normals)) for normals in np.eye(twice)]
    return mean, np.array(ends).T - mean[:, None]


@pytest.mark.parametrize("degrees", [None, 4.0])
def test_draws_of_latent_values_have_their_conditional_law(degrees):
    """N(19), N(20). A draw is affine in the normals, which gives its mean and covariance without sampling."""
    rng = np.random.default_rng(25)
    model = Regression(
        kernel(0.1), GROUP, Gamma(0.5, 3.0), X5, rng.standard_normal(5), degrees=degrees
    )
    variances = rng.gamma(2.0, size=5) if degrees else np.full(5, math.exp(-0.8))
    state = model.state(np.append(model.priors.draw(rng), -0.4), variances)
    mean, A = linear_map(model, state)
    K = model.priors.kernel_at(state.point.x[:-1])(X5)
    solved = np.linalg.solve(K + np.diag(variances), K)
    np.testing.assert_allclose(mean, model.t @ solved, atol=1e-12)
    np.testing.assert_allclose(A @ A.T, K - K @ solved, atol=1e-12)
    normals = rng.standard_normal(10)
    found = model.draw_latent(state, Scripted(normals))
    np.testing.assert_allclose(found, mean + A @ normals, atol=1e-12)


@pytest.mark.parametrize("degrees", [None, 4.0])
def test_a_smooth_kernel_needs_no_jitter(degrees):
    """Its matrix has no Cholesky factor; latent values have their law, and chains with t noise go on."""
    X = np.linspace(-1.0, 1.0, 60)[:, None]
    model = Regression(
        ConstantKernel(2.0) * PowerExponential(1.0), [Gamma(1.5, 6.0), Gamma(1.0, 6.0)],
        Gamma(0.5, 3.0), X, np.sin(3 * X[:, 0]), degrees=degrees, sigma=0.3,
    )  # fmt: skip
    state = model.start()
    K = state.point.factor.K
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(K)
    mean, A = linear_map(model, state)
    solved = np.linalg.solve(K + 0.09 * np.eye(60), K)
    np.testing.assert_allclose(mean, model.t @ solved, atol=1e-10)
    np.testing.assert_allclose(A @ A.T, K - K @ solved, atol=1e-10)
    end = model.iterate(state, leapfrogs=4, factor=0.5, rng=np.random.default_rng(26))
    assert np.isfinite(end.variances).all()


# ---------------------------------------------------------------------- joint laws


@pytest.mark.slow
def test_persistent_moves_keep_a_known_law():
    joint, replicates = Priors(kernel(), GROUP), 1500

    def target(x):
        return Point(x, *joint.log_density(x))

    rng, ends = np.random.default_rng(12), []
    for _ in range(replicates):
        point, momentum = target(joint.draw(rng)), rng.standard_normal(4)
        for _ in range(40):
            point, momentum, _ = persistent_step(
                point, momentum, target, steps=np.full(4, 0.35), persistence=0.9, rng=rng
            )
        ends.append([*point.x, *momentum])
    ends = np.array(ends)
    assert kstest(ends[:, 0], precision_cdf(1.5, 6.0)).statistic < band(replicates)
    assert kstest(ends[:, 1], precision_cdf(0.7, 9.0)).statistic < band(replicates)
    ratio = ends[:, 2] - ends[:, 1]
    assert kstest(ratio, precision_cdf(1.0, 5.0)).statistic < band(replicates)
    assert kstest(ends[:, 5], norm.cdf).statistic < band(replicates)


@pytest.mark.slow
@pytest.mark.parametrize(("leapfrogs", "window"), [(5, 1), (5, 3), (2, 3)])
def test_trajectories_with_windows_keep_a_known_law(leapfrogs, window):
    """With steps so long that energies are far from conserved: otherwise any choice of states keeps the law."""
    joint, replicates = Priors(kernel(), GROUP), 3000

    def target(x):
        return Point(x, *joint.log_density(x)) if np.abs(x).max() < 100 else None

    rng, starts, ends, accepted = np.random.default_rng(17), [], [], 0
    for _ in range(replicates):
        point = target(joint.draw(rng))
        starts.append(point.x)
        for _ in range(6):
            point, taken = trajectory(
                point, target, steps=np.full(4, 0.25), leapfrogs=leapfrogs, window=window, rng=rng
            )
            accepted += taken
        ends.append(point.x)
    starts, ends = np.array(starts), np.array(ends)
    assert accepted > 0.3 * 6 * replicates
    assert np.corrcoef(starts[:, 0], ends[:, 0])[0, 1] < 0.8  # they go somewhere
    assert kstest(ends[:, 0], precision_cdf(1.5, 6.0)).statistic < band(replicates)
    assert kstest(ends[:, 1], precision_cdf(0.7, 9.0)).statistic < band(replicates)
    assert kstest(ends[:, 2] - ends[:, 1], precision_cdf(1.0, 5.0)).statistic < band(replicates)


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


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_joint_law_of_hyperparameters_latent_values_and_classes(classes):
    replicates, rng, found = 700, np.random.default_rng(13), []
    model = Classification(kernel(), GROUP, X5[:3], np.zeros(3), classes=classes)
    for _ in range(replicates):
        x = model.priors.draw(rng)
        L = np.linalg.cholesky(model.priors.kernel_at(x)(model.X))
        state = model.state(x, rng.standard_normal((model.rows, 3)) @ L.T)
        for _ in range(5):
            model.t = draw_classes(state.latent, rng)
            state = model.iterate(state, updates=2, scans=3, persistence=0.9, factor=4.0, rng=rng)
        x = state.point.x
        white = np.linalg.solve(
            np.linalg.cholesky(model.priors.kernel_at(x)(model.X)), state.latent.T
        )
        found.append([x[0], x[1], x[3] - x[1], white[0, 0], white[2, -1]])
    laws = [
        precision_cdf(1.5, 6.0),
        precision_cdf(0.7, 9.0),
        precision_cdf(1.0, 5.0),
        norm.cdf,
        norm.cdf,
    ]
    for values, law in zip(np.array(found).T, laws, strict=True):
        assert kstest(values, law).statistic < band(replicates)


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [None, 4.0])
def test_joint_law_of_hyperparameters_noise_and_targets(degrees):
    replicates, rng, found = 500, np.random.default_rng(14), []
    noise = Gamma(0.8, 7.0)
    model = Regression(kernel(0.01), GROUP, noise, X5[:3], np.zeros(3), degrees=degrees)
    for _ in range(replicates):
        x = np.append(model.priors.draw(rng), noise.draw(rng))
        variances = np.full(3, math.exp(2 * x[-1]))
        if degrees:
            variances = np.exp(2 * draw_logarithms(x[-1], degrees, 3, rng))
        for _ in range(4):
            C = model.priors.kernel_at(x[:-1])(model.X) + np.diag(variances)
            model.t = np.linalg.cholesky(C) @ rng.standard_normal(3)
            state = model.iterate(model.state(x, variances), leapfrogs=4, factor=3.0, rng=rng)
            x, variances = state.point.x, state.variances
        found.append([x[0], x[1], x[3] - x[1], x[-1], 0.5 * np.log(variances[1]) - x[-1]])
    laws = [precision_cdf(1.5, 6.0), precision_cdf(0.7, 9.0), precision_cdf(1.0, 5.0)]
    laws += [precision_cdf(0.8, 7.0), precision_cdf(1.0, 4.0)]
    for values, law in list(zip(np.array(found).T, laws, strict=True))[: 5 if degrees else 4]:
        assert kstest(values, law).statistic < band(replicates)


def assert_prior(x):
    """Rows are states so far apart that their correlation is below 0.25: to the band they are independent draws."""
    laws = [precision_cdf(1.5, 6.0), precision_cdf(0.7, 9.0), precision_cdf(1.0, 5.0)]
    for values, law in zip((x[:, 0], x[:, 1], x[:, 3] - x[:, 1]), laws, strict=True):
        assert kstest(values, law).statistic < band(len(x))


@pytest.mark.slow
def test_one_case_of_unknown_class_leaves_the_prior():
    """Whatever the hyperparameters, each of three classes has probability 1/3: the posterior is the prior."""
    model, rng, found = classification(X=X5[:1], t=[1]), np.random.default_rng(27), []
    state = model.start()
    for _ in range(600):
        state = model.iterate(state, scans=2, persistence=0.8, factor=2.5, rng=rng)
        found.append(state.point.x)
    assert_prior(np.array(found)[20::2])


@pytest.mark.slow
def test_a_regression_without_its_likelihood_has_the_prior(monkeypatch):
    monkeypatch.setattr(Factor, "log_density", lambda self, values: 0.0)
    monkeypatch.setattr(Factor, "curvature", lambda self, values: np.zeros_like(self.K))
    X, rng, found = np.tile(X5, (6, 1)), np.random.default_rng(28), []  # steps of sigma are short
    model = regression(X=X, t=np.ones(30), noise=Gamma(0.8, 7.0), sigma=0.8)
    state = model.start()
    for _ in range(600):
        state = model.iterate(state, leapfrogs=4, window=2, factor=2.0, rng=rng)
        found.append(state.point.x)
    x = np.array(found)[30::3]
    assert_prior(x)
    assert kstest(x[:, -1], precision_cdf(0.8, 7.0)).statistic < band(len(x))


# ---------------------------------------------------------------------- use


def test_same_seed_same_chain_and_a_state_is_not_changed():
    model = Classification(kernel(), GROUP, X5, [0, 1, 2, 1, 0], classes=3)
    start, ends = model.start(), []
    for _ in range(2):
        rng = np.random.default_rng(15)
        ends.append(model.iterate(start, persistence=0.9, factor=0.4, scans=3, rng=rng))
    np.testing.assert_array_equal(ends[0].latent, ends[1].latent)
    assert not start.latent.any() and ends[0].accepted <= 5


def test_a_step_of_the_hyperparameters_is_under_the_latent_values_that_the_scans_left():
    model = Classification(kernel(), GROUP, X5, [0, 1, 2, 1, 0], classes=3)
    state = model.start()
    end = model.iterate(
        state, updates=1, scans=3, persistence=0.9, factor=0.5, rng=np.random.default_rng(18)
    )
    rng, latent = np.random.default_rng(18), state.latent.copy()
    scan(state.point.factor.precision, latent, model.t, 3, rng)
    point, momentum, accepted = persistent_step(
        model.state(state.point.x, latent).point,
        state.momentum,
        lambda x: model.state(x, latent).point,
        steps=0.5 * model.priors.steps,
        persistence=0.9,
        rng=rng,
    )
    assert accepted
    np.testing.assert_array_equal(end.latent, latent)
    np.testing.assert_array_equal(end.point.x, point.x)
    np.testing.assert_array_equal(end.momentum, momentum)


def test_a_hyperparameter_out_of_range_is_refused_and_the_chain_stays():
    model = Classification(kernel(), GROUP, X5, [0, 1, 2, 1, 0], classes=3)
    state = model.start()
    end = model.iterate(state, persistence=0.0, factor=1e6, scans=1, rng=np.random.default_rng(16))
    assert end.accepted == 0
    np.testing.assert_array_equal(end.point.x, state.point.x)


def test_with_all_hyperparameters_fixed_the_latent_values_move_alone():
    fixed = ConstantKernel(2.0, "fixed") + WhiteKernel(1.0, "fixed")
    model = Classification(fixed, [], X5, [0, 1, 1, 0, 1], classes=2)
    state = iterate_classes(model.start(), model, scans=3)
    assert state.point.x.shape == state.momentum.shape == (0,)
    assert state.latent.all() and state.accepted == 5


def test_models_without_a_positive_definite_start_refuse():
    singular = Classification(kernel(0.0), GROUP, np.zeros((5, 2)), np.zeros(5), classes=3)
    with pytest.raises(ValueError, match="add a WhiteKernel"):
        singular.start()
    with pytest.raises(ValueError, match="x must make the kernel positive definite"):
        singular.state(np.zeros(4), np.zeros((3, 5)))
    exact = Regression(
        kernel(0.0), GROUP, Gamma(1.0, 1.0), np.zeros((5, 2)), np.zeros(5), sigma=1e-30
    )
    with pytest.raises(ValueError, match="with noise sigma = 1e-30; add a WhiteKernel"):
        exact.start()


def iterate_classes(state=None, model=None, **given):
    model = model or classification()
    arguments = {"persistence": 0.9, "factor": 0.5, "rng": np.random.default_rng(0)} | given
    return model.iterate(state or model.start(), **arguments)


def iterate_regression(state=None, **given):
    model, arguments = regression(), {"factor": 0.5, "rng": np.random.default_rng(0)} | given
    return model.iterate(state or model.start(), **arguments)


def predict_classes(X_star=X5, state=None, **given):
    model, arguments = classification(), {"rng": np.random.default_rng(0)} | given
    return model.predict_proba(state or model.start(), X_star, **arguments)


JOINT, NAN = Priors(kernel(), GROUP), math.nan
TWO, ONE_CASE = classification(classes=2, t=[0, 1, 1, 0, 1]), classification(X=X5[:1], t=[0])
SHORT = Regression(kernel(), GROUP, Gamma(1.0, 1.0), X5[:3], np.ones(3))
BROKEN = replace(classification().start(), latent=np.full((3, 5), NAN))
X3 = np.zeros((2, 3))

REFUSED = {
    # priors
    "width must be a finite number > 0; got 0.0": lambda: Gamma(0.0, 1.0),
    "alpha must be a finite number > 0; got nan": lambda: Gamma(1.0, NAN),
    "alpha must be a finite number > 0; got -1.0": lambda: Hierarchy(Gamma(1.0, 1.0), -1.0),
    "top must be a finite number > 0; got -2.0": lambda: Hierarchy(-2.0, 1.0),
    "width must be a finite number > 0; got -0.2": lambda: Hierarchy.scaled(-0.2, 0.5, 1.0, 4),
    "top_alpha must be a finite number > 0; got 0": lambda: Hierarchy.scaled(0.2, 0, 1.0, 4),
    "alpha must be a finite number > 0; got inf": lambda: Hierarchy.scaled(0.2, 0.5, math.inf, 4),
    "count must be an integer >= 1; got 0": lambda: Hierarchy.scaled(0.2, 0.5, 1.0, 0),
    "rng must be a numpy.random.Generator.*got 1": lambda: Gamma(1.0, 1.0).draw(1),
    "rng must be a numpy.random.Generator.*got 2": lambda: JOINT.draw(2),
    "priors must have one entry for each of": lambda: Priors(kernel(), GROUP[:1]),
    "priors must be Gamma or Hierarchy; got 1.0": lambda: Priors(kernel(), [GROUP[0], 1.0]),
    "PowerExponential in place of RBF": lambda: Priors(RBF(1.0), [Gamma(1.0, 1.0)]),
    "kernel must have finite hyperparameters > 0": lambda: Priors(kernel(variance=0.0), GROUP),
    "x must have shape .4,.; got .3,.": lambda: JOINT.log_density(np.zeros(3)),
    "x must have shape .4,.; got .5,.": lambda: JOINT.kernel_at(np.zeros(5)),
    "gradient must have shape .3,.; got .4,.": lambda: JOINT.pull_back(np.zeros(4)),
    # models
    "whole numbers from 0 to 2": lambda: classification(t=[0, 1, 2, 3, 0]),
    "one class for each of 5 rows": lambda: classification(t=[0, 1]),
    "classes must be 2 or more; got 1": lambda: classification(t=np.zeros(5), classes=1),
    "classes must be an integer >= 1; got 2.5": lambda: classification(classes=2.5),
    "X must not be empty; got shape .0, 2.": lambda: classification(X=X5[:0], t=[]),
    "X must not be empty; got shape .5, 0.": lambda: regression(X=X5[:, :0]),
    "one target for each of 5 rows": lambda: regression(t=np.zeros(4)),
    "degrees must be a finite number > 0; got -1.0": lambda: regression(degrees=-1.0),
    "sigma must be a finite number > 0; got 0.0": lambda: regression(sigma=0.0),
    "noise must be a Gamma; got 0.1": lambda: regression(noise=0.1),
    # states
    "latent must have shape .3, 5.; got .2, 5.": (
        lambda: classification().state(np.zeros(4), np.zeros((2, 5)))
    ),
    "x must have shape .4,.; got .2,.": (
        lambda: classification().state(np.zeros(2), np.zeros((3, 5)))
    ),
    "x must be finite": lambda: classification().state([NAN] * 4, np.zeros((3, 5))),
    "x must have shape .5,.; got .4,.": lambda: regression().state(np.zeros(4), np.ones(5)),
    "variances must have shape .5,.; got .1,.": lambda: regression().state(np.zeros(5), [1.0]),
    "variances must be positive; got 0": lambda: regression().state(np.zeros(5), np.zeros(5)),
    "variances must all be exp.2 x.-1.. with Gaussian noise": (
        lambda: regression().state(np.zeros(5), [1.0, 1.0, 1.0, 1.0, 2.0])
    ),
    # iterations of a classification
    "updates must be an integer >= 1; got 0": lambda: iterate_classes(updates=0),
    "scans must be an integer >= 1; got -1": lambda: iterate_classes(scans=-1),
    "scans must be an integer >= 1; got 2.5": lambda: iterate_classes(scans=2.5),
    "persistence must be at least 0 and below 1; got 1.5": lambda: iterate_classes(persistence=1.5),
    "persistence must be at least 0 and below 1; got nan": lambda: iterate_classes(persistence=NAN),
    "persistence must be at least 0 and below 1; got -0.1": (
        lambda: iterate_classes(persistence=-0.1)
    ),
    "persistence must be at least 0 and below 1; got '0'": lambda: iterate_classes(persistence="0"),
    "factor must be a finite number > 0; got -0.5": lambda: iterate_classes(factor=-0.5),
    "rng must be a numpy.random.Generator.*got None": lambda: iterate_classes(rng=None),
    "state must be a ClassificationState; got RegressionState": (
        lambda: iterate_classes(regression().start())
    ),
    "state.latent must have shape .3, 5.; got .1, 5.": lambda: iterate_classes(TWO.start()),
    "state.latent must have shape .3, 5.; got .3, 1.": lambda: iterate_classes(ONE_CASE.start()),
    "state.latent must be finite; got 15": lambda: iterate_classes(BROKEN),
    # iterations of a regression
    "leapfrogs must be an integer >= 1; got 0": lambda: iterate_regression(leapfrogs=0),
    "window must be an integer >= 1; got 0": lambda: iterate_regression(window=0),
    "window must be at most leapfrogs . 1 = 4; got 5": (
        lambda: iterate_regression(leapfrogs=3, window=5)
    ),
    "factor must be a finite number > 0; got nan": lambda: iterate_regression(factor=NAN),
    "rng must be a numpy.random.Generator.*got 3": lambda: iterate_regression(rng=3),
    "state must be a RegressionState; got ClassificationState": (
        lambda: iterate_regression(classification().start())
    ),
    "state.variances must have shape .5,.; got .3,.": lambda: iterate_regression(SHORT.start()),
    # predictions
    "draws must be an integer >= 1; got 0": lambda: predict_classes(draws=0),
    "rng must be a numpy.random.Generator.*got 4": lambda: predict_classes(rng=4),
    "X_star must have 2 columns as X has; got 3": lambda: predict_classes(X3),
    "X_star must be finite": lambda: predict_classes(np.full((1, 2), NAN)),
    "state must be a ClassificationState; got str": lambda: predict_classes(state="last"),
    "X_star must have 2 columns.*got 3": lambda: regression().predict(regression().start(), X3),
    "t_star must have shape .5,.; got .1,.": (
        lambda: regression().log_predictive(regression().start(), X5, [1.0])
    ),
    "rng must be a numpy.random.Generator.*got 5": (
        lambda: regression().draw_latent(regression().start(), 5)
    ),
    "state must be a RegressionState; got NoneType": lambda: regression().predict(None, X5),
}


@pytest.mark.parametrize("message", REFUSED)
def test_arguments_are_checked(message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()


def test_a_linear_part_is_a_product_of_scikit_learns():
    linear = ConstantKernel(4.0) * DotProduct(0.0, "fixed") + WhiteKernel(1.0, "fixed")
    model = Classification(linear, [Gamma(1.0, 1.0)], X5, [0, 1, 1, 0, 1], classes=2)
    np.testing.assert_allclose(model.start().point.factor.K, 4 * X5 @ X5.T + np.eye(5))
