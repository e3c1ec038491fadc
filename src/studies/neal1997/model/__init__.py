"""The models of the paper: Gaussian processes with latent values and gamma hierarchies.

Covariances are kernels of scikit-learn: sums of constants, noise (jitter) and products of a constant with
`SquaredExponential`. Hyperparameters have gamma priors on theta^-2, alone or in groups with a common top level
(`Gamma`, `Hierarchy`). Classes are logistic or softmax in latent values (`Classification`), which Gibbs scans by
adaptive rejection update; with a large jitter the model is probit. Noise of a regression is Gaussian or Student's t
(`Regression`). Hyperparameters move by Hamiltonian Monte Carlo, with momentum that persists from step to step.

A state is one draw. A prediction is an average over states of a chain. The Gibbs scans are compiled, so that modules
that the workflow reads before it builds extensions must not import this package at their top.

Reference
---------
R. M. Neal (1997), Monte Carlo implementation of Gaussian process models for Bayesian regression and classification,
Technical Report 9702, Department of Statistics, University of Toronto; "N(x)" is equation x there.
"""
