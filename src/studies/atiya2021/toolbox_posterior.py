"""A chain of the GPML toolbox with its annealed runs, and the ways to read them (`studies.atiya2021.toolbox`)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, ndtr

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_cross_covariance
from gpcmc.chains.annealing import jackknife
from gpcmc.chains.convergence import mean_samples
from gpcmc.posterior import Prediction
from studies.atiya2021.toolbox_annealing import annealed_log_weights

#: How predictions may have been made from one chain (`GpmlPosterior.readings`).
TWICE, MOMENTS, ONCE = "twice", "moments", "once"


@dataclass(frozen=True, slots=True)
class GpmlPosterior:
    """A chain and annealed runs, and how to read them.

    ``dataclasses.replace(posterior, defects=...)`` reads the same chains with or without
    ``right-end-point`` and ``double-variance``.

    Attributes
    ----------
    defects : tuple of str
        Those that are switched on.
    f : (s, n) array
        Samples of the latent values.
    log_likelihood : (s,) array
        Of the samples.
    inverse_temperature : (s,) array
        Of the annealed runs.
    annealed_log_likelihood : (r, s) array
        Of the state that each annealed run leaves at each inverse temperature.
    L : (n, n) array
        Lower Cholesky factor of K, the toolbox's noise included.
    work : dict of str to int
        Counts: transitions, likelihood_evaluations, matrix_vector_products, factorizations, samples.
    diagnostics : dict of str to float
        ``effective_samples`` and ``r_hat``: the worst over the log likelihood and at most 50 latent
        values, the chain's two halves taken as two chains
        (`gpcmc.chains.convergence.convergence`); of hybrid Monte Carlo ``acceptance`` of all proposals,
        ``annealing_acceptance`` and ``step_size``, the chain's last; of slice sampling ``off_slice``,
        the number of moves that the toolbox's limit forced.
    status : str
        ``OK`` or ``NOT_CONVERGED``, from the diagnostics; the annealed runs have no part in it.
    prediction : Prediction
        At the test inputs of the prior, with the defects of the fit; after ``replace`` use `predict`.
    """

    defects: tuple[str, ...]
    f: FloatArray
    log_likelihood: FloatArray
    inverse_temperature: FloatArray
    annealed_log_likelihood: FloatArray
    L: FloatArray
    work: dict[str, int]
    diagnostics: dict[str, float]
    status: str
    prediction: Prediction = field(default_factory=Prediction.none)

    @property
    def log_weights(self) -> FloatArray:
        """Log weights of the annealed runs."""
        return annealed_log_weights(
            self.inverse_temperature,
            self.annealed_log_likelihood,
            right="right-end-point" in self.defects,
        )

    @property
    def log_evidence(self) -> float:
        """Log of the mean weight, nats."""
        return float(logsumexp(self.log_weights) - np.log(len(self.log_weights)))

    @property
    def log_evidence_se(self) -> float:
        """Its standard error, nats, such that 1.96 of it cover 95 % with so few runs.

        The jackknife's over the runs, times the 97.5 % point of Student's t over the normal's: 2.2
        for three runs. Of normal log weights with standard deviation 0.5, 1, 2 and 3 nats, three
        runs then cover the truth in 94, 92, 83 and 70 % of cases: what the runs have not met, no
        spread of theirs can tell, and no more the bias of ``right-end-point``.
        """
        return jackknife(self.log_weights)

    @one_thread()
    def predict(self, K_star: ArrayLike, k_star_star: ArrayLike) -> Prediction:
        """Return P(y* = +1 | y), the mean over the samples.

        The standard errors are those of the mean of a correlated series; with ``double-variance``
        that of the estimate's influence function, the sampling error of the variance included.

        Parameters
        ----------
        K_star : (n, t) array
            Covariances between training and test latent values.
        k_star_star : (t,) array
            Prior variances at the test inputs.

        Raises
        ------
        ValueError
            If shapes do not agree or an entry is not finite.
        """
        return self.readings(K_star, k_star_star)[
            TWICE if "double-variance" in self.defects else ONCE
        ]

    @one_thread()
    def readings(self, K_star: ArrayLike, k_star_star: ArrayLike) -> dict[str, Prediction]:
        """Return what the paper's authors may have printed from this chain, by name.

        With m_s the conditional mean given sample s, v the variance given a sample and w the variance
        of the m_s, the probability is

        ``twice``
            the mean of Phi(m_s / sqrt(1 + v + w)): the toolbox's ``ymu``, put through (1 + ymu) / 2;
        ``moments``
            Phi(m / sqrt(1 + v + w)) with the mean m of the m_s: the toolbox's ``fmu`` and ``fs2``;
        ``once``
            the mean of Phi(m_s / sqrt(1 + v)), which is right.

        Parameters
        ----------
        K_star, k_star_star : (n, t) array, (t,) array
            As of `predict`.

        Raises
        ------
        ValueError
            As `predict`.
        """
        K_star, k_star_star = check_cross_covariance(
            "K_star", K_star, "k_star_star", k_star_star, self.f.shape[1]
        )
        v = solve_triangular(self.L, K_star, lower=True, check_finite=False)
        variance = np.maximum(k_star_star - np.einsum("ij,ij->j", v, v), 0.0)
        means = self.f @ solve_triangular(self.L, v, lower=True, trans=1, check_finite=False)
        square = (means - means.mean(axis=0)) ** 2
        spread = square.mean(axis=0)
        total = np.sqrt(1.0 + variance + spread)
        once = ndtr(means / np.sqrt(1.0 + variance))
        z = means / total
        twice = ndtr(z)
        bend = np.mean(-0.5 * z * np.exp(-0.5 * z * z), axis=0) / np.sqrt(2.0 * np.pi)
        z = means.mean(axis=0) / total
        density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
        slope = density * (means / total - z - 0.5 * z * (square - spread) / total**2)
        return {
            TWICE: Prediction(
                twice.mean(axis=0),
                _series_standard_error(twice + bend / total**2 * (square - spread)),
            ),
            MOMENTS: Prediction(ndtr(z), _series_standard_error(slope)),
            ONCE: Prediction(once.mean(axis=0), _series_standard_error(once)),
        }


def _series_standard_error(values: FloatArray) -> FloatArray:
    """Standard errors (t,) of the means of (s, t) correlated series; 0 for a constant one."""
    deviation = values.std(axis=0, ddof=1)
    moves = deviation > 0.0
    error = np.zeros(values.shape[1])
    if moves.any():
        error[moves] = deviation[moves] / np.sqrt(
            np.minimum(mean_samples(values[None][:, :, moves]), len(values))
        )
    return error
