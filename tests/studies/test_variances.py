"""Class probabilities at large variances: the Gibbs sampler against closed forms and quadrature, rows, and measures."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad, trapezoid
from scipy.stats import norm
from small import load, plan, put

from gpcmc.covariance.kernels import rbf
from gpcmc.orthant.truths import three_dimensional
from recheck.record.files import write_csv
from studies.atiya2021 import variances
from studies.atiya2021.config import check
from studies.atiya2021.measures import variances as measures
from studies.common.measuring import Rows
from studies.common.seeds import generator

#: Chains and sweeps that leave a standard error of about a thousandth.
LENGTH = {"chains": 64, "burn_in": 60, "sweeps": 200}


def found(K, cross, variance, y, rng=0, **length):
    """Probabilities of class +1 by the sampler, of a prior covariance of the latent values."""
    R = y[:, None] * K * y + np.eye(len(y))
    return variances.exact(
        R, cross * y, variance + 1.0, np.random.default_rng(rng), **LENGTH | length
    )


def agrees(half, truth):
    """Within 5.5 standard errors by 63 degrees of freedom: one false alarm in a million a probability."""
    assert np.isfinite(half.probability).all() and (half.error < 0.02).all()
    assert (np.abs(half.probability - truth) <= 5.5 * half.error + 1e-12).all()


@pytest.mark.parametrize("beta", [1.0, 100.0, 1e6])
def test_two_patterns_have_a_closed_form(beta):
    """The orthant of three dimensions over that of two."""
    x, x_test = np.array([[0.0], [0.3]]), np.array([[0.1], [0.5], [-2.0]])
    k, y = rbf(1.0, beta), np.array([1.0, -1.0])
    half = found(k(x), k(x_test, x), k.diag(x_test), y)
    truth = []
    for one in x_test:
        both, signs = np.vstack([x, one]), np.array([1.0, -1.0, 1.0])
        cov = signs[:, None] * k(both) * signs + np.eye(3)
        root = np.sqrt(np.diag(cov))
        cov = cov / np.outer(root, root)
        pair = 0.25 + np.arcsin(cov[0, 1]) / (2.0 * np.pi)
        truth.append(np.exp(three_dimensional(cov)) / pair)
    agrees(half, truth)


@pytest.mark.parametrize("beta", [1.0, 1e4])
def test_patterns_at_one_place_have_an_integral(beta):
    """Thirty patterns with one latent value f, nine of class -1: an integral over f, at another test pattern too."""
    n, fewer, rho = 30, 9, 0.6
    y = np.repeat([-1.0, 1.0], [fewer, n - fewer])
    half = found(
        np.full((n, n), beta), beta * np.array([[1.0], [rho]]) * np.ones(n), np.full(2, beta), y
    )

    def integral(slope, rest):
        def integrand(f):
            own = (n - fewer) * norm.logcdf(f) + fewer * norm.logcdf(-f)
            return np.exp(own + norm.logpdf(f, scale=np.sqrt(beta)) + 20.0) * norm.cdf(
                slope * f / np.sqrt(1.0 + rest)
            )

        return quad(integrand, -4.0, 6.0, epsrel=1e-10, points=[0.5])[0]

    # a slope of zero leaves half of the normalising constant
    whole = 2.0 * integral(0.0, 0.0)
    truth = [integral(1.0, 0.0) / whole, integral(rho, beta * (1 - rho**2)) / whole]
    agrees(half, truth)


def test_draws_that_are_kept_if_all_labels_fit_agree():
    """Six patterns: draws of the prior, of which about one in thirty has the labels."""
    rng = np.random.default_rng(4)
    X, k = rng.standard_normal((6, 2)), rbf(1.0, 1000.0)
    X_test = rng.standard_normal((8, 2))
    y = np.array([1.0, 1.0, -1.0, 1.0, -1.0, -1.0])
    half = found(k(X), k(X_test, X), k.diag(X_test), y)
    both = np.vstack([X, X_test])
    root = np.linalg.cholesky(k(both) + np.eye(14))
    values = root @ rng.standard_normal((14, 1_000_000))
    kept = values[6:, (values[:6] * y[:, None] > 0).all(axis=0)] > 0
    assert kept.shape[1] > 3000
    error = np.hypot(half.error, np.sqrt(0.25 / kept.shape[1]))
    assert (np.abs(half.probability - kept.mean(axis=1)) < 4.5 * error).all()


def test_the_stated_error_is_that_of_repeated_runs():
    """Of sixteen runs on twelve patterns and a variance of a million: within a factor that one set in 10,000 leaves."""
    X, y = variances.patterns("process", 12, "3/a", 1.0, 1e6)
    X_test, k = generator("3/b").standard_normal((20, 2)), rbf(1.0, 1e6)
    halves = [
        found(k(X), k(X_test, X), k.diag(X_test), y, rng, sweeps=60, burn_in=30)
        for rng in range(16)
    ]
    scatter = np.std([half.probability for half in halves], axis=0, ddof=1)
    stated = np.sqrt(np.mean([half.error**2 for half in halves], axis=0))
    # test patterns are correlated, as if there were one: chi-square of 15 degrees of freedom
    ratio = np.sqrt(np.mean(scatter**2) / np.mean(stated**2))
    assert 0.43 < ratio < 1.74


def test_normals_between_limits_have_their_law():
    """Means of 10^5 draws, in the middle and in either tail, within 4.9 standard errors: one in a million each."""
    rng = np.random.default_rng(2)
    for low, high in [(-np.inf, np.inf), (-0.5, 2.0), (8.0, np.inf), (-np.inf, -30.0), (5.0, 5.1)]:
        drawn = variances._between(np.full(100_000, low), np.full(100_000, high), rng)
        assert ((drawn >= low) & (drawn <= high)).all()
        near = np.clip(0.0, max(low, -38.0), min(high, 38.0))
        x = np.linspace(max(low, near - 10.0), min(high, near + 10.0), 200_001)
        law = np.exp(norm.logpdf(x) - norm.logpdf(near))
        mass, mean = trapezoid(law, x), trapezoid(x * law, x)
        error = drawn.std() / np.sqrt(len(drawn))
        assert abs(drawn.mean() - mean / mass) < 4.9 * error


def test_labels_of_the_boundary_are_the_same_at_every_variance():
    one, two = (variances.patterns("boundary", 30, "1/a", 1.0, beta) for beta in (1.0, 1e6))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_array_equal(one[1] > 0, one[0][:, 1] > np.sin(2.0 * one[0][:, 0]))


def test_what_is_said_of_probabilities():
    one, two = np.array([0.5, 0.9]), np.array([0.6, 0.9])
    said = variances._apart(np.array([0.45, 0.8]), one, two)
    assert said["error"] == pytest.approx(0.1) and said["largest"] == pytest.approx(0.1)
    assert said["square"] == pytest.approx((0.05 * 0.15 + 0.01) / 2)
    assert said["other_class"] == 1
    assert said["bolder"] == pytest.approx((0.05 - 0.05 + 0.3 - 0.4) / 2)
    nats = 0.55 * np.log(0.55 / 0.45) + 0.45 * np.log(0.45 / 0.55)
    nats += 0.9 * np.log(0.9 / 0.8) + 0.1 * np.log(0.1 / 0.2)
    assert said["entropy"] == pytest.approx(nats / 2)
    assert np.isfinite(variances._apart(np.array([0.0, 1.0]), one, two)["entropy"])


def test_noise_of_the_truth_leaves_the_mean_square_as_it_is():
    """Halves with a noise of 0.01 around a truth that a method misses by 0.002: within 4.5 standard errors."""
    rng = np.random.default_rng(1)
    noise = 0.01 * rng.standard_normal((2, 200_000))
    said = variances._apart(np.full(200_000, 0.5), *(0.502 + noise))
    assert said["square"] == pytest.approx(4e-6, abs=4.5 * 1e-4 / np.sqrt(200_000))


# --- rows


def test_a_data_set_has_all_variances():
    rows = plan("atiya2021", "variances")
    assert [row["beta"] for row in rows] == [1.0, 1e6] * 2
    assert len({row["data"] for row in rows}) == 2 and len({row["seed"] for row in rows}) == 4


def test_a_configuration_without_the_experiment_has_no_rows():
    from studies.atiya2021.experiments import variances as experiment

    config = load("tiny")
    del config["atiya2021"]["variances"]
    assert experiment.plan(check(config)) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("labels", ["spiral"], "variances.labels"),
        ("betas", [1e7], "variances.betas"),
        ("sizes", [], "variances.sizes"),
        ("sizes", [{"patterns": 20, "data_sets": 1}] * 2, "a different one in each row"),
        ("test", 1, "variances.test"),
        ("truth/chains", 1, "variances.truth.chains"),
        ("methods/ep", {"method": "ep", "samples": 3}, "variances.methods.ep.samples"),
    ],
)
def test_what_is_wrong_is_refused(path, value, said):
    config = load("tiny")
    put(config, f"atiya2021/variances/{path}", value)
    with pytest.raises(ValueError, match=said):
        check(config)


# --- measures


def line(labels="process", n=40, dataset=0, beta=1.0, method="ep", **more):
    found = {"row": f"{labels}/N{n}/dataset{dataset}/beta{beta:g}", "labels": labels, "N": n}
    found |= {"dataset": dataset, "beta": beta, "method": method, "status": "ok", "test": 50}
    found |= {"truth_se": 0.001, "truth_spread": 0.001, "error": 0.01, "largest": 0.02}
    return found | {"square": 4e-4, "entropy": 0.1, "bolder": -0.1, "other_class": 1} | more


def measured(lines, folder):
    write_csv(folder / "variances.csv", pd.DataFrame(lines))
    write_csv(folder / "variances_timing.csv", pd.DataFrame(lines)[["row"]].assign(cpu_seconds=1.0))
    return measures.measure(Rows(folder, folder, folder, ["variances"])).set_index("id")


def test_errors_are_means_over_data_sets(tmp_path):
    lines = [
        line(error=0.001, square=-1e-4),
        line(beta=100.0, error=0.01, largest=0.2),
        line(beta=1e6, error=0.02, square=0.0),
        line(beta=100.0, dataset=1, error=0.03, status="not converged", other_class=4),
        line(labels="boundary", n=20, beta=100.0, error=0.002, method="laplace"),
    ]
    found = measured(lines, tmp_path)
    large = found.filter(like="variances/all/all/large/ep/", axis=0)["value"]
    large.index = large.index.str.removeprefix("variances/all/all/large/ep/")
    # the first data set has a mean of .015, the second of .03
    assert large["error"] == pytest.approx(0.0225)
    own = found.loc["variances/all/all/large/ep/error"]
    assert own["se"] == pytest.approx(0.0075) and own["df"] == 1
    assert large["cautious"] == pytest.approx(0.1)
    assert large["largest-error"] == 0.03 and large["largest"] == 0.2
    assert large["rms"] == pytest.approx(np.sqrt(8e-4 / 3))
    assert [large[name] for name in ("cases", "flagged", "other-class", "tests")] == [3, 1, 6, 150]
    assert found.loc["variances/process/N40/beta1/ep/rms", "value"] == 0.0
    assert found.loc["variances/process/N40/beta1000000/ep/error", "value"] == 0.02
    assert found.loc["variances/process/N40/beta1/ep/small", "value"] == 0
    assert found.loc["variances/boundary/N20/beta100/laplace/error", "value"] == 0.002
    assert np.isnan(found.loc["variances/process/N40/beta1/ep/error", "se"]), "one data set"
    assert "variances/boundary/N20/beta1/ep/error" not in found.index


def test_the_error_of_the_truth_is_counted_once_a_case(tmp_path):
    one = {"truth_se": 0.003, "truth_spread": 0.002}
    lines = [line(method=name, **one) for name in ("ep", "laplace", "twisted-ep")]
    lines.append(line(dataset=1, truth_se=0.001, truth_spread=0.002))
    found = measured(lines, tmp_path)["value"]
    assert found["variances/truth/cases"] == 2 and found["variances/truth/se-largest"] == 0.003
    assert found["variances/truth/se"] == pytest.approx(np.sqrt(5e-6))
    assert found["variances/truth/ratio"] == pytest.approx(np.sqrt(5e-6) / 0.002)


def test_a_run_without_an_answer_leaves_the_others(tmp_path):
    none = dict.fromkeys(("error", "largest", "square", "entropy", "bolder", "other_class"))
    lines = [line(status="not converged", **none), line(dataset=1)]
    found = measured(lines, tmp_path)["value"]
    assert found["variances/all/all/beta1/ep/error"] == pytest.approx(0.01)
    assert found["variances/all/all/beta1/ep/flagged"] == 1
