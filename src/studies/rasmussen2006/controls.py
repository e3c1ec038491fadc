"""Wrong data and wrong formulas on purpose: each must give another number than the book prints.

Most are far from it. The kernel without its 1/2 moves the whole surface by log(sqrt 2) along log l, and loses two nats
at the printed point; the place of the maximum is the sharper control there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.laplace import Laplace
from studies.common.pieces import Piece, Row
from studies.common.running import Keep
from studies.rasmussen2006.gp import squared_exponential
from studies.rasmussen2006.patterns import Binary

Array = np.ndarray
#: Where the evidence is printed, Laplace's and EP's.
POINT, EP_POINT = (2.85, 2.35), (2.6, 4.1)


def controls(
    *,
    book: Mapping[str, Array],
    raw: Mapping[str, Array],
    zip_split: Mapping[str, Array],
    keep: Keep,
) -> Piece:
    """Evaluate the log evidence under each fault, by Laplace's method if nothing else is said.

    Parameters
    ----------
    book, raw, zip_split : mapping
        Threes and fives as the book has them, as scanned, and with the partition of the ZIP files.

    Returns
    -------
    rows : list of dict
        ``control`` and ``log_evidence``: of the squared exponential with raw grey values (``raw``), the partition of
        the files (``zip-split``), the kernel without its 1/2 (``no-half``) and sf in the place of sf^2 (``amplitude``);
        by EP with raw grey values (``raw-ep``); of the linear kernel with theta where the book means 1/theta
        (``theta``).
    """

    def one() -> tuple[list[Row], dict[str, Array]]:
        data = {"raw": raw, "zip-split": zip_split, "no-half": book}
        found = {}
        for name, arrays in data.items():
            binary = Binary.of_digits(arrays)
            exponent = 1.0 if name == "no-half" else 0.5
            K = squared_exponential(binary.distances, *POINT, exponent)
            found[name] = Laplace().approximate(K, binary.y).log_evidence
        binary = Binary.of_digits(raw)
        K = squared_exponential(binary.distances, *EP_POINT)
        method = ExpectationPropagation(tolerance=1e-3)  # a fault is many nats away
        found["raw-ep"] = method.approximate(K, binary.y).log_evidence
        binary = Binary.of_digits(book)
        K = 2.0**2 * binary.X @ binary.X.T
        K_amplitude = squared_exponential(binary.distances, *POINT) / np.exp(POINT[1])
        found["amplitude"] = Laplace().approximate(K_amplitude, binary.y).log_evidence
        found["theta"] = Laplace().approximate(K, binary.y).log_evidence
        return [{"control": name, "log_evidence": value} for name, value in found.items()], {}

    return keep("controls", one)
