"""Gaussian process models with latent values and gamma hierarchies, after Neal (1997).

Covariances are kernels of scikit-learn: sums of constants, linear parts (`Linear`), noise (jitter) and products of a
constant with `PowerExponential`. Hyperparameters have gamma priors on theta^-2, alone or in groups with a common top
level (`Gamma`, `Hierarchy`). Classes are logistic or softmax in latent values (`Classification`), which Gibbs scans by
adaptive rejection update; with a large jitter the model is probit. Noise of a regression is Gaussian or Student's t
(`Regression`). Hyperparameters move by Hamiltonian Monte Carlo, with momentum that persists from step to step.

Reference
---------
R. M. Neal (1997), Monte Carlo implementation of Gaussian process models for Bayesian regression and classification,
Technical Report 9702, Department of Statistics, University of Toronto; "N(x)" is equation x there.
"""

from gpcmc.neal.classification import Classification, ClassificationState
from gpcmc.neal.kernel import Linear, PowerExponential
from gpcmc.neal.priors import Gamma, Hierarchy, Priors
from gpcmc.neal.regression import Regression, RegressionState

__all__ = [
    "Classification",
    "ClassificationState",
    "Gamma",
    "Hierarchy",
    "Linear",
    "PowerExponential",
    "Priors",
    "Regression",
    "RegressionState",
]
