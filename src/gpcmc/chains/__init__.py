"""Markov chains over the latent values of the probit model, and over hyperparameters, one module each.

`chain` has what all share, `elliptical` and `hamiltonian` the transitions of latent values, `annealing` the evidence
that they give; `control_variables` is a method of its own; `pseudo_marginal` integrates over hyperparameters.
"""
