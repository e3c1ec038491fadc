"""Samplers' draws as ArviZ data, for its diagnostics, plots and files. Only this needs the package arviz-base."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from numpy.typing import ArrayLike

from gpcmc.posterior import Posterior


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
    draws = getattr(posterior, "draws", None)
    if not callable(draws):
        raise ValueError(
            f"posterior must be that of a sampler that runs chains; got {type(posterior).__name__}"
        )
    found: dict[str, dict[str, Any]] = draws(K)
    return found


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
