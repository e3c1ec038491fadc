"""The exact evidence as a surface: closed forms, quadrature, differences with common points, and the classifier.

Estimates are compared with a truth at 5 standard errors from 16 independent ones: a false-alarm rate of 1.6e-4 for a
comparison. All seeds are fixed.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from truths import central_differences

import gpcmc.rectangle.gradient as door
from gpcmc import GaussianProcessClassifier
from gpcmc.covariance.factor import DenseFactor
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.gp import prior
from gpcmc.inference import Laplace, PseudoMarginal, Twisted
from gpcmc.inference.exact import CommonPoints, ExactSurface, sites
from gpcmc.orthant.truths import linear_kernel_truth, two_dimensional
from gpcmc.rectangle import mixture
from gpcmc.rectangle.gradient import Guide, orthant_gradient
from gpcmc.rectangle.proposals import tilted, twisted


def seeds(count, start=0):
    return np.arange(start, start + count)


def problem(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.where(np.sin(2 * X[:, 0]) + 0.4 * rng.standard_normal(n) > 0, 1.0, -1.0)


def guide_of(R, rng):
    """Sites and a tilt that are not good ones."""
    n = len(R)
    return Guide(rng.uniform(0, 1, n), rng.uniform(0, 1, n), rng.uniform(0, 1, n))


@pytest.mark.parametrize("rho", [-0.6, 0.3])
def test_two_coordinates_have_a_closed_form(rho):
    R = np.array([[2.0, rho * np.sqrt(3.0)], [rho * np.sqrt(3.0), 1.5]])
    guide = guide_of(R, np.random.default_rng(1))
    found = orthant_gradient(R, guide, points=4096, seeds=seeds(16))
    p = np.exp(two_dimensional(rho))
    assert found.log_probability == pytest.approx(np.log(p), abs=5 * found.standard_error)
    # of asin(rho) / 2 pi in the covariance, and in a variance through rho alone
    slope = 1.0 / (2.0 * np.pi * np.sqrt(1.0 - rho**2)) / p
    expected = slope * np.array(
        [[-0.5 * rho / 2.0, 0.5 / np.sqrt(3.0)], [0.5 / np.sqrt(3.0), -0.5 * rho / 1.5]]
    )
    np.testing.assert_allclose(found.cov, expected, atol=2e-3)


def test_value_and_slope_are_those_of_quadrature():
    """A kernel of one factor: its evidence is an integral over one latent value."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(24)
    y = np.where(x + rng.standard_normal(24) > 0, 1.0, -1.0)
    kernel = ConstantKernel(2.0) * DotProduct(0.0, "fixed")

    def truth(theta):
        return linear_kernel_truth(np.exp(0.5 * theta) * x, y, np.zeros(1)).log_evidence

    at = kernel.theta
    slope = (truth(at[0] + 1e-3) - truth(at[0] - 1e-3)) / 2e-3
    found = []
    for k in range(16):
        surface = ExactSurface(kernel, x[:, None], y, CommonPoints(256, seeds(2, 2 * k)))
        found.append(np.append(*surface.value_and_gradient(at)))
    found = np.array(found)
    error = found.std(axis=0, ddof=1) / 4.0
    assert (np.abs(found.mean(axis=0) - [truth(at[0]), slope]) < 5 * error).all()
    assert (error < [1e-3, 2e-3]).all()


@pytest.mark.parametrize(
    "kernel",
    [
        4.0 * RBF([0.7, 2.0]) + WhiteKernel(0.1),
        ConstantKernel(2.0, "fixed") * RBF(1.0) + ConstantKernel(0.5),
    ],
)
def test_the_gradient_is_that_of_the_same_surface(kernel):
    X, y = problem(40)
    surface = ExactSurface(kernel, X, y, CommonPoints(32, seeds(3)))
    surface.value(kernel.theta)  # where sites and tilt are found
    for shift in (0.0, 0.2):
        theta = kernel.theta + shift
        _, gradient = surface.value_and_gradient(theta)
        expected = central_differences(surface.value, theta, 1e-5)
        np.testing.assert_allclose(gradient, expected, atol=2e-7)


def test_any_guide_will_do_also_far_out():
    """Opposite labels of near patterns under a large variance: half-lines of a probability below 1e-15."""
    rng = np.random.default_rng(5)
    X, y = problem(12, seed=5)
    X[1::2], y[1::2] = X[::2] + 0.01, -y[::2]
    R = orthant_covariance(prior(400.0 * RBF(1.0), X).K, y)
    D = rng.standard_normal(R.shape)
    D = (D + D.T) * np.sqrt(np.outer(R.diagonal(), R.diagonal())) * 1e-3
    for guide in (Guide(np.zeros(12), np.zeros(12), np.zeros(12)), guide_of(R, rng)):

        def along(h, guide=guide):
            found = orthant_gradient(R + h * D, guide, points=16, seeds=seeds(2))
            return found.log_probability

        found = orthant_gradient(R, guide, points=16, seeds=seeds(2)).cov
        assert found is not None
        difference = (along(1e-3) - along(-1e-3)) / 2e-3
        assert np.sum(found * D) == pytest.approx(difference, rel=1e-4, abs=1e-6)


def test_the_draws_are_those_of_twisted_ep(monkeypatch):
    X, y = problem(35)
    K = prior(3.0 * RBF(1.0), X).K
    R = orthant_covariance(K, y)
    guide = Guide.at(R, *sites(K, y))
    found = orthant_gradient(R, guide, points=64, seeds=seeds(4))
    factor, low, high = DenseFactor.of(R.copy()), np.zeros(35), np.full(35, np.inf)
    both = mixture.Mixture(
        (
            twisted(factor.sited(guide.nu, guide.tau), guide.tau, low, high),
            tilted(factor, guide.mu, low, high),
        ),
        np.inf,
    )
    expected = mixture.draw(both, 64, seeds(4)).log_plain
    assert found.log_probability == pytest.approx(expected, abs=1e-11)
    # whatever is worked on at once
    monkeypatch.setattr(mixture, "_MOST", 32)
    monkeypatch.setattr(mixture, "_LEAST", 32)
    monkeypatch.setattr(door, "_LEAF", 5)
    again = orthant_gradient(R, guide, points=64, seeds=seeds(4))
    assert again.log_probability == pytest.approx(found.log_probability, abs=1e-11)
    np.testing.assert_allclose(again.cov, found.cov, atol=1e-11)
    short = orthant_gradient(R, guide, points=64, seeds=seeds(4), with_gradient=False)
    assert short.log_probability == again.log_probability and short.cov is None


def test_a_surface_refuses_where_a_few_weights_make_the_average():
    X, y = problem(60)
    kernel = 3.0 * RBF(1.0)
    surface = ExactSurface(kernel, X, y, CommonPoints(64, seeds(4)))
    surface.value(kernel.theta)
    far = kernel.theta + np.array([4.0, -1.5])
    with pytest.raises(ValueError, match="theta must be nearer to where the sites were found"):
        surface.value_and_gradient(far)
    surface.move(far)
    assert np.isfinite(surface.value(far))


def exact(**options):
    given = {"inference": Twisted(points=64), "surface": "exact", "random_state": 1}
    return GaussianProcessClassifier(1.0 * RBF(1.0), **(given | options))


def test_the_classifier_climbs_it():
    X, y = problem(60, seed=2)
    fitted = exact().fit(X, y)
    before = exact(surface="approximate").fit(X, y)
    found = fitted._fits[0].found
    assert found.converged and found.evaluations > before._fits[0].found.evaluations
    # the value at the end of the search, and the estimate there, whose points are others
    se = fitted.log_marginal_likelihood_se_
    assert found.log_evidence == pytest.approx(fitted.log_marginal_likelihood_, abs=7 * se)
    assert fitted.log_marginal_likelihood_value_ == found.log_evidence
    # it is higher than expectation propagation's optimum by more than the error, and flat
    reference = Twisted(points=1024)
    one, two = (
        reference.fit(prior(m.kernel_, X), y, rng=np.random.default_rng(7))
        for m in (before, fitted)
    )
    gain, error = (
        two.log_evidence - one.log_evidence,
        np.hypot(two.log_evidence_se, one.log_evidence_se),
    )
    assert 0.5 > gain > -5 * error
    _, gradient = fitted.log_marginal_likelihood(eval_gradient=True)
    assert np.abs(gradient).max() < 0.05
    assert clone(fitted).surface == "exact" and fitted.get_params()["surface"] == "exact"
    again = clone(fitted).fit(X, y)
    assert (again.kernel_.theta == fitted.kernel_.theta).all()
    assert again.log_marginal_likelihood_ == fitted.log_marginal_likelihood_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_other_ways_to_fit():
    X, y = problem(30, seed=4)

    def own(objective, start, bounds):
        found = minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B")
        return found.x, found.fun

    quick = Twisted(points=16, randomizations=4)
    first = exact(inference=quick).fit(X, y).kernel_.theta
    for options in ({"optimizer": own}, {"optimizer": "fmin_l_bfgs_b"}):
        found = exact(inference=quick, **options).fit(X, y).kernel_.theta
        np.testing.assert_allclose(found, first, atol=0.05)
    fixed = exact(inference=quick, optimizer=None).fit(X, y)
    value = fixed.log_marginal_likelihood(np.zeros(2))
    assert value == pytest.approx(fixed.log_marginal_likelihood_, abs=0.1)
    X = np.random.default_rng(3).standard_normal((24, 2))
    code = np.digitize(X[:, 0], [-0.4, 0.4])
    several = exact(inference=quick).fit(X, code)
    value, gradient = several.log_marginal_likelihood(eval_gradient=True)
    assert np.isfinite(value) and gradient.shape == (6,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"surface": "true"}, "surface must be one of approximate, exact; got 'true'"),
        ({"surface": None}, "surface must be one of approximate, exact; got None"),
        ({"inference": "ep"}, "surface='exact' needs .*got ExpectationPropagation"),
        ({"inference": "laplace", "multi_class": "softmax"}, "surface='exact' needs .*softmax"),
        ({"inference": Laplace(likelihood="logistic")}, "surface='exact' needs the probit"),
        ({"inference": PseudoMarginal()}, "PseudoMarginal integrates over them"),
        ({"approximation": "low-rank"}, "approximation must be None with surface='exact'"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        exact(**options).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
