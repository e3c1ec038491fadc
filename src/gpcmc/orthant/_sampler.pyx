# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One population of the orthant sampler: the loops over samples, without the interpreter lock.

Implements the training and test passes of Algorithm GPC-MC (paper, sections 5.6 and 5.7) and the
adapted scheme. `gpcmc.orthant._reference` is the same algorithm in plain NumPy; it is the
specification, consumes the same random numbers and agrees to rounding.

State. ``rows`` is (n, M): one row a coordinate, one column a sample. With R = L L^T and v = L e, row i
holds the innovations e_i of the samples once coordinate i has been drawn, and before that the part of
its conditional mean that has been accumulated so far. Coordinate i is inside when c_i + e_i >= 0, where

    c_i = (mean_i - lower_i + sum_{j<i} L_ij e_j) / L_ii.

Blocking. The means need every earlier coordinate in the present order of the samples, and each
resampling changes that order. Coordinates are therefore divided in two, recursively: finish the left
half; add its share to the means of the right half by one matrix product; finish the right half; only
then reorder the left half, once, by the ancestors composed on the way. A coordinate is reordered
about 2 log2(n) times instead of n, and all but the smallest pieces of the work are matrix products.

Order. Resampling keeps the samples sorted by ancestor (a sample's copies are neighbours). Samples are
exchangeable, so this changes nothing in law; but every reordering then reads memory forwards, and
the descendants of one first-stage sample (its eve) stay contiguous.
"""

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport exp, log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_normal_fill, random_standard_uniform_fill
from scipy.linalg.cython_blas cimport dgemm
from scipy.special.cython_special cimport log_ndtr, ndtri_exp

cdef extern from "_kernels.h" nogil:
    void c_normal_cdf "normal_cdf"(int n, double *x)
    void add_rows(int n, int count, const double *g, const double *rows, int64_t stride, double *out)
    void gather(int n, const double *source, const int32_t *index, double *out)
    void gather_index(int n, const int32_t *source, const int32_t *index, int32_t *out)

cdef enum:
    LEAF = 8          # coordinates drawn one by one, between matrix products
    CHUNK = 2048      # samples worked on while they are in the first-level cache
    TEST_SAMPLES = 512
    TEST_ROWS = 128

TEST_CHUNK = TEST_SAMPLES  # the twin needs it to consume the test pass's normals in the same order

# log Phi(c) + log u, below which ndtri_exp is finite (an argument of 0 would give an infinite draw)
cdef double LOG_ONE = -2.0 ** -54


cdef bitgen_t *bit_generator(object rng) except NULL:
    return <bitgen_t *> PyCapsule_GetPointer(rng.bit_generator.capsule, "BitGenerator")


cdef class Population:
    """Samples carried through all coordinates.

    Parameters
    ----------
    G : (n, n) array
        Lower Cholesky factor with each row divided by its diagonal entry.
    shift : (n,) array
        (mean - lower) divided by the same diagonal entries.
    samples : int
        Number M of samples.
    soft : bool
        Soft count (Eq. 62) of the bootstrap scheme; ignored by the adapted one.
    ess_threshold : float
        0 selects the bootstrap scheme; otherwise the adapted scheme, which resamples when the
        effective sample size falls below ``ess_threshold * samples``.
    """

    cdef readonly int n, M
    cdef readonly object rows           # (n, M) innovations, after `run`
    cdef readonly object log_stages     # (n,) log of the estimated stage probabilities
    cdef readonly object eves           # (M,) first-stage ancestor of each final sample, increasing
    cdef readonly object influence      # (M,) each eve's share in the relative error of the estimate
    cdef readonly object log_weights    # (M,) of the final samples; all zero in the bootstrap scheme
    cdef readonly int resamplings
    cdef bint soft
    cdef double threshold, log_z, log_previous
    cdef object _keep
    cdef const double *G
    cdef const double *shift
    cdef double *E
    cdef double *log_p
    cdef double *infl
    cdef double *lw
    cdef double *c
    cdef double *lp
    cdef double *q
    cdef double *scratch
    cdef int32_t *eve
    cdef int32_t *survivors
    cdef int32_t *offspring
    cdef int32_t *parent
    cdef int32_t *iscratch
    cdef int32_t *ancestors             # one row a level of the recursion

    def __init__(self, const double[:, ::1] G, const double[::1] shift, int samples, bint soft,
                 double ess_threshold):
        cdef int levels = 2, width = LEAF
        self.n, self.M, self.soft, self.threshold = G.shape[0], samples, soft, ess_threshold
        while width < self.n:
            width *= 2
            levels += 1
        self.rows = np.empty((self.n, samples))
        self.log_stages = np.empty(self.n)
        self.influence = np.empty(samples)
        self.log_weights = np.zeros(samples)
        self.eves = np.empty(samples, dtype=np.int32)
        # parent has room for the copies that expand() writes ahead
        doubles, integers = np.empty((4, samples)), np.empty((4 + levels, samples + 4), dtype=np.int32)
        self._keep = (np.asarray(G), np.asarray(shift), doubles, integers)
        cdef double[:, ::1] rows = self.rows, d = doubles
        cdef double[::1] stages = self.log_stages, infl = self.influence, lw = self.log_weights
        cdef int32_t[::1] eves = self.eves
        cdef int32_t[:, ::1] k = integers
        self.G, self.shift = &G[0, 0], &shift[0]
        self.E, self.log_p, self.infl, self.lw = &rows[0, 0], &stages[0], &infl[0], &lw[0]
        self.c, self.lp, self.q, self.scratch = &d[0, 0], &d[1, 0], &d[2, 0], &d[3, 0]
        self.eve = &eves[0]
        self.survivors, self.offspring, self.parent, self.iscratch = (
            &k[0, 0], &k[1, 0], &k[2, 0], &k[3, 0])
        self.ancestors = &k[4, 0]

    def run(self, rng):
        """Draw all coordinates. Returns the stage (from 1) at which no sample was left, or 0."""
        cdef bitgen_t *bits = bit_generator(rng)
        cdef int m, failed
        with rng.bit_generator.lock, nogil:
            self.log_z = self.log_previous = 0.0
            self.resamplings = 0
            for m in range(self.M):
                self.eve[m] = m
                self.infl[m] = 0.0
                self.lw[m] = 0.0
            failed = self.solve(bits, 0, self.n, True, self.ancestors)
            if not failed and self.threshold > 0:
                self.account_weights()
        return failed

    cdef int solve(self, bitgen_t *bits, int lo, int hi, bint fresh, int32_t *ancestor) noexcept nogil:
        """Coordinates lo..hi-1. On return ancestor[m] is the slot, at entry, that final slot m descends
        from. `fresh`: nothing has been added to these rows yet, so they hold no means."""
        cdef int mid, k, width, height, M = self.M
        cdef int failed
        cdef double one = 1.0, beta = 0.0 if fresh else 1.0
        cdef char no = b"N"
        cdef int32_t *right = ancestor + M + 4
        if hi - lo <= LEAF:
            return (self.leaf_adapted(bits, lo, hi, fresh, ancestor) if self.threshold > 0
                    else self.leaf_bootstrap(bits, lo, hi, fresh, ancestor))
        mid = (lo + hi) // 2
        failed = self.solve(bits, lo, mid, fresh, ancestor)
        if failed:
            return failed
        if not fresh:
            self.reorder(mid, hi, ancestor)
        # rows[mid:hi] (+)= G[mid:hi, lo:mid] rows[lo:mid], in BLAS's column-major reading
        width, height = mid - lo, hi - mid
        dgemm(&no, &no, &M, &height, &width, &one, self.E + <int64_t> lo * M, &M,
              <double *> self.G + <int64_t> mid * self.n + lo, &self.n, &beta,
              self.E + <int64_t> mid * M, &M)
        failed = self.solve(bits, mid, hi, False, right)
        if failed:
            return failed
        self.reorder(lo, mid, right)
        self.compose(ancestor, right)
        return 0

    cdef void reorder(self, int lo, int hi, const int32_t *index) noexcept nogil:
        cdef int i
        for i in range(lo, hi):
            self.reorder_row(self.E + <int64_t> i * self.M, index)

    cdef void reorder_row(self, double *row, const int32_t *index) noexcept nogil:
        gather(self.M, row, index, self.scratch)
        memcpy(row, self.scratch, self.M * sizeof(double))

    cdef void compose(self, int32_t *ancestor, const int32_t *index) noexcept nogil:
        gather_index(self.M, ancestor, index, self.iscratch)
        memcpy(ancestor, self.iscratch, self.M * sizeof(int32_t))

    cdef void means(self, int i, int lo, bint fresh, const int32_t *ancestor) noexcept nogil:
        """c of coordinate i: what the products gave (in the order at the leaf's entry), and the share of
        the coordinates of the same leaf (in the present order)."""
        cdef int k, m, j, count, M = self.M
        cdef double *c
        cdef const double *row = self.E + <int64_t> i * M
        cdef double shift = self.shift[i]
        for k in range((M + CHUNK - 1) // CHUNK):
            m = k * CHUNK
            count = min(CHUNK, M - m)
            c = self.c + m
            if fresh:
                for j in range(count):
                    c[j] = shift
            else:
                gather(count, row, ancestor + m, c)
                for j in range(count):
                    c[j] += shift
            add_rows(count, i - lo, self.G + <int64_t> i * self.n + lo,
                     self.E + <int64_t> lo * M + m, M, c)

    cdef void enter_leaf(self, int32_t *ancestor) noexcept nogil:
        cdef int m
        for m in range(self.M):
            ancestor[m] = m
            self.q[m] = 0.0

    cdef void leave_leaf(self, const int32_t *ancestor) noexcept nogil:
        """Book what the leaf added to the error, by eve."""
        cdef int m
        for m in range(self.M):
            self.infl[self.eve[m]] += self.q[m]
        self.compose(self.eve, ancestor)

    cdef void resample(self, int lo, int hi, int32_t *ancestor) noexcept nogil:
        """Put slot parent[m] in slot m, in rows lo..hi-1 and in the ancestors."""
        self.reorder(lo, hi, self.parent)
        self.compose(ancestor, self.parent)

    # ------------------------------------------------------------------ bootstrap (sections 5.6, 5.7)

    cdef int leaf_bootstrap(self, bitgen_t *bits, int lo, int hi, bint fresh,
                            int32_t *ancestor) noexcept nogil:
        cdef int i, k, m, j, count, kept, slot, M = self.M, chunks = (M + CHUNK - 1) // CHUNK
        cdef double *e
        cdef double total, inverse
        cdef double *c = self.c
        self.enter_leaf(ancestor)
        for i in range(lo, hi):
            e = self.E + <int64_t> i * M
            # Step (b): the conditional means, all read before row i is overwritten by the draws
            self.means(i, lo, fresh, ancestor)
            kept = 0
            total = 0.0
            for k in range(chunks):
                m = k * CHUNK
                count = min(CHUNK, M - m)
                random_standard_normal_fill(bits, count, e + m)
                for j in range(m, m + count):
                    self.survivors[kept] = j
                    kept += c[j] + e[j] >= 0.0
                if self.soft:  # Eq. 62
                    c_normal_cdf(count, c + m)
                    total += sum_of(count, c + m)
            if not self.soft:  # Eq. 57
                total = kept
            self.log_p[i] = log(total / M)
            if kept == 0:
                return i + 1
            inverse = M / total
            if self.soft:
                for m in range(M):
                    self.q[ancestor[m]] += inverse * c[m] - 1.0
            else:
                for m in range(M):
                    self.q[ancestor[m]] -= 1.0
                for j in range(kept):
                    self.q[ancestor[self.survivors[j]]] += inverse
            # Step (c): keep the survivors, refill the other places from them uniformly
            random_standard_uniform_fill(bits, M - kept, self.scratch)
            for j in range(kept):
                self.offspring[j] = 1
            for j in range(M - kept):
                self.offspring[<int> (self.scratch[j] * kept)] += 1
            slot = 0
            for j in range(kept):
                slot = self.expand(slot, self.survivors[j], self.offspring[j])
            self.resample(lo, i + 1, ancestor)
        self.leave_leaf(ancestor)
        return 0

    cdef inline int expand(self, int slot, int source, int copies) noexcept nogil:
        """Write `copies` of `source` from `slot` on. The first four are written whatever the number, for
        a branch that can't be predicted costs more; the next call overwrites what is too many."""
        cdef int k
        cdef int32_t *parent = self.parent + slot
        parent[0] = parent[1] = parent[2] = parent[3] = source
        for k in range(4, copies):
            parent[k] = source
        return slot + copies

    # ------------------------------------------------------------------ adapted (truncated draws)

    cdef int leaf_adapted(self, bitgen_t *bits, int lo, int hi, bint fresh,
                          int32_t *ancestor) noexcept nogil:
        cdef int i, m, M = self.M
        cdef double *e
        cdef double top, w, total, squares, log_now
        cdef double *lw = self.lw
        cdef double *lp = self.lp
        self.enter_leaf(ancestor)
        for i in range(lo, hi):
            e = self.E + <int64_t> i * M
            self.means(i, lo, fresh, ancestor)
            # reweight by the probability of the admissible half-line
            for m in range(M):
                lp[m] = log_ndtr(self.c[m])
                lw[m] += lp[m]
            top = lw[0]
            for m in range(M):
                top = max(top, lw[m])
            total = squares = 0.0
            for m in range(M):
                w = exp(lw[m] - top)
                total += w
                squares += w * w
            log_now = self.log_z + top + log(total / M)
            self.log_p[i] = log_now - self.log_previous
            self.log_previous = log_now
            if total * total < self.threshold * M * squares:
                for m in range(M):
                    self.q[ancestor[m]] += exp(lw[m] - top) * (M / total) - 1.0
                self.systematic(bits, top, total)
                self.resample(lo, i, ancestor)
                self.reorder_row(lp, self.parent)
                for m in range(M):
                    lw[m] = 0.0
                self.log_z = log_now
                self.resamplings += 1
            # extend: e ~ N(0, 1) given e >= -c, by inversion on the log scale
            random_standard_uniform_fill(bits, M, e)
            for m in range(M):
                e[m] = -ndtri_exp(min(log(1.0 - e[m]) + lp[m], LOG_ONE))
        self.leave_leaf(ancestor)
        return 0

    cdef void systematic(self, bitgen_t *bits, double top, double total) noexcept nogil:
        """Systematic resampling: slot m gets the sample at (m + U)/M of the cumulative weight."""
        cdef int m, source = 0, M = self.M
        cdef double u, cumulative = exp(self.lw[0] - top), step = total / M
        random_standard_uniform_fill(bits, 1, &u)
        for m in range(M):
            while cumulative <= (m + u) * step and source < M - 1:
                source += 1
                cumulative += exp(self.lw[source] - top)
            self.parent[m] = source

    cdef void account_weights(self) noexcept nogil:
        """The last, unresampled, weights' share in the error."""
        cdef int m
        cdef double top = self.lw[0], total = 0.0
        for m in range(self.M):
            top = max(top, self.lw[m])
        for m in range(self.M):
            total += exp(self.lw[m] - top)
        for m in range(self.M):
            self.infl[self.eve[m]] += exp(self.lw[m] - top) * (self.M / total) - 1.0


# ---------------------------------------------------------------------- test pass (Eqs 59 to 62)

def predict(const double[:, ::1] rows, const int32_t[::1] eves, const double[::1] log_weights,
            const double[:, ::1] A, bint soft, rng):
    """Probability that each test coordinate is >= 0, from the samples of one population.

    Parameters
    ----------
    rows, eves, log_weights : (n, M), (M,), (M,) arrays
        As a `Population` has them after `run`.
    A : (t, n) array
        Row k maps innovations to the conditional mean of test pattern k over its standard deviation.
    soft : bool
        Average Phi(mean/sd) (Eq. 62); otherwise draw once a sample and count (Eq. 61).
    rng : numpy.random.Generator
        Consumed only by the hard count.

    Returns
    -------
    probability, variance : (t,) arrays
        Weighted average over samples, and its variance from the spread between eves.
    """
    cdef bitgen_t *bits = bit_generator(rng)
    cdef int t = A.shape[0], n = A.shape[1], M = rows.shape[1]
    cdef int i, j, m, k, k0, count, height
    cdef double one = 1.0, zero = 0.0
    cdef char no = b"N"
    weights = np.exp(log_weights - np.max(log_weights))
    eve_weights = np.bincount(eves, weights=weights, minlength=M)
    cdef double[::1] weight = weights, eve_weight = eve_weights
    cdef double[::1] mu = np.empty(TEST_ROWS * TEST_SAMPLES), draws = np.empty(TEST_SAMPLES)
    # per test pattern: sum over the eve at hand; over all eves its total, square, product with weight
    cdef double[:, ::1] sums = np.zeros((t, 4))
    with rng.bit_generator.lock, nogil:
        for i in range((M + TEST_SAMPLES - 1) // TEST_SAMPLES):
            m = i * TEST_SAMPLES
            count = min(TEST_SAMPLES, M - m)
            for j in range((t + TEST_ROWS - 1) // TEST_ROWS):
                k0 = j * TEST_ROWS
                height = min(TEST_ROWS, t - k0)
                dgemm(&no, &no, &count, &height, &n, &one, <double *> &rows[0, m], &M,
                      <double *> &A[k0, 0], &n, &zero, &mu[0], &count)
                for k in range(height):
                    score(bits, soft, count, &mu[k * count], &draws[0])
                    tally(m, count, M, &mu[k * count], &weight[0], &eves[0], &eve_weight[0],
                          &sums[k0 + k, 0])
    S = np.asarray(sums)
    total = eve_weights.sum()
    p = S[:, 1] / total
    variance = (S[:, 2] - 2 * p * S[:, 3] + p * p * (eve_weights**2).sum()) / total**2
    return p, np.maximum(variance, 0.0)


cdef inline void score(bitgen_t *bits, bint soft, int count, double *mu, double *draws) noexcept nogil:
    cdef int m
    if soft:
        c_normal_cdf(count, mu)
    else:
        random_standard_normal_fill(bits, count, draws)
        for m in range(count):
            mu[m] = mu[m] + draws[m] >= 0.0


cdef inline void tally(int start, int count, int M, const double *scores, const double *weight,
                       const int32_t *eves, const double *eve_weight, double *sums) noexcept nogil:
    """Add a chunk of one test pattern's scores to its sums, eve by eve (eves are contiguous)."""
    cdef int m
    cdef double here = sums[0]
    for m in range(start, start + count):
        here += weight[m] * scores[m - start]
        if m + 1 == M or eves[m + 1] != eves[m]:
            sums[1] += here
            sums[2] += here * here
            sums[3] += here * eve_weight[eves[m]]
            here = 0.0
    sums[0] = here


cdef inline double sum_of(int n, const double *x) noexcept nogil:
    """Eight partial sums: the additions do not wait for one another."""
    cdef double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0
    cdef int m = 0
    while m + 8 <= n:
        s0 += x[m]
        s1 += x[m + 1]
        s2 += x[m + 2]
        s3 += x[m + 3]
        s4 += x[m + 4]
        s5 += x[m + 5]
        s6 += x[m + 6]
        s7 += x[m + 7]
        m += 8
    while m < n:
        s0 += x[m]
        m += 1
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


def normal_cdf(x):
    """Phi(x) as the soft count evaluates it, for the tests of its accuracy."""
    out = np.array(x, dtype=np.float64)
    cdef double[::1] view = out
    if view.shape[0]:
        c_normal_cdf(view.shape[0], &view[0])
    return out
