"""Wrong data and wrong formulas on purpose: each must give another number than the book prints.

Most are far from it. The kernel without its 1/2 moves the whole surface by log(sqrt 2) along log l, and loses two nats
at the printed point; the place of the maximum is the sharper control there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpcmc.covariance.dense import Dense
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.laplace import Laplace
from studies.rasmussen2006.gp import squared_exponential
from studies.rasmussen2006.grid import PRINTED
from studies.rasmussen2006.patterns import Binary

Array = np.ndarray


def log_evidence(
    control: str,
    *,
    book: Mapping[str, Array],
    raw: Mapping[str, Array],
    zip_split: Mapping[str, Array],
) -> float:
    """Return the log evidence with a fault, by Laplace's method if nothing else is said.

    Parameters
    ----------
    control : str
        Of the squared exponential with raw grey values (``raw``), the partition of the files (``zip-split``), the
        kernel without its 1/2 (``no-half``) and sf in the place of sf^2 (``amplitude``); by EP with raw grey values
        (``raw-ep``); of the linear kernel with theta where the book means 1/theta (``theta``).
    book, raw, zip_split : mapping
        Threes and fives as the book has them, as scanned, and with the partition of the ZIP files.
    """
    digits = {"raw": raw, "raw-ep": raw, "zip-split": zip_split}
    data = Binary.of_digits(digits.get(control, book))
    method: Laplace | ExpectationPropagation = Laplace()
    if control == "theta":
        K = 2.0**2 * data.X @ data.X.T
    elif control == "raw-ep":
        K = squared_exponential(data.distances, *PRINTED["ep"])
        method = ExpectationPropagation(tolerance=1e-3)  # a fault is many nats away
    else:
        exponent = 1.0 if control == "no-half" else 0.5
        K = squared_exponential(data.distances, *PRINTED["laplace"], exponent)
        if control == "amplitude":
            K = K / np.exp(PRINTED["laplace"][1])
    return method.approximate(Dense(K), data.y).log_evidence
