"""Every Gaussian method, on every form of covariance, with every likelihood, against textbooks and quadrature."""

import pickle

import numpy as np
import pytest
import textbook
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from markov import Markov
from problems import noisy_problem, random_problem
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF
from truths import (
    central_differences,
    log_half_plane,
    reference,
    tilted_moments,
    two_point_posterior,
)

from gpcmc.covariance import Dense, LowRank, low_rank
from gpcmc.covariance.kernels import evaluate
from gpcmc.gp import Prior, linear, prior, rbf
from gpcmc.inference import (
    METHODS,
    ConvergenceError,
    ExpectationPropagation,
    ImportanceSampling,
    Laplace,
    MulticlassLaplace,
    infer,
)
from gpcmc.likelihood.softmax import one_hot

BOTH = pytest.mark.parametrize("method", [Laplace(), ExpectationPropagation()])
FROZEN = {  # log Z by GPML 4.2 and GPy 1.13.2
    "L": (linear(), -40.59245113, -40.59616395),
    "L3": (linear(), -175.36434720, -175.36614300),
    "R": (rbf(3, 2), -55.643046, -55.604041),
}


def assert_self_consistent(posterior, K):
    root, L = np.sqrt(posterior.S), posterior.conditioned.L
    B = np.eye(len(K)) + root[:, None] * K * root
    np.testing.assert_allclose(L @ L.T, B, rtol=1e-12, atol=1e-12 * B.max())
    np.testing.assert_allclose(posterior.mean, K @ posterior.a, rtol=1e-12, atol=1e-12)
    assert np.isfinite(posterior.log_evidence)


# --- against quadrature, one and two dimensions


@pytest.mark.parametrize("k", [1e-3, 1.0, 50.0, 1e6])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_ep_is_exact_for_one_pattern(k, y):
    posterior = ExpectationPropagation().fit(Prior([[k]]), [y])
    log_mass, mean, variance = tilted_moments(y, 0.0, k)
    latent_mean, latent_variance = posterior.latent([[k]], [k])
    assert posterior.log_evidence == pytest.approx(np.log(0.5), abs=1e-12)
    assert log_mass == pytest.approx(np.log(0.5), abs=1e-3)
    assert latent_mean[0] == pytest.approx(mean, rel=1e-8 if k < 100 else 1e-2)
    assert latent_variance[0] == pytest.approx(variance, rel=1e-8 if k < 100 else 1e-2)


# the largest errors of each method over the correlations below, rounded up: in log Z, in the
# predictive probability, and in E[f] in units of the prior standard deviation
KNOWN_ERRORS = {
    (0.3, "ep"): (1.5e-4, 3e-5, 6e-5),
    (3.0, "ep"): (1.2e-2, 6e-4, 3e-3),
    (30.0, "ep"): (6e-2, 5e-3, 1e-2),
    (0.3, "laplace"): (3e-3, 3e-3, 3e-2),
    (3.0, "laplace"): (8e-2, 4e-2, 0.25),
    (30.0, "laplace"): (0.5, 0.1, 0.6),
}


@pytest.mark.parametrize("rho", [-0.95, -0.3, 0.0, 0.6, 0.99])
@pytest.mark.parametrize(("beta", "name"), KNOWN_ERRORS)
@pytest.mark.parametrize("labels", [(1.0, 1.0), (1.0, -1.0)])
def test_two_patterns_against_dense_quadrature(rho, beta, name, labels):
    K, y = beta * np.array([[1.0, rho], [rho, 1.0]]), np.array(labels)
    k_star = beta * np.array([0.4, 0.5 * rho])
    log_z, mean, p = two_point_posterior(K, y, k_star, beta)
    closed = float(log_half_plane(y[0] * y[1] * beta * rho / (1 + beta)))
    assert log_z == pytest.approx(closed, abs=1e-12)
    posterior = METHODS[name]().fit(Prior(K), y)
    log_z_error, p_error, mean_error = KNOWN_ERRORS[beta, name]
    assert posterior.log_evidence == pytest.approx(log_z, abs=log_z_error)
    assert posterior.predict(k_star[:, None], [beta]).probability[0] == pytest.approx(
        p, abs=p_error
    )
    np.testing.assert_allclose(posterior.mean, mean, atol=mean_error * np.sqrt(beta))


# --- fixed points


@pytest.mark.parametrize("alpha", [0.5, 3.0])
@pytest.mark.parametrize("beta", [0.5, 20.0])
def test_ep_marginals_are_the_tilted_moments(alpha, beta):
    K, y = random_problem(1, alpha=alpha, beta=beta)
    posterior = ExpectationPropagation().fit(Prior(K), y)
    mean, variance = posterior.latent(K, K.diagonal())
    nu = posterior.a + posterior.S * mean
    cavity_variance = 1 / (1 / variance - posterior.S)
    cavity_mean = cavity_variance * (mean / variance - nu)
    tilted = np.array(
        [tilted_moments(*site) for site in zip(y, cavity_mean, cavity_variance, strict=True)]
    )
    np.testing.assert_allclose(mean, tilted[:, 1], atol=1e-8)
    np.testing.assert_allclose(variance, tilted[:, 2], atol=1e-8)


@pytest.mark.parametrize("seed", [19, 39])
def test_psi_never_falls_where_full_newton_steps_overshoot(seed):
    # on these two, full steps lose 49 and 9 nats at their tenth and seventh step
    K, y = random_problem(seed, n=30, alpha=1.0, beta=1e5)
    trace, steps = [], Laplace().fit(Prior(K), y).work["newton_steps"]
    for limit in range(1, steps):
        with pytest.raises(ConvergenceError) as failure:
            Laplace(max_iterations=limit).fit(Prior(K), y)
        record = failure.value.posterior
        trace.append(np.sum(norm.logcdf(y * record.mean)) - 0.5 * record.a @ record.mean)
    assert len(trace) > 5 and (np.diff(trace) > -1e-6).all()


# --- every method on every form with every likelihood

KERNEL = 3.0 * RBF([0.7, 1.3])
LINE = np.sort(np.random.default_rng(2).standard_normal((60, 1)), axis=0)
PLANE = np.random.default_rng(2).standard_normal((60, 2))
FORMS = {
    "dense": lambda: Dense(evaluate(KERNEL, PLANE), KERNEL, PLANE),
    "low rank, given": lambda: LowRank(PLANE**2, np.abs(PLANE[:, 1])),
    "low rank, inducing inputs": lambda: low_rank(KERNEL, PLANE, inducing=PLANE[:12] + 0.1),
    "low rank, pivoted": lambda: low_rank(KERNEL, PLANE, tolerance=1e-2),
    "Markov chain": lambda: Markov(LINE, 2.5, 0.8),
}
EACH_FORM = pytest.mark.parametrize("form", FORMS)
METHODS_OF_TWO = {
    "ep": ExpectationPropagation(tolerance=1e-9),
    "logistic ep": ExpectationPropagation(tolerance=1e-9, likelihood="logistic"),
    "laplace": Laplace(),
    "logistic laplace": Laplace(likelihood="logistic"),
}


def two_labels(seed=0):
    rng = np.random.default_rng(seed)
    return np.where(PLANE[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)


def three_labels():
    labels = np.digitize(PLANE[:, 0] + PLANE[:, 1], [-0.6, 0.6])
    labels[:3] = [0, 1, 2]
    return labels


def exact(K, monkeypatch):
    """Let sites settle on a form that leaves something out as on one that does not."""
    monkeypatch.setattr(type(K), "resolution", 0.0)
    return K


@EACH_FORM
@pytest.mark.parametrize("name", METHODS_OF_TWO)
def test_a_method_on_any_form_is_the_textbook_one(form, name, monkeypatch):
    K, y, method = exact(FORMS[form](), monkeypatch), two_labels(), METHODS_OF_TWO[name]
    A = K.dense() + 1e-9 * np.eye(60)  # the textbook's EP inverts it
    found = method.approximate(K, y)
    if "ep" in name:
        if name == "ep":
            log_z, tau, nu, mu = textbook.expectation_propagation(A, y)
        else:  # no textbook: the fixed point's own equations
            log_z, (tau, nu), mu = found.log_evidence, found.sites, found.mean
        a = nu - tau * mu
        again = method.approximate(Dense(K.dense()), y)
        assert found.log_evidence == pytest.approx(again.log_evidence, rel=1e-10)
        np.testing.assert_allclose(found.sites, again.sites, atol=1e-7)
    else:
        mu, a, tau, log_z = textbook.laplace(A, y, method.likelihood)
    assert found.log_evidence == pytest.approx(log_z, rel=1e-8)
    np.testing.assert_allclose(found.mean, mu, atol=1e-6)
    np.testing.assert_allclose(found.a, a, atol=1e-6)
    np.testing.assert_allclose(found.S, tau, atol=1e-6)
    if K.kernel is not None:
        X_star = np.random.default_rng(4).standard_normal((5, K.X.shape[1]))
        cross = K.cross(X_star)
        latent = found.conditioned.predictor(found.a).latent(cross)
        latent = latent.own if latent.own is not None else latent
        mean, variance = textbook.predict(A, tau, a, cross.covariances(), cross.variance)
        np.testing.assert_allclose(latent.mean, mean, atol=1e-6)
        np.testing.assert_allclose(latent.variance, variance, atol=1e-6)


@EACH_FORM
def test_the_softmax_mode_on_any_form_is_the_textbook_one(form):
    K, labels = FORMS[form](), three_labels()
    found = MulticlassLaplace().approximate(K, one_hot(labels))
    f, a, log_z = textbook.multiclass_laplace(K.dense(), one_hot(labels))
    assert found.log_evidence == pytest.approx(log_z, rel=1e-9)
    np.testing.assert_allclose(found.mean, f, atol=1e-8)
    np.testing.assert_allclose(found.a, a, atol=1e-8)


@EACH_FORM
def test_importance_sampling_on_any_form_is_that_on_the_array(form):
    """Two estimates of 8192 draws, at 5 standard errors: false-alarm rate 6e-7 each."""
    K, y = FORMS[form](), two_labels()
    here, there = (
        ImportanceSampling(8192, points=points).fit(Prior(one), y, rng=np.random.default_rng(0))
        for one, points in ((K, "antithetic"), (K.dense(), "random"))
    )
    change = here.diagnostics.get("correction", 0.0)
    gap = here.log_evidence - change - there.log_evidence
    assert abs(gap) < 5 * np.hypot(here.log_evidence_se, there.log_evidence_se)
    assert {"effective_samples", "effective_fraction"} <= set(here.diagnostics)


@EACH_FORM
@pytest.mark.parametrize("name", ["ep", "laplace", "softmax"])
def test_a_fit_goes_through_the_one_door(form, name):
    """From the prior with test inputs; what it returns is whole, also after pickling."""
    K, softmax = FORMS[form](), name == "softmax"
    method = MulticlassLaplace(points=64) if softmax else METHODS_OF_TWO[name]
    X_star = None if K.kernel is None else K.X[:4] + 0.05
    found = method.fit(Prior(K, X_star=X_star), three_labels() if softmax else two_labels())
    again = pickle.loads(pickle.dumps(found))
    assert again.log_evidence == found.log_evidence and found.status == "ok"
    assert (found.diagnostics == {}) == (form in ("dense", "Markov chain"))
    if X_star is None:
        assert found.prediction.probability.shape == (0,)
        with pytest.raises(ValueError, match="must have inducing inputs"):
            found.predict_inputs(np.ones((1, 2)))
        return
    p = found.prediction.probability
    assert p.shape == ((4, 3) if softmax else (4,)) and ((p > 0) & (p < 1)).all()
    np.testing.assert_allclose(again.predict_inputs(X_star).probability, p, atol=1e-12)
    error = found.prediction.form_error
    assert (np.max(error) > 0.0) == (form == "low rank, pivoted")


@pytest.mark.parametrize("form", ["dense", "low rank, pivoted", "Markov chain"])
@pytest.mark.parametrize("name", [*METHODS_OF_TWO, "softmax"])
def test_gradients_are_central_differences(form, name, monkeypatch):
    """At inducing inputs that stay where they are."""
    softmax = name == "softmax"
    method = MulticlassLaplace() if softmax else METHODS_OF_TWO[name]
    y = one_hot(three_labels()) if softmax else two_labels()
    K = exact(FORMS[form](), monkeypatch)
    remade = {
        "dense": lambda k: Dense(evaluate(k, PLANE), k, PLANE),
        "low rank, pivoted": lambda k: low_rank(k, PLANE, inducing=K.inducing.Z),
        "Markov chain": lambda k: Markov(LINE, k.k1.constant_value, k.k2.length_scale),
    }[form]
    posterior = method.approximate(K, y)

    def value(theta):
        return method.approximate(remade(K.kernel.clone_with_theta(theta)), y).log_evidence

    slopes = central_differences(value, K.kernel.theta)
    found = K.contract(method.gradient(K, y, posterior))
    np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-6)


@EACH_FORM
@pytest.mark.parametrize("name", [*METHODS_OF_TWO, "softmax"])
def test_a_start_changes_the_work_and_not_the_result(form, name, monkeypatch):
    """From another hyperparameter, another form, and far off."""
    softmax = name == "softmax"
    method = MulticlassLaplace() if softmax else METHODS_OF_TWO[name]
    y, K = one_hot(three_labels()) if softmax else two_labels(), exact(FORMS[form](), monkeypatch)
    cold = method.approximate(K, y)
    for start in (
        cold,
        method.approximate(Dense(1.02 * K.dense()), y),
        method.approximate(Dense(30.0 * K.dense()), y),
    ):
        warm = method.approximate(K, y, start)
        assert warm.log_evidence == pytest.approx(cold.log_evidence, rel=1e-9)
        np.testing.assert_allclose(warm.mean, cold.mean, atol=1e-6)
    near = method.approximate(K, y, cold)
    assert near.work.get("sweeps", 0) + near.work.get("newton_steps", 0) <= 1


# --- the iteration of expectation propagation


@pytest.mark.parametrize(
    "kernel", [rbf(0.5, 3.0), rbf(0.3, 1e5), rbf(1.0, 1e-4), rbf(1.0, 1e4), rbf(0.2, 1e3)]
)
def test_all_sites_at_once_have_the_sequential_fixed_point(kernel):
    """The variance 1e5 is that of classes that separate."""
    X, y = noisy_problem(5, 60)
    K = evaluate(kernel, X)
    log_z, tau, _, _ = textbook.expectation_propagation(K, y, sweeps=60)
    found = ExpectationPropagation().fit(Prior(K), y)
    assert found.log_evidence == pytest.approx(log_z, rel=1e-8)
    np.testing.assert_allclose(found.S, tau, rtol=1e-4, atol=1e-9)
    assert found.work["sweeps"] <= 40


def test_sites_of_a_coarser_form_save_dense_sweeps():
    X, y = noisy_problem(5, 600)
    K = Dense(evaluate(rbf(1.0, 3.0), X), rbf(1.0, 3.0), X)
    nested, cold = (ExpectationPropagation(nested=on).approximate(K, y) for on in (True, False))
    assert nested.log_evidence == pytest.approx(cold.log_evidence, rel=1e-12)
    np.testing.assert_allclose(nested.mean, cold.mean, atol=1e-7)
    assert nested.work["coarse_sweeps"] > 2 and "coarse_sweeps" not in cold.work
    assert nested.work["sweeps"] < cold.work["sweeps"]


def circling_problems():
    """Labels that say together what each says alone, and labels without a pattern, over seven orders of variance."""
    for seed in range(84):
        rng = np.random.default_rng(seed // 42)
        X = rng.standard_normal((50, 1 + seed % 3))
        y = np.where(rng.random(50) < 0.5 + 0.4 * (seed % 2), 1.0, -1.0)
        alpha, beta = (0.3, 1.0, 3.0, 10.0)[seed % 4], 10.0 ** (seed % 7)
        yield Dense(evaluate(rbf(alpha, beta), X)), y
        yield Dense(evaluate(rbf(alpha, beta), X)), np.ones(50)


def test_labels_without_a_pattern_and_large_variances_settle():
    """Without care parallel sweeps go round on these."""
    found = [ExpectationPropagation().approximate(K, y) for K, y in circling_problems()]
    sweeps = np.array([one.work["sweeps"] for one in found])
    assert sweeps.max() <= 60 and np.median(sweeps) <= 16


def test_sites_of_a_far_variance_are_no_end_of_the_sweeps():
    """Sites of variance 30 under one of 1e8, labels that separate: rounding seems to leave nothing to be known."""
    X, digit = load_digits(return_X_y=True)
    X, y = X[:100], np.where(digit[:100] < 5, 1.0, -1.0)
    pairs = ((1e8, 25.0), (30.0, 40.0))
    far, near = (prior(variance * RBF(scale), X).covariance for variance, scale in pairs)
    method = ExpectationPropagation(tolerance=1e-6)
    cold = method.approximate(far, y)
    warm = method.approximate(far, y, method.approximate(near, y))
    assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-5)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 10.0), (1.0, 1e3), (3.0, 1e3), (0.3, 1e2)])
def test_equal_labels_have_the_sequential_fixed_point(alpha, beta):
    """Sites tell together what each tells alone: at first all precisions are many times too large."""
    X = np.random.default_rng(1).random((60, 2))
    K = evaluate(rbf(alpha, beta), X) + 1e-4 * beta * np.eye(60)
    log_z, _, _, mean = textbook.expectation_propagation(K, np.ones(60), sweeps=100)
    found = ExpectationPropagation().fit(Prior(K), np.ones(60))
    assert found.log_evidence == pytest.approx(log_z, rel=1e-7)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-5)
    assert found.work["sweeps"] <= 40


# --- frozen numbers of other programs


@pytest.mark.parametrize("case", FROZEN)
def test_evidence_agrees_with_gpml_and_gpy(case):
    kernel, laplace, ep = FROZEN[case]
    X, y, _, _, _ = reference(case, "R_alpha3_beta2_truth" if case == "R" else None)
    K = kernel(X)
    assert Laplace().fit(Prior(K), y).log_evidence == pytest.approx(laplace, abs=1e-5)
    assert ExpectationPropagation().fit(Prior(K), y).log_evidence == pytest.approx(ep, abs=1e-5)


@pytest.mark.parametrize(
    ("case", "method", "error"),
    [
        ("L", Laplace(), 4.7e-3),
        ("L", ExpectationPropagation(), 9.8e-5),
        ("L3", Laplace(), 1.35e-3),
        ("L3", ExpectationPropagation(), 9.1e-6),
    ],
)
def test_mean_error_of_the_probabilities(case, method, error):
    X, y, X_star, _, truth = reference(case)
    result = infer(method, prior(linear(), X, X_star), y, rng=None)
    assert np.mean(np.abs(result.probability - truth)) == pytest.approx(error, rel=0.01)


def test_probabilities_of_the_rbf_case():
    X, y, X_star, _, truth = reference("R", "R_alpha3_beta2_truth")
    blocks = prior(rbf(3, 2), X, X_star)
    ep = infer(ExpectationPropagation(), blocks, y, rng=None)
    assert np.mean(np.abs(ep.probability - truth)) < 1.5e-4
    laplace = infer(Laplace(), blocks, y, rng=None)
    assert 1e-3 < np.mean(np.abs(laplace.probability - truth)) < 1e-2


# --- limits, symmetries, hard cases


@BOTH
def test_a_vanishing_length_scale_gives_one_half_everywhere(method):
    X = np.arange(20.0)[:, None]
    blocks = prior(rbf(1e-3, 3.0), X, X + 0.5)
    y = np.where(np.arange(20) % 3, 1.0, -1.0)
    result = infer(method, blocks, y, rng=None)
    np.testing.assert_array_equal(result.probability, 0.5)
    if isinstance(method, ExpectationPropagation):
        assert result.log_evidence == pytest.approx(-20 * np.log(2), abs=1e-10)


@BOTH
def test_deep_tails_are_finite(method):
    # 300 patterns at one input, half of each class: log p(y) is near log of 1 / (300 choose 150)
    K, y = np.full((300, 300), 100.0), np.tile([1.0, -1.0], 150)
    posterior = method.fit(Prior(K), y)
    assert -250 < posterior.log_evidence < -205
    assert posterior.predict(np.full((300, 1), 100.0), [100.0]).probability[0] == pytest.approx(
        0.5, abs=1e-3
    )


@settings(deadline=None, max_examples=40)
@given(
    arrays(np.float64, (6, 2), elements=st.floats(-3, 3)),
    arrays(np.float64, 6, elements=st.sampled_from([-1.0, 1.0])),
    st.floats(-2, 2),
    st.floats(-4, 5),
)
def test_any_small_problem_converges_to_a_consistent_record(X, y, log_alpha, log_beta):
    K = rbf(10**log_alpha, 10**log_beta)(X)
    for method in (Laplace(), ExpectationPropagation()):
        posterior = method.fit(Prior(K), y)
        assert_self_consistent(posterior, K)
        assert (posterior.S >= 0).all()


def test_ep_at_a_thousand_patterns_takes_few_sweeps():
    K, y = random_problem(8, n=1000, d=4, alpha=0.5, beta=3.0)
    posterior = ExpectationPropagation().fit(Prior(K), y)
    assert posterior.work["sweeps"] <= 20


def test_rounding_does_not_keep_newton_from_the_mode():
    """A step from the whole gradient, instead of what is left of it, meets 3e-9 here and no less in 200 steps."""
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 2))
    f = np.sin(9.0 * X[:, 0]) + X[:, 1] - 0.5
    y = np.where(f + rng.standard_normal(20_000) > 0.0, 1.0, -1.0)
    found = Laplace().approximate(low_rank(1.0 * RBF(0.3), X, tolerance=1e-3), y)
    assert found.work["newton_steps"] < 15


# --- errors and the interface


@pytest.mark.parametrize(
    "method", [Laplace(max_iterations=1), ExpectationPropagation(max_sweeps=1)]
)
def test_a_failure_to_converge_carries_the_last_record(method):
    K, y = random_problem(9)
    with pytest.raises(ConvergenceError, match="raise max_") as failure:
        method.fit(Prior(K), y)
    assert_self_consistent(failure.value.posterior, K)


def test_a_fit_predicts_at_the_test_inputs_of_the_prior():
    blocks = Prior(np.eye(1), np.ones((1, 1)), np.ones(1))
    # P(y* = 1 | y = 1) with equal inputs is 2 P(quadrant)
    result = infer(ExpectationPropagation(), blocks, [1.0], rng=None)
    assert result.log_evidence_se == 0.0 and (result.probability_se == 0.0).all()
    assert result.probability[0] == pytest.approx(2 * np.exp(float(log_half_plane(0.5))), abs=5e-3)
    assert result.probability[0] == pytest.approx(
        ndtr(1 / np.sqrt(np.pi) / np.sqrt(2 - 1 / np.pi)), abs=1e-9
    )


def test_a_covariance_too_large_for_floating_point_is_refused_by_name():
    x = np.random.default_rng(0).standard_normal((60, 2))
    y = np.where(np.random.default_rng(1).random(60) < 0.5, 1.0, -1.0)
    K = np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / np.exp(16.0))
    values = [
        ExpectationPropagation().fit(Prior(np.exp(e) * K), y).log_evidence for e in (16, 18, 20, 24)
    ]
    # a factor e^2 of a variance that is no limit any more: a deviation more of one latent value, of three
    np.testing.assert_allclose(np.diff(values) / np.array([1.0, 1.0, 2.0]), -3.0, atol=0.02)
    for method in (Laplace(), ExpectationPropagation()):
        with pytest.raises(ValueError, match="smaller variances"):
            method.fit(Prior(np.exp(36.0) * K), y)
