"""Tables I to III and section 4.4: how well the chains mix, and what an iteration takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpcmc.inference.relevance import RelevanceModel
from gpcmc.inference.tuned_chains import (
    PSEUDO_MARGINAL,
    Chain,
    cubic_operations,
    latent_chain,
    pilot,
    pseudo_marginal_chain,
)
from studies.common.pieces import Piece, Row, join
from studies.common.running import Keep
from studies.common.seeds import generator, seed
from studies.common.timing import import_late
from studies.filippone2014.simulated import data_path, model_of, simulate, standardised

Array = np.ndarray
#: Parts of the iterations after which R-hat is given.
PARTS = (0.1, 0.2, 0.5, 1.0)


def tune(
    *,
    problem: Mapping[str, Any],
    method: str,
    burn_in: int,
    iterations: int,
    root: int,
    keep: Keep,
    data: Mapping[str, Array] | None = None,
) -> Piece:
    """Find the proposal that all chains of a problem share (`gpcmc.inference.tuned_chains.pilot`).

    Returns
    -------
    rows, arrays : list of dict, dict
        The proposal's standard deviations, one row; ``root`` (1 + k, 1 + k).
    """

    def one() -> tuple[list[Row], dict[str, Array]]:
        model, path = _model(problem, root, data)
        rng = generator(seed(path, _kernel(problem), "pilot"))
        found = pilot(model, burn_in=burn_in, iterations=iterations, rng=rng, method=method)
        deviations = np.sqrt((found**2).sum(axis=1))
        row = {f"deviation{k}": float(v) for k, v in enumerate(deviations)}
        return [{**row, "seed": path}], {"root": found}

    return keep("pilot", one)


def mix(
    *,
    problem: Mapping[str, Any],
    schemes: Sequence[Mapping[str, Any]],
    chains: int,
    iterations: int,
    burn_in: int,
    root: int,
    keep: Keep,
    tuned: Mapping[str, Array],
    data: Mapping[str, Array] | None = None,
) -> Piece:
    """Run the chains of some schemes from the prior, and say how they mix.

    Parameters
    ----------
    problem : mapping
        ``n``, ``d`` and ``set`` of simulated data, or ``name`` and ``cases`` of real ones; and ``relevance``.
    schemes : sequence of mapping
        ``scheme``: laplace, ep, sufficient, ancillary or surrogate. ``samples``: importance samples of an estimate, of
        the pseudo-marginal ones. ``repeats``: updates of theta and of f in an iteration, of the others. ``thinning``:
        pseudo-marginal chains are also looked at through every so many draws, as if their updates were repeated.
    chains, iterations, burn_in : int
    tuned : mapping
        ``root``, the proposal.

    Returns
    -------
    rows : list of dict
        One row a scheme, or with thinning two, as of `mixing`.
    """
    model, path = _model(problem, root, data)

    def one(given: Mapping[str, Any], name: str) -> tuple[list[Row], dict[str, Array]]:
        import_late()
        own, found = seed(path, _kernel(problem), name), []
        for k in range(chains):
            lengths: dict[str, Any] = {"iterations": iterations, "burn_in": burn_in}
            lengths["rng"] = generator(seed(own, f"chain{k}"))
            found.append(_chain(model, tuned["root"], given, lengths))
        scheme, thinning = given["scheme"], given["thinning"]
        key = {**problem, "scheme": scheme, "samples": given["samples"], "seed": own}
        rows = [{**key, "repeats": given["repeats"], **mixing(found)}]
        if scheme in PSEUDO_MARGINAL and thinning > 1:
            rows.append({**key, "repeats": thinning, **mixing(found, thinning)})
        return rows, {}

    names = [f"{one['scheme']}-{one['samples']}-{one['repeats']}" for one in schemes]
    return join(
        keep(name, partial(one, given, name)) for given, name in zip(schemes, names, strict=True)
    )


def _chain(
    model: RelevanceModel, root: Array, given: Mapping[str, Any], lengths: Mapping[str, Any]
) -> Chain:
    if given["scheme"] in PSEUDO_MARGINAL:
        return pseudo_marginal_chain(
            model, given["scheme"], root, samples=given["samples"], **lengths
        )
    return latent_chain(model, given["scheme"], root, repeats=given["repeats"], **lengths)


def mixing(found: list[Chain], thinning: int = 1) -> Row:
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
    row: Row = {
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


def _kernel(problem: Mapping[str, Any]) -> str:
    return "ard" if problem["relevance"] else "isotropic"


def _model(
    problem: Mapping[str, Any], root: int, data: Mapping[str, Array] | None
) -> tuple[RelevanceModel, str]:
    """The model of a problem, and the path of its random streams."""
    if data is not None:
        X, y = standardised(data, problem["cases"])
        path = seed(root, "filippone2014", "real", problem["name"], f"cases{len(y)}")
    else:
        path = data_path(root, "table1", problem["n"], problem["d"], problem["set"])
        X, y, _ = simulate(problem["n"], problem["d"], path, balanced=True)
    return model_of(X, y, relevance=problem["relevance"]), path
