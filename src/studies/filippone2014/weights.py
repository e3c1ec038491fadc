"""The Pareto shape of the importance weights behind Figure 2, which says whether their variance is finite."""

from __future__ import annotations

import numpy as np

from gpcmc.gaussian.importance import Proposal, gaussian_proposal
from gpcmc.weights import weight_diagnostics
from studies.common.rows import Line
from studies.common.seeds import generator, seed
from studies.filippone2014.simulated import model_of, simulate
from studies.filippone2014.tuned_chains import GAUSSIAN

#: Weights that a shape is estimated from.
WEIGHTS = 4096
#: Length scales, as multiples of the true one.
LENGTHS = {"true": 1.0, "short": 0.25}


def shapes(path: str, *, n: int, d: int) -> list[Line]:
    """Estimate k-hat at two length scales on a data set of Figure 2, sigma as it was.

    Parameters
    ----------
    path : str
        Of the stream that makes the data set.
    n, d : int
        Cases and inputs.

    Returns
    -------
    list of dict
        A line a name of `LENGTHS` and method: ``k_hat`` (Vehtari, Simpson, Gelman, Yao and Gabry, 2024).
    """
    data = simulate(n, d, path, balanced=False)
    model = model_of(data.X, data.y, relevance=False)
    rng, lines = generator(seed(path, "weights")), []
    for length, multiple in LENGTHS.items():
        K = model.covariance(data.theta + np.log([1.0, multiple]))
        for method in GAUSSIAN:
            proposal = Proposal.of(gaussian_proposal(GAUSSIAN[method], K, data.y))
            normals = rng.standard_normal((WEIGHTS, len(proposal.T)))
            log_w = proposal.log_weights(data.y, normals)
            k_hat = weight_diagnostics(log_w)["k_hat"]
            lines.append({"method": method, "length": length, "k_hat": k_hat})
    return lines
