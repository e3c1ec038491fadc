# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Separation of variables: an orthant's coordinates drawn one after the other, each inside its half-line.

With v_i >= 0 written as c_i + e_i >= 0, where c_i is linear in the innovations e_j before, coordinate i is
drawn from N(a_i + b_i c_i, scale_i^2) truncated to e_i >= -c_i, and the sample's weight grows by the mass
of that half-line and by what corrects for the proposal. One loop serves Genz's method, minimax
exponential tilting and proposals twisted by Gaussian sites: they differ in the coefficients. No
random numbers are drawn here: the points, random or quasi-random, are given.

The same loop weighs samples that another proposal drew: then the innovations are given, and kept.

Samples are stored coordinate by sample, so that every inner loop runs over samples and is vectorised. The
c of a leaf of coordinates get the share of all earlier coordinates by one matrix product.
"""

import numpy as np

from libc.math cimport log
from libc.stdint cimport int64_t
from scipy.linalg.cython_blas cimport dgemm
from scipy.special.cython_special cimport log_ndtr, ndtri_exp

cdef extern from "_kernels.h" nogil:
    void c_normal_cdf "normal_cdf"(int n, double *x)
    void c_normal_quantile "normal_quantile"(int n, double *u)
    void add_rows(int n, int count, const double *g, const double *rows, int64_t stride, double *out)

cdef enum:
    LEAF = 16    # coordinates between matrix products
    CHUNK = 512  # samples worked on while they are in the first-level cache

# Above this the product of a leaf's Phi(t) cannot underflow, so one logarithm does for all of them.
cdef double NEAR = -8.0
# Phi(t) u stays below this: at 1 its quantile would be infinite.
cdef double ONE = 1.0 - 2.0 ** -53
cdef double LOG_ONE = -2.0 ** -54


def separate(const double[:, ::1] G, const double[:, ::1] coefficients, double[:, ::1] U, bint drawn=False):
    """Draw samples inside the orthant, and weigh them.

    Parameters
    ----------
    G : (n, n) array
        Lower triangular, unit diagonal: row i maps the innovations before i to c_i.
    coefficients : (n, 8) array
        Of each coordinate: shift (the constant part of c), a, b, scale of the proposal; w0, w1, w2, d of
        the log weight.
    U : (n, M) array
        Points in [0, 1), row by coordinate; overwritten by the innovations e.
    drawn : bool
        `U` holds innovations already: weigh them only.

    Returns
    -------
    log_weights : (M,) array
        Sum over i of log Phi((c_i + a_i + b_i c_i) / scale_i) + w0_i + c_i (w1_i + w2_i c_i) - d_i e_i.
    """
    cdef int n = G.shape[0], M = U.shape[1], block, chunk, lo, hi, rows, m
    cdef double[:, ::1] C = np.zeros((LEAF, M))
    cdef double[::1] log_w = np.zeros(M), work = np.empty(3 * CHUNK)
    cdef double one = 1.0, zero = 0.0
    cdef char no = b"N"
    with nogil:
        for block in range((n + LEAF - 1) // LEAF):
            lo = block * LEAF
            hi = min(lo + LEAF, n)
            rows = hi - lo
            if lo:
                # C = G[lo:hi, :lo] E[:lo], in BLAS's column-major reading
                dgemm(&no, &no, &M, &rows, &lo, &one, &U[0, 0], &M, <double *> &G[lo, 0], &n, &zero,
                      &C[0, 0], &M)
            for chunk in range((M + CHUNK - 1) // CHUNK):
                m = chunk * CHUNK
                leaf(drawn, lo, hi, min(CHUNK, M - m), M, &G[0, 0], n, &coefficients[0, 0],
                     &C[0, m], &U[0, m], &log_w[m], &work[0])
    return np.asarray(log_w)


cdef void leaf(bint drawn, int lo, int hi, int count, int64_t stride, const double *G, int n,
               const double *coefficients, double *C, double *U, double *log_w, double *work) noexcept nogil:
    cdef int i, j
    cdef bint far
    cdef double shift, a, b, inverse, w0, w1, w2, d, scale
    cdef double *c
    cdef double *e
    cdef double *t = work
    cdef double *p = work + CHUNK
    cdef double *product = work + 2 * CHUNK
    for j in range(count):
        product[j] = 1.0
    for i in range(lo, hi):
        c, e = C + (i - lo) * stride, U + i * stride
        shift, a, b, scale = (coefficients[8 * i], coefficients[8 * i + 1], coefficients[8 * i + 2],
                              coefficients[8 * i + 3])
        w0, w1, w2, d = (coefficients[8 * i + 4], coefficients[8 * i + 5], coefficients[8 * i + 6],
                         coefficients[8 * i + 7])
        inverse = 1.0 / scale
        add_rows(count, i - lo, G + <int64_t> i * n + lo, U + lo * stride, stride, c)
        far = False
        for j in range(count):
            c[j] += shift
            t[j] = (c[j] + a + b * c[j]) * inverse
            p[j] = t[j]
            far |= t[j] < NEAR
            log_w[j] += w0 + c[j] * (w1 + w2 * c[j])
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
        for j in range(count):
            log_w[j] -= d * e[j]
    for j in range(count):
        log_w[j] += log(product[j])


def average_cdf(double[:, ::1] X, const double[::1] weights):
    """Return the averages (t,) of Phi(X), X (t, M), under weights (M,) that sum to one; X is overwritten."""
    cdef int i
    for i in range(<int> X.shape[0]):
        c_normal_cdf(<int> X.shape[1], &X[i, 0])
    return np.asarray(X) @ np.asarray(weights)
