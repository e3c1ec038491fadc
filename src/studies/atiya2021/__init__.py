"""Atiya, Fayed, Abdel-Gawad (2021), A new Monte Carlo based exact algorithm for Gaussian process classification."""
