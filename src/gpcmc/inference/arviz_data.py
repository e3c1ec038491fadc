"""Samplers' draws as ArviZ data, for its diagnostics, plots and files. Only this needs the package arviz-base."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._validation import check_covariance
from gpcmc.inference.chains import ChainPosterior
from gpcmc.posterior import Posterior
from gpcmc.inference.pseudo_marginal import HyperparameterPosterior


def draws_of(posterior: Posterior, K: ArrayLike | None = None) -> dict[str, dict[str, Any]]:
    """Return a sampler's draws by group and name, (chains, draws, ...) each.

    Parameters
    ----------
    posterior : ChainPosterior or HyperparameterPosterior
        Of "ess", "hmc", "control-variables" or "pseudo-marginal".
    K : (n, n) array, optional
        Prior covariance of the fit. With it the draws of a chain are latent values ``f`` at the training inputs;
        without, the coordinates ``w`` that are standard normal a priori.

    Returns
    -------
    dict
        ``posterior``: ``f`` or ``w``; or ``variance`` and ``length_scale`` of the RBF kernel. ``sample_stats``: ``lp``,
        log p(y | f), or the estimate of log p(y | theta), which is too high on average.

    Raises
    ------
    ValueError
        If the posterior has no draws of chains, or K is not its covariance.
    """
    if isinstance(posterior, HyperparameterPosterior):
        chains = posterior.chains
        scale = np.exp(chains.theta[..., 1:])
        values = {
            "variance": chains.beta,
            "length_scale": scale[..., 0] if scale.shape[-1] == 1 else scale,
        }
        stats = {} if chains.log_evidence is None else {"lp": chains.log_evidence}
        return {"posterior": values, "sample_stats": stats}
    if isinstance(posterior, ChainPosterior):
        draws = {"w": posterior.w}
        if K is not None:
            K = check_covariance("K", K)
            if len(K) != len(posterior.back):
                raise ValueError(f"K must be of order {len(posterior.back)}; got {len(K)}")
            draws = {"f": posterior.w @ (posterior.back.T @ K)}
        return {"posterior": draws, "sample_stats": {"lp": posterior.log_likelihood}}
    raise ValueError(
        f"posterior must be that of a sampler that runs chains; got {type(posterior).__name__}"
    )


def to_arviz(posterior: Posterior, K: ArrayLike | None = None) -> Any:
    """Return a sampler's draws as ArviZ data (``xarray.DataTree``).

    Parameters
    ----------
    posterior, K
        As of `draws_of`.

    Raises
    ------
    ImportError
        If arviz-base is not installed.
    ValueError
        As `draws_of`.
    """
    draws = draws_of(posterior, K)
    try:
        arviz_base = import_module("arviz_base")  # an option, and no dependency
    except ImportError as error:
        raise ImportError(
            "to_arviz needs the package arviz-base: pip install arviz-base; draws_of gives the arrays without it"
        ) from error
    return arviz_base.from_dict({group: values for group, values in draws.items() if values})
