# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Gibbs scans of latent values by adaptive rejection sampling.

Given all others, a latent value has a Gaussian prior and a likelihood that is logistic in it, whatever the number of
classes. Up to shift and sign it is u with log density

    h(u) = -(u - mean)^2 / (2 variance) + log sigma(u),    sigma(u) = 1 / (1 + e^-u),

which is concave. Gilks and Wild (1992, Applied Statistics 41, 337): tangents of h at a few points bound h from above
(the hull), chords bound it from below (the squeeze). A draw from the hull that is refused becomes another point.
"""

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, exp, expm1, fabs, log, log1p, sqrt
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t
from scipy.linalg.cython_blas cimport ddot

cdef enum:
    POINTS = 24  # with more, draws go on without new points

cdef struct Hull:
    int count
    double[POINTS] x       # abscissae, ascending
    double[POINTS] h       # log density there
    double[POINTS] slope   # of h
    double[POINTS + 1] z   # where neighbouring tangents cross; the ends are infinite
    double[POINTS] mass    # below each tangent, relative to exp(top)
    double top
    double total


cdef bitgen_t *bit_generator(object rng) except NULL:
    return <bitgen_t *> PyCapsule_GetPointer(rng.bit_generator.capsule, "BitGenerator")


cdef inline double log_sigmoid(double u) noexcept nogil:
    return -log1p(exp(-u)) if u > 0 else u - log1p(exp(u))


cdef inline double log_density(double u, double mean, double variance) noexcept nogil:
    return -0.5 * (u - mean) * (u - mean) / variance + log_sigmoid(u)


cdef inline double slope_at(double u, double mean, double variance) noexcept nogil:
    return (mean - u) / variance + (exp(-u) / (1 + exp(-u)) if u > 0 else 1 / (1 + exp(u)))


cdef void insert(Hull *hull, double u, double mean, double variance) noexcept nogil:
    """Add a point, and make the hull anew."""
    cdef int j = hull.count, k
    cdef double *x = hull.x
    cdef double *h = hull.h
    cdef double *d = hull.slope
    cdef double width, high, cross
    while j > 0 and x[j - 1] > u:
        x[j], h[j], d[j] = x[j - 1], h[j - 1], d[j - 1]
        j -= 1
    x[j], h[j], d[j] = u, log_density(u, mean, variance), slope_at(u, mean, variance)
    hull.count += 1
    hull.z[0], hull.z[hull.count] = -INFINITY, INFINITY
    hull.top, hull.total = -INFINITY, 0.0
    for k in range(hull.count):
        hull.top = max(hull.top, h[k])
        if k + 1 < hull.count:
            cross = x[k] + (h[k + 1] - h[k] - d[k + 1] * (x[k + 1] - x[k])) / (d[k] - d[k + 1])
            # rounding must not put it outside; where both slopes are equal any place between is right
            hull.z[k + 1] = min(max(cross, x[k]), x[k + 1]) if d[k] > d[k + 1] else x[k]
    for k in range(hull.count):
        width = hull.z[k + 1] - hull.z[k]
        if fabs(d[k]) * width < 1e-8:
            hull.mass[k] = exp(h[k] - hull.top) * width
        else:
            high = h[k] + d[k] * ((hull.z[k + 1] if d[k] > 0 else hull.z[k]) - x[k]) - hull.top
            hull.mass[k] = -exp(high) * expm1(-fabs(d[k]) * width) / fabs(d[k])
        hull.total += hull.mass[k]


cdef double from_hull(Hull *hull, int *where, bitgen_t *rng) noexcept nogil:
    """Draw from the density that is proportional to exp(hull), and say below which tangent."""
    cdef double r = rng.next_double(rng.state) * hull.total, d, width
    cdef int k = 0
    while k < hull.count - 1 and r >= hull.mass[k]:
        r -= hull.mass[k]
        k += 1
    where[0] = k
    r = rng.next_double(rng.state)
    d, width = hull.slope[k], hull.z[k + 1] - hull.z[k]
    if fabs(d) * width < 1e-8:
        return hull.z[k] + r * width
    return (hull.z[k + 1] if d > 0 else hull.z[k]) + log1p(r * expm1(-fabs(d) * width)) / d


cdef double squeeze(const Hull *hull, double u, int k) noexcept nogil:
    """The chord below h at u, which is below tangent k; minus infinity outside the outermost points."""
    cdef int left = k if u >= hull.x[k] else k - 1
    cdef double share
    if left < 0 or left + 1 >= hull.count or hull.x[left + 1] <= hull.x[left]:
        return -INFINITY
    share = (u - hull.x[left]) / (hull.x[left + 1] - hull.x[left])
    return (1 - share) * hull.h[left] + share * hull.h[left + 1]


cdef double draw(double mean, double variance, bitgen_t *rng) noexcept nogil:
    """Draw from exp(h): a Gaussian times a logistic function."""
    cdef Hull hull
    cdef int k, sign, _attempt
    cdef double mode = mean if mean > 0 else 0.0
    cdef double peak, width, u, level, bound, s
    # Newton's method, held between the bounds of the mode; a rough mode is as valid, only slower
    for _attempt in range(8):
        s = 1 / (1 + exp(-mode)) if mode > -700 else 0.0
        u = mode + slope_at(mode, mean, variance) / (1 / variance + s * (1 - s))
        u = min(max(u, mean), mean + variance)
        if fabs(u - mode) < 1e-2 * sqrt(variance):
            mode = u
            break
        mode = u
    s = 1 / (1 + exp(-mode)) if mode > -700 else 0.0
    peak = log_density(mode, mean, variance)
    hull.count = 0
    insert(&hull, mode, mean, variance)
    for sign in range(-1, 2, 2):
        # where the log density is between about 0.7 and 3 lower than at the mode
        width = 1.2 / sqrt(1 / variance + s * (1 - s))
        while peak - log_density(mode + sign * width, mean, variance) < 0.7:
            width *= 2
        insert(&hull, mode + sign * width, mean, variance)
    while True:
        u = from_hull(&hull, &k, rng)
        bound = hull.h[k] + hull.slope[k] * (u - hull.x[k])
        level = bound + log(1 - rng.next_double(rng.state))
        if level <= squeeze(&hull, u, k) or level <= log_density(u, mean, variance):
            return u
        if hull.count < POINTS:
            insert(&hull, u, mean, variance)


def logistic_normal(const double[::1] mean, const double[::1] variance, rng):
    """Return draws from the densities proportional to N(u; mean, variance) sigma(u).

    Parameters
    ----------
    mean, variance : (c,) array
        Variances are positive.
    rng : numpy.random.Generator

    Returns
    -------
    (c,) array
    """
    cdef Py_ssize_t j
    found = np.empty(mean.shape[0])
    cdef double[::1] out = found
    cdef bitgen_t *bits = bit_generator(rng)
    with rng.bit_generator.lock, nogil:
        for j in range(mean.shape[0]):
            out[j] = draw(mean[j], variance[j], bits)
    return found


def scan(const double[:, ::1] precision, double[:, ::1] latent, const int64_t[::1] target, int scans, rng):
    """Draw each latent value given all others and the classes, in place; cases outside, classes inside.

    Parameters
    ----------
    precision : (n, n) array
        Inverse of the prior covariance, the same for each row of latent values.
    latent : (k, n) array
        Of k classes, whose probabilities are proportional to exp(latent), N(10); k = 1: the probability of class 1 is
        sigma(latent), N(8).
    target : (n,) array of int64
        Classes, from 0 to k - 1; 0 and 1 for k = 1.
    scans : int
    rng : numpy.random.Generator
    """
    cdef int n = <int> latent.shape[1], classes = <int> latent.shape[0], one = 1, i, j, k, _pass
    cdef double mean, variance, other, top, sign
    cdef bitgen_t *bits = bit_generator(rng)
    with rng.bit_generator.lock, nogil:
        for _pass in range(scans):
            for i in range(n):
                variance = 1 / precision[i, i]
                for k in range(classes):
                    mean = latent[k, i] - variance * ddot(
                        &n, <double *> &precision[i, 0], &one, &latent[k, 0], &one
                    )
                    # the log of the sum of the other classes' exponentials: where the logistic function is 1/2
                    if classes == 1:
                        other = 0.0
                        sign = 1.0 if target[i] == 1 else -1.0
                    else:
                        top, other = -INFINITY, 0.0
                        for j in range(classes):
                            if j != k:
                                top = max(top, latent[j, i])
                        for j in range(classes):
                            if j != k:
                                other += exp(latent[j, i] - top)
                        other = top + log(other)
                        sign = 1.0 if target[i] == k else -1.0
                    latent[k, i] = other + sign * draw(sign * (mean - other), variance, bits)
