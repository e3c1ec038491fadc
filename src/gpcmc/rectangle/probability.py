"""Gaussian rectangle probabilities: the public function, of one rectangle or of many."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from gpcmc import _validation as validation
from gpcmc._threads import one_thread
from gpcmc._validation import Rng
from gpcmc.rectangle.arguments import check_problem
from gpcmc.rectangle.estimate import Options, estimate
from gpcmc.rectangle.field import FieldCovariance, field_estimate
from gpcmc.rectangle.many import check_problems, estimates
from gpcmc.rectangle.solve import Method
from gpcmc.rectangle.student import check_df, student_estimate


@one_thread()
def rectangle_probability(
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    mean: ArrayLike = 0.0,
    cov: ArrayLike | FieldCovariance,
    df: float | None = None,
    method: Method = "auto",
    tolerance: float = 1e-3,
    max_samples: int = 2**22,
    confidence: float = 0.95,
    n_jobs: int = 1,
    rng: Rng = None,
) -> Any:
    """Estimate P(lower < v < upper) for v ~ N(mean, cov), in one to thousands of dimensions and far into the tails.

    Coordinates that do not depend on each other are taken apart. One to three dimensions are by quadrature, to
    rounding. Elsewhere samples are drawn in rounds, each larger than the last, until the relative half-width of the
    interval meets `tolerance`. Leading axes are further problems, and the result has arrays.

    Parameters
    ----------
    lower, upper : float or (..., n) array
        Limits; ``-np.inf`` and ``np.inf`` stand for none, and limits of the normal that are more than 1e70 standard
        deviations from the mean count as infinite. From about 1e7 on rounding leaves the log probability only.
    mean : float or (..., n) array
    cov : (n, n) or (..., n, n) array, or FieldCovariance
        Covariance, which may be singular; one for all, or one a problem. Or a stationary kernel at inputs, which is for
        one normal rectangle of thousands of dimensions: it takes no array.
    df : float, optional
        Degrees of freedom: v is then Student's t, mean + z / s with z ~ N(0, cov) and df s^2 chi-squared.
    method : {"auto", "minimax-tilting", "twisted-ep", "separation"}
        Botev's minimax exponential tilting; a proposal twisted by expectation propagation, defended by the former;
        Genz's separation of variables. ``"auto"`` uses closed forms, and otherwise the one of the first two with
        the smaller error for its work in a pilot round.
    tolerance : float
        Half-width of the interval at `confidence`, over the probability.
    max_samples : int
        Samples of all rounds; the result says so where the tolerance needs more. The first rounds, of up to 4,352, are
        made in any case. Where two rounds in a row have weights without a mean (k-hat above 1), and so many samples can
        meet neither the tolerance nor a bound on the weights, no more are drawn: the status is ``"weights not
        trusted"``. Of Student's t that is for each of some 15 to 50 scales.
    confidence : float
    n_jobs : int
        Threads; of many problems with samples, processes. The result has the same bits whatever it is.
    rng : numpy.random.Generator, RandomState or int, optional
        Or a seed: equal seeds give equal bits on one machine.

    Returns
    -------
    RectangleEstimate, or RectangleEstimates where an argument has leading axes

    Raises
    ------
    ValueError
        If a limit is NaN, a lower limit is above its upper one, shapes do not agree, `cov` is not symmetric
        (relative to the variances of each pair), has a negative variance or eigenvalue, or an option is not as
        above.

    Examples
    --------
    >>> import numpy as np
    >>> from gpcmc import rectangle_probability
    >>> cov = 0.5 + 0.5 * np.eye(100)
    >>> found = rectangle_probability(0.0, np.inf, cov=cov, rng=0)
    >>> bool(abs(found.log_probability + np.log(101)) < 5 * found.standard_error)
    True
    >>> found.status
    'ok'

    Two rectangles at once:

    >>> rectangle_probability([[0.0, 0.0], [-1.0, -1.0]], [np.inf, 1.0], cov=np.eye(2)).probability.shape
    (2,)

    References
    ----------
    Botev (2017), Journal of the Royal Statistical Society B 79, 125. Genz (1992), Journal of Computational and
    Graphical Statistics 1, 141. Cunningham, Hennig and Lacoste-Julien (2011), "Gaussian probabilities and
    expectation propagation". Plackett (1954), Biometrika 41, 351.
    """
    options = Options.of(method, tolerance, max_samples, confidence, n_jobs)
    degrees = check_df(df)
    random = validation.check_rng("rng", rng, optional=True)
    if isinstance(cov, FieldCovariance):
        if degrees is not None:
            raise ValueError("df must be None with a FieldCovariance; give the array cov=kernel(X)")
        return field_estimate(lower, upper, mean, cov, options, random)
    many = check_problems(lower, upper, mean, cov)
    problem = check_problem(lower, upper, mean, cov) if many is None else None
    if many is not None:
        return estimates(many, degrees, options, random)
    assert problem is not None
    if degrees is not None:
        return student_estimate(problem, degrees, options, random)
    return estimate(problem, options, random)
