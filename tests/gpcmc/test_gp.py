import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpcmc import _validation as validation
from gpcmc.gp import derivatives, log_likelihood
from gpcmc.likelihood.probit import hazard

# both tails, both sides of the switch to the continued fraction, and where erfcx overflows
POINTS = [
    -1e8,
    -1e4,
    -300.0,
    -37.6,
    -10.0001,
    -9.9999,
    -5.0,
    -1.0,
    -1e-9,
    0.0,
    1.0,
    5.0,
    20.0,
    37.0,
]
finite = st.floats(-1e6, 1e6)


@pytest.mark.parametrize("z", POINTS)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_likelihood_and_derivatives_against_mpmath(y, z):
    f = y * z
    with mpmath.workdps(60):
        point = mpmath.mpf(z)
        # log Phi by erfc: ncdf itself loses the far tail
        value = mpmath.log(mpmath.erfc(-point / mpmath.sqrt(2)) / 2)
        r = mpmath.npdf(point) / (mpmath.erfc(-point / mpmath.sqrt(2)) / 2)
        w = r * (point + r)
    gradient, W = derivatives(np.array([y]), np.array([f]))
    assert log_likelihood(y, f) == pytest.approx(float(value), rel=1e-13)
    assert gradient[0] == pytest.approx(y * float(r), rel=1e-13)
    assert W[0] == pytest.approx(float(w), rel=1e-12)


@given(st.floats(-1e150, 1e150))
def test_curvature_lies_between_zero_and_one(z):
    r, w = hazard(z)
    assert np.isfinite(r) and r >= 0 and 0 <= w <= 1


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=finite))
def test_every_gram_matrix_is_a_covariance(G):
    A = validation.check_covariance("A", G @ G.T, semidefinite=True)
    assert A.flags.c_contiguous and (A == A.T).all()


@given(
    arrays(np.float64, st.integers(1, 6).map(lambda n: (n, n)), elements=finite),
    st.sampled_from([np.nan, np.inf, -np.inf]),
    st.data(),
)
def test_one_bad_entry_is_found(A, bad, data):
    n = len(A)
    A[data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))] = bad
    with pytest.raises(ValueError, match="K must be finite; got 1 NaN or infinite"):
        validation.check_covariance("K", A)


@given(st.integers(2, 6), st.floats(1e-6, 1e3), st.data())
def test_asymmetry_and_indefiniteness_are_found(n, size, data):
    i, j = data.draw(st.permutations(range(n)))[:2]
    A = np.eye(n)
    A[i, j] += size
    with pytest.raises(ValueError, match="K must be symmetric"):
        validation.check_covariance("K", A)
    B = np.eye(n)
    B[i, j] = B[j, i] = 1.0 + size
    with pytest.raises(ValueError, match="K must be positive semidefinite"):
        validation.check_covariance("K", B, semidefinite=True)
    assert validation.check_covariance("K", B) is not None  # asked for nothing more, finds nothing


@given(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda s: s[0] != s[1] or s[0] == 0))
def test_a_covariance_must_be_square_and_not_empty(shape):
    with pytest.raises(ValueError, match="K must be square"):
        validation.check_covariance("K", np.zeros(shape))


def test_rounding_asymmetry_is_averaged_away_and_the_callers_array_left_alone():
    given_matrix = np.eye(2)
    given_matrix[0, 1] = 1e-14
    A = validation.check_covariance("K", given_matrix)
    assert A[0, 1] == A[1, 0] == 0.5e-14
    assert given_matrix[1, 0] == 0.0


@given(arrays(np.float64, st.integers(1, 8), elements=st.sampled_from([-1.0, 1.0])))
def test_labels_pass_as_they_are(y):
    np.testing.assert_array_equal(validation.check_labels("y", y.astype(int), len(y)), y)


@pytest.mark.parametrize("bad", [0, -3, 1.0, "2", True, None])
def test_a_count_is_an_integer_of_at_least_one(bad):
    with pytest.raises(ValueError, match="samples must be an integer >= 1"):
        validation.check_positive_int("samples", bad)
    assert validation.check_positive_int("samples", np.int64(3)) == 3


@pytest.mark.parametrize("bad", [None, -1, 1.5, True, "seed"])
def test_a_generator_is_needed(bad):
    with pytest.raises(ValueError, match="rng must be a numpy.random.Generator"):
        validation.check_rng("rng", bad)


def test_a_seed_stands_for_a_generator():
    draws = [
        validation.check_rng("rng", rng).random(3).tolist()
        for rng in (7, np.int64(7), np.random.default_rng(7))
    ]
    assert draws[0] == draws[1] == draws[2]
    former = [validation.check_rng("rng", np.random.RandomState(s)).random() for s in (0, 0, 1)]
    assert former[0] == former[1] != former[2]
