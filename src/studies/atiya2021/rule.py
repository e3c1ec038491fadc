"""A rule for users: which estimate of the log marginal likelihood to take, and how many samples it needs.

Run expectation propagation (EP), and importance sampling from it with a few samples: the pilot. The pilot estimates the
error of EP, and says by its weights whether it may be believed.

1. EP suffices if the pilot is trusted, and the distance between the two and `WIDTH` standard errors of the pilot are
   within the tolerance.
2. Otherwise importance sampling, if the pilot is trusted: its variance falls as 1 / samples, so the pilot says how many
   are needed. If that is more than `MOST`, or the pilot or the longer run is not trusted, twisted EP takes less time.
3. The paper's sampler has about 1 / effective eves for the variance of its log L, and eves grow with samples.

The thresholds are from the kept rows of the experiment `scaling`; the rows of `packaged` are a test of them. Two
details came after trials on four data sets of `packaged`: `ALLOWANCE`, and the turn to twisted EP after a longer run
that is not trusted. The measures also count the others alone.

Over the data sets of `scaling`, 32,768 samples of importance sampling take as long as 8 x 512 points of twisted EP;
errors of these two are within three, or little more, of the standard errors that they report; and the standard error of
the sampler times the root of its effective eves is between 0.83 and 1.05.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcmc._validation import check_positive, check_positive_int
from gpcmc.posterior import MAX_K_HAT

#: Samples of the pilot.
PILOT = 2048
#: Standard errors that the stated error of an estimate has.
WIDTH = 3.0
#: Effective samples that a trusted pilot has; with fewer, a few weights make its standard error.
MIN_SAMPLES = 100.0
#: Samples of importance sampling that take as long as twisted EP.
MOST = 32_768
#: Times the samples that a pilot foretells: its standard error is itself an estimate.
ALLOWANCE = 1.5
#: Points of a randomisation of twisted EP, and randomisations.
POINTS, RANDOMIZATIONS = 512, 8
#: Effective eves of a pilot of the paper's sampler that says how many samples are needed.
MIN_EVES = 10.0


@dataclass(frozen=True, slots=True)
class Pilot:
    """What EP and a short run of importance sampling from it say.

    Attributes
    ----------
    ep : float
        Log marginal likelihood of EP, nats.
    log_evidence, se : float
        That of importance sampling, and its standard error, nats.
    effective_samples : float
    samples : int
    k_hat : float or None
        Pareto shape of the largest weights; None where it is not defined, as when they are equal.
    """

    ep: float
    log_evidence: float
    se: float
    effective_samples: float
    samples: int
    k_hat: float | None = None

    @property
    def trusted(self) -> bool:
        """Whether the weights have a variance that may be estimated from so many."""
        tail = self.k_hat is None or self.k_hat <= MAX_K_HAT
        return tail and self.effective_samples >= MIN_SAMPLES


@dataclass(frozen=True, slots=True)
class Advice:
    """Which estimate to take.

    Attributes
    ----------
    estimate : str
        ``ep``, ``importance-ep`` or ``twisted-ep``.
    samples : int
        That it needs: none for EP, those of the pilot where they suffice, and those that twisted EP begins with.
    error : float or None
        Nats; the stated error, or the largest that is expected. None before twisted EP has run.
    """

    estimate: str
    samples: int
    error: float | None


def advise(pilot: Pilot, tolerance: float) -> Advice:
    """Return which estimate is right to a tolerance, in nats, and how many samples it needs.

    Raises
    ------
    ValueError
        If the tolerance is not above zero.
    """
    check_positive("tolerance", tolerance)
    if pilot.trusted:
        bound = abs(pilot.ep - pilot.log_evidence) + WIDTH * pilot.se
        if bound <= tolerance:
            return Advice("ep", 0, bound)
        if WIDTH * pilot.se <= tolerance:
            return Advice("importance-ep", pilot.samples, WIDTH * pilot.se)
        foretold = samples_needed(pilot.samples, pilot.se, tolerance / WIDTH)
        needed = math.ceil(ALLOWANCE * foretold)
        if needed <= MOST:
            return Advice("importance-ep", needed, tolerance)
    return Advice("twisted-ep", POINTS * RANDOMIZATIONS, None)


def samples_needed(samples: int, se: float, target: float) -> int:
    """Return how many samples have a target standard error, if so many have the standard error `se`; at least one.

    Raises
    ------
    ValueError
        If samples or target are not above zero.
    """
    check_positive_int("samples", samples)
    check_positive("target", target)
    return max(1, math.ceil(samples * (se / target) ** 2))


def sampler_samples(samples: int, eves: float, target: float) -> int | None:
    """Return how many samples the paper's sampler needs for a target standard error of log L, in nats.

    Parameters
    ----------
    samples : int
        Of a pilot run.
    eves : float
        Its effective eves.
    target : float

    Returns
    -------
    int or None
        None if the pilot has too few eves to say.

    Raises
    ------
    ValueError
        If samples or target are not above zero.
    """
    return samples_needed(samples, eves**-0.5, target) if eves >= MIN_EVES else None
