"""Likelihoods: log p(y | f), its derivatives, and moments of Gaussians tilted by it. They know no covariance."""

from gpcmc.likelihood.form import Likelihood
from gpcmc.likelihood.logistic import LOGISTIC
from gpcmc.likelihood.ordinal import Ordinal
from gpcmc.likelihood.probit import PROBIT

#: Likelihoods of two classes by name.
LIKELIHOODS: dict[str, Likelihood] = {one.name: one for one in (PROBIT, LOGISTIC)}

__all__ = ["LIKELIHOODS", "LOGISTIC", "PROBIT", "Likelihood", "Ordinal"]
