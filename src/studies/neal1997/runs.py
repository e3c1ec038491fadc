"""The settings of each run: those of the paper, and what the software's own files add to it.

The paper leaves priors, step sizes and persistence to the software's documentation. The release of 1997-01-18 has
them; the release of 2022 has the same priors and slightly other chains. Constants and jitters are standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClassesRun:
    """One chain on the three-way problem.

    Attributes
    ----------
    data : str
        The release whose file it reads, 1997 or 2022.
    training : int
        Training cases, the first of the file.
    constant, jitter : float
        Standard deviations of these parts of the covariance. Jitter 10 is close to a probit model.
    factor : float
        Of the step sizes.
    persistence : float
        Of the momentum, after the first five iterations at 0.9.
    first : int
        From which of a hundred iterations on every fifth is used for predictions.
    """

    data: str
    training: int
    constant: float
    jitter: float
    factor: float
    persistence: float
    first: int


@dataclass(frozen=True)
class OutliersRun:
    """One chain on the regression with outliers.

    Attributes
    ----------
    data : str
        The release whose file it reads, 1997 or 2022.
    degrees : float or None
        Degrees of freedom of t noise; None: Gaussian noise.
    constant : float
        Standard deviation of the constant part.
    """

    data: str
    degrees: float | None
    constant: float


CLASSES = {
    "1997-400": ClassesRun("1997", 400, 10.0, 10.0, 0.4, 0.99, 55),
    "1997-100": ClassesRun("1997", 100, 10.0, 10.0, 0.4, 0.99, 55),
    "2022-400": ClassesRun("2022", 400, 10.0, 10.0, 0.3, 0.98, 21),
    "2022-100": ClassesRun("2022", 100, 10.0, 10.0, 0.5, 0.98, 21),
    "2022-logistic": ClassesRun("2022", 400, 1.0, 0.1, 0.15, 0.98, 21),
}
OUTLIERS = {
    "1997-t": OutliersRun("1997", 4.0, 1.0),
    "1997-gaussian": OutliersRun("1997", None, 1.0),
    "1997-gaussian-100": OutliersRun("1997", None, 100.0),
    "2022-t": OutliersRun("2022", 4.0, 1.0),
    "2022-gaussian": OutliersRun("2022", None, 100.0),
}
#: Jitter of the models with t noise, and factor of the steps of all regressions.
JITTER, FACTOR = 0.001, 0.5
#: Iterations of the paper, and from which on every fifth is used for the predictions of a regression.
CLASSES_ITERATIONS, OUTLIERS_ITERATIONS, OUTLIERS_FIRST = 100, 200, 101
#: Iterations whose momentum persists less, so that the energy of the start is lost, and how much it persists.
EARLY, EARLY_PERSISTENCE = 5, 0.9
#: Updates of the hyperparameters in an iteration, Gibbs scans before each, and predictions from each saved state.
UPDATES, SCANS, DRAWS = 5, 100, 100
#: Every so many saved states are used.
EVERY = 5
#: A chain does not count if it makes its predictions from a mode with less than this share of the posterior: that of
#: one of the twenty states that predictions of a regression are made from.
MINOR = 0.05


def used(iterations: int, first: int, of: int) -> list[int]:
    """Return the iterations from which predictions are made: every fifth from one of so many on, the last at least.

    With fewer iterations than the paper has, the same share of them is used.
    """
    later = [k for k in range(1, iterations + 1) if k * of >= first * iterations]
    return [k for k in later if k % EVERY == 0] or [iterations]
