"""Rectangle probabilities, against closed forms and quadrature; calibration, bias, and reports of users.

Comparisons of an estimate with a truth allow 7 standard errors: with 16 scrambles (15 degrees of freedom) the
false-alarm rate of one is 4e-6, and all seeds are fixed. Other bands are stated where they are used.
"""

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln, log_ndtr, ndtr
from scipy.stats import multivariate_normal, norm

from gpcmc.covariance.factor import DenseFactor
from gpcmc.orthant.truths import three_dimensional
from gpcmc.rectangle import RectangleEstimate, gradient
from gpcmc.rectangle.gradient import Guide
from gpcmc.rectangle.order import ordered
from gpcmc.rectangle.probability import rectangle_probability
from gpcmc.rectangle.sites import propagate

INF = np.inf
METHODS = ("auto", "minimax-tilting", "twisted-ep", "separation")


def equicorrelated(n, rho=0.5):
    return (1 - rho) * np.eye(n) + rho


def tridiagonal(n):
    return np.eye(n) - 0.5 * (np.eye(n, k=1) + np.eye(n, k=-1))


def autoregressive(n, phi):
    return phi ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def covariance(n, seed, spread=0.3):
    A = np.random.default_rng(seed).standard_normal((n, n + 2))
    return A @ A.T / n + spread * np.eye(n)


def factor_truth(d, lower, upper, reach=12.0):
    """Coordinates d_i u + sqrt(1 - d_i^2) e_i: the integral over u by the trapezoidal rule."""
    u = np.linspace(-reach, reach, 4001)[:, None]
    s = np.sqrt(1 - np.asarray(d) ** 2)
    p = ndtr((upper - d * u) / s) - ndtr((lower - d * u) / s)
    f = norm.pdf(u[:, 0]) * np.prod(p, axis=1)
    return np.log(f.sum() * (u[1, 0] - u[0, 0]))


def chain_truth(phi, lower, upper):
    """A stationary AR(1), one coordinate integrated after the other on 80 Gauss-Legendre nodes of each interval."""
    node, weight = np.polynomial.legendre.leggauss(80)
    s, log_p, x, f = np.sqrt(1 - phi**2), 0.0, None, None
    for a, b in zip(np.maximum(lower, -9.0), np.minimum(upper, 9.0), strict=True):
        new = a + 0.5 * (b - a) * (1 + node)
        g = norm.pdf(new) if x is None else norm.pdf(new[:, None], phi * x, s) @ f
        f = g * 0.5 * (b - a) * weight
        log_p += np.log(f.sum())
        f, x = f / f.sum(), new
    return log_p


def assert_close(found, truth, largest_se):
    assert abs(found.log_probability - truth) < 7 * found.standard_error + 1e-10
    assert 0 < found.standard_error < largest_se


# --- exact answers


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (-1, 2),
        (0, INF),
        (-INF, -3),
        (447, INF),
        (447, 447.001),
        (-1e-12, 1e-12),
        (8, 9),
        (-INF, 40),
    ],
)
def test_one_dimension(lower, upper):
    found = rectangle_probability(lower, upper, cov=1.0)
    with mpmath.workdps(60):
        a, b = (mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2 for x in (max(lower, -1e4), upper))
        truth = float(mpmath.log(a - b))
    assert abs(found.log_probability - truth) <= 10 * found.standard_error
    assert found.standard_error <= 1e-14 * (1 + abs(truth)) and found.samples == 0
    assert found.method == "closed form" and found.status == "ok"


def test_mean_and_scale_of_one_dimension():
    found = rectangle_probability([3.0], [5.0], mean=[4.0], cov=[[4.0]])
    assert found.log_probability == pytest.approx(np.log(ndtr(0.5) - ndtr(-0.5)), rel=1e-13)
    assert found.probability == pytest.approx(ndtr(0.5) - ndtr(-0.5))


@pytest.mark.parametrize("n", [2, 5, 1000])
def test_independent_coordinates(n):
    """To -1e5 nats and beyond."""
    lower = np.linspace(0.0, 30.0, n)
    sd = 10.0 ** np.linspace(-8, 8, n)
    found = rectangle_probability(lower * sd, INF, cov=np.diag(sd**2))
    assert found.log_probability == pytest.approx(log_ndtr(-lower).sum(), rel=1e-13)
    assert found.log_probability < (-1e5 if n == 1000 else 0)
    assert found.samples == 0 and found.diagnostics["blocks"] == n


@pytest.mark.parametrize("rho", [-0.999999, -0.5, 0.999999])
def test_quadrant(rho):
    found = rectangle_probability(0, INF, cov=[[1e-4, rho], [rho, 1e4]])
    with mpmath.workdps(40):
        truth = float(mpmath.log(mpmath.acos(-mpmath.mpf(rho)) / (2 * mpmath.pi)))
    assert abs(found.log_probability - truth) < 1e-9 and found.samples == 0  # rho itself is rounded


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_correlation_of_one(sign):
    cov = np.array([[1.0, 3.0 * sign], [3.0 * sign, 9.0]])
    found = rectangle_probability([-1.0, -1.5], [INF, 6.0], cov=cov)
    low, high = (-0.5, 2.0) if sign > 0 else (-1.0, 0.5)
    assert found.log_probability == pytest.approx(np.log(ndtr(high) - ndtr(low)), rel=1e-12)


def test_equal_limits_and_certain_coordinates():
    cov = np.diag([1.0, 0.0])
    for lower, upper, truth in [
        ([0, -1], [INF, 1], -np.log(2)),
        ([0, 1], [INF, 2], -INF),
        ([-INF, -1], [INF, 1], 0.0),
        ([1, -1], [1, 1], -INF),
    ]:
        found = rectangle_probability(lower, upper, cov=cov)
        assert found.log_probability == pytest.approx(truth) and found.status == "ok"
        assert found.interval(kind="guaranteed") == pytest.approx(found.interval(), abs=1e-12)


# --- estimates


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(2))
def test_three_coordinates(method, seed):
    R = covariance(3, seed, 0.05)
    found = rectangle_probability(0, INF, cov=R, method=method, rng=seed)
    if method == "auto":
        assert found.method == "closed form" and found.samples == 0
        assert abs(found.log_probability - three_dimensional(R)) < 1e-11
        return
    assert_close(found, three_dimensional(R), 5e-4)
    assert found.status == "ok" and found.method in METHODS[1:]


@pytest.mark.parametrize("method", METHODS)
def test_a_box_with_one_factor(method):
    rng = np.random.default_rng(2)
    n = 12
    d = rng.uniform(-0.9, 0.9, n)
    lower, upper = -rng.random(n), rng.random(n) + 1.0
    lower[:2], upper[3:6] = -INF, INF
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    mean, sd = rng.standard_normal(n), 10.0 ** rng.uniform(-3, 3, n)
    found = rectangle_probability(
        mean + sd * lower,
        mean + sd * upper,
        mean=mean,
        cov=cov * np.outer(sd, sd),
        method=method,
        rng=1,
    )
    assert_close(found, factor_truth(d, lower, upper), 5e-4)


@pytest.mark.parametrize(
    ("n", "lower", "upper"), [(5, -0.1, 0.2), (20, -1.0, 2.0), (20, 2.0, 2.5), (50, -INF, 1.0)]
)
def test_equal_correlations(n, lower, upper):
    found = rectangle_probability(lower, upper, cov=equicorrelated(n, 0.3), rng=0)
    assert_close(found, factor_truth(np.full(n, np.sqrt(0.3)), lower, upper), 5e-4)


@pytest.mark.parametrize("phi", [-0.8, 0.6])
@pytest.mark.parametrize("kind", ["box", "mixed"])
def test_autoregression(phi, kind):
    n = 30
    lower, upper = np.full(n, -1.0), np.linspace(0.5, 2.0, n)
    if kind == "mixed":
        upper[::3], lower[1::3] = INF, -INF
    found = rectangle_probability(lower, upper, cov=autoregressive(n, phi), tolerance=5e-3, rng=0)
    assert_close(found, chain_truth(phi, lower, upper), 5e-3)


def test_a_tail_of_many_coordinates():
    """Below -1e5 nats; equicorrelated, which is one factor: by quadrature about the mode."""
    n, c = 10, 600.0
    found = rectangle_probability(c, INF, cov=equicorrelated(n), rng=0)
    with mpmath.workdps(50):
        # P = int phi(u) Q((c - u / root 2) root 2)^n du, peaked: by quadrature about its mode
        root = mpmath.sqrt(2)

        def log_f(u):
            z = (c - u / root) * root
            return (
                -u * u / 2
                - mpmath.log(2 * mpmath.pi) / 2
                + n * mpmath.log(mpmath.erfc(z / root) / 2)
            )

        mode = mpmath.findroot(lambda u: mpmath.diff(log_f, u), c * n * root / (n + 1))
        peak = log_f(mode)
        total = mpmath.quad(
            lambda u: mpmath.exp(log_f(u) - peak), [mode - 8, mode - 2, mode, mode + 2, mode + 8]
        )
        truth = float(peak + mpmath.log(total))
    assert truth < -1e5
    assert_close(found, truth, 1e-3)


@pytest.mark.parametrize("upper", [INF, 1000.1])
def test_methods_agree_far_out(upper):
    """At -6e5 nats sites have natural parameters of 1e9: their terms must not cancel. 6 standard errors of both."""
    cov = autoregressive(50, 0.99)
    one, two = (
        rectangle_probability(1000, upper, cov=cov, method=method, tolerance=0.02, rng=0)
        for method in ("minimax-tilting", "twisted-ep")
    )
    assert one.log_probability < -6e5 and one.status == two.status == "ok"
    both = np.hypot(one.standard_error, two.standard_error)
    assert abs(one.log_probability - two.log_probability) < 6 * both + 1e-8


# --- covariances without full rank


def planar_truth(A):
    """P(A z > 0) for z in the plane: the angle that all half-planes share, over 2 pi."""
    bounds = np.sort(
        np.concatenate([np.arctan2(A[:, 1], A[:, 0]) + s for s in (-np.pi / 2, np.pi / 2)])
    )
    bounds = np.unique(np.mod(bounds, 2 * np.pi))
    edges = np.append(bounds, bounds[0] + 2 * np.pi)
    middle = 0.5 * (edges[1:] + edges[:-1])
    inside = (A @ np.array([np.cos(middle), np.sin(middle)]) > 0).all(axis=0)
    return float(np.sum(np.diff(edges)[inside]) / (2 * np.pi))


def test_forty_singular_correlation_matrices():
    """A3: of 40 like these the orthant sampler takes 15."""
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(40):
        A = rng.standard_normal((3, 2))
        A /= np.linalg.norm(A, axis=1)[:, None]
        found = rectangle_probability(0, INF, cov=A @ A.T, tolerance=5e-3, rng=0)
        truth = planar_truth(A)
        if truth == 0.0:
            assert found.log_probability == -INF and found.standard_error == 0.0
            assert found.status == "ok" and found.interval() == (-INF, -INF)
        else:
            assert found.log_probability == pytest.approx(np.log(truth), abs=1e-9)
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
def test_a_thin_box_has_its_volume_times_the_density(width):
    """To second order, log P = n log w + log N(x; 0, R) + tr(C) w^2 / 24, C = R^-1 (x x' R^-1 - I), x the centre."""
    R, n = covariance(8, 3), 8
    lower = np.full(n, 0.5)
    upper = lower + width
    x, widths = 0.5 * (lower + upper), upper - lower
    C = np.linalg.solve(R, np.outer(x, np.linalg.solve(R, x)) - np.eye(n))
    truth = np.log(widths).sum() + multivariate_normal(cov=R).logpdf(x)
    truth += np.sum(np.diag(C) * widths**2) / 24
    for method in ("minimax-tilting", "twisted-ep"):
        found = rectangle_probability(lower, upper, cov=R, method=method, rng=0)
        rounding = 1e-9 + n * np.finfo(float).eps * 0.5 / width  # of weights, and of the limits
        assert abs(found.log_probability - truth) < 5 * found.standard_error + width**4 + rounding
        assert found.status == "ok"


def test_ties_that_leave_a_strip_or_nothing():
    """1,000 x + y and 1,000 x - y between 3,000 and 3,003: y < 1.5, and x has a strip of (3 - 2 y) / 1,000."""
    B = np.array([[1.0, 0.0], [0.0, 1.0], [1e3, 1.0], [1e3, -1.0]])
    lower, upper = np.array([-1.0, 1.0, 3e3, 3e3]), np.array([INF, INF, 3003.0, 3003.0])
    node, weight = np.polynomial.legendre.leggauss(40)
    y = 1.25 + 0.25 * node
    strip = ndtr(-3 - y / 1e3) - ndtr(-3.003 + y / 1e3)
    truth = np.log(0.25 * weight @ (norm.pdf(y) * strip))
    for method in ("auto", "separation"):
        found = rectangle_probability(
            lower, upper, cov=B @ B.T, method=method, tolerance=0.02, max_samples=2**16, rng=0
        )
        low, high = found.interval(kind="guaranteed")
        assert low <= truth <= high
        assert_close(found, truth, 0.05 if method == "auto" else INF)
    lower[1] = 2.0
    found = rectangle_probability(lower, upper, cov=B @ B.T, rng=0)
    assert found.log_probability == -INF and found.standard_error == 0.0


def test_what_no_sample_has_seen_is_not_zero(monkeypatch):
    """Three coordinates that sum to zero are never all positive; without the proof of that, nothing is claimed."""
    cov = equicorrelated(3, -0.5)
    assert rectangle_probability(0, INF, cov=cov, rng=0).standard_error == 0.0
    monkeypatch.setattr("gpcmc.rectangle.solve.has_interior", lambda given: True)
    found = rectangle_probability(0, INF, cov=cov, max_samples=2**13, rng=0)
    assert found.log_probability == -INF and found.status == "no sample inside"
    assert found.standard_error == INF and found.interval() == (-INF, 0.0)
    low, high = found.interval(kind="guaranteed")
    assert low == -INF and -20 < high < -5


@pytest.mark.parametrize("method", METHODS)
def test_a_sum_of_two_coordinates(method):
    """0 < x, y and x + y < 1, by one-dimensional quadrature; the sum is first or last in the order by its limits."""
    B = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    node, weight = np.polynomial.legendre.leggauss(60)
    x = 0.5 * (1 + node)
    truth = np.log(0.5 * weight @ (norm.pdf(x) * (ndtr(1 - x) - 0.5)))
    found = rectangle_probability([0, 0, -INF], [INF, INF, 1], cov=B @ B.T, method=method, rng=0)
    assert_close(found, truth, 5e-4)


@pytest.mark.parametrize("rank", [1, 3])
def test_repeated_and_dependent_rows(rank):
    """Twenty rows of a matrix of low rank, against two million plain draws: 5 of their standard errors (6e-7)."""
    rng = np.random.default_rng(rank)
    A = rng.standard_normal((20, rank))
    lower, upper = -np.abs(rng.standard_normal(20)) - 1.0, np.abs(rng.standard_normal(20)) + 1.5
    A[7] = -2.0 * A[3]
    found = rectangle_probability(lower, upper, cov=A @ A.T, rng=0, tolerance=5e-3)
    V = rng.standard_normal((400_000, rank)) @ A.T
    p = np.mean(((lower < V) & (upper > V)).all(axis=1))
    assert (
        abs(np.exp(found.log_probability) / p - 1)
        < 5 * np.sqrt((1 - p) / p / 400_000) + 7 * found.standard_error
    )


# --- reports of users (A1 to A5, D1, D7)


def test_coordinates_without_limits():
    """A1."""
    found = rectangle_probability([0, -INF, -INF], INF, cov=equicorrelated(3))
    assert found.log_probability == pytest.approx(-np.log(2), abs=1e-14)
    assert rectangle_probability(-INF, INF, cov=np.eye(2)).log_probability == 0.0


def test_upper_limits():
    """A2: a box, where a difference of orthants would cancel."""
    n = 6
    found = rectangle_probability(5.0, 5.001, cov=equicorrelated(n), rng=0)
    with mpmath.workdps(40):
        root = mpmath.sqrt(2)

        def f(u):
            a, b = ((x - u / root) * root for x in (mpmath.mpf("5"), mpmath.mpf("5.001")))
            return mpmath.npdf(u) * (mpmath.ncdf(-a) - mpmath.ncdf(-b)) ** n

        truth = float(mpmath.log(mpmath.quad(f, [0, 3, 5, 6, 7, 9, 12])))
    assert_close(found, truth, 5e-4)


def test_tail_of_a_hundred_coordinates():
    """A4."""
    found = rectangle_probability(3.0, INF, cov=equicorrelated(100), tolerance=5e-3, rng=0)
    assert_close(found, factor_truth(np.full(100, np.sqrt(0.5)), 3.0, INF, 20.0), 5e-3)
    assert found.status == "ok"


def test_asymmetry_is_judged_by_its_own_pair():
    """A5."""
    cov = np.diag([1e13, 1.0, 1.0])
    cov[1, 2] = 0.5
    with pytest.raises(ValueError, match=r"cov must be symmetric; cov\[1, 2\] = 0.5"):
        rectangle_probability(0, INF, cov=cov)
    single = covariance(4, 0).astype(np.float32)
    single[0, 1] = np.nextafter(single[0, 1], np.float32(9))
    found = rectangle_probability(0, INF, cov=single, rng=0)
    double = rectangle_probability(0, INF, cov=covariance(4, 0), rng=0)
    assert found.log_probability == pytest.approx(double.log_probability, abs=1e-5)
    rows = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)
    rectangle_probability(-1, 1, cov=rows @ rows.T, rng=0)  # singular, but for rounding of 6e-8


def test_a_far_tail_has_an_honest_error():
    """D1: ten coordinates beyond 4.5."""
    found = rectangle_probability(4.5, INF, cov=equicorrelated(10), rng=0)
    assert_close(found, factor_truth(np.full(10, np.sqrt(0.5)), 4.5, INF, 20.0), 5e-4)
    assert found.log_probability == pytest.approx(-27.955, abs=2e-3)


@pytest.mark.parametrize("n", [30, 100])
def test_orthants_that_others_miss(n):
    """D7."""
    found = rectangle_probability(0, INF, cov=tridiagonal(n), rng=0)
    assert_close(found, -gammaln(n + 2), 5e-4)
    found = rectangle_probability(0, INF, cov=autoregressive(n, -0.5), rng=0)
    assert_close(found, chain_truth(-0.5, np.zeros(n), np.full(n, INF)), 5e-4)
    found = rectangle_probability(0, INF, cov=equicorrelated(n), tolerance=1e-2, rng=0)
    assert_close(found, -np.log(n + 1), 5e-3)


def test_a_long_chain_is_given_to_the_twisted_proposal():
    """D7: AR(.9), n = 500."""
    n = 500
    found = rectangle_probability(
        0, INF, cov=autoregressive(n, 0.9), tolerance=0.2, max_samples=2**16, rng=0
    )
    assert found.method == "twisted-ep"
    assert_close(found, chain_truth(0.9, np.zeros(n), np.full(n, INF)), 0.1)


# --- errors, intervals, bias


def runs(count, **options):
    d = np.array([0.9, -0.6, 0.5, 0.8])
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    lower, upper = np.array([-0.5, 0.2, -INF, 0.4]), np.array([INF, 1.0, 0.5, INF])
    found = [rectangle_probability(lower, upper, cov=cov, rng=k, **options) for k in range(count)]
    return found, factor_truth(d, lower, upper)


@pytest.mark.parametrize("method", METHODS[1:])
def test_intervals_cover_and_the_estimate_has_no_bias(method):
    """Of 60 intervals of 90 %, binomial: below 45 or at 60 with probability below 3e-3; 4.5 standard errors of
    the mean of 60 (3e-5)."""
    found, truth = runs(60, method=method, confidence=0.9, tolerance=0.02)
    ends = np.array([f.interval() for f in found])
    assert 45 <= np.sum((ends[:, 0] < truth) & (truth < ends[:, 1])) < 60
    ratio = np.array([np.exp(f.log_probability - truth) for f in found])
    assert abs(ratio.mean() - 1) < 4.5 * ratio.std() / np.sqrt(len(ratio))
    z = np.array([(f.log_probability - truth) / f.standard_error for f in found])
    assert 0.8 < np.sqrt(np.mean(z**2)) < 1.5  # of Student's t with 15 degrees: 1.07


def test_guaranteed_intervals_cover():
    """The level is 80 %, so that more than 13 of 30 miss with probability below 1e-3. They are conservative."""
    found, truth = runs(30, tolerance=0.05, method="minimax-tilting")
    ends = np.array([f.interval(0.8, kind="guaranteed") for f in found])
    assert np.sum((ends[:, 0] > truth) | (truth > ends[:, 1])) <= 13
    assert np.mean(ends[:, 1] - ends[:, 0]) < 0.5
    assert found[0].interval(0.8, kind="guaranteed") == tuple(ends[0])


def test_intervals_of_several_blocks():
    cov = np.kron(np.diag([1.0, 2.0]), equicorrelated(4))
    found = rectangle_probability(0, INF, cov=cov, rng=0)
    assert_close(found, -2 * np.log(5), 5e-4)
    assert found.diagnostics["blocks"] == 2
    low, high = found.interval(0.99)
    wide = found.interval(0.99, kind="guaranteed")
    assert wide[0] < low < found.log_probability < high < wide[1]
    assert np.diff(found.interval(0.9)) < high - low


def test_the_tolerance_is_met_or_missed_aloud():
    cov = equicorrelated(15)
    for tolerance in (0.03, 1e-3):
        found = rectangle_probability(0, INF, cov=cov, tolerance=tolerance, rng=0)
        low, high = found.interval()
        assert found.status == "ok" and high - low < 2.1 * tolerance
    short = rectangle_probability(0, INF, cov=cov, tolerance=1e-6, max_samples=5000, rng=0)
    assert short.status == "tolerance not met" and short.samples <= 5000
    assert_close(short, -np.log(16), 0.05)


def test_heavy_weights_are_named():
    found = rectangle_probability(
        0, INF, cov=tridiagonal(30), method="separation", max_samples=2**14, rng=0
    )
    assert found.status == "weights not trusted"


def test_equal_seeds_give_equal_bits_on_any_number_of_threads():
    cov = covariance(6, 0)
    one, two = (rectangle_probability(-1, 1, cov=cov, rng=3, n_jobs=jobs) for jobs in (1, 2))
    assert one == two and isinstance(one, RectangleEstimate)
    assert one != rectangle_probability(-1, 1, cov=cov, rng=4)
    assert rectangle_probability(-1, 1, cov=cov, rng=np.random.default_rng(3)) == one


# --- gradients


def test_gradient_against_differences():
    n = 5
    rng = np.random.default_rng(0)
    cov = covariance(n, 0) * np.outer(*[np.array([1, 10, 0.1, 1, 2.0])] * 2)
    cov[:3, 3:] = cov[3:, :3] = 0.0  # two blocks, one of two coordinates
    sd, mean = np.sqrt(np.diag(cov)), 0.3 * rng.standard_normal(n)
    lower, upper = -sd * [1, 0.5, INF, 1.2, 0.3], sd * [INF, 1, 0.4, 2, INF]
    g = rectangle_probability(lower, upper, mean=mean, cov=cov, rng=0).gradient()
    assert g.effective_fraction > 0.5
    h = 1e-2

    def difference(**change):
        ends = []
        for sign in (1, -1):
            args = {"lower": lower, "upper": upper, "mean": mean, "cov": cov}
            for name, step in change.items():
                args[name] = args[name] + sign * step
            low, high = args.pop("lower"), args.pop("upper")
            ends.append(
                rectangle_probability(low, high, **args, tolerance=1e-4, rng=0).log_probability
            )
        return (ends[0] - ends[1]) / (2 * h)

    unit = np.diag(sd)
    for name, i in [
        ("lower", 1),
        ("upper", 1),
        ("upper", 2),
        ("lower", 3),
        ("mean", 0),
        ("mean", 2),
    ]:
        want = difference(**{name: h * unit[i]})
        assert getattr(g, name)[i] * sd[i] == pytest.approx(want, abs=2e-3)
    for i, j in [(0, 0), (0, 1), (2, 1), (3, 4), (2, 2), (0, 4)]:
        D = np.zeros((n, n))
        D[i, j] = D[j, i] = sd[i] * sd[j]
        assert np.sum(g.cov * D) == pytest.approx(difference(cov=h * D), abs=2e-3)
        assert np.sum(g.cov_se * D) < 2e-3
    assert g.lower[2] == g.upper[0] == 0.0
    np.testing.assert_allclose(g.mean, -(g.lower + g.upper), rtol=1e-10)


def test_gradient_of_a_box_by_the_sites():
    """With the same points the gradient is that of the very estimate: differences agree to their own error."""
    n = 4
    R, lower, upper = (
        covariance(n, 1),
        np.array([-0.5, 0.2, -1.0, 2.0]),
        np.array([INF, 1.0, 0.5, INF]),
    )
    sd = np.sqrt(R.diagonal())
    given = ordered(R / np.outer(sd, sd), lower / sd, upper / sd, 1e-13)
    guide = Guide(*propagate(given.factor, given.lower, given.upper)[:2], np.full(n, 0.1))

    def estimate(cov, low, high):
        with_points = (guide, 64, np.arange(4), True)
        found, sums, back = gradient._estimate(
            DenseFactor.of(cov.copy()), low, high, *with_points, together=True
        )
        return found.log_plain, back.covariance(sums.values[0]), back.limits(sums.values)

    cov = given.factor @ np.eye(n)
    cov = cov @ cov.T
    _, slope, (of_low, of_high) = estimate(cov, given.lower, given.upper)
    h = 1e-5
    for i in range(n):
        for limit, own, found in ((0, given.lower, of_low), (1, given.upper, of_high)):
            ends = [[given.lower.copy(), given.upper.copy()] for _ in range(2)]
            ends[0][limit][i] += h
            ends[1][limit][i] -= h
            if np.isfinite(own[i]):
                difference = (estimate(cov, *ends[0])[0] - estimate(cov, *ends[1])[0]) / (2 * h)
                assert found[0, i] == pytest.approx(difference, abs=1e-6)
            else:
                assert found[0, i] == 0.0
    D = np.random.default_rng(0).standard_normal((n, n))
    D = D + D.T
    ends = [estimate(cov + sign * h * D, given.lower, given.upper)[0] for sign in (1, -1)]
    assert np.sum(slope * D) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5)


def test_gradient_of_one_dimension_and_of_none():
    g = rectangle_probability([1.0, -INF], INF, cov=[[4.0, 0.5], [0.5, 1.0]]).gradient(64)
    slope = np.exp(norm.logpdf(0.5) - norm.logsf(0.5)) / 2
    np.testing.assert_allclose(g.lower, [-slope, 0.0])
    np.testing.assert_allclose(g.mean, [slope, 0.0])
    np.testing.assert_allclose(g.cov, [[slope / 8, 0.0], [0.0, 0.0]])  # d/dc of 1 / root c
    with pytest.raises(ValueError, match="cov must be regular"):
        rectangle_probability(0, INF, cov=np.ones((2, 2))).gradient()
    with pytest.raises(ValueError, match="probability above zero"):
        rectangle_probability(1, 1, cov=1.0).gradient()


# --- bad input


def test_the_remedy_for_an_indefinite_matrix_works():
    cov = equicorrelated(3, -0.51)
    with pytest.raises(ValueError, match="positive semidefinite") as error:
        rectangle_probability(0, INF, cov=cov)
    factor = float(str(error.value).split("variances by ")[1].split(",")[0])
    np.fill_diagonal(cov, factor)
    rectangle_probability(0, INF, cov=cov, rng=0, max_samples=2**12)
