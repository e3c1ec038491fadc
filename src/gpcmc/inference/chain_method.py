"""What elliptical slice sampling and Hamiltonian Monte Carlo share: chains, then annealed runs, with one kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass

import numpy as np

from gpcmc._validation import FloatArray, check_positive_int
from gpcmc.covariance.prior import Prior
from gpcmc.inference import annealing
from gpcmc.inference.chains import ChainPosterior, Kernel, draw_chains
from gpcmc.inference.convergence import convergence, monitored
from gpcmc.methods import Method
from gpcmc.posterior import OK, chain_status, with_prediction


@dataclass(frozen=True, slots=True)
class ChainMethod(Method[ChainPosterior]):
    """Options of a method that runs chains, and annealed runs for the evidence, with one kernel.

    What they mean is said by the methods: `EllipticalSlice`, `HamiltonianMonteCarlo`.
    """

    samples: int
    burn_in: int
    thin: int
    chains: int
    temperatures: int
    annealing_runs: int

    def __post_init__(self) -> None:
        for name in ("samples", "burn_in", "thin", "chains", "temperatures", "annealing_runs"):
            value = getattr(self, name)
            if name in ("burn_in", "temperatures") and value == 0 and not isinstance(value, bool):
                continue
            check_positive_int(name, value)
        for name in ("chains", "annealing_runs"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be at least 2; got {getattr(self, name)}")
        if (kept := self.kept) < 4:
            raise ValueError(
                "samples must leave every chain at least 4 draws, that is "
                f"{4 * self.chains * self.thin} transitions with chains={self.chains} and "
                f"thin={self.thin}; got samples={self.samples}, which leaves {kept}"
            )

    @property
    def kept(self) -> int:
        """Draws kept of each chain."""
        return -(-self.samples // self.chains) // self.thin

    def memory(self, n: int) -> float:
        """As `Method.memory`; the draws count too."""
        return Method.memory(self, n) + 8.0 * self.chains * self.kept * n

    @abstractmethod
    def kernel(
        self, K: FloatArray, y: FloatArray, *, rng: np.random.Generator
    ) -> tuple[Kernel, Counter[str]]:
        """Return the kernel, tuned once and for all, and the work that this took.

        Parameters
        ----------
        K : (n, n) array
            Prior covariance, positive semidefinite.
        y : (n,) array
            Labels -1/+1.
        rng : Generator
            Consumed by a kernel that is tuned.
        """

    def _fit(self, prior: Prior, y: FloatArray, rng: np.random.Generator) -> ChainPosterior:
        kernel, work = self.kernel(prior.K, y, rng=rng)
        w, log_likelihood, acceptance = draw_chains(
            kernel,
            work,
            chains=self.chains,
            burn_in=self.burn_in,
            kept=self.kept,
            thin=self.thin,
            rng=rng,
        )
        work["samples"] = log_likelihood.size
        margin_map = kernel.coordinates.margin_map
        diagnostics = convergence(log_likelihood, w @ margin_map[:, monitored(len(y))])
        diagnostics |= {"acceptance": acceptance, **kernel.settings}
        status = chain_status(diagnostics)
        annealed = None
        if self.temperatures:
            annealed = annealing.estimate(
                kernel, work, temperatures=self.temperatures, runs=self.annealing_runs, rng=rng
            )
            diagnostics |= annealed.diagnostics
            status = annealed.status if status == OK else status
        posterior = ChainPosterior(
            w=w,
            log_likelihood=log_likelihood,
            log_weights=annealed.log_weights if annealed else None,
            log_evidence=annealed.log_evidence if annealed else None,
            log_evidence_se=annealed.log_evidence_se if annealed else None,
            work=annealed.work if annealed else dict(work),
            diagnostics=diagnostics,
            status=status,
            back=kernel.coordinates.back,
        )
        return with_prediction(posterior, prior)
