"""The experiments of the paper: problems, hyperparameter sets, metrics and checks."""
