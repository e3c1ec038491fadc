"""The orthant sampler against closed forms, its NumPy twin and its own standard errors.

Statistical tests have fixed seeds. A mean over R replicates is compared with the truth in units of its
standard error from those replicates, at 5 standard errors: a false alarm has probability 6e-7 for a
normal mean (the replicates are averaged enough for that), and with fewer than 60 such comparisons here
the file's false-alarm rate is below 1e-4.
"""

import tracemalloc

import numpy as np
import pytest
import truths
from gpcmc.orthant._sampler import Population, normal_cdf, normal_quantile, predict
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri
from scipy.stats import binom, kstest, norm

from gpcmc import rectangle_probability
from gpcmc.chains.hyperparameter_chains import ChainOptions, run_chains
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import Orthant, infer
from gpcmc.orthant import ExtinctionError, _reference, populations
from gpcmc.orthant.sampler import (
    conditional_probability,
    orthant_probability,
    orthant_ratio,
    sample_orthant,
)
from gpcmc.posterior import MIN_EFFECTIVE, NOT_CONVERGED
from gpcmc.rectangle.truncated import TruncatedNormal

SCHEMES = [("bootstrap", "hard"), ("bootstrap", "soft"), ("adapted", "soft")]
UNBIASED = [("bootstrap", "hard"), ("adapted", "soft")]
SIGMAS = 5.0


def random_problem(n=12, seed=0, alpha=1.0, beta=2.0, t=4):
    """Covariance of v and of the test patterns for a random RBF problem."""
    rng = default_rng(seed)
    X, X_star = rng.normal(size=(n, 2)), rng.normal(size=(t, 2))
    y = rng.choice([-1.0, 1.0], n)
    gp = prior(rbf(alpha, beta), X, X_star)
    return np.eye(n) + y[:, None] * gp.K * y, y[:, None] * gp.K_star, 1.0 + gp.k_star_star


def estimated(cov, *, seed=0, **options):
    return orthant_probability(cov, rng=default_rng(seed), **options)


def log_estimates(cov, replicates, samples, scheme, count, **kwargs):
    return np.array(
        [
            orthant_probability(
                cov, samples=samples, scheme=scheme, count=count, rng=default_rng(k), **kwargs
            ).log_probability
            for k in range(replicates)
        ]
    )


def assert_unbiased(log_values, log_truth):
    ratio = np.exp(log_values - log_truth)
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1.0) < SIGMAS * error + 1e-12  # some cases are exact


def innovations(population):
    """(n, M) innovations of all samples, copied out of the chain of segments."""
    blocks, link = [], population.link
    for segment in reversed(population.segments):
        blocks.append(np.asarray(segment.columns)[:, link])
        link = np.asarray(segment.link)[link]
    return np.concatenate(blocks[::-1])


def equicorrelated(n, rho):
    return np.full((n, n), rho) + (1.0 - rho) * np.eye(n)


# ---------------------------------------------------------------------------------- the twin


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 37, 150])
@pytest.mark.parametrize(
    ("soft", "threshold"), [(False, 0.0), (True, 0.0), (True, 0.5), (True, 0.95)]
)
def test_compiled_and_numpy_samplers_agree(n, soft, threshold):
    cov, cross, variance = random_problem(n, seed=n)
    L = np.linalg.cholesky(cov)
    G, shift = L / np.diag(L)[:, None], np.linspace(-0.3, 0.2, n)
    A = np.ascontiguousarray((np.linalg.solve(L, cross) / np.sqrt(variance)).T)
    one, other = default_rng(n), default_rng(n)

    compiled = Population(np.ascontiguousarray(G), shift, 5000, soft, threshold)
    assert compiled.run(one) == 0
    E, log_stages, eves, log_w, influence = _reference.population(
        G, shift, 5000, soft, threshold, other
    )

    assert_allclose(innovations(compiled), E, atol=1e-12)
    assert_allclose(compiled.log_stages, log_stages, atol=1e-12)
    assert_array_equal(compiled.eves, eves)
    assert_allclose(compiled.weights, np.exp(log_w) / np.mean(np.exp(log_w)), rtol=1e-10)
    assert_allclose(compiled.influence, influence, atol=1e-8)
    samples = compiled.segments, compiled.link, compiled.eves, compiled.weights
    probability, _ = predict(*samples, A, soft, one)
    assert_allclose(probability, _reference.predict(E, log_w, A, soft, other), atol=1e-12)
    assert one.random() == other.random(), "the two consumed different numbers"


def test_a_population_can_be_run_again():
    cov, _, _ = random_problem()
    L = np.linalg.cholesky(cov)
    population = Population(L / np.diag(L)[:, None], np.zeros(len(L)), 1000, True, 0.0)
    population.run(default_rng(1))
    first = population.log_stages.copy(), population.eves.copy(), population.influence.copy()
    population.run(default_rng(2))
    population.run(default_rng(1))
    for before, after in zip(
        first, (population.log_stages, population.eves, population.influence), strict=True
    ):
        assert_array_equal(before, after)


def test_only_surviving_ancestors_are_kept():
    """400 coordinates of a sample, in about 11 numbers: what makes the sampler fast."""
    d = default_rng(0).uniform(-1, 1, 400)
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    L = np.linalg.cholesky(cov)
    population = Population(L / np.diag(L)[:, None], np.zeros(400), 5000, False, 0.0)
    population.run(default_rng(1))
    segments = population.segments
    assert sum(s.height for s in segments) == 400
    assert sum(s.height * s.width for s in segments) < 15 * 5000
    assert segments[-1].width < 0.8 * 5000
    assert len(segments) < 12


def test_normal_cdf_has_full_precision():
    x = np.concatenate([np.linspace(-37.5, 37.5, 4001), [0.0, -0.0, 1e-300, 100.0]])
    assert_allclose(normal_cdf(x), ndtr(x), rtol=5e-13)
    assert_allclose(normal_cdf(x[np.abs(x) < 6]), ndtr(x[np.abs(x) < 6]), rtol=1e-14)


def test_normal_quantile_has_full_precision():
    u = np.concatenate([np.linspace(0, 1, 10_001)[1:-1], np.geomspace(1e-300, 1e-3, 2000)])
    assert_allclose(normal_quantile(u), ndtri(u), rtol=2e-14, atol=1e-15)
    # the bounds of what a generator can give
    edges = np.array([np.finfo(float).tiny, 2.0**-53, 1 - 2.0**-53])
    assert_allclose(normal_quantile([0.0, *edges[1:]]), ndtri(edges), rtol=1e-13)


def test_normal_draws_are_normal():
    """Kolmogorov-Smirnov at a false-alarm rate of 1e-6; a scale that is 1 % off would give 1e-17."""
    draws = normal_quantile(default_rng(0).random(1_000_000))
    assert kstest(draws, "norm").pvalue > 1e-6
    assert kstest(1.01 * draws, "norm").pvalue < 1e-6


# ---------------------------------------------------------------------------------- closed forms


def blocks():
    cov = np.zeros((9, 9))
    cov[:4, :4], cov[4:, 4:] = equicorrelated(4, 0.5), equicorrelated(5, 0.5)
    return cov


def three():
    cov = np.array([[1.0, 0.3, -0.4], [0.3, 2.0, 0.5], [-0.4, 0.5, 1.5]])
    d = np.sqrt(np.diag(cov))
    angles = np.arcsin((cov / np.outer(d, d))[[0, 0, 1], [1, 2, 2]])
    return cov, float(np.log(0.125 + angles.sum() / (4 * np.pi)))


def one_factor(n):
    """Five different loadings, n / 5 times each, for the quadrature's sake."""
    few, counts = default_rng(3).uniform(-1, 1, 5), np.full(5, n // 5)
    d = default_rng(4).permutation(np.repeat(few, counts))
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    return cov, float(truths.log_one_factor(few / np.sqrt(1 - few**2), counts))


#: Covariance and log probability, replicates and samples.
CLOSED = {
    "three dimensions": (*three(), 100, 2000),
    "blocks multiply": (blocks(), -np.log(5) - np.log(6), 150, 2000),
    "correlations of 1/2, 30": (equicorrelated(30, 0.5), -np.log(31), 150, 2000),
    "one factor, 60": (*one_factor(60), 150, 1000),
}  # fmt: skip


@pytest.mark.parametrize(("scheme", "count"), UNBIASED)
@pytest.mark.parametrize("name", CLOSED)
def test_estimates_of_closed_forms_are_unbiased(name, scheme, count):
    cov, truth, replicates, samples = CLOSED[name]
    assert_unbiased(log_estimates(cov, replicates, samples, scheme, count), truth)


@pytest.mark.parametrize(("scheme", "count"), [("bootstrap", "soft"), ("adapted", "soft")])
def test_half_lines_of_independent_coordinates_are_exact(scheme, count):
    """Every one has probability 1/2; with means and limits those of the adapted scheme are exact too."""
    assert_allclose(log_estimates(np.eye(40), 30, 200, scheme, count), -40 * np.log(2), rtol=1e-12)


@pytest.mark.parametrize(("scheme", "count"), UNBIASED)
def test_means_and_limits(scheme, count):
    cov = np.diag([1.0, 4.0, 0.25])
    mean, lower = np.array([0.5, -1.0, 0.2]), np.array([0.7, -1.4, 0.0])
    truth = log_ndtr((mean - lower) / np.sqrt(np.diag(cov))).sum()
    values = log_estimates(cov, 200, 1000, scheme, count, mean=mean, lower=lower)
    if scheme == "adapted":
        assert_allclose(values, truth, rtol=1e-12)
    else:
        assert_unbiased(values, truth)


def test_mean_and_lower_enter_by_their_difference():
    cov, _, _ = random_problem()
    one = estimated(cov, samples=500, mean=0.3)
    other = estimated(cov, samples=500, lower=-0.3)
    assert_array_equal(one.log_stage_probabilities, other.log_stage_probabilities)


def test_scaling_changes_nothing():
    cov, _, _ = random_problem()
    d = np.geomspace(1e-3, 1e3, len(cov))
    one = estimated(cov, samples=2000)
    other = estimated(cov * np.outer(d, d), samples=2000)
    assert one.log_probability == pytest.approx(other.log_probability, rel=1e-9)


def test_deep_tail_is_finite():
    n = 3
    estimate = estimated(np.eye(n), samples=100, lower=9.0, scheme="adapted")
    assert estimate.log_probability == pytest.approx(n * log_ndtr(-9.0), rel=1e-12)
    correlated = estimated(equicorrelated(5, 0.5), samples=20_000, lower=40.0, scheme="adapted")
    assert np.isfinite(correlated.log_probability)
    assert correlated.log_probability < log_ndtr(-40.0)


def test_far_inside_is_one():
    estimate = estimated(np.eye(4), samples=100, lower=-50.0)
    assert estimate.log_probability == 0.0
    assert estimate.standard_error == 0.0


# ---------------------------------------------------------------------------------- errors, averages


@pytest.mark.parametrize(("scheme", "count"), SCHEMES)
def test_standard_errors_are_those_of_replicates(scheme, count):
    """Stated and observed deviations agree within 25 %; 200 replicates tell them to about 5 %."""
    cov, cross, variance = random_problem(30, alpha=1.0)
    logs, errors, probabilities, deviations = [], [], [], []
    for k in range(200):
        estimate, p, se = orthant_ratio(
            cov, cross, variance,
            samples=1500, count=count, scheme=scheme, runs=1 + k % 2, rng=default_rng(k),
        )  # fmt: skip
        logs.append(estimate.log_probability)
        errors.append(estimate.standard_error)
        probabilities.append(p)
        deviations.append(se)
    assert np.std(logs) == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.25)
    assert_allclose(
        np.std(probabilities, axis=0), np.sqrt(np.mean(np.square(deviations), axis=0)), rtol=0.25
    )


def distant_pairs(count, rho):
    """Coordinates k and count + k have correlation rho, all others none: what resampling forgets is needed later."""
    cov = np.eye(2 * count)
    cov[range(count), range(count, 2 * count)] = cov[range(count, 2 * count), range(count)] = rho
    return cov, count * float(truths.log_half_plane(rho))


def intervals(cov, truth, replicates, **options):
    """Whether 1.96 standard errors reach the truth, the deviations in standard errors, and the eves."""
    found = [
        orthant_probability(cov, scheme="adapted", rng=default_rng(k), **options)
        for k in range(replicates)
    ]
    z = np.array([(e.log_probability - truth) / e.formula_error for e in found])
    return np.abs(z) < 1.96, z, np.array([e.effective_eves for e in found])


@pytest.mark.parametrize(
    ("pairs", "rho", "samples", "runs"),
    [
        (10, -0.7, 400, 1),
        (20, -0.6, 3000, 3),
        (30, 0.8, 500, 1),
    ],
)
def test_adapted_errors_are_calibrated_at_small_budgets(pairs, rho, samples, runs):
    """200 seeds. Of normal deviations with an error that is right, or up to 7 % off, 92 to 97 % lie within 1.96
    errors: fewer or more hits than these bounds have a probability of 1e-5 on either side."""
    cov, truth = distant_pairs(pairs, rho)
    hits, _, eves = intervals(cov, truth, 200, samples=samples, runs=runs)
    low, high = binom.ppf(1e-5, 200, 0.92), binom.ppf(1 - 1e-5, 200, 0.97)
    assert low <= hits.sum() <= high, (hits.mean(), np.median(eves))


@pytest.mark.parametrize(("pairs", "rho", "samples"), [(30, -0.7, 2000), (40, -0.9, 500)])
def test_where_errors_are_too_small_the_eves_are_few(pairs, rho, samples):
    """Of 60 intervals that cover in 95 of 100 cases, 51 or fewer would with a probability of 4e-3."""
    cov, truth = distant_pairs(pairs, rho)
    hits, _, eves = intervals(cov, truth, 60, samples=samples, runs=1)
    assert hits.sum() <= 51, "what the status is for"
    assert np.max(eves) < MIN_EFFECTIVE / 2
    independent = estimated(np.eye(10), samples=300, scheme="adapted")
    assert independent.effective_eves == pytest.approx(300)


def test_one_eve_is_no_certainty():
    """All samples descend from one: the formula's error is not zero, and the stated one is infinite."""
    alone = populations.Genealogy(variance=1.0, fourth=1.0, shares=1.0)
    estimate, _ = populations._combine([1000], [np.log([0.5, 0.5])], [alone], "adapted")
    assert estimate.effective_eves == 1.0
    # Student's t of 2 degrees of freedom, over the normal's point, times the root of log 1000
    assert estimate.formula_error == pytest.approx(4.30265 / 1.95996 * np.sqrt(np.log(1000)), 1e-5)
    assert estimate.standard_error == np.inf


def test_a_lone_eve_does_not_know_its_error():
    """P(v >= 4.5), ten coordinates with correlations of 1/2: one integral over their common factor is the truth."""
    found = estimated(equicorrelated(10, 0.5), samples=100_000, lower=4.5)
    factor = np.linspace(-12, 12, 20_001)
    inside = log_ndtr((np.sqrt(0.5) * factor - 4.5) / np.sqrt(0.5))
    truth = logsumexp(10 * inside + norm.logpdf(factor)) + np.log(factor[1] - factor[0])
    assert truth == pytest.approx(-27.955, abs=1e-3)
    assert abs(found.log_probability - truth) > 1.0 and found.formula_error < 1e-12
    assert found.standard_error == np.inf and found.status == NOT_CONVERGED
    X = default_rng(0).normal(size=(60, 2))
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    posterior = Orthant(samples=200).fit(prior(rbf(0.3, 100.0), X), y, rng=default_rng(1))
    assert posterior.estimate.effective_eves < populations.LONE
    assert posterior.status == NOT_CONVERGED and posterior.log_evidence_se == np.inf
    gp = prior(rbf(0.3, 100.0), X, X[:2] + 0.1)
    assert (posterior.predict(gp.K_star, gp.k_star_star).standard_error == np.inf).all()


def test_ten_populations_or_more_speak_for_themselves():
    """The spread between them alone, with Student's t; the genealogy is not asked."""
    sizes, log_p = [100] * 10, np.log(np.linspace(0.1, 0.2, 10))
    stages = [np.array([value]) for value in log_p]
    quiet = populations.Genealogy(0.0, 0.0, 0.01)
    estimate, _ = populations._combine(sizes, stages, [quiet] * 10, "adapted")
    p = np.exp(log_p)
    variance = p.var(ddof=1) / 10 / p.mean() ** 2
    expected = 2.26216 / 1.95996 * np.sqrt(-np.log1p(-variance))
    assert estimate.standard_error == pytest.approx(expected, rel=1e-5)
    passes = [(np.array([value]), np.zeros(1)) for value in np.linspace(0.4, 0.6, 10)]
    _, error = populations.average_predictions(np.full(10, 0.1), passes, "adapted", 1000.0)
    spread = np.std(np.linspace(0.4, 0.6, 10), ddof=1) / np.sqrt(10)
    assert error[0] == pytest.approx(2.26216 / 1.95996 * spread, rel=1e-5)


def test_stages_add_up_and_populations_are_averaged():
    cov, _, _ = random_problem(20)
    for runs in (1, 3, 7):
        e = estimated(cov, samples=1000, runs=runs, seed=1)
        assert e.log_stage_probabilities.sum() == pytest.approx(e.log_probability, abs=1e-10)
        assert (e.samples, e.populations, e.extinct) == (1000, runs, 0)


def test_large_samples_become_populations(monkeypatch):
    monkeypatch.setattr(populations, "MAX_POPULATION", 300)
    e = estimated(np.eye(3), samples=1000)
    assert e.populations == 4


def test_stored_and_streamed_predictions_agree():
    cov, cross, variance = random_problem(20)
    options = {"samples": 3000, "count": "soft", "scheme": "bootstrap", "runs": 3}
    streamed, p, se = orthant_ratio(cov, cross, variance, rng=default_rng(4), **options)
    stored, particles = sample_orthant(cov, rng=default_rng(4), **options)
    q, qe = conditional_probability(particles, cross, variance, count="soft", rng=default_rng(0))
    assert streamed.log_probability == stored.log_probability
    assert_allclose(p, q, rtol=1e-12)
    assert_allclose(se, qe, rtol=1e-12)


def test_extinct_populations_count_as_zero():
    """Seven samples on an orthant of probability 2^-6: many populations die, and the mean stays right."""
    cov = np.eye(6)
    estimates = [
        estimated(cov, samples=7 * 2000, runs=2000, count="hard", seed=k) for k in range(20)
    ]
    assert all(e.extinct > 0 for e in estimates)
    assert_unbiased(np.array([e.log_probability for e in estimates]), -6 * np.log(2))


def test_populations_that_disagree_raise_the_standard_error():
    """Few samples, many stages: the genealogy says too little, the populations say more."""
    estimates = [estimated(np.eye(9), samples=60, runs=6, count="hard", seed=k) for k in range(400)]
    ratio = np.exp([e.log_probability + 9 * np.log(2) for e in estimates])
    stated = np.sqrt(
        np.mean([(e.formula_error * r) ** 2 for e, r in zip(estimates, ratio, strict=True)])
    )
    assert stated == pytest.approx(np.std(ratio), rel=0.25)


def test_impossible_test_covariances_are_refused():
    with pytest.raises(ValueError, match="K_star and k_star_star.*test pattern 0"):
        orthant_ratio(
            np.eye(3), 10 * np.ones((3, 1)), np.array([2.0]), samples=100, count="soft",
            scheme="bootstrap", runs=None, rng=default_rng(0),
        )  # fmt: skip


def test_extinction_of_all_names_stage_and_remedy():
    with pytest.raises(ExtinctionError, match=r"stage 2 of 3.*scheme='adapted'"):
        estimated(np.eye(3), samples=50, lower=np.array([-1.0, 9.0, 0.0]))


# ---------------------------------------------------------------------------------- reproducibility, input


@pytest.mark.parametrize(("scheme", "count"), SCHEMES)
def test_same_seed_same_bits(scheme, count):
    cov, _, _ = random_problem(20)
    a, b = (estimated(cov, samples=3000, scheme=scheme, count=count, seed=9) for _ in range(2))
    assert_array_equal(a.log_stage_probabilities, b.log_stage_probabilities)
    assert a.standard_error == b.standard_error


def test_refusals_of_many_samples_take_no_memory():
    tracemalloc.start()
    for method in (orthant_probability, lambda cov, **given: Orthant(**given)):
        with pytest.raises(ValueError, match="samples must be at most"):
            method(np.eye(2), samples=10**14)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


@pytest.mark.parametrize("call", ["orthant", "rectangle", "fit", "chains", "truncated"])
def test_random_numbers_are_given_in_one_way_everywhere(call):
    """A seed stands for its generator; of a RandomState numbers are drawn; nothing else is taken."""
    cov, _, _ = random_problem(4)
    y = [1.0, 1.0, -1.0, 1.0]
    value = {
        "orthant": lambda rng: orthant_probability(cov, samples=100, rng=rng).log_probability,
        "rectangle": lambda rng: rectangle_probability(0, 9, cov=cov, rng=rng).log_probability,
        "fit": lambda rng: Orthant(samples=100).fit(Prior(cov), y, rng=rng).log_evidence,
        "chains": lambda rng: run_chains(
            cov, y, ChainOptions("ancillary", 2, 4, 0, 2), rng=rng
        ).theta[0, 3, 0],
        "truncated": lambda rng: TruncatedNormal(0, 9, cov=cov).rvs(1, rng=rng)[0, 0],
    }[call]
    assert value(7) == value(np.int64(7)) == value(default_rng(7))
    assert (
        value(np.random.RandomState(7))
        == value(np.random.RandomState(7))
        != value(np.random.RandomState(8))
    )
    for bad in (-1, 7.0, True, "seed", [7], np.random):
        with pytest.raises(
            ValueError, match="rng must be a numpy.random.Generator.* RandomState; got"
        ):
            value(bad)


# ---------------------------------------------------------------------------------- classification


def test_predictions_with_the_fit_and_after_it_agree():
    rng = default_rng(0)
    gp = prior(rbf(1.0, 2.0), rng.normal(size=(30, 2)), rng.normal(size=(5, 2)))
    y = rng.choice([-1.0, 1.0], 30)
    method = Orthant(samples=2000)
    posterior = method.fit(Prior(gp.K), y, rng=default_rng(1))
    result = infer(method, gp, y, rng=default_rng(1))
    assert posterior.log_evidence == result.log_evidence
    prediction = posterior.predict(gp.K_star, gp.k_star_star)
    assert_allclose(prediction.probability, result.probability, rtol=1e-12)
    assert posterior.prediction.probability.shape == (0,)
    assert posterior.diagnostics == result.diagnostics and posterior.work == result.work
    assert posterior.diagnostics["extinct_populations"] == 0.0
    # with test inputs in the prior there are no samples left to predict with
    at_once = method.fit(gp, y, rng=default_rng(1))
    assert_array_equal(at_once.prediction.probability, result.probability)
    with pytest.raises(ValueError, match="fit to a prior without test inputs to predict later"):
        at_once.predict(gp.K_star, gp.k_star_star)
