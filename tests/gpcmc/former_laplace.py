"""Laplace's method as it was when it knew the probit alone, word for word: kept results are of this code."""

import numpy as np
from scipy.linalg import cho_solve

from gpcmc.gp.likelihood import derivatives, log_likelihood
from gpcmc.inference.gaussian import factorize


def former_laplace(K, y, tolerance=1e-12, max_iterations=200):
    def objective(a, f):
        return float(np.sum(log_likelihood(y, f)) - 0.5 * a @ f)

    a = np.zeros(len(y))
    f = np.zeros(len(y))
    psi, rise = objective(a, f), np.inf
    magnitude, eps = np.abs(K), np.sqrt(len(y)) * np.finfo(float).eps
    for iteration in range(max_iterations + 1):
        gradient, W = derivatives(y, f)
        L = factorize(K, W)
        rounding = eps * (magnitude @ np.abs(a))
        psi_rounding = eps * abs(psi) + np.abs(a) @ rounding
        steepness = np.abs(gradient - a)
        flat = steepness <= tolerance * max(1.0, np.max(np.abs(a))) + W * rounding
        done = bool(flat.all()) and rise <= tolerance * abs(psi) + psi_rounding
        if done or iteration == max_iterations:
            break
        root = np.sqrt(W)
        b = W * f + gradient
        direction = b - root * cho_solve((L, True), root * (K @ b), check_finite=False) - a
        for halving in range(40):
            a_new = a + 0.5**halving * direction
            f_new = K @ a_new
            psi_new = objective(a_new, f_new)
            if psi_new >= psi - psi_rounding:
                break
        else:
            break
        rise = abs(psi_new - psi)
        a, f, psi = a_new, f_new, psi_new
    return psi - float(np.sum(np.log(np.diag(L)))), f, a, W, L, iteration
