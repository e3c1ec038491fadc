# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""The probit likelihood of many states at once, and the loop of elliptical slice sampling."""

import numpy as np

from libc.math cimport cos, sin
from libc.stdint cimport int64_t

cdef extern from "_kernels.h" nogil:
    double log_normal_cdf(int n, const double *x, double *slope)

cdef double TURN = 6.283185307179586


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
    const double[::1] log_likelihood,
    const double[:, ::1] slope,
    const double[:, ::1] uniform,
    const double[::1] log_height,
    double temperature,
):
    """Return the first point of each chain's ellipse whose tempered likelihood is not below the height.

    Steps 3 to 6 of `gpcmc.chains.elliptical`.

    Parameters
    ----------
    margin, nu : (c, n) array
        The two axes of each ellipse, as margins: the point at an angle is cos(angle) margin + sin(angle) nu.
    log_likelihood, slope : (c,), (c, n) array
        At `margin`, with the gradient there.
    uniform : (c, k) array
        Uniform draws, for the angles of k points at most.
    log_height : (c,) array
        Of the slices.
    temperature : float
        Power of the likelihood.

    Returns
    -------
    angle : (c,) array
        Of that point, radians; 0 where none is on the slice: the chain stays where it is.
    evaluations : (c,) array of int
        Of the likelihood.
    margin, log_likelihood, slope : (c, n), (c,), (c, n) arrays
        At that point.
    """
    cdef int c = margin.shape[0], n = margin.shape[1], points = uniform.shape[1], i, j, k
    cdef double level, a, low, high, along_margin, along_nu, cosine, sine
    cdef bint found
    angles, evaluations = np.zeros(c), np.zeros(c, dtype=np.int64)
    levels, new, slopes = np.empty(c), np.empty((c, n)), np.empty((c, n))
    cdef int64_t[::1] count = evaluations
    cdef double[::1] angle = angles, out = levels
    cdef double[:, ::1] point = new, gradient = slopes
    with nogil:
        for i in range(c):
            along_margin = along_nu = 0.0
            for j in range(n):
                along_margin += slope[i, j] * margin[i, j]
                along_nu += slope[i, j] * nu[i, j]
            a = TURN * uniform[i, 0]
            low, high, found = a - TURN, a, False
            for k in range(points):
                if k > 0:  # 6: shrink to the rejected angle, and draw a new one
                    if a < 0.0:
                        low = a
                    else:
                        high = a
                    a = low + (high - low) * uniform[i, k]
                cosine, sine = cos(a), sin(a)
                # the tangent plane at `margin` is above the likelihood: no need to look where it is below the slice
                level = log_likelihood[i] + (cosine - 1.0) * along_margin + sine * along_nu
                if temperature * level < log_height[i]:
                    continue
                for j in range(n):
                    point[i, j] = cosine * margin[i, j] + sine * nu[i, j]
                level = log_normal_cdf(n, &point[i, 0], &gradient[i, 0])
                count[i] += 1
                # "not below": at temperature 0 every point is on the slice, whatever the uniform draw
                if temperature * level >= log_height[i]:
                    angle[i], out[i], found = a, level, True
                    break
            if not found:
                out[i] = log_likelihood[i]
                for j in range(n):
                    point[i, j], gradient[i, j] = margin[i, j], slope[i, j]
    return angles, evaluations, new, levels, slopes
