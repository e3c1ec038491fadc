"""Algorithms of Rasmussen and Williams (2006), chapter 3, line by line on arrays: truths for the library's own.

They are as printed, but for the corrections that `gpcmc.gaussian.softmax_mode` names, and for log Z, which is Eq.
(3.65) with inverses. Numbers of lines are the book's.
"""

import numpy as np
from scipy.linalg import block_diag, cholesky, solve_triangular
from scipy.special import expit, log_ndtr, log_softmax, softmax
from scipy.stats import norm


def log_sigmoid(link, z):
    """Return log sigma(z), its slope, and its curvature with the other sign (Eqs. 3.15, 3.16)."""
    if link == "logistic":
        return -np.logaddexp(0.0, -z), expit(-z), expit(z) * expit(-z)
    r = np.exp(norm.logpdf(z) - log_ndtr(z))
    return log_ndtr(z), r, r * (z + r)


def laplace(K, y, link="probit", steps=40):
    """Algorithm 3.1: the mode f, a = K^-1 f, W, and the approximate log marginal likelihood."""
    f = np.zeros(len(y))
    for _ in range(steps):
        _, r, W = log_sigmoid(link, y * f)
        root = np.sqrt(W)
        L = cholesky(np.eye(len(y)) + root[:, None] * K * root, lower=True)  # 5
        b = W * f + y * r  # 6
        inner = solve_triangular(L, root * (K @ b), lower=True)
        a = b - root * solve_triangular(L, inner, lower=True, trans="T")  # 7
        f = K @ a  # 8
    value, _, W = log_sigmoid(link, y * f)
    root = np.sqrt(W)
    L = cholesky(np.eye(len(y)) + root[:, None] * K * root, lower=True)
    return f, a, W, np.sum(value) - 0.5 * a @ f - np.sum(np.log(np.diag(L)))


def multiclass_laplace(K, y, steps=60):
    """Algorithm 3.3: the mode f (C, n), a, and the approximate log marginal likelihood, for y (C, n)."""
    C, n = y.shape
    f = np.zeros(y.shape)
    for last in [*[False] * steps, True]:
        pi = softmax(f, axis=0)  # 4
        E, z = np.empty((C, n, n)), 0.0
        for c in range(C):
            root = np.sqrt(pi[c])
            L = cholesky(np.eye(n) + root[:, None] * K * root, lower=True)  # 6
            inner = solve_triangular(L, np.diag(root), lower=True)
            E[c] = root[:, None] * solve_triangular(L, inner, lower=True, trans="T")  # 7
            z += np.sum(np.log(np.diag(L)))
        M = cholesky(E.sum(axis=0), lower=True)  # 9
        if last:
            break
        stacked = np.vstack([np.diag(one) for one in pi])
        D = np.diag(pi.ravel())
        b = (D - stacked @ stacked.T) @ f.ravel() + (y - pi).ravel()  # 10
        block = block_diag(*E)
        c = block @ np.kron(np.eye(C), K) @ b  # 11
        R = np.vstack([np.eye(n)] * C)
        inner = solve_triangular(M, R.T @ c, lower=True)
        a = b - c + block @ R @ solve_triangular(M, inner, lower=True, trans="T")  # 12
        f = (np.kron(np.eye(C), K) @ a).reshape(C, n)  # 13
    value = -0.5 * a @ f.ravel() + np.sum(y * log_softmax(f, axis=0))  # 15, corrected
    return f, a.reshape(C, n), value - z - np.sum(np.log(np.diag(M)))  # 16, corrected


def expectation_propagation(K, y, sweeps=60):
    """Algorithm 3.5: all of Sigma after each site; log Z, tau, nu and mu."""
    n = len(y)
    tau, nu, Sigma, mu = np.zeros(n), np.zeros(n), K.copy(), np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            tau_cavity = 1 / Sigma[i, i] - tau[i]  # 5
            nu_cavity = mu[i] / Sigma[i, i] - nu[i]  # 6
            m, s2 = nu_cavity / tau_cavity, 1 / tau_cavity
            z = y[i] * m / np.sqrt(1 + s2)  # 7: Eqs. (3.57), (3.58)
            ratio = norm.pdf(z) / norm.cdf(z)
            m_hat = m + y[i] * s2 * ratio / np.sqrt(1 + s2)
            s2_hat = s2 - s2**2 * ratio / (1 + s2) * (z + ratio)
            change = 1 / s2_hat - tau_cavity - tau[i]  # 8
            tau[i] += change
            nu[i] = m_hat / s2_hat - nu_cavity  # 9
            s = Sigma[:, i].copy()
            Sigma -= change / (1 + change * s[i]) * np.outer(s, s)  # 10
            mu = Sigma @ nu  # 11
    return log_evidence_of_sites(K, y, tau, nu)


def log_evidence_of_sites(K, y, tau, nu):
    """Eq. (3.65) for the probit, by inverses; also tau, nu and mu."""
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
    mu = Sigma @ nu
    cavity = 1 / np.diag(Sigma) - tau
    m = (mu / np.diag(Sigma) - nu) / cavity
    site_mean, total = nu / tau, K + np.diag(1 / tau)
    log_z = -0.5 * np.linalg.slogdet(total)[1] - 0.5 * site_mean @ np.linalg.solve(total, site_mean)
    log_z += np.sum(norm.logcdf(y * m / np.sqrt(1 + 1 / cavity)))
    log_z += 0.5 * np.sum(np.log(1 / cavity + 1 / tau))
    log_z += np.sum((m - site_mean) ** 2 / (2 * (1 / cavity + 1 / tau)))
    return log_z, tau, nu, mu


def predict(K, W, a, K_star, k_star_star):
    """Algorithms 3.2 and 3.6: means and variances of the latent values at test inputs."""
    root = np.sqrt(W)
    L = cholesky(np.eye(len(W)) + root[:, None] * K * root, lower=True)
    v = solve_triangular(L, root[:, None] * K_star, lower=True)
    return K_star.T @ a, k_star_star - np.sum(v**2, axis=0)
