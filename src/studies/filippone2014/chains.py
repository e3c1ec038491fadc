"""Tables I to III and section 4.4: how well the chains mix, and what an iteration takes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpcmc.chains.hyperparameters import Model
from studies.common.rows import Line
from studies.common.seeds import generator, seed
from studies.filippone2014.operations import cubic_operations
from studies.filippone2014.problems import PSEUDO_MARGINAL
from studies.filippone2014.tuned_chains import Chain, latent_chain, pseudo_marginal_chain

Array = np.ndarray
#: Parts of the iterations after which R-hat is given.
PARTS = (0.1, 0.2, 0.5, 1.0)


def mix(
    model: Model, root: Array, scheme: str, settings: Mapping[str, int], path: str
) -> list[Line]:
    """Run the chains of a scheme from the prior, and say how they mix.

    Parameters
    ----------
    model : Model
    root : array (1 + k, 1 + k)
        Of the proposal's covariance.
    scheme : str
        laplace, ep, sufficient, ancillary or surrogate.
    settings : mapping
        ``samples``: importance samples of an estimate, of pseudo-marginal schemes. ``repeats``: updates of theta and
        of f in an iteration, of the others. ``thinning``: pseudo-marginal chains are also looked at through every so
        many draws, as if their updates were repeated. ``chains``, ``iterations``, ``burn_in``.
    path : str
        Each chain has a stream below it.

    Returns
    -------
    list of dict
        ``repeats``, and as of `mixing`; with thinning two of them.
    """
    found = [
        _chain(model, root, scheme, settings, generator(seed(path, f"chain{k}")))
        for k in range(settings["chains"])
    ]
    lines = [{"repeats": settings["repeats"], **mixing(found)}]
    if (thinning := settings["thinning"]) > 1:
        lines.append({"repeats": thinning, **mixing(found, thinning)})
    return lines


def _chain(
    model: Model,
    root: Array,
    scheme: str,
    settings: Mapping[str, int],
    rng: np.random.Generator,
) -> Chain:
    burn_in, iterations = settings["burn_in"], settings["iterations"]
    if scheme in PSEUDO_MARGINAL:
        samples = settings["samples"]
        return pseudo_marginal_chain(
            model, scheme, root, samples=samples, iterations=iterations, burn_in=burn_in, rng=rng
        )
    repeats = settings["repeats"]
    return latent_chain(
        model, scheme, root, repeats=repeats, iterations=iterations, burn_in=burn_in, rng=rng
    )


def mixing(found: list[Chain], thinning: int = 1) -> Line:
    """Say how chains mix, of which every so many draws are kept.

    Returns
    -------
    dict
        ``draws``; ``ess``, bulk effective samples of the worst hyperparameter; ``r_hat_10`` and so on, medians over
        hyperparameters after parts of the iterations; ``acceptance``; ``operations`` and ``operations_own``, for each
        draw.
    """
    theta = np.stack([chain.theta[thinning - 1 :: thinning] for chain in found])
    draws = theta.shape[0] * theta.shape[1]
    work = sum((chain.work for chain in found[1:]), found[0].work)
    row: Line = {
        "draws": draws,
        "ess": effective_samples(theta),
        "acceptance": float(np.mean([chain.acceptance for chain in found])),
        "operations": cubic_operations(work) / draws,
        "operations_own": cubic_operations(work, own=True) / draws,
    }
    for part in PARTS:
        length = round(part * theta.shape[1])
        row[f"r_hat_{round(100 * part)}"] = median_r_hat(theta[:, :length])
    return row


def effective_samples(theta: Array) -> float:
    """Return the bulk effective sample size of the worst hyperparameter of draws (chains, draws, 1 + k).

    It is one where a chain stands still, so that ratios of it are defined and such chains count.
    """
    from arviz_stats.base import array_stats

    if theta.shape[1] < 4 or (np.ptp(theta, axis=1) == 0).any():
        return 1.0
    with np.errstate(all="ignore"):
        found = array_stats.ess(theta, chain_axis=0, draw_axis=1, method="bulk")
    return float(np.min(np.nan_to_num(found, nan=1.0)))


def median_r_hat(theta: Array) -> float:
    """Return the median over hyperparameters of the rank R-hat; infinite if a half of them has a chain that stands."""
    from arviz_stats.base import array_stats

    if theta.shape[1] < 4:
        return float("inf")
    with np.errstate(all="ignore"):
        found = array_stats.rhat(theta, chain_axis=0, draw_axis=1, method="rank")
    return float(np.median(np.nan_to_num(found, nan=np.inf, posinf=np.inf)))
