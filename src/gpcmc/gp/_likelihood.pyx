# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The probit likelihood of many states at once: what Markov chains spend their time on."""

import numpy as np

from libc.stdint cimport int64_t

cdef extern from "_kernels.h" nogil:
    double log_normal_cdf(int n, const double *x, double *slope)


def log_likelihood_and_slope(const double[:, ::1] margin):
    """Return log p(y | f) and its gradient with respect to the margins y f.

    Parameters
    ----------
    margin : (c, n) array
        y f of c states.

    Returns
    -------
    log_likelihood : (c,) array
        Sum over the patterns of log Phi(margin).
    slope : (c, n) array
        phi(margin) / Phi(margin).
    """
    cdef int c = margin.shape[0], n = margin.shape[1], i
    level, slope = np.zeros(c), np.empty((c, n))
    cdef double[::1] out = level
    cdef double[:, ::1] gradient = slope
    if n > 0:
        with nogil:
            for i in range(c):
                out[i] = log_normal_cdf(n, &margin[i, 0], &gradient[i, 0])
    return level, slope


def first_on_slice(
    const double[:, ::1] margin,
    const double[:, ::1] nu,
    const double[:, ::1] cosine,
    const double[:, ::1] sine,
    const unsigned char[:, ::1] candidate,
    const double[::1] log_height,
    double temperature,
):
    """Return the first point of each chain's ellipse whose tempered likelihood is not below the height.

    Parameters
    ----------
    margin, nu : (c, n) array
        The two axes of each ellipse, as margins: point k is cosine_k margin + sine_k nu.
    cosine, sine : (c, k) array
        Of the points' angles, in the order in which they are tried.
    candidate : (c, k) array of bool, as bytes
        Whether to try the point at all.
    log_height : (c,) array
        Of the slices.
    temperature : float
        Power of the likelihood.

    Returns
    -------
    chosen : (c,) array of int
        Which point; -1 where none is on the slice.
    evaluations : (c,) array of int
        Of the likelihood.
    margin, log_likelihood, slope : (c, n), (c,), (c, n) arrays
        At that point; not to be read where there is none.
    """
    cdef int c = margin.shape[0], n = margin.shape[1], points = cosine.shape[1], i, j, k
    cdef double level, along_margin, along_nu
    chosen, evaluations = np.full(c, -1, dtype=np.int64), np.zeros(c, dtype=np.int64)
    levels, new, slopes = np.empty(c), np.empty((c, n)), np.empty((c, n))
    cdef int64_t[::1] where = chosen, count = evaluations
    cdef double[::1] out = levels
    cdef double[:, ::1] point = new, gradient = slopes
    with nogil:
        for i in range(c):
            for k in range(points):
                if not candidate[i, k]:
                    continue
                along_margin, along_nu = cosine[i, k], sine[i, k]
                for j in range(n):
                    point[i, j] = along_margin * margin[i, j] + along_nu * nu[i, j]
                level = log_normal_cdf(n, &point[i, 0], &gradient[i, 0])
                count[i] += 1
                if temperature * level >= log_height[i]:
                    where[i] = k
                    out[i] = level
                    break
    return chosen, evaluations, new, levels, slopes
