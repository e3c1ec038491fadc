"""The paper's sampler with the patterns in an order that is chosen for accuracy.

The paper shuffles the patterns (section 6.5). Two orders are known to help other samplers of normal orthants:

``min-max``
    Next comes the pattern that is farthest from those before it (Guinness 2018), so that early patterns spread over the
    inputs and late ones have near neighbours among the earlier. The labels play no part.
``pivoting``
    Next comes the pattern that is least likely to have its label when those before it are held at their truncated means
    (Gibson, Glasbey and Elston 1994; Genz and Bretz 2009, section 4.1.3; Botev 2017). Minimax tilting has this order.

An order is a function of the data alone, and a probability does not depend on the order of its variables: the
estimate stays unbiased.

References
----------
Guinness (2018), Technometrics 60, 415. `gpcmc.rectangle.order` has the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpcmc import _validation as validation
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.covariance.prior import Prior
from gpcmc.methods import Method
from gpcmc.orthant.method import Orthant, OrthantPosterior
from gpcmc.orthant.populations import Array
from gpcmc.rectangle import order as hardest_first


def farthest_first(X: Array) -> NDArray[np.intp]:
    """Return the order in which each pattern is the farthest from the nearest of those before it.

    The first is the one nearest to the mean. Ties go to the pattern that comes first in X.

    Parameters
    ----------
    X : (n, d) array
        Inputs.
    """
    order = np.empty(len(X), dtype=np.intp)
    order[0] = np.argmin(_squares(X, X.mean(axis=0)))
    nearest = _squares(X, X[order[0]])
    for k in range(1, len(X)):
        nearest[order[k - 1]] = -1.0  # also where a pattern lies on another
        order[k] = np.argmax(nearest)
        nearest = np.minimum(nearest, _squares(X, X[order[k]]))
    return order


def _squares(X: Array, x: Array) -> Array:
    return np.sum((X - x) ** 2, axis=1)


@dataclass(frozen=True, slots=True)
class OrderedSampler(Method[OrthantPosterior]):
    """Options of the paper's sampler, with the hard count, on patterns in a chosen order.

    Attributes
    ----------
    order : {"min-max", "pivoting"}
        The first needs a prior with inputs.
    samples : int
        Monte Carlo samples in all.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    order: Literal["min-max", "pivoting"] = "min-max"
    samples: int = 100_000

    def __post_init__(self) -> None:
        validation.check_option("order", self.order, ("min-max", "pivoting"))
        validation.check_positive_int("samples", self.samples)

    def _fit(self, prior: Prior, y: Array, rng: np.random.Generator) -> OrthantPosterior:
        if self.order == "pivoting":
            R = orthant_covariance(prior.K, y)
            order = hardest_first.ordered(R, np.zeros(len(y)), np.full(len(y), np.inf), 0.0).order
        elif prior.X is None:
            raise ValueError(
                "prior must have inputs X, for order='min-max'; got a covariance alone"
            )
        else:
            order = farthest_first(prior.X)
        sampler = Orthant(samples=self.samples, count="hard", order="given")
        permuted = Prior(prior.K[np.ix_(order, order)], prior.K_star[order], prior.k_star_star)
        return replace(sampler.fit(permuted, y[order], rng=rng), _order=order)
