"""The log marginal likelihood over hyperparameters, and its gradient."""

import tracemalloc

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier as ScikitLearn
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Matern,
    WhiteKernel,
)
from truths import central_differences

from gpcmc.covariance import Dense
from gpcmc.gp import prior
from gpcmc.covariance.kernels import covariance_with_gradient
from gpcmc.inference import ExpectationPropagation, Laplace
from gpcmc.inference.evidence import EvidenceSurface, surface_method

METHODS = {
    "laplace": Laplace(),
    "logistic": Laplace(likelihood="logistic"),
    "ep": ExpectationPropagation(),
}
EACH_METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
KERNELS = {
    "rbf": 2.0 * RBF(1.5),
    "ard": 30.0 * RBF([1.0, 2.0, 0.5]),
    "rbf alone": RBF([0.7, 2.0, 9.0]),
    "one length scale in a list": RBF([0.7]) * ConstantKernel(3.0),
    "sum": 2.0 * RBF(1.0) + 0.3 * DotProduct(1.0) + WhiteKernel(0.2),
    "two scales": 3.0 * RBF([0.3, 1.0, 1.0])
    + ConstantKernel(0.5)
    + RBF(4.0) * RBF([1.0, 2.0, 3.0]),
    "some fixed": Matern(1.2) * ConstantKernel(2.0, "fixed") + RBF(1.0, "fixed") + WhiteKernel(0.3),
    "constant": ConstantKernel(0.7),
    "power": Exponentiation(RBF(2.0), 2.0) + ConstantKernel(0.1, "fixed"),
}
EACH_KERNEL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def columns(kernel):
    return 1 if kernel is KERNELS["one length scale in a list"] else 3


def noisy_problem(seed=0, n=60, d=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 5.0
    return X, np.where(X[:, 0] - 5.0 + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


# --- the kernel's part


@EACH_KERNEL
def test_contractions_are_those_of_the_kernels_own_gradient(kernel):
    X, _ = noisy_problem(d=columns(kernel))
    M = np.random.default_rng(1).standard_normal((60, 60))
    M += M.T
    K, contract = covariance_with_gradient(kernel, X)
    assert K.tobytes() == prior(kernel, X).K.tobytes()
    _, gradient = kernel(X, eval_gradient=True)
    expected = 0.5 * np.einsum("ij,ijk->k", M, gradient)
    np.testing.assert_allclose(contract(M), expected, rtol=1e-10, atol=1e-11)


def test_a_subclass_is_asked_for_its_own_gradient():
    class Halved(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            found = super().__call__(X, Y, eval_gradient)
            return (found[0] / 2, found[1] / 2) if eval_gradient else found / 2

    X, M = noisy_problem()[0], np.ones((60, 60))
    whole, half = (covariance_with_gradient(kind(2.0), X) for kind in (RBF, Halved))
    np.testing.assert_allclose(half[0], whole[0] / 2)
    np.testing.assert_allclose(half[1](M), whole[1](M) / 2)


def test_many_length_scales_need_no_array_for_each():
    X = np.random.default_rng(0).standard_normal((200, 150))
    kernel = 2.0 * RBF(np.full(150, 10.0))
    M = np.ones((200, 200))
    tracemalloc.start()
    covariance_with_gradient(kernel, X)[1](M)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15 * M.nbytes


# --- the gradient


def slopes(method, kernel, X, y):
    """The gradient by central differences, each value from a cold start."""
    return central_differences(
        lambda theta: EvidenceSurface(method, kernel, X, y).value(theta), kernel.theta
    )


@pytest.mark.slow
@EACH_METHOD
@EACH_KERNEL
def test_gradients_are_central_differences(method, kernel):
    X, y = noisy_problem(d=columns(kernel))
    value, gradient = EvidenceSurface(method, kernel, X, y).value_and_gradient(kernel.theta)
    assert value == pytest.approx(method.approximate(Dense(kernel(X)), y).log_evidence, rel=1e-12)
    assert gradient == pytest.approx(slopes(method, kernel, X, y), rel=1e-6, abs=3e-7)


@EACH_KERNEL
def test_logistic_laplace_is_that_of_scikit_learn(kernel):
    X, y = noisy_problem(1, d=columns(kernel))
    peer = ScikitLearn(kernel, optimizer=None).fit(X, y)
    surface = EvidenceSurface(METHODS["logistic"], kernel, X, y)
    for shift in (0.0, 0.7, -1.3):
        theta = kernel.theta + shift
        expected = peer.log_marginal_likelihood(theta, eval_gradient=True)
        value, gradient = surface.value_and_gradient(theta)
        assert value == pytest.approx(expected[0], rel=1e-9)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["laplace", "logistic"])
def test_one_matrix_says_what_traces_with_inverses_say(name):
    X, y = noisy_problem(2, n=25)
    kernel, method = KERNELS["ard"], METHODS[name]
    K, gradient = kernel(X, eval_gradient=True)
    posterior = method.approximate(Dense(K), y)
    likelihood, f = method.record, posterior.mean
    first, W = likelihood.derivatives(y, f)
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(W))
    by_mode = 0.5 * Sigma.diagonal() * likelihood.third_derivative(y, f)
    inverse, eye = np.linalg.inv(K), np.eye(len(y))
    _, found = EvidenceSurface(method, kernel, X, y).value_and_gradient(kernel.theta)
    for k in range(len(found)):
        dK = gradient[:, :, k]
        explicit = 0.5 * f @ inverse @ dK @ inverse @ f
        explicit -= 0.5 * np.trace(np.linalg.inv(np.diag(1 / W) + K) @ dK)
        implicit = by_mode @ np.linalg.solve(eye + K * W, dK @ first)  # I + K W, not I + W K
        assert abs(implicit) > 1e-3
        assert found[k] == pytest.approx(explicit + implicit, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("name", ["rbf", "ard", "sum", "two scales"])
def test_the_gradient_of_a_search_is_good_enough(name):
    """The search stops expectation propagation at 1e-6: its gradient is not yet that of the fixed point."""
    X, y = noisy_problem(6)
    kernel, quick = KERNELS[name], surface_method(METHODS["ep"], searching=True)
    assert quick.tolerance == 1e-6
    for shift in (0.0, 1.0, -1.0):
        theta = kernel.theta + shift
        _, found = EvidenceSurface(quick, kernel, X, y).value_and_gradient(theta)
        tight = ExpectationPropagation(tolerance=1e-12)
        _, exact = EvidenceSurface(tight, kernel, X, y).value_and_gradient(theta)
        assert 0.0 < np.linalg.norm(found - exact) < 1e-5 * np.linalg.norm(exact)


@EACH_METHOD
def test_symmetries_of_the_gradient(method):
    X, y = noisy_problem(3)
    kernel, order = KERNELS["ard"], np.random.default_rng(0).permutation(60)
    value, gradient = EvidenceSurface(method, kernel, X, y).value_and_gradient(kernel.theta)
    for inputs, labels in ((X, -y), (X[order], y[order]), (X + 100.0, y)):
        again = EvidenceSurface(method, kernel, inputs, labels).value_and_gradient(kernel.theta)
        assert again[0] == pytest.approx(value, abs=1e-9)
        np.testing.assert_allclose(again[1], gradient, rtol=1e-6, atol=1e-8)
    turned = kernel.clone_with_theta(kernel.theta[[0, 3, 1, 2]])
    _, permuted = EvidenceSurface(method, turned, X[:, [2, 0, 1]], y).value_and_gradient(
        turned.theta
    )
    np.testing.assert_allclose(permuted, gradient[[0, 3, 1, 2]], rtol=1e-7, atol=1e-9)


@EACH_METHOD
def test_duplicated_inputs_and_opposite_labels_have_a_gradient(method):
    X, y = noisy_problem(4, n=20)
    X, y = np.vstack([X, X]), np.concatenate([y, -y])
    kernel = 1e3 * RBF(2.0)
    _, gradient = EvidenceSurface(method, kernel, X, y).value_and_gradient(kernel.theta)
    assert gradient == pytest.approx(slopes(method, kernel, X, y), rel=1e-5, abs=1e-6)


@pytest.mark.slow
@EACH_METHOD
def test_a_start_elsewhere_changes_the_work_and_not_the_result(method):
    X, y = noisy_problem(5, n=100)
    kernel = KERNELS["ard"]
    surface = EvidenceSurface(method, kernel, X, y)
    for shift in (0.0, 0.05, 5.0, -5.0, 0.0):
        warm = surface.value_and_gradient(kernel.theta + shift)
        cold = EvidenceSurface(method, kernel, X, y).value_and_gradient(kernel.theta + shift)
        assert warm[0] == pytest.approx(cold[0], abs=1e-8)
        np.testing.assert_allclose(warm[1], cold[1], rtol=1e-6, atol=1e-7)
    K, near = (Dense(kernel.clone_with_theta(kernel.theta + s)(X)) for s in (0.0, 0.01))
    cold = method.approximate(K, y)
    warm = method.approximate(K, y, method.approximate(near, y))
    assert sum(warm.work.values()) < sum(cold.work.values())
