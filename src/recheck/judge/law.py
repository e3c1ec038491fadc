"""Whether numbers that were drawn anew have the law of those that are kept.

A change of code may change random numbers and nothing else. A row is then not what it was, but the difference of two
estimates of one quantity is no larger than both errors allow. Each difference over its error is turned into a normal
score, by Student's t for the degrees of freedom of the error. Three kinds of tests share one rate of false alarms over
all that was drawn, a third of it each, and each kind its third among its tests (Bonferroni):

- of each difference by itself;
- of each group, such as one method's log evidence, whether the mean of its rows' scores is zero (Stouffer): it finds a
  bias that no single row shows;
- of each group, whether the scores scatter more than normal ones (chi-squared): it finds rows that are off either way.

A row has one score in the tests of a group, the mean of its own: whatever the correlation within a row, its variance is
at most one, so that the rate holds. It holds, too, where rows share random numbers before and after, which makes
differences smaller.

References
----------
Stouffer et al. (1949), The American Soldier, vol. 1, p. 45.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri, stdtr

#: False alarms: at most so many of the draws of rows whose law is what it was have a row that is called different.
RATE = 0.01
#: Degrees of freedom of a stated standard error, if nothing is known of them: those of eight randomisations.
DEGREES = 7.0


class Pair(NamedTuple):
    """A kept number and the same one found again.

    Attributes
    ----------
    row, group : str
        The row that it is of, and the kind of number: rows of one group would be off together.
    kept, found : float
    error : float
        Standard error of their difference, above zero.
    degrees : float
        Degrees of freedom of that error.
    """

    row: str
    group: str
    kept: float
    found: float
    error: float
    degrees: float = DEGREES


def of_errors(
    row: str, group: str, kept: tuple[float, float], found: tuple[float, float]
) -> Pair | None:
    """Return the pair of two estimates with standard errors; None where these are both zero, or one not finite."""
    error = math.hypot(kept[1], found[1])
    return Pair(row, group, kept[0], found[0], error) if 0.0 < error < math.inf else None


def of_replicates(
    row: str, group: str, kept: float, found: float, replicates: Sequence[float]
) -> Pair | None:
    """Return the pair of two numbers of the law of kept replicates; None where these are fewer than 4 or equal."""
    values = np.asarray(replicates, dtype=float)
    if len(values) < 4 or not np.isfinite(values).all() or not np.ptp(values) > 0.0:
        return None
    error = math.sqrt(2.0) * float(values.std(ddof=1))
    return Pair(row, group, kept, found, error, len(values) - 1.0)


def score(pair: Pair) -> float:
    """Return the difference, found less kept, as a normal score; infinite where a number is not finite."""
    ratio = (pair.found - pair.kept) / pair.error
    if not math.isfinite(ratio):
        return 0.0 if pair.kept == pair.found else math.inf
    tail = float(stdtr(pair.degrees, -abs(ratio)))
    return math.copysign(-float(ndtri(max(tail, 1e-300))), ratio)


def others(pairs: Iterable[Pair], rate: float = RATE) -> dict[str, str]:
    """Return the rows whose law is another one than that of what is kept, and why.

    Parameters
    ----------
    pairs : iterable of Pair
        Of all rows that were drawn.
    rate : float
        Probability of a false alarm at most, over all of them.
    """
    pairs = list(pairs)
    scores = [score(pair) for pair in pairs]
    found: dict[str, str] = {}
    level = rate / 3.0
    for pair, value in zip(pairs, scores, strict=True):
        if _two_sided(value) < level / len(pairs):
            found.setdefault(
                pair.row,
                f"{pair.group}: {pair.kept:.6g} kept, {pair.found:.6g} here, {_times(pair)} errors apart",
            )
    groups: dict[str, dict[str, list[float]]] = {}
    for pair, value in zip(pairs, scores, strict=True):
        groups.setdefault(pair.group, {}).setdefault(pair.row, []).append(value)
    several = {name: rows for name, rows in groups.items() if len(rows) > 1}
    for name, rows in several.items():
        own = np.array([np.mean(values) for values in rows.values()])
        own = np.clip(own, -37.0, 37.0)
        mean = float(own.sum() / math.sqrt(len(own)))
        for p, why in (
            (_two_sided(mean), f"on average {own.mean():.2g} errors off"),
            (float(chdtrc(len(own), float(own @ own))), "farther off than errors allow"),
        ):
            if p < level / len(several):
                for row in rows:
                    found.setdefault(row, f"{name}: {len(own)} rows are {why}")
    return found


def _two_sided(value: float) -> float:
    return 2.0 * float(ndtr(-abs(value)))


def _times(pair: Pair) -> str:
    return f"{abs(pair.found - pair.kept) / pair.error:.3g}"
