"""The replay of a design, against what is known of it in closed form or by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from recheck.judge.noise import Between, Noise, RunNoise, Sampler, run_noise
from recheck.judge.replay import Predictive, combined, excess, printed_error, replayed

QUIET = RunNoise(0.0, 0.0, 0.0, math.inf)


def sampler(name="x"):
    return Sampler(1, name)


@pytest.mark.parametrize("n", [3, 10, 50])
@pytest.mark.parametrize("t", [0.5, 2.0, 4.0])
def test_one_variance_gives_student_t(n, t):
    sd = 0.3 * math.sqrt(1 + 1 / n)
    found = replayed(t * sd, 0.0, (n, 1), Between(0.09, n - 1.0), QUIET, sampler())
    assert found.p == pytest.approx(2 * stats.t.sf(t, n - 1), rel=0.03)
    assert (found.sd, found.df) == (pytest.approx(sd, rel=0.02), pytest.approx(n - 1, rel=0.05))


def test_the_interval_and_the_detectable_effect_are_student_t():
    found = replayed(0.1, 0.0, (10, 1), Between(0.04, 9.0), QUIET, sampler())
    sd, t = 0.2 * math.sqrt(1.1), stats.t(9)
    low, high = found.interval(0.9)
    assert low == pytest.approx(0.1 - t.ppf(0.95) * sd, rel=0.01)
    assert high == pytest.approx(0.1 + t.ppf(0.95) * sd, rel=0.01)
    assert found.detectable(0.05, 0.8) == pytest.approx((t.ppf(0.975) + t.ppf(0.8)) * sd, rel=0.01)
    assert found.power(found.detectable(0.001, 0.8), 0.001) == pytest.approx(0.8, abs=0.005)
    assert found.quantiles([0.5])[0] == pytest.approx(0.1, abs=1e-6)
    assert found.p_agree(0.5) == pytest.approx(t.sf(0.4 / sd), rel=0.05)


def test_the_noise_of_runs_is_taken_off_once():
    # 4 runs of ours contribute .04 to the variance between units of .05; the published mean has 16 runs
    noise = RunNoise(0.0, 0.04, 0.01, math.inf)
    found = replayed(0.0, 0.0, (1000, 1), Between(0.05, 1e6, 0.04), noise, sampler())
    assert found.sd == pytest.approx(math.sqrt(0.01 + 0.01 + 0.05 / 1000), rel=1e-3)


def test_the_variance_between_units_is_not_negative():
    found = replayed(
        0.0, 0.0, (5, 1), Between(0.01, 4.0, 0.04), RunNoise(0.0, 0.04, 0.01, 1e6), sampler()
    )
    assert np.all(found.deviation >= math.sqrt(0.01 + 0.04 / 5) * 0.999)


def test_the_shift_of_a_logarithm_is_that_of_few_runs():
    rng = np.random.default_rng(0)
    noise = Noise.of_units([np.abs(rng.standard_normal(20)) for _ in range(50)], "log")
    for runs in (1, 2, 20):
        logs = np.log(
            np.abs(rng.standard_normal((40_000, runs))).mean(axis=1) / math.sqrt(2 / math.pi)
        )
        bias, variance = noise.of_mean(runs)
        assert bias == pytest.approx(logs.mean(), abs=0.05) and variance == pytest.approx(
            logs.var(), rel=0.12
        )
    gamma = Noise(0.5, 30.0)
    values = np.log(rng.gamma(2.0, 0.5, (40_000, 3)).mean(axis=1))
    assert gamma.of_mean(3) == (
        pytest.approx(values.mean(), abs=0.01),
        pytest.approx(values.var(), rel=0.05),
    )


def test_noise_on_a_linear_scale_is_a_plain_variance():
    noise = Noise.of_units([np.array([1.0, 3.0]), np.array([0.0, 2.0]), np.array([5.0])], "linear")
    assert (noise.variance, noise.df) == (2.0, 2.0) and noise.of_mean(4) == (0.0, 0.5)
    terms = run_noise([(1.0, noise, 4.0, 1.0), (-1.0, noise, 4.0, 1.0)])
    assert (terms.ours, terms.theirs, terms.shift) == (1.0, 4.0, 0.0)


def test_many_units_on_both_sides():
    found = replayed(0.0, 0.0, (20, 50), Between(0.36, 1e6), QUIET, sampler())
    assert found.sd == pytest.approx(0.6 * math.sqrt(1 / 20 + 1 / 50), rel=1e-3)


def test_printed_errors_are_compared_on_the_linear_scale():
    found = printed_error((1.0, 0.1, 1e6), (1.5, 0.2, 1e6), 0.0, sampler())
    z = 0.5 / math.hypot(0.1, 0.2)
    assert found.p == pytest.approx(2 * stats.norm.sf(z), rel=1e-3)
    low, high = found.interval(0.9)
    for end in (
        low,
        high,
    ):  # Fieller: at the ends of the interval the test of this ratio is at its level
        ratio = math.exp(end)
        distance = abs(1.0 - ratio * 1.5) / math.hypot(0.1, ratio * 0.2)
        assert distance == pytest.approx(stats.norm.ppf(0.95), rel=1e-3)


def test_a_printed_value_that_may_be_zero_bounds_no_ratio():
    found = printed_error((0.0044, 0.0005, 49.0), (0.043, 0.0299, 49.0), 0.0, sampler())
    assert found.interval(0.9)[1] == math.inf and found.detectable(0.05, 0.8) == math.inf
    assert found.p > 0.1


def test_independent_effects_are_combined():
    one = Predictive(np.zeros(2048), np.full(2048, 0.3))
    other = Predictive(np.ones(2048), np.full(2048, 0.4))
    both = combined([one, other], [1.0, 1.0])
    assert both.center == 0.5 and both.sd == pytest.approx(0.25)


def test_scatter_beyond_errors_is_found():
    variances = np.full((4, 2048), 0.01)
    assert excess(np.array([0.0, 0.1, -0.1, 0.05]), variances) > 0.2
    assert excess(np.array([0.5, -0.5, 0.5, -0.5]), variances) < 1e-6


def test_draws_follow_the_seed_and_the_name():
    assert np.array_equal(Sampler(1, "a")(5.0), Sampler(1, "a")(5.0))
    assert not np.array_equal(Sampler(1, "a")(5.0), Sampler(1, "b")(5.0))
    with pytest.raises(ValueError, match="df"):
        Sampler(1, "a")(0.0)
