# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""A block of coordinates of many samples, drawn one after the other inside their limits, or weighed where they are.

In units of the factor's diagonal a coordinate above its lower limit is x = c + e >= 0, where c is linear in the
innovations before, and x <= width. It is drawn from N(a + b c, scale^2) inside the limits, and the sample's weight
grows by the mass between them and by what corrects for the proposal. One loop serves Genz's method, minimax exponential
tilting and proposals twisted by Gaussian sites, orthants and rectangles: they differ in coefficients and widths. No
random numbers are drawn here: the points, random or quasi-random, are given. Samples that another proposal drew are
weighed by the same loop: then x is given, and e follows from it.

Samples are stored coordinate by sample, so that every inner loop runs over samples and is vectorised. What earlier
blocks contribute to c is the caller's, by one product a block.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t
from scipy.special.cython_special cimport log_ndtr, ndtri_exp

import numpy as np

cdef extern from "_kernels.h" nogil:
    void c_normal_cdf "normal_cdf"(int n, double *x)
    void c_normal_quantile "normal_quantile"(int n, double *u)
    void add_rows(int n, int count, const double *g, const double *rows, int64_t stride, double *out)

cdef enum:
    CHUNK = 512   # samples worked on while they are in the first-level cache
    FACTORS = 16  # masses whose product takes one logarithm
    COLUMNS = 10  # coefficients of a coordinate

# Above this the product of `FACTORS` values of Phi(t) cannot underflow.
cdef double NEAR = -8.0
cdef double LEAST = 1e-15
# Phi(t) u stays below this: at 1 its quantile would be infinite.
cdef double ONE = 1.0 - 2.0 ** -53
cdef double LOG_ONE = -2.0 ** -54
# A difference of two distribution functions keeps ten digits if it is at least this share of the larger one.
cdef double SHARE = 1e-6
cdef double SMALLEST = 1e-290
# Uniform points are on a grid of 2^-30, and 1 would be an infinite quantile.
cdef double LAST = 1.0 - 2.0 ** -32


def advance(const double[:, :] G, const double[:, ::1] coefficients, double[:, ::1] C, double[:, ::1] E,
            double[:, ::1] X, double[::1] log_weights, bint drawn, hard):
    """Draw or weigh the m coordinates of a block.

    Parameters
    ----------
    G : (m, m) array
        Lower triangular, unit diagonal, its rows contiguous.
    coefficients : (m, 10) array
        Of each coordinate: shift (the constant part of c), a, b, scale of the proposal; w0, w1, w2, k of the log
        weight; d, the factor's diagonal; and width.
    C : (m, M) array
        What earlier blocks contribute to c; overwritten.
    E : (m, M) array
        Points in [0, 1), overwritten by innovations; if `drawn`, only overwritten.
    X : (m, M) array
        Coordinates above their lower limits: written, or read if `drawn`.
    log_weights : (M,) array
        To which the sum over the coordinates of log P(0 < x < width) + w0 + c (w1 + w2 c) - k e is added.
    drawn : bool
    hard : callable
        Of limits and uniform numbers, returns log P and draws of intervals for which a difference of distribution
        functions will not do.
    """
    cdef int m = G.shape[0], M = C.shape[1], chunk, first
    cdef double[::1] work = np.empty(5 * CHUNK)
    with nogil:
        for chunk in range((M + CHUNK - 1) // CHUNK):
            first = chunk * CHUNK
            leaf(drawn, m, min(CHUNK, M - first), M, &G[0, 0], G.strides[0] // 8, &coefficients[0, 0], &C[0, first],
                 &E[0, first], &X[0, first], &log_weights[first], &work[0], hard)


cdef int leaf(bint drawn, int rows, int count, int64_t stride, const double *G, int64_t pitch,
              const double *coefficients, double *C, double *E, double *X, double *log_w, double *work,
              hard) except -1 nogil:
    cdef int i, j
    cdef bint far
    cdef double a, b, scale, inverse, w0, w1, w2, k, d, width
    cdef double *c
    cdef double *e
    cdef double *x
    cdef const double *own
    cdef double *t = work
    cdef double *p = work + CHUNK
    cdef double *product = work + 2 * CHUNK
    for j in range(count):
        product[j] = 1.0
    for i in range(rows):
        c, e, x, own = C + i * stride, E + i * stride, X + i * stride, coefficients + COLUMNS * i
        a, b, scale, w0, w1, w2, k, d, width = (own[1], own[2], own[3], own[4], own[5], own[6], own[7], own[8],
                                                own[9])
        inverse = 1.0 / scale
        add_rows(count, i, G + i * pitch, E, stride, c)
        for j in range(count):
            c[j] += own[0]
            log_w[j] += w0 + c[j] * (w1 + w2 * c[j])
        if width < INFINITY:
            between(drawn, count, c, e, own, product, log_w, work, hard)
        else:
            far = False
            for j in range(count):
                t[j] = (c[j] + a + b * c[j]) * inverse
                p[j] = t[j]
                far |= t[j] < NEAR
            if far:
                for j in range(count):
                    p[j] = log_ndtr(t[j])
                    log_w[j] += p[j]
            else:
                c_normal_cdf(count, p)
                for j in range(count):
                    product[j] *= p[j]
            if not drawn:
                if far:
                    for j in range(count):
                        e[j] = ndtri_exp(min(log(1.0 - e[j]) + p[j], LOG_ONE))
                else:
                    for j in range(count):
                        e[j] = min((1.0 - e[j]) * p[j], ONE)
                    c_normal_quantile(count, e)
                for j in range(count):
                    e[j] = a + b * c[j] - scale * e[j]
        if drawn:
            inverse = 1.0 / d
            for j in range(count):
                e[j] = x[j] * inverse - c[j]
        else:
            for j in range(count):
                x[j] = d * (c[j] + e[j])
        for j in range(count):
            log_w[j] -= k * e[j]
        if i % FACTORS == FACTORS - 1 or i == rows - 1:
            for j in range(count):
                log_w[j] += log(product[j])
                product[j] = 1.0
    return 0


cdef int between(bint drawn, int count, const double *c, double *e, const double *own, double *product,
                 double *log_w, double *work, hard) except -1 nogil:
    """A coordinate with two limits; the larger part of each interval is reflected to the left."""
    cdef int j, found = 0
    cdef double a = own[1], b = own[2], scale = own[3], width = own[9], inverse = 1.0 / scale
    cdef double low, high, mass, v
    cdef bint tight = False
    cdef double *t = work            # the reflected lower limit, then its mass
    cdef double *p = work + CHUNK    # the reflected upper limit, then its distribution function
    cdef double *kept = work + 3 * CHUNK
    cdef double *flip = work + 4 * CHUNK
    for j in range(count):
        low = -(c[j] + a + b * c[j]) * inverse
        high = low + width * inverse
        flip[j] = -1.0 if low + high > 0.0 else 1.0
        t[j] = low if flip[j] > 0.0 else -high
        p[j] = high if flip[j] > 0.0 else -low
    c_normal_cdf(count, t)
    c_normal_cdf(count, p)
    for j in range(count):
        mass = p[j] - t[j]
        if mass < SHARE * p[j] or p[j] < SMALLEST or not mass > 0.0:
            kept[j] = 0.0
            found += 1
        else:
            kept[j] = mass
            tight |= mass < LEAST
    if found:
        with gil:
            few(drawn, count, c, e, own, log_w, kept, hard)
    if tight or found:
        for j in range(count):
            if kept[j] > 0.0:
                log_w[j] += log(kept[j])
    else:
        for j in range(count):
            product[j] *= kept[j]
    if drawn:
        return 0
    # a hard one has its draw already
    for j in range(count):
        v = e[j] if flip[j] > 0.0 else 1.0 - e[j]
        t[j] = max(p[j] - min(v, LAST) * kept[j], 1e-300)
    c_normal_quantile(count, t)
    for j in range(count):
        if kept[j] > 0.0:
            e[j] = a + b * c[j] + scale * flip[j] * t[j]
            e[j] = min(max(e[j], -c[j]), width - c[j])
    return 0


cdef int few(bint drawn, int count, const double *c, double *e, const double *own, double *log_w, const double *kept,
             hard) except -1:
    """Those for which the difference of distribution functions has lost its digits."""
    cdef int j
    cdef double a = own[1], b = own[2], scale = own[3], width = own[9]
    places = [j for j in range(count) if kept[j] == 0.0]
    low = np.array([-(c[j] + a + b * c[j]) for j in places]) / scale
    points = None if drawn else np.array([e[j] for j in places])
    log_p, z = hard(low, low + width / scale, points)
    for at, j in enumerate(places):
        log_w[j] += log_p[at]
        if not drawn:
            e[j] = min(max(a + b * c[j] + scale * z[at], -c[j]), width - c[j])
    return 0


def normal_cdf(double[:, ::1] X):
    """Replace X by the standard normal distribution function of it."""
    cdef int i
    with nogil:
        for i in range(<int> X.shape[0]):
            c_normal_cdf(<int> X.shape[1], &X[i, 0])
