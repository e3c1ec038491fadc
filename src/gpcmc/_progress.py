"""How far a search for hyperparameters is, for one who waits for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gpcmc._validation import FloatArray

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel


class Progress:
    """Counts evaluations, and prints where a search is if it is asked to.

    Attributes
    ----------
    verbose : int
        As of `gpcmc.evidence.Search`.
    evaluations : int
        So far, failed ones too.
    """

    def __init__(self, verbose: int) -> None:
        self.verbose, self.evaluations, self.start = verbose, 0, time.monotonic()

    def says(self, text: str) -> None:
        """Print a line at once."""
        if self.verbose:
            print(f"[gpcmc] {text}", flush=True)

    def evaluated(self, kernel: Kernel, theta: FloatArray, value: float) -> None:
        """Print what the last evaluation gave: the first one, each tenth after it, or all."""
        if self.verbose > 1 or (self.verbose and self.evaluations % 10 == 1):
            self.says(
                f"{time.monotonic() - self.start:.1f} s, evaluation {self.evaluations}: log marginal likelihood "
                f"{value:.4f} at {kernel.clone_with_theta(theta)}"
            )
