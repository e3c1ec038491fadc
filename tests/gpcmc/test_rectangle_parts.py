"""The parts of rectangle probabilities, against 40 digits, brute force and their definitions. Seeds are fixed."""

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import multivariate_normal, norm

from gpcmc.orthant.tilting import tilted_proposal
from gpcmc.rectangle.arguments import check_problem
from gpcmc.rectangle.blocks import reduce
from gpcmc.rectangle.closed import two_dimensions
from gpcmc.rectangle.engine import Sampler, plain_sampler
from gpcmc.rectangle.factor import factorize
from gpcmc.rectangle.guarantee import mean_interval
from gpcmc.rectangle.intervals import all_moments, draw, log_mass, moments
from gpcmc.rectangle.sites import propagate, twisted_proposal
from gpcmc.rectangle.tilt import rectangle_tilt

INF = np.inf


def covariance(n, seed, spread=0.3):
    A = np.random.default_rng(seed).standard_normal((n, n + 2))
    return A @ A.T / n + spread * np.eye(n)


def limits(n, seed):
    """One of three limits is infinite on either side; never both."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(n) - 1.0
    b = a + rng.exponential(2.0, n) + 0.1
    kind = rng.integers(3, size=n)
    return np.where(kind == 0, -INF, a), np.where(kind == 1, INF, b)


def block(lower, upper, cov):
    (only,) = reduce(check_problem(lower, upper, 0.0, cov)).blocks
    return only


# --- intervals


def truth(a, b):
    """Log mass, mean and 1 - variance, to 60 digits before they cancel."""
    if a + b < 0:
        log_p, mean, w = truth(-b, -a)
        return log_p, -mean, w
    with mpmath.workdps(60):
        a, b = mpmath.mpf(float(a)), mpmath.mpf(float(b))
        tail = [mpmath.erfc(x / mpmath.sqrt(2)) / 2 for x in (a, b)]
        density = [0 if mpmath.isinf(x) else mpmath.npdf(x) for x in (a, b)]
        edge = [0 if mpmath.isinf(x) else x * f for x, f in zip((a, b), density, strict=True)]
        p = tail[0] - tail[1]
        mean = (density[0] - density[1]) / p
        return float(mpmath.log(p)), float(mean), float(mean**2 - (edge[0] - edge[1]) / p)


def intervals():
    rng = np.random.default_rng(0)
    a = rng.standard_normal(100) * 10 ** rng.uniform(-3, 3, 100)
    found = [(x, x + 10 ** rng.uniform(-9, 3)) for x in a]
    found += [(x, INF) for x in (-3.0, 0.0, 5.0, 37.0, 40.0, 447.0, 1e4)]
    return found + [(-INF, -x) for x in (3.0, 40.0)] + [(1e5, 1e5 + 1e-7), (-1e-9, 2e-9)]


def test_moments_of_intervals():
    a, b = np.array(intervals()).T
    log_p, mean, w = moments(a, b)
    known = np.array([truth(*pair) for pair in intervals()])
    np.testing.assert_allclose(log_p, known[:, 0], rtol=2e-14, atol=1e-14)
    np.testing.assert_allclose(mean, known[:, 1], rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(w, known[:, 2], atol=1e-11)
    np.testing.assert_allclose(log_mass(a, b), known[:, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("a", "b"),
    [(-1, 2), (0, INF), (-INF, -40), (40, 40.01), (1e3, 1e3 + 1e-9), (-1e-9, 1e-9), (1e5, INF)],
)
def test_draws_have_the_law_of_the_interval(a, b):
    """On an even grid of uniform numbers: moments to what the grid leaves."""
    u = (np.arange(4001) + 0.5) / 4001
    z = draw(np.full(4001, float(a)), np.full(4001, float(b)), u)[1]
    _, mean, _, variance = (x[0] for x in all_moments(np.array([float(a)]), np.array([float(b)])))
    deviation = np.sqrt(variance)
    assert (z >= a).all() and (z <= b).all() and (np.diff(z) <= 0).all()
    assert abs(z.mean() - mean) < 1e-3 * deviation + 1e-16 * abs(mean)
    assert z.std() == pytest.approx(deviation, rel=2e-3)


def test_a_draw_from_nothing_has_no_probability_and_is_finite():
    log_p, z = draw(np.array([1.0, 2.0]), np.array([0.0, 2.0]), np.full(2, 0.5))
    assert np.isneginf(log_p).all() and np.isfinite(z).all()


def test_an_end_of_the_uniform_grid_is_not_an_infinite_draw():
    z = draw(np.array([-INF, 0.0]), np.array([0.0, INF]), np.array([0.0, 0.0]))[1]
    assert np.isfinite(z).all()


# --- closed form in two dimensions


def half_plane(rho):
    with mpmath.workdps(40):
        return float(mpmath.log(mpmath.acos(-mpmath.mpf(rho)) / (2 * mpmath.pi)))


@pytest.mark.parametrize("rho", [0.0, 0.5, -0.9, 0.999999, -0.999999, 1e-9])
def test_quadrant(rho):
    found, error = two_dimensions(np.zeros(2), np.full(2, INF), rho)
    assert abs(found - half_plane(rho)) <= error < 1e-12


@pytest.mark.parametrize(
    ("lower", "upper", "rho"),
    [([-1, -2], [1, 0.5], 0.3), ([3, 3], [3.1, 4], -0.7), ([-0.5, -INF], [0.5, 0.1], 0.99)],
)
def test_two_dimensional_box(lower, upper, rho):
    with mpmath.workdps(20):
        s = mpmath.sqrt(1 - mpmath.mpf(rho) ** 2)

        def f(x):
            return mpmath.npdf(x) * (
                mpmath.ncdf((upper[1] - rho * x) / s) - mpmath.ncdf((lower[1] - rho * x) / s)
            )

        known = float(mpmath.log(mpmath.quad(f, np.linspace(lower[0], upper[0], 9).tolist())))
    low, high = np.array(lower, float), np.array(upper, float)
    for order in ([0, 1], [1, 0]):
        found, error = two_dimensions(low[order], high[order], rho)
        assert abs(found - known) < 1e-11 and error < 1e-11


def test_far_out_in_two_dimensions():
    """Independent coordinates, -2e5 nats; and a wedge of which only the tip counts."""
    found, error = two_dimensions(np.full(2, 447.0), np.full(2, INF), 0.0)
    assert found == pytest.approx(2 * norm.logsf(447.0), rel=1e-14) and error < 1e-8
    far = two_dimensions(np.full(2, 400.0), np.full(2, INF), 0.5)[0]
    # Savage's bound, exact to 1 / 400^2: density at the corner over the product of its slopes
    corner = multivariate_normal.logpdf([400.0, 400.0], cov=[[1, 0.5], [0.5, 1]])
    assert far == pytest.approx(corner - 2 * np.log(400.0 / 1.5), abs=1e-4)


# --- order and factor


@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_the_greedy_one_and_the_factor_belongs_to_it(seed):
    n = 40  # more than a panel
    R = covariance(n, seed)
    one = block(*limits(n, seed), R)
    f = factorize(one)
    np.testing.assert_allclose(f.L @ f.L.T, one.R[np.ix_(f.order, f.order)], atol=1e-13)
    assert not f.ties and sorted(f.order) == list(range(n))
    assert (f.lower == one.lower[f.order]).all() and (f.upper == one.upper[f.order]).all()
    chosen, mean_of = [], np.zeros(0)  # the same with inverses
    for following in f.order[:10]:
        left = [i for i in range(n) if i not in chosen]
        W = one.R[np.ix_(left, chosen)] @ np.linalg.inv(one.R[np.ix_(chosen, chosen)])
        mean, sd = W @ mean_of, np.sqrt(1 - np.sum(W * one.R[np.ix_(left, chosen)], axis=1))
        a, b = (one.lower[left] - mean) / sd, (one.upper[left] - mean) / sd
        inside = log_mass(a, b)
        k = left.index(following)
        assert inside[k] <= inside.min() + 1e-9
        chosen.append(following)
        mean_of = np.append(mean_of, mean[k] + sd[k] * moments(a[[k]], b[[k]])[1])


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_what_has_no_variance_of_its_own_is_tied(rank, seed):
    A = np.random.default_rng(seed).standard_normal((12, rank))
    one = block(*limits(12, seed), A @ A.T)
    f = factorize(one)
    assert f.rank == rank and sum(len(t.index) for t in f.ties.values()) == 12 - rank
    B = np.zeros((12, rank))
    B[f.order] = f.L
    for k, tie in f.ties.items():
        B[tie.index, : k + 1] = tie.rows
        assert (np.abs(tie.rows[:, -1]) > 1e-8).all()
    np.testing.assert_allclose(B @ B.T, one.R, atol=1e-12)


# --- tilt, and the bound


def psi(f, x, mu):
    """Botev's exponent at innovations x (n, m)."""
    d = np.diag(f.L)[:, None]
    t = np.tril(f.L, -1) @ x / d + mu[:, None]
    a, b = f.lower[:, None] / d - t, f.upper[:, None] / d - t
    return (
        0.5 * mu @ mu - mu @ x + np.sum([moments(*pair)[0] for pair in zip(a, b, strict=True)], 0)
    )


@pytest.mark.parametrize("steps", [0, 1, 100])
@pytest.mark.parametrize("seed", range(3))
def test_no_weight_exceeds_the_bound_also_before_convergence(seed, steps):
    n = 12
    f = factorize(block(*limits(n, seed), covariance(n, seed)))
    tilt = rectangle_tilt(f.L, f.lower, f.upper, max_steps=steps)
    assert tilt.steps <= steps and tilt.converged == (steps == 100)
    rng = np.random.default_rng(seed)
    log_w = plain_sampler(f, tilt.mu).run(rng.random((n, 5000)))
    assert log_w.max() <= tilt.log_bound + 1e-9
    x = rng.standard_normal((n, 300)) * 10.0 ** rng.uniform(-1, 2, 300)  # anywhere at all
    assert psi(f, x, tilt.mu).max() <= tilt.log_bound + 1e-9
    if steps == 100:
        assert log_w.max() > tilt.log_bound - 1.0, "the bound is of use"


@pytest.mark.parametrize("seed", range(3))
def test_the_tilt_is_the_saddle_point(seed):
    n = 8
    f = factorize(block(*limits(n, seed), covariance(n, seed)))
    tilt = rectangle_tilt(f.L, f.lower, f.upper)
    d = np.diag(f.L)
    x = np.zeros(n)  # where psi's derivatives in mu vanish
    for i in range(n):
        t = f.L[i, :i] @ x[:i] / d[i] + tilt.mu[i]
        x[i] = tilt.mu[i] + moments(f.lower[[i]] / d[i] - t, f.upper[[i]] / d[i] - t)[1][0]
    assert psi(f, x[:, None], tilt.mu)[0] == pytest.approx(tilt.log_bound, abs=1e-8)
    h = 1e-5 * np.eye(n)
    slope = (psi(f, x[:, None] + h, tilt.mu) - psi(f, x[:, None] - h, tilt.mu)) / 2e-5
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)


# --- weights


@pytest.mark.parametrize("kind", ["tilted", "twisted"])
@pytest.mark.parametrize("sides", ["one", "mixed"])
def test_weight_times_proposal_is_the_target_density(kind, sides):
    """One limit each: the compiled loop; mixed: that in NumPy. And weighing given draws is drawing them."""
    n = 6
    lower, upper = limits(n, 1)
    if sides == "one":
        lower, upper = np.where(np.isinf(lower), upper - 2.0, lower), INF
    f = factorize(block(lower, upper, covariance(n, 1)))
    assert plain_sampler(f, np.zeros(n)).compiled == (sides == "one")
    if kind == "tilted":
        mu = np.random.default_rng(1).standard_normal(n)
        sampler = Sampler.of(tilted_proposal(f.L, mu), f)
    else:
        p, origin = twisted_proposal(f.L, *propagate(f.L, f.lower, f.upper)[:2])
        sampler = Sampler.of(p, f, origin)
    E = np.random.default_rng(0).random((n, 50))
    log_w = sampler.run(E)
    V = sampler.values(E)
    assert (f.lower[:, None] < V).all() and (f.upper[:, None] > V).all()
    np.testing.assert_allclose(sampler.run(E.copy(), True), log_w, rtol=1e-9, atol=1e-9)
    # the proposal's density: of each e from N(a + b c, scale^2) inside the limits
    p = sampler.proposal  # of v - lower
    d = np.diag(p.L)
    log_q = -np.sum(np.log(d)) * np.ones(50)
    for i in range(n):
        c = (p.mean[i] + p.L[i, :i] @ E[:i]) / d[i]
        a, b, scale = p.coefficients[i, :3]
        m = a + b * c
        log_q += norm.logpdf(E[i], m, scale)
        log_q -= log_mass((-c - m) / scale, (sampler.width[i] - c - m) / scale)
    target = multivariate_normal.logpdf(V.T, np.zeros(n), f.L @ f.L.T)
    np.testing.assert_allclose(log_w + log_q, target, rtol=1e-8)


@pytest.mark.parametrize("width", [1e-7, 1.0])
def test_sites_of_independent_coordinates_match_their_moments(width):
    lower = np.array([-1.0, 2.0])
    nu, tau, _ = propagate(np.eye(2), lower, lower + width)
    _, mean, _, variance = all_moments(lower, lower + width)
    np.testing.assert_allclose(1 / (1 + tau), variance, rtol=1e-6)
    np.testing.assert_allclose(nu / (1 + tau), mean, rtol=1e-6)


# --- guaranteed intervals of means


@pytest.mark.slow
@pytest.mark.parametrize("law", ["rare", "uniform", "heavy"])
def test_coverage_of_the_mean_of_bounded_variables(law):
    """The level is 80 %. Of 300 runs more than 84 miss with probability below 1e-3 at that level."""
    rng = np.random.default_rng(4)
    u = rng.random((300, 150))
    x = {"rare": u < 0.02, "uniform": u, "heavy": (1 - u) ** 20}[law].astype(float)
    mean = {"rare": 0.02, "uniform": 0.5, "heavy": 1 / 21}[law]
    ends = np.array([mean_interval(row, 0.8) for row in x])
    assert np.sum((ends[:, 0] > mean) | (ends[:, 1] < mean)) <= 84
    assert np.mean(ends[:, 1] - ends[:, 0]) < 0.25, "it says something"


def test_interval_of_a_mean_narrows_as_the_normal_one_does():
    x = np.random.default_rng(0).random(100_000)
    low, high = mean_interval(x, 0.95)
    normal = 2 * ndtri(0.975) * x.std() / np.sqrt(len(x))
    assert normal < high - low < 2 * normal


def test_nothing_seen_bounds_the_mean_from_above():
    low, high = mean_interval(np.zeros(1000), 0.95)
    assert low == 0.0 and 0.003 < high < 0.01  # -log(.025) / 1000 = .0037 is the least possible
