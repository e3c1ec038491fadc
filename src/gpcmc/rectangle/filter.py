r"""Draws that are resampled as they go: for so many coordinates that no whole draw is a good one.

The weight of a draw is a product over coordinates, and its logarithm varies as their number. From a few thousand on, a
few of the draws make the average, and no bound says anything. Here the draws of a randomisation are particles: where
less than half of them would count, they are drawn anew in proportion to their weights, and go on with equal ones. The
variance of the average then grows as the number of coordinates in place of its exponential. It stays unbiased for the
probability (Del Moral 2004, Theorem 7.4.2), and its standard error is the spread between independent randomisations.
With the twist by sites this is the twisted particle filter of Whiteley and Lee (2014).

What is left of the first draws says how good a run was. Particles that descend from one of them count as one: the
effective number of these ancestors, by their weights in the end, is the number of independent draws that would have as
large an error (Lee and Whiteley 2018, Olsson and Douc 2019). Without resampling that is the usual effective number.

References
----------
Del Moral (2004), Feynman-Kac formulae. Carpenter, Clifford and Fearnhead (1999), IEE Proceedings F 146, 2 (systematic
resampling). Whiteley and Lee (2014), Annals of Statistics 42, 115. Lee and Whiteley (2018), Biometrika 105, 609. Olsson
and Douc (2019), Bernoulli 25, 1504.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gpcmc._validation import FloatArray
from gpcmc.rectangle.mixture import Average, Latin, Samples, average
from gpcmc.rectangle.proposals import Pass, Proposal
from gpcmc.weights import weight_diagnostics

_LEAST = 0.5  # effective share of the particles below which they are drawn anew


def filtered(
    proposal: Proposal,
    points: int,
    seeds: NDArray[np.int64],
    *,
    centre: FloatArray | float = 0.0,
    n_jobs: int = 1,
    visit: Callable[[Samples], None] | None = None,
) -> Average:
    """Draw so many particles of each randomisation, and average their weights.

    As `gpcmc.rectangle.mixture.draw`, of one proposal; `visit` sees states to which the `centre` is added. ``k_hat`` is
    of all weights by which particles were drawn anew, and of those in the end; ``effective_samples`` counts first
    ancestors; ``resampled`` is how often that was done in a randomisation.
    """
    r = len(seeds)
    log_w = np.empty((r, points))
    ancestors: list[FloatArray] = [np.empty(0)] * r
    tails: list[list[FloatArray]] = [[] for _ in range(r)]

    def work(k: int) -> None:
        rng = np.random.default_rng([int(seeds[k]), 0])
        one, eve, tails[k] = _run(proposal, points, rng)
        log_w[k] = one.log_weights
        top = log_w[k].max()
        share = np.bincount(eve, weights=np.exp(log_w[k] - top), minlength=points)
        with np.errstate(divide="ignore"):
            ancestors[k] = np.log(share) + top
        if visit is not None:
            here = slice(0, points)
            one.state += np.reshape(centre, (-1, 1))
            visit(Samples(0, range(k, k + 1), here, log_w[k], np.zeros((1, points)), [one]))

    if n_jobs == 1:
        for k in range(r):
            work(k)
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(work, range(r)))
    told = weight_diagnostics(np.concatenate(ancestors))
    told["k_hat"] = weight_diagnostics(np.concatenate([one for some in tails for one in some]))[
        "k_hat"
    ]
    told["resampled"] = sum(len(some) - 1 for some in tails) / r
    return average(log_w, np.ones(r), points, told)


def _run(
    proposal: Proposal, points: int, rng: np.random.Generator
) -> tuple[Pass, NDArray[np.intp], list[FloatArray]]:
    """Return the particles at the end, the first ancestor of each, and all log weights over their mean."""
    factor = proposal.factor
    one, latin = Pass.start(proposal, points), Latin(len(proposal), points, [rng])
    eve, tail = np.arange(points), []
    for block, here in enumerate(factor.parts):
        X = np.empty((here.stop - here.start, points))
        one.draw(block, one.ahead(block), X, latin)
        mean = float(logsumexp(one.log_weights)) - np.log(points)
        if not np.isfinite(mean):
            break
        w = np.exp(one.log_weights - mean)
        if points >= _LEAST * float(w @ w):
            continue
        tail.append(one.log_weights - mean)
        chosen = _systematic(w / points, rng.random())
        factor.choose(block, one.state, chosen)
        eve = eve[chosen]
        one.log_weights[:] = mean
    tail.append(one.log_weights - mean if np.isfinite(mean) else one.log_weights)
    return one, eve, tail


def _systematic(share: FloatArray, u: float) -> NDArray[np.intp]:
    """Draw as many as there are shares (m,) of a whole, each about as often as it has them."""
    m = len(share)
    sums = np.cumsum(share)
    at = (np.arange(m) + u) / m * sums[-1]
    return np.minimum(np.searchsorted(sums, at, side="right"), m - 1)
