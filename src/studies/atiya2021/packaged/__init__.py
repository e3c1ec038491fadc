"""Packaged data sets with fitted hyperparameters: their names, their patterns, and what is run on them."""
