"""Rasmussen and Williams (2006), chapter 3: the experiments with Gaussian process classifiers, run again."""
