"""The Pareto shape of the importance weights behind Figure 2, which says whether their variance is finite."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from gpcmc.inference.importance import (
    covariance_root,
    gaussian_proposal,
    log_weights,
    posterior_root,
)
from gpcmc.inference.tuned_chains import GAUSSIAN
from gpcmc.orthant.separation import weight_diagnostics
from studies.common.pieces import Piece, Row, join
from studies.common.running import Keep
from studies.common.seeds import generator, seed
from studies.common.timing import import_late
from studies.filippone2014.simulated import data_path, model_of, simulate

Array = np.ndarray
#: Weights that a shape is estimated from.
WEIGHTS = 4096
#: Length scales, as multiples of the true one.
LENGTHS = {"true": 1.0, "short": 0.25}


def weights(*, n: Sequence[int], d: int, sets: int, root: int, keep: Keep) -> Piece:
    """Estimate k-hat at two length scales on the data sets of Figure 2, sigma as it was.

    Parameters
    ----------
    n : sequence of int
        Cases.
    d, sets : int
        Inputs, and data sets of each size.

    Returns
    -------
    rows : list of dict
        One row a data set, method and name of `LENGTHS`: ``k_hat`` (Vehtari, Simpson, Gelman, Yao and Gabry, 2024).
    """

    def one(size: int, number: int) -> tuple[list[Row], dict[str, Array]]:
        import_late()
        path = data_path(root, "figure2", size, d, number)
        data = simulate(size, d, path, balanced=False)
        model = model_of(data.X, data.y, relevance=False)
        rng, rows = generator(seed(path, "weights")), []
        for length, multiple in LENGTHS.items():
            K = model.covariance(data.theta + np.log([1.0, multiple]))
            A = covariance_root(K).A
            for method in GAUSSIAN:
                posterior = gaussian_proposal(GAUSSIAN[method], K, data.y)
                T = A @ posterior_root(posterior, A)
                log_w = log_weights(
                    posterior, data.y, T, rng.standard_normal((WEIGHTS, T.shape[1]))
                )
                key = {"n": size, "set": number, "method": method, "length": length}
                rows.append({**key, "k_hat": weight_diagnostics(log_w)["k_hat"], "seed": path})
        return rows, {}

    return join(keep(f"n{size}-set{k}", partial(one, size, k)) for size in n for k in range(sets))
