"""How a reference value is computed, and how methods that share nothing with it certify it.

The reference comes from twisted EP (`gpcmc.rectangle.classification`), with points doubled until the standard errors
are below `REFERENCE`. The certifier is annealed importance sampling of the latent values (`latent_certifier`), which
shares neither the orthant matrix nor its order nor the code of the kernel. The adapted orthant sampler certifies as
well where it takes at most `Plan.max_draws`. Minimax tilting is no certifier, because it is the defence of twisted EP.
A cell is certified if a certifier's standard errors are below `CERTIFIER`, and if the reference agrees with every
certifier that was run.

The log evidences must differ by less than three joint standard errors. The largest of the t differences between test
probabilities must lie below the bound that t independent normal differences exceed as rarely as one exceeds three
(Sidak's; dependence between the probabilities makes it rarer still). A right cell is thus refused with a probability
of at most 0.0054 for each certifier, and of dozens of cells one may well be. Where the latent certifier differs, it
runs again with new seeds and ten times the chains, and that run decides: a real difference is then three times as
plain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, t

from gpcmc.covariance.prior import Prior
from gpcmc.methods import Inference
from gpcmc.orthant.method import Orthant
from gpcmc.posterior import MAX_K_HAT, OK
from gpcmc.rectangle.classification import Twisted
from studies.atiya2021.problems import Problem
from studies.atiya2021.reference.latent import STATES, annealed, gaussian, model
from studies.atiya2021.runs import infer
from studies.common.rows import Line
from studies.common.seeds import generator, seed

Array = np.ndarray


class Limits(NamedTuple):
    """Largest standard errors: of the log evidence, nats, and of a test probability."""

    evidence: float
    probability: float


REFERENCE = Limits(1e-3, 2e-4)
CERTIFIER = Limits(5e-3, 1e-3)

#: Largest difference between log evidences, in joint standard errors.
MAX_Z = 3.0
#: How rarely a right value is refused: as rarely as a normal variable exceeds `MAX_Z` in size.
LEVEL = float(2 * norm.sf(MAX_Z))
#: Added to joint standard errors: where K is beta I nothing is left but rounding.
ROUNDING = 1e-9

CERTIFIED, UNCERTIFIED = "certified", "uncertified"
AGREES, DIFFERS = "agrees", "differs"


class Estimates(Protocol):
    """Log evidence and test probabilities with their standard errors, from whatever source."""

    @property
    def log_evidence(self) -> float | None:
        """Log marginal likelihood, nats."""
        ...

    @property
    def log_evidence_se(self) -> float | None:
        """Its standard error, nats."""
        ...

    @property
    def probability(self) -> Array:
        """P(y* = +1 | y) at the test patterns, (t,)."""
        ...

    @property
    def probability_se(self) -> Array:
        """Their standard errors, (t,)."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How the reference is computed; the same at every scale.

    Attributes
    ----------
    points, max_points : int
        Sobol' points of a randomisation, at first and at most.
    randomizations : int
    chains : int
        Of the latent certifier: at least, also in the run that tells how many it needs.
    max_moves : float
        Moves of all its chains at most: ten minutes with a thousand patterns.
    pilot, max_samples : int
        Samples of the adapted sampler: in the run that tells how many it needs, and at most.
    population : int
        Samples of one of its populations at most.
    max_draws : float
        Samples times patterns above which the adapted sampler is left out.
    """

    points: int = 1024
    max_points: int = 2**17
    randomizations: int = 32
    chains: int = 10_000  # with fewer, small probabilities are averages of skew variables
    max_moves: float = 6e6
    pilot: int = 20_000
    max_samples: int = 40_000_000
    population: int = 50_000
    max_draws: float = 1e9


def verdict(reference: Inference, *certifiers: Inference | None) -> Line:
    """Say whether the certifiers bear out the reference.

    Parameters
    ----------
    reference : Inference
    certifiers : Inference or None
        None for one that was left out; the first is there.

    Returns
    -------
    dict
        ``z``: difference of the log evidences from the first certifier's in joint standard errors; ``max_z``: largest
        of the test probabilities', and ``max_z_threshold``; ``verdict``; ``reason``, ``AGREES`` for a certified cell.
    """
    threshold = largest_of(len(reference.probability), LEVEL)
    every = [found for found in certifiers if found is not None]
    apart = [differences(reference, found) for found in every]
    problems = [
        f"reference: {reference.status}" if reference.status != OK else "",
        "reference: standard error" if not _within(reference, REFERENCE) else "",
        "certifier: standard error" if not any(map(_fit, every)) else "",
        f"log evidence {DIFFERS}" if not all(abs(z) < MAX_Z for z, _ in apart) else "",
        f"probability {DIFFERS}" if not all(max_z < threshold for _, max_z in apart) else "",
    ]
    reason = "; ".join(filter(None, problems))
    return {
        "z": apart[0][0],
        "max_z": apart[0][1],
        "max_z_threshold": threshold,
        "verdict": UNCERTIFIED if reason else CERTIFIED,
        "reason": reason or AGREES,
    }


def _fit(certifier: Inference) -> bool:
    """Whether a certifier's standard errors are small enough, and mean what they say."""
    trusted = certifier.diagnostics.get("k_hat", -np.inf) <= MAX_K_HAT
    return trusted and certifier.status == OK and _within(certifier, CERTIFIER)


def largest_of(count: int, level: float, degrees_of_freedom: float = np.inf) -> float:
    """Return what the largest of `count` independent |t| exceeds with probability `level` (Sidak).

    Where the variables are dependent the probability is smaller (Sidak 1967, for normal ones).

    References
    ----------
    Sidak (1967), Journal of the American Statistical Association 62, 626.
    """
    each = -np.expm1(np.log1p(-level) / max(count, 1))
    return float(t.isf(each / 2, degrees_of_freedom))


def best(gp: Prior, y: Array, path: str, plan: Plan) -> Inference:
    """Twisted EP with points doubled until the standard errors are small enough, with new seeds each time."""
    points = plan.points
    while True:
        rng = generator(seed(path, f"points{points}"))
        method = Twisted(points=points, randomizations=plan.randomizations)
        found = infer(method, gp, y, rng=rng)
        if _within(found, REFERENCE) or 2 * points > plan.max_points:
            return found
        points *= 2


def adapted(
    problem: Problem, gp: Prior, population: int, samples: int, *, rng: np.random.Generator
) -> Inference:
    """The adapted orthant sampler, with the patterns in the order of their first principal component.

    Resampling makes samples forget their early coordinates. It does no harm where later coordinates
    depend on neighbours only, so neighbours come one after the other: against a random order the variance is
    smaller by up to 100 times at N = 1000.
    """
    X = problem.X_train - problem.X_train.mean(axis=0)
    order = np.argsort(X @ np.linalg.svd(X, full_matrices=False)[2][0], kind="stable")
    ordered = Prior(gp.K[np.ix_(order, order)], gp.K_star[order], gp.k_star_star)
    runs = -(-samples // population)
    method = Orthant(samples=samples, scheme="adapted", order="given", runs=runs)
    return infer(method, ordered, problem.y_train[order], rng=rng)


def latent(problem: Problem, alpha: float, beta: float, path: str, plan: Plan) -> Inference:
    """Annealed importance sampling of the latent values, with as many chains as its errors ask for."""
    path, given = seed(path, "latent"), model(problem, alpha, beta)
    run = partial(annealed, given, q=gaussian(given))
    pilot = run(plan.chains, rng=generator(seed(path, "pilot")))
    most = int(plan.max_moves / (pilot.work["temperatures"] + STATES))
    return sized(run, pilot, path, plan.chains, most)


def latent_again(problem: Problem, alpha: float, beta: float, path: str, plan: Plan) -> Inference:
    """The second look of the latent certifier: new seeds, ten times the chains."""
    more = replace(plan, chains=10 * plan.chains, max_moves=10 * plan.max_moves)
    return latent(problem, alpha, beta, seed(path, "again"), more)


def sampler(problem: Problem, gp: Prior, path: str, plan: Plan) -> Inference | None:
    """The adapted orthant sampler, or None where it is dear."""
    run = partial(adapted, problem, gp, plan.population)
    pilot = run(plan.pilot, rng=generator(seed(path, "pilot")))
    if _needed(pilot, plan.pilot) * len(gp.K) > plan.max_draws:
        return None
    return sized(run, pilot, path, plan.pilot, plan.max_samples)


def sized(
    run: Callable[..., Inference], pilot: Inference, path: str, least: int, most: int
) -> Inference:
    """Run with as many samples as a pilot of `least` says, and with more if that was not enough.

    The pilot is not used again, so that a small error met by chance does not pass for a small one.
    """
    found, samples = pilot, least
    for attempt in range(4):
        at_least = 2 * samples if attempt else least
        samples = min(max(at_least, _needed(found, samples)), most)
        found = run(samples, rng=generator(seed(path, f"certifier{attempt}")))
        if _within(found, CERTIFIER) or samples == most:
            break
    return found


def certifier_columns(found: Inference) -> Line:
    """What a line says of a certifier's value."""
    return {
        "certifier_log_evidence": found.log_evidence,
        "certifier_se": found.log_evidence_se,
        "certifier_max_probability_se": float(np.max(found.probability_se, initial=0.0)),
        "certifier_samples": found.work["samples"],
    }


def _needed(found: Inference, samples: int) -> int:
    """Samples for the certifier's errors: a tenth more than the variance asks for."""
    return int(1.1 * _excess(found, CERTIFIER) ** 2 * samples)


def _excess(found: Inference, limits: Limits) -> float:
    """Largest standard error, as a multiple of its limit."""
    assert found.log_evidence_se is not None
    largest = np.max(found.probability_se, initial=0.0)
    shares = [found.log_evidence_se / limits.evidence, largest / limits.probability]
    return float(np.max(shares))  # NaN, if there is one


def _within(found: Inference, limits: Limits) -> bool:
    return _excess(found, limits) < 1.0


def differences(one: Estimates, other: Estimates) -> tuple[float, float]:
    """Difference of the log evidences, and largest of the probabilities, in joint standard errors."""

    def joint(a: ArrayLike, b: ArrayLike) -> Array:
        return np.sqrt(np.square(a) + np.square(b) + ROUNDING**2)

    assert one.log_evidence is not None and other.log_evidence is not None
    assert one.log_evidence_se is not None and other.log_evidence_se is not None
    z = (one.log_evidence - other.log_evidence) / joint(one.log_evidence_se, other.log_evidence_se)
    differences = np.abs(one.probability - other.probability)
    largest = differences / joint(one.probability_se, other.probability_se)
    return float(z), float(np.max(largest, initial=0.0))
