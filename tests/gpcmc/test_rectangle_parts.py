"""The parts of rectangle probabilities, against 40 digits, brute force and their definitions. Seeds are fixed."""

from functools import cache

import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr, ndtri, ndtri_exp
from scipy.stats import multivariate_normal, norm

from gpcmc.covariance.factor import BLOCK, DenseFactor
from gpcmc.covariance.generators import GeneratorFactor
from gpcmc.orthant.truths import three_dimensional
from gpcmc.posterior import NOT_CONVERGED, OK, UNTRUSTED
from gpcmc.rectangle import mixture, proposals, rounds, small, solve
from gpcmc.rectangle.arguments import check_problem
from gpcmc.rectangle.blocks import reduce
from gpcmc.rectangle.guarantee import mean_interval
from gpcmc.rectangle.limits import all_moments, draw, log_mass, moments
from gpcmc.rectangle.mixture import DEFENCE, Mixture
from gpcmc.rectangle.order import ordered
from gpcmc.rectangle.proposals import Pass
from gpcmc.rectangle.sites import propagate
from gpcmc.rectangle.tilt import minimax_tilt
from gpcmc.weights import weight_diagnostics, weights_status

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


def in_order(lower, upper, cov):
    one = block(lower, upper, cov)
    return ordered(one.R, one.lower, one.upper, one.slack)


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


# --- two dimensions


def two_dimensions(lower, upper, rho):
    found, error = small.log_probabilities(
        lower[None], upper[None], np.array([[[1.0, rho], [rho, 1.0]]])
    )
    return found[0], error[0]


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
    f = ordered(one.R, one.lower, one.upper, one.slack)
    L = f.factor @ np.eye(n)
    np.testing.assert_allclose(L @ L.T, one.R[np.ix_(f.order, f.order)], atol=1e-13)
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
    f = ordered(one.R, one.lower, one.upper, one.slack)
    assert f.rank == rank and sum(len(t.index) for t in f.ties.values()) == 12 - rank
    B = np.zeros((12, rank))
    B[f.order] = f.factor @ np.eye(rank)
    for k, tie in f.ties.items():
        B[tie.index, : k + 1] = tie.rows
        assert (np.abs(tie.rows[:, -1]) > 1e-8).all()
    np.testing.assert_allclose(B @ B.T, one.R, atol=1e-12)


# --- factors


def form(kind, n=70, seed=0):
    """A covariance (n, n), and its factor in one of two forms; n is no multiple of a block."""
    rng = np.random.default_rng(seed)
    F, D = rng.standard_normal((n, 4)), rng.uniform(0.5, 1.5, n)
    R = F @ F.T + np.diag(D)
    return R, DenseFactor.of(R.copy()) if kind == "dense" else GeneratorFactor.of(F, D)


FORMS = pytest.mark.parametrize("kind", ["dense", "generators"])


@FORMS
def test_a_factor_is_that_of_cholesky(kind):
    R, factor = form(kind)
    n, L = len(R), np.linalg.cholesky(R)
    rng = np.random.default_rng(1)
    x, X, w = rng.standard_normal(n), rng.standard_normal((n, 3)), rng.uniform(0, 1, n)
    assert len(factor) == n and factor.parts[0] == slice(0, BLOCK)
    np.testing.assert_allclose(factor.d, L.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(factor @ x, L @ x, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(factor @ X, L @ X, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(factor.transposed(x), L.T @ x, rtol=1e-10, atol=1e-12)
    G = L / L.diagonal()[:, None]
    A, root = G @ G.T, np.sqrt(w)
    np.testing.assert_allclose(factor.gram() @ x, A @ x, rtol=1e-10, atol=1e-11)
    matrix = np.diag(1 - w) + root[:, None] * A * root
    np.testing.assert_allclose(factor.gram().solve(w, x), np.linalg.solve(matrix, x), atol=1e-10)


def test_generators_end_with_what_is_known_of_u():
    """Mean and covariance of u given all of v = H u + w, with a covariance of u's own."""
    rng = np.random.default_rng(3)
    n, H, A = BLOCK + 7, rng.standard_normal((BLOCK + 7, 4)), rng.standard_normal((4, 4))
    g, P = rng.uniform(0.5, 1.5, BLOCK + 7), A @ A.T
    factor = GeneratorFactor.of(H, g, P)
    R = H @ P @ H.T + np.diag(g)
    np.testing.assert_allclose(factor @ np.eye(n), np.linalg.cholesky(R), atol=1e-11)
    np.testing.assert_allclose(factor.left, P - P @ H.T @ np.linalg.solve(R, H @ P), atol=1e-11)
    one = Pass.start(proposals.tilted(factor, np.zeros(n), np.full(n, -9.0), np.full(n, INF)), 5)
    V = np.abs(rng.standard_normal((n, 5)))
    for k, here in enumerate(factor.parts):
        one.weigh(k, one.ahead(k), V[here] + 9.0)
    np.testing.assert_allclose(one.state, P @ H.T @ np.linalg.solve(R, V), atol=1e-10)


@cache
def sited(far, n=36):
    """Sites, and by forty digits: covariance, mean, its slope and the constant that they give."""
    R, rng = form("dense", n)[0], np.random.default_rng(2)
    nu, tau = far * rng.standard_normal(n), far * rng.uniform(0, 1, n)
    with mpmath.workdps(40):
        exact = mpmath.matrix(R.tolist()) ** -1
        P = exact + mpmath.diag(tau.tolist())
        S = P**-1
        m = S * mpmath.matrix(nu.tolist())
        slope = exact * m
        log_det = mpmath.log(mpmath.det(P) / mpmath.det(exact)) / 2
        constant = float(-(m.T * slope)[0] / 2 - log_det)
    S, m, slope = (np.array(one.tolist(), float) for one in (S, m, slope))
    return nu, tau, S, m.ravel(), slope.ravel(), constant


@FORMS
@pytest.mark.parametrize("far", [1.0, 1e6])
def test_what_sites_make_of_a_factor(kind, far):
    nu, tau, S, m, slope, constant = sited(far)
    found = form(kind, len(m))[1].sited(nu, tau)
    L = found.factor @ np.eye(len(m))
    np.testing.assert_allclose(L @ L.T, S, rtol=1e-8, atol=1e-12 * S.diagonal().max())
    np.testing.assert_allclose(found.mean, m, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.slope, slope, rtol=1e-7, atol=1e-9 * np.abs(slope).max())
    assert found.log_constant == pytest.approx(constant, rel=1e-10)


# --- tilt, and the bound


def psi(factor, lower, upper, x, mu):
    """Botev's exponent at innovations x (n, m)."""
    d = factor.d[:, None]
    t = factor @ x / d - x + mu[:, None]
    a, b = lower[:, None] / d - t, upper[:, None] / d - t
    return (
        0.5 * mu @ mu - mu @ x + np.sum([moments(*pair)[0] for pair in zip(a, b, strict=True)], 0)
    )


def rectangle(sides, kind="dense", n=12, seed=0):
    """A factor with one lower limit for each coordinate, or with limits of all sorts."""
    if sides == "orthant":
        return form(kind, n, seed)[1], np.zeros(n), np.full(n, INF)
    lower, upper = limits(n, seed)
    if kind == "dense":
        f = in_order(lower, upper, covariance(n, seed))
        return f.factor, f.lower, f.upper
    flip = np.isinf(lower)
    return (
        form(kind, n, seed)[1],
        np.where(flip, -upper, lower),
        np.where(flip, INF, upper),
    )


SIDES = pytest.mark.parametrize("sides", ["orthant", "mixed"])


@FORMS
@SIDES
@pytest.mark.parametrize("steps", [0, 1, 100])
@pytest.mark.parametrize("seed", range(2))
def test_no_weight_exceeds_the_bound_also_before_convergence(seed, steps, sides, kind):
    factor, lower, upper = rectangle(sides, kind, seed=seed)
    n = len(factor)
    tilt = minimax_tilt(factor, lower, upper, max_steps=steps)
    assert tilt.steps <= steps and tilt.converged == (steps == 100)
    rng = np.random.default_rng(seed)
    log_w = weights(proposals.tilted(factor, tilt.mu, lower, upper), rng.random((n, 5000)))[0]
    assert log_w.max() <= tilt.log_bound + 1e-9
    x = rng.standard_normal((n, 300)) * 10.0 ** rng.uniform(-1, 2, 300)  # anywhere at all
    assert psi(factor, lower, upper, x, tilt.mu).max() <= tilt.log_bound + 1e-9
    if steps == 100:
        assert log_w.max() > tilt.log_bound - 2.0, "the bound is of use"


@FORMS
@SIDES
@pytest.mark.parametrize("seed", range(2))
def test_the_tilt_is_the_saddle_point(seed, sides, kind):
    factor, lower, upper = rectangle(sides, kind, n=8, seed=seed)
    n, d, L = len(factor), factor.d, factor @ np.eye(len(factor))
    tilt = minimax_tilt(factor, lower, upper)
    x = np.zeros(n)  # where psi's derivatives in mu vanish
    for i in range(n):
        t = L[i, :i] @ x[:i] / d[i] + tilt.mu[i]
        x[i] = tilt.mu[i] + moments(lower[[i]] / d[i] - t, upper[[i]] / d[i] - t)[1][0]
    of = (factor, lower, upper)
    assert psi(*of, x[:, None], tilt.mu)[0] == pytest.approx(tilt.log_bound, abs=1e-8)
    h = 1e-5 * np.eye(n)
    slope = (psi(*of, x[:, None] + h, tilt.mu) - psi(*of, x[:, None] - h, tilt.mu)) / 2e-5
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)
    # each step lowers the bound, and any other tilt has a larger one
    bounds = [minimax_tilt(*of, max_steps=k).log_bound for k in range(6)]
    assert (np.diff(bounds) <= 0).all() and bounds[0] > bounds[-1]
    again = minimax_tilt(*of, starts=[tilt.t], max_steps=0)
    assert again.log_bound == pytest.approx(tilt.log_bound, abs=1e-9)
    np.testing.assert_allclose(again.mu, tilt.mu, atol=1e-9)


@pytest.mark.parametrize("beta", [1e-8, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("kernel", ["rbf", "duplicates", "linear", "constant"])
def test_the_tilt_is_found_for_extreme_covariances(kernel, beta):
    rng = np.random.default_rng(2)
    x = np.repeat(rng.standard_normal(10), 2) if kernel == "duplicates" else rng.standard_normal(20)
    K = np.exp(-((x[:, None] - x) ** 2))
    K = {"linear": np.outer(x, x), "constant": np.ones((20, 20))}.get(kernel, K)
    low, high = np.zeros(20), np.full(20, INF)
    for y in (np.where(x > 0, 1.0, -1.0), rng.choice([-1.0, 1.0], 20)):
        f = ordered(np.eye(20) + beta * y[:, None] * K * y, low, high, 0.0)
        tilt = minimax_tilt(f.factor, low, high)
        assert tilt.converged and tilt.steps <= 50


def wedge(k):
    """Variables of very different scale that nearly cancel: from zero the search for the tilt creeps."""
    if k == "pair":
        B = np.array([[10.0, 1e-3], [-1.0, 1e-3]])
        return in_order(np.full(2, 0.1), np.full(2, INF), B @ B.T)
    rng = np.random.default_rng(k)
    B = rng.standard_normal((3, 3)) * [1e3, 1.0, 1e-3]
    sd = np.linalg.norm(B, axis=1)
    lower = 0.5 * rng.standard_normal(3) * sd
    return in_order(lower, lower + np.array([INF, INF, 3 * sd[2]]), B @ B.T)


@pytest.mark.parametrize("k", ["pair", 0, 1, 2, 3, 4])
def test_the_order_and_the_sites_give_the_search_a_start(k):
    f = wedge(k)
    tilted = solve.tilting(f)
    found = mixture.draw(tilted, 256, np.arange(16))
    assert tilted.log_bound - found.log_probability < 4.0
    if k == "pair":
        plain = minimax_tilt(f.factor, f.lower, f.upper)
        assert not plain.converged and plain.log_bound - tilted.log_bound > 1000.0


# --- weights


def weights(proposal, U, given=None):
    """Log weights, coordinates above their lower limits, and innovations of points, or of given coordinates."""
    one = Pass.start(proposal, U.shape[1])
    X = np.empty(U.shape) if given is None else given
    E = np.empty(U.shape)
    for k, here in enumerate(proposal.factor.parts):
        C = one.ahead(k)
        if given is None:
            one.draw(k, C, X[here], U.__getitem__)
        else:
            one.weigh(k, C, X[here])
        E[here] = X[here] / proposal.factor.d[here, None] - C
    return one.log_weights, X, E


def proposal_of(kind, factor, lower, upper):
    """Neither tilt nor sites are good ones."""
    rng = np.random.default_rng(1)
    if kind == "tilted":
        return proposals.tilted(factor, rng.standard_normal(len(factor)), lower, upper)
    nu, tau = rng.uniform(0, 1.5, len(factor)), rng.uniform(0, 1.0, len(factor))
    return proposals.twisted(factor.sited(nu, tau), tau, lower, upper)


@FORMS
@SIDES
@pytest.mark.parametrize("law", ["tilted", "twisted"])
def test_weight_times_proposal_is_the_target_density(law, sides, kind):
    """At every sample, so it holds whatever tilt and sites are: this is what makes the estimate unbiased."""
    factor, lower, upper = rectangle(sides, kind, n=40)
    n = len(factor)
    proposal = proposal_of(law, factor, lower, upper)
    log_w, X, _ = weights(proposal, np.random.default_rng(0).random((n, 50)))
    V = X + lower[:, None]
    assert ((lower[:, None] <= V) & (upper[:, None] >= V)).all()
    np.testing.assert_allclose(weights(proposal, X, X.copy())[0], log_w, rtol=1e-9, atol=1e-9)
    # the proposal's density, a coordinate at a time, from its own factor
    own, d = proposal.factor @ np.eye(n), proposal.factor.d
    E = np.empty((n, 50))
    log_q = -np.sum(np.log(d)) * np.ones(50)
    for i in range(n):
        shift, a, b, scale = proposal.coefficients[i, :4]
        c = shift + own[i, :i] @ E[:i] / d[i]
        E[i] = X[i] / d[i] - c
        m = a + b * c
        width = (upper[i] - lower[i]) / d[i]
        log_q += norm.logpdf(E[i], m, scale) - log_mass((-c - m) / scale, (width - c - m) / scale)
    L = factor @ np.eye(n)
    target = multivariate_normal.logpdf(V.T, np.zeros(n), L @ L.T)
    constant = log_w - target + log_q
    np.testing.assert_allclose(constant, 0.0, atol=1e-7)


@pytest.mark.parametrize("far", [0.0, 12.0])
def test_the_compiled_loop_equals_its_textbook_twin(far):
    """Also where a coordinate is inside with probability 1e-33."""
    n, M = 37, 700  # neither is a multiple of the loop's blocks
    factor, lower, upper = rectangle("mixed", n=n)
    lower, upper = lower + far * (np.arange(n) % 5 == 0), upper + far * (np.arange(n) % 5 == 0)
    proposal = proposal_of("twisted", factor, lower, upper)
    U = np.random.default_rng(1).random((n, M))
    log_w, X, _ = weights(proposal, U)
    G, d = proposal.factor.G, proposal.factor.d
    E, known = np.empty((n, M)), np.full(M, proposal.log_constant)
    for i, (shift, a, b, scale, w0, w1, w2, k, _, width) in enumerate(proposal.coefficients):
        c = shift + G[i, :i] @ E[:i]
        m = a + b * c
        if np.isinf(width):
            t = (c + m) / scale
            log_p = log_ndtr(t)
            z = -ndtri_exp(np.minimum(np.log1p(-U[i]) + log_p, -(2.0**-54)))
        else:
            log_p, z = draw((-c - m) / scale, (width - c - m) / scale, U[i])
        E[i] = m + scale * z
        known += log_p + w0 + c * (w1 + w2 * c) - k * E[i]
        np.testing.assert_allclose(X[i], d[i] * (c + E[i]), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(log_w, known, rtol=1e-9, atol=1e-8)


def test_without_sites_it_is_genz_method():
    factor, lower, upper = rectangle("mixed")
    zero = np.zeros(len(factor))
    one = proposals.twisted(factor.sited(zero, zero), zero, lower, upper)
    two = proposals.tilted(factor, zero, lower, upper)
    np.testing.assert_allclose(one.coefficients, two.coefficients, atol=1e-12)
    assert one.log_constant == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("width", [1e-7, 1.0])
def test_sites_of_independent_coordinates_match_their_moments(width):
    lower = np.array([-1.0, 2.0])
    nu, tau, _ = propagate(DenseFactor.of(np.eye(2)), lower, lower + width)
    _, mean, _, variance = all_moments(lower, lower + width)
    np.testing.assert_allclose(1 / (1 + tau), variance, rtol=1e-6)
    np.testing.assert_allclose(nu / (1 + tau), mean, rtol=1e-6)


# --- mixtures


def mixed(kind="dense", n=3, seed=0, defended=True):
    """A proposal whose sites are not good ones, with Genz's method as its defence or alone."""
    R, factor = form(kind, n, seed)
    low, high = np.zeros(n), np.full(n, INF)
    genz = Mixture((proposals.tilted(factor, np.zeros(n), low, high),), 0.0)
    rng = np.random.default_rng(seed)
    nu, tau = rng.uniform(0, 0.5, n), rng.uniform(0, 0.5, n)
    twisted = proposals.twisted(factor.sited(nu, tau), tau, low, high)
    return R, Mixture.defended(twisted, genz) if defended else Mixture((twisted,), INF)


@FORMS
@pytest.mark.parametrize("defended", [False, True])
@pytest.mark.parametrize("points", ["sobol", "latin"])
def test_any_sites_are_unbiased(kind, defended, points, monkeypatch):
    """Mean of 200 estimates of 2 x 16 points and their defence, at 5 standard errors: false-alarm rate 6e-7 each."""
    if points == "latin":
        monkeypatch.setattr(mixture, "MANY", 2)
    R, many = mixed(kind, defended=defended)
    z = np.exp(
        [mixture.draw(many, 16, np.arange(2 * k, 2 * k + 2)).log_probability for k in range(200)]
    )
    error = z.std() / np.sqrt(len(z))
    assert abs(z.mean() - np.exp(three_dimensional(R))) < 5 * error
    assert error < 2e-3 + 0.01 * z.mean(), "a bias of a few per cent must be seen"


def test_no_weight_of_a_mixture_exceeds_its_bound():
    """Without the defence weights do; the defence alone comes close to its own."""
    x = np.random.default_rng(2).standard_normal(20)
    y = np.where(x > 0, 1.0, -1.0)
    factor = DenseFactor.of(np.eye(20) + 1e3 * np.outer(y * x, y * x))
    low, high = np.zeros(20), np.full(20, INF)
    tilt = minimax_tilt(factor, low, high)
    tilted = Mixture((proposals.tilted(factor, tilt.mu, low, high),), tilt.log_bound)
    nu, tau, _ = propagate(factor, low, high)
    twisted = proposals.twisted(factor.sited(nu, tau), tau, low, high)

    def largest(of):
        tops = []
        mixture.draw(of, 4096, np.arange(4), visit=lambda some: tops.append(some.log_weights.max()))
        return max(tops)

    both = Mixture.defended(twisted, tilted)
    assert both.log_bound == pytest.approx(tilt.log_bound + np.log(1 + DEFENCE))
    assert largest(both) <= both.log_bound < largest(Mixture((twisted,), INF))
    assert tilt.log_bound - 0.5 < largest(tilted) <= tilt.log_bound


@FORMS
@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_and_chunks_change_no_bit_and_nothing_else(kind, n_jobs, monkeypatch):
    _, many = mixed(kind, n=40)
    one, two = (mixture.draw(many, 64, np.arange(8), n_jobs=k) for k in (1, n_jobs))
    assert one.log_probability == two.log_probability and one.diagnostics == two.diagnostics
    assert one.standard_error == two.standard_error and one.samples == 8 * (64 + 8)
    monkeypatch.setattr(mixture, "_MOST", 32)
    monkeypatch.setattr(mixture, "_LEAST", 32)
    three = mixture.draw(many, 64, np.arange(8))
    assert three.log_probability == pytest.approx(one.log_probability, abs=1e-12)


def test_a_few_samples_bound_no_error():
    """One weight of a thousand makes the average: the spread of its randomisation is no error of it."""
    log_w = np.full((16, 64), -50.0)
    log_w[3, 5] = 0.0
    found = mixture.average(log_w, np.ones(16), 64)
    assert found.standard_error == INF and np.isfinite(found.log_probability)
    assert mixture.average(np.zeros((2, 1)), np.ones(2), 1).standard_error < 1e-14


def test_errors_of_weighted_means_are_those_of_the_jackknife():
    """Of a ratio of two estimates; both are good to first order in 400 randomisations."""
    rng = np.random.default_rng(0)
    values, share = 3.0 + rng.standard_normal(400), rng.uniform(0.5, 1.5, 400)
    share /= share.mean()
    means = mixture.Means(400)
    means.values = values
    mean, errors = means.contributions(share)
    assert mean == pytest.approx(share @ values / 400)
    total, weight = share @ values, share.sum()
    without = (total - share * values) / (weight - share)
    jackknife = np.sqrt(399 / 400 * np.sum((without - without.mean()) ** 2))
    assert mixture.deviation(errors) == pytest.approx(jackknife, rel=0.02)


def test_what_the_weights_say():
    rng = np.random.default_rng(0)
    heavy = weight_diagnostics(-np.log(rng.random(20_000)) / 1.1)  # Pareto weights of shape 1/1.1
    assert heavy["k_hat"] > 0.7
    assert weights_status(heavy) == UNTRUSTED
    assert weight_diagnostics(rng.standard_normal(8))["k_hat"] == np.inf  # too few to tell
    even = weight_diagnostics(np.zeros(50))
    assert even == {"k_hat": -np.inf, "effective_samples": 50.0, "effective_fraction": 1.0}
    assert weights_status(even) == NOT_CONVERGED
    assert weights_status(weight_diagnostics(0.1 * rng.standard_normal(5000))) == OK
    heavy = {"k_hat": 2.0, "effective_samples": 900.0, "effective_fraction": 0.9}
    assert weights_status(heavy) == UNTRUSTED
    assert weights_status(heavy | {"log_weight_bound": np.log(99)}) == OK
    assert weights_status(heavy | {"log_weight_bound": np.log(101)}) == UNTRUSTED


def test_one_randomisation_of_many_has_no_error():
    """Where one has the whole average, whatever its effective samples, the spread would be one: nothing is known."""
    log_w = np.full((16, 200), -60.0)
    log_w[3, :8] = 0.0
    found = mixture.average(log_w, np.ones(16), 200)
    assert found.diagnostics["effective_samples"] == pytest.approx(8.0)
    assert found.standard_error == np.inf
    log_w[:8, :8] = 0.0
    assert 0.2 < mixture.average(log_w, np.ones(16), 200).standard_error < 0.3


@pytest.mark.parametrize(
    ("k_hat", "log_bound", "tolerance", "stops"),
    [
        (1.5, 50.0, 1e-4, True),
        (0.9, 50.0, 1e-4, False),
        (1.5, 5.0, 1e-4, False),
        (1.5, 50.0, 0.3, False),
    ],
    ids=["no mean", "a mean", "bounded", "within the samples"],
)
def test_rounds_end_where_more_samples_are_no_help(k_hat, log_bound, tolerance, stops):
    """Two rounds of weights without a mean are enough, unless the bound or the tolerance may still be met."""
    told = {"k_hat": k_hat, "effective_samples": 20.0, "effective_fraction": 0.01}

    def made(points):
        m = 16 * points
        return mixture.Average(-50.0, 0.4, m, points, -50.0, np.ones(16), told)

    given = type("Given", (), {"log_bound": log_bound - 50.0})
    _, spent, number = rounds.run_rounds(
        made,
        tolerance,
        lambda points, so_far: so_far + 16 * points <= 2**22,
        futile=rounds.beyond(given(), 2**22),
    )
    assert (number == 2) if stops else (spent > 2**16)


# --- guaranteed intervals of means


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
