"""Covariances between training and test latent values, as a form of covariance needs them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gpcmc._validation import FloatArray
from gpcmc.covariance.chain import Chain


class Cross(ABC):
    """Covariances between training and test latent values, as a form needs them; made by `Covariance.cross`."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """Return the number t of test inputs."""

    @property
    @abstractmethod
    def variance(self) -> FloatArray:
        """Prior variances (t,) at the test inputs."""

    @abstractmethod
    def covariances(self) -> FloatArray:
        """Return covariances (n, t) of training and test latent values, as K itself has them."""

    def places(self, chain: Chain) -> FloatArray:
        """Return where the test values (t,) are along a chain that K is."""
        return chain.places(self.covariances())
