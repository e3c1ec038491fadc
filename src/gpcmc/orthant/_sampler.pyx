# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""One population of the orthant sampler: the loops over samples, without the interpreter lock.

Implements the training and test passes of Algorithm GPC-MC (paper, sections 5.6 and 5.7) and the
adapted scheme. `gpcmc.orthant._reference` is the same algorithm in plain NumPy; it is the
specification, consumes the same random numbers and agrees to rounding.

Notation. With R = L L^T and v = L e, sample m is its innovations e_1 .. e_n, standard normal before
they are conditioned. Coordinate i is inside when c_i + e_i >= 0, where

    c_i = (mean_i - lower_i + sum_{j<i} L_ij e_j) / L_ii.

Order. Resampling keeps the samples sorted by ancestor (a sample's copies are neighbours). Samples are
exchangeable, so this changes nothing in law; but every reordering reads memory forwards, the
descendants of one first-stage sample (its eve) stay contiguous, and maps to ancestors never decrease.

Blocks. Coordinates are drawn one by one in leaves of a few. The means of a leaf's coordinates need all
earlier ones, and that is matrix products. They need them of the *surviving ancestors* only, which are few:
of M samples about M/k have a descendant k stages later. The history is a chain of segments, each some
successive coordinates of the ancestors alive at its end, one column an ancestor, with a link from every
column to its ancestor's column in the next older segment. The products go along the chain, from the
oldest and narrowest segment on, and only their result is copied out to the descendants. Segments are
merged as they age, so that their number grows with log(n). Memory per sample, and work per coordinate
and sample, grow with log(n) and not with n, and nothing is approximated. (On the size of the tree of surviving
ancestors: Jacob, Murray and Rubenthaler, 2015, Statistics and Computing 25, 487.)
"""

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_uniform_fill
from scipy.linalg.cython_blas cimport dgemm
from scipy.special.cython_special cimport log_ndtr, ndtri_exp

cdef extern from "_kernels.h" nogil:
    void c_normal_cdf "normal_cdf"(int n, double *x)
    void c_normal_quantile "normal_quantile"(int n, double *u)
    void add_rows(int n, int count, const double *g, const double *rows, int64_t stride, double *out)
    void gather(int n, const double *source, const int32_t *index, double *out)
    void gather_index(int n, const int32_t *source, const int32_t *index, int32_t *out)
    double sum_of(int n, const double *x)

cdef enum:
    # coordinates drawn one by one between matrix products; the adapted scheme resamples less often, so
    # it moves fewer rows inside a leaf and loses fewer ancestors between leaves
    LEAF = 8
    LEAF_ADAPTED = 32
    CHUNK = 2048      # samples worked on while they are in the first-level cache
    TEST_ROWS = 16    # test patterns whose means are held at once

# A segment loses its dead columns when they are more than this share: a copy costs about three products.
cdef double DEAD = 0.3
# below this, Phi(c) and products of it are kept as logarithms
cdef double FAR = -30.0
# log Phi(c) + log u stays below this: at 0, ndtri_exp would be infinite
cdef double LOG_ONE = -2.0 ** -54


cdef bitgen_t *bit_generator(object rng) except NULL:
    return <bitgen_t *> PyCapsule_GetPointer(rng.bit_generator.capsule, "BitGenerator")


# ---------------------------------------------------------------------- the chain of segments

cdef class Segment:
    """Coordinates lo .. lo + height - 1 of the ancestors that were alive when it was last thinned.

    Attributes
    ----------
    columns : (height, width) array
        Innovations, one column an ancestor.
    link : (width,) int32 array
        Column of each one's ancestor in the next older segment; never decreases.
    """

    cdef readonly int lo, height, width
    cdef readonly double[:, ::1] columns
    cdef readonly int32_t[::1] link

    def __init__(self, int lo, columns, link):
        self.columns = np.require(columns, np.float64, "CW")  # an unpickled array may be read-only
        self.link = np.require(link, np.int32, "CW")
        self.lo, self.height, self.width = lo, self.columns.shape[0], self.columns.shape[1]

    def __reduce__(self):
        return Segment, (self.lo, np.asarray(self.columns), np.asarray(self.link))

    cdef keep(self, int32_t[::1] index):
        """Keep the columns of that index."""
        self.columns, self.link = take(self.columns, index), np.asarray(self.link)[np.asarray(index)]
        self.width = index.shape[0]


cdef double[:, ::1] take(const double[:, ::1] X, const int32_t[::1] index):
    """X[:, index]"""
    cdef double[:, ::1] out = np.empty((X.shape[0], index.shape[0]))
    cdef int i
    with nogil:
        for i in range(<int> X.shape[0]):
            gather(<int> index.shape[0], &X[i, 0], &index[0], &out[i, 0])
    return out


cdef int count_distinct(const int32_t[::1] link) noexcept nogil:
    cdef int count = 1
    cdef Py_ssize_t m
    for m in range(1, link.shape[0]):
        count += link[m] != link[m - 1]
    return count


cdef int32_t[::1] renumber(int32_t[::1] link, int count):
    """Number the `count` distinct values of a link from 0 on, in place; return the values."""
    cdef int32_t[::1] values = np.empty(count, dtype=np.int32)
    cdef int k = -1
    cdef int32_t last = -1
    cdef Py_ssize_t m
    for m in range(link.shape[0]):
        if link[m] != last:
            last = link[m]
            k += 1
            values[k] = last
        link[m] = k
    return values


cdef thin(list segments, int32_t[::1] link):
    """Drop columns without descendants, newest segment first, where they are many."""
    cdef Segment segment
    cdef int alive
    for segment in reversed(segments):
        alive = count_distinct(link)
        if alive < (1.0 - DEAD) * segment.width:
            segment.keep(renumber(link, alive))
        link = segment.link


cdef merge(list segments):
    """Join the older two of any three segments of one height, from the newest on.

    The third is the delay in which most of the columns die: merging at once would copy them all.
    """
    cdef Segment older, newer
    cdef int k = len(segments) - 3
    while k >= 0 and segments[k].height == segments[k + 1].height == segments[k + 2].height:
        older, newer = segments[k], segments[k + 1]
        columns = np.concatenate([take(older.columns, newer.link), newer.columns])
        link = np.asarray(older.link)[np.asarray(newer.link)]
        segments[k:k + 2] = [Segment(older.lo, columns, link)]
        k -= 2


cdef double[:, ::1] product(const double[:, ::1] A, int first, int rows, list segments):
    """A[first : first + rows] times the innovations, for each column of the newest segment."""
    cdef Segment segment
    cdef double[:, ::1] older, Y = None
    cdef double one = 1.0, beta = 0.0
    cdef int n = A.shape[1], i
    cdef char no = b"N"
    for segment in segments:
        older, Y = Y, np.empty((rows, segment.width))
        with nogil:
            if beta:
                for i in range(rows):
                    gather(segment.width, &older[i, 0], &segment.link[0], &Y[i, 0])
            # Y += A[rows, lo : lo + height] columns, in BLAS's column-major reading
            dgemm(&no, &no, &segment.width, &rows, &segment.height, &one, &segment.columns[0, 0],
                  &segment.width, <double *> &A[first, segment.lo], &n, &beta, &Y[0, 0],
                  &segment.width)
        beta = 1.0
    return Y


# ---------------------------------------------------------------------- training pass

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
    cdef readonly list segments         # the samples' history
    cdef readonly object link           # (M,) column of each sample in the newest segment
    cdef readonly object log_stages     # (n,) log of the estimated stage probabilities
    cdef readonly object eves           # (M,) first-stage ancestor of each sample, never decreasing
    cdef readonly object influence      # (M,) each eve's share in the relative error of the estimate
    cdef readonly object weights        # (M,) of the samples; all one in the bootstrap scheme
    cdef bint soft, adapted
    cdef double threshold
    cdef double lowest, effective       # of the stage at hand: least c, effective samples
    cdef const double[:, ::1] G
    cdef const double[::1] shift
    cdef object _keep                   # the arrays behind the pointers
    cdef int leaf                       # coordinates of a leaf
    cdef double *E                      # (leaf, M) innovations of the leaf at hand, in the present order
    cdef double *spare                  # (leaf, M)
    cdef double *log_p                  # (n,), and (M,) all others
    cdef double *infl
    cdef double *w
    cdef double *c                      # c_i, and in the bootstrap scheme then the scores of the count
    cdef double *p                      # Phi(c_i), of the adapted scheme
    cdef double *q                      # what the leaf adds to infl, by slot at its entry
    cdef double *scratch
    cdef int32_t *eve
    cdef int32_t *ancestor              # slot, at the leaf's entry, that a slot descends from
    cdef int32_t *survivors
    cdef int32_t *offspring
    cdef int32_t *parent
    cdef int32_t *ispare

    def __init__(self, const double[:, ::1] G, const double[::1] shift, int samples, bint soft,
                 double ess_threshold):
        self.n, self.M, self.soft, self.threshold = G.shape[0], samples, soft, ess_threshold
        self.G, self.shift, self.adapted = G, shift, ess_threshold > 0
        cdef double[::1] log_p, infl, w
        cdef int32_t[::1] eve
        self.log_stages = log_p = np.empty(self.n)
        self.influence = infl = np.empty(samples)
        self.weights = w = np.empty(samples)
        self.eves = eve = np.empty(samples, dtype=np.int32)
        self.leaf = LEAF_ADAPTED if self.adapted else LEAF
        cdef double[:, ::1] d = np.empty((2 * self.leaf + 4, samples))
        # parent has room for the copies that expand() writes ahead
        cdef int32_t[:, ::1] k = np.empty((5, samples + 4), dtype=np.int32)
        self._keep = d, k
        self.log_p, self.infl, self.w, self.eve = &log_p[0], &infl[0], &w[0], &eve[0]
        self.E, self.spare = &d[0, 0], &d[self.leaf, 0]
        self.c, self.p, self.q, self.scratch = (
            &d[2 * self.leaf, 0], &d[2 * self.leaf + 1, 0], &d[2 * self.leaf + 2, 0],
            &d[2 * self.leaf + 3, 0])
        self.ancestor, self.survivors, self.offspring, self.parent, self.ispare = (
            &k[0, 0], &k[1, 0], &k[2, 0], &k[3, 0], &k[4, 0])

    def run(self, rng):
        """Draw all coordinates. Returns the stage (from 1) at which no sample was left, or 0."""
        cdef bitgen_t *bits = bit_generator(rng)
        cdef int k, m, lo, hi, failed = 0
        cdef double[:, ::1] means = None
        cdef const double *means_or_null = NULL
        cdef int32_t[::1] link
        self.segments, self.link = [], None
        for m in range(self.M):
            self.eve[m] = m
            self.infl[m] = 0.0
            self.w[m] = 1.0
        for k in range((self.n + self.leaf - 1) // self.leaf):
            lo, hi = k * self.leaf, min((k + 1) * self.leaf, self.n)
            if self.segments:
                link = self.link
                means = take(product(self.G, lo, hi - lo, self.segments), link)
                means_or_null = &means[0, 0]
            with rng.bit_generator.lock, nogil:
                for m in range(self.M):
                    self.ancestor[m] = m
                    self.q[m] = 0.0
                failed = self.draw(bits, lo, hi, means_or_null)
                # book by eve what the leaf added to the error, and bring the eves to the present order
                for m in range(self.M):
                    self.infl[self.eve[m]] += self.q[m]
                gather_index(self.M, self.eve, self.ancestor, self.ispare)
                for m in range(self.M):
                    self.eve[m] = self.ispare[m]
            if failed:
                return failed
            self.append(lo, hi)
        if self.adapted:  # the last, unresampled, weights' share in the error; their mean is 1
            for m in range(self.M):
                self.infl[self.eve[m]] += self.w[m] - 1.0
        return 0

    cdef append(self, int lo, int hi):
        """Make the finished leaf the newest segment."""
        cdef int m
        cdef double[:, ::1] leaf = <double[:hi - lo, :self.M]> self.E
        cdef int32_t[::1] distinct, entry = <int32_t[:self.M]> self.ancestor
        cdef int32_t[::1] link = np.arange(self.M, dtype=np.int32)
        if not self.adapted:  # the last stage's copies are not yet apart: one slot of each will do
            for m in range(self.M):
                link[m] = self.parent[m]
        distinct = renumber(link, count_distinct(link))
        for m in range(self.M):
            distinct[link[m]] = m
        ancestor = np.asarray(entry)[np.asarray(distinct)]
        older = ancestor if self.link is None else self.link[ancestor]
        self.segments.append(Segment(lo, take(leaf, distinct), older))
        self.link = np.asarray(link)
        thin(self.segments, link)
        merge(self.segments)

    # ------------------------------------------------------------------ one leaf

    cdef int draw(self, bitgen_t *bits, int lo, int hi, const double *base) noexcept nogil:
        """Carry the samples through coordinates lo .. hi - 1. Returns as `run`."""
        cdef int i, kept
        cdef double total
        for i in range(lo, hi):
            self.means(i, lo, base)
            if self.adapted:  # weight by the half-line, resample when uneven, draw inside
                total = self.weigh(i)
                if self.effective < self.threshold * self.M:
                    self.book(self.w, total)
                    self.systematic(bits, total)
                    self.resample(i - lo)
                    self.level()
                else:
                    self.scale(total)
                self.draw_inside(bits, self.E + <int64_t> (i - lo) * self.M)
            else:  # steps (b) and (c) of Algorithm GPC-MC: draw and count, refill from the survivors
                kept = self.draw_and_count(bits, i, self.E + <int64_t> (i - lo) * self.M, &total)
                if kept == 0:
                    return i + 1
                self.book(self.c, total)
                self.refill(bits, kept)
                self.resample(i + 1 - lo)
        return 0

    cdef void means(self, int i, int lo, const double *base) noexcept nogil:
        """c of coordinate i: the chain's share `base` (in the order at the leaf's entry), and that of the
        coordinates of the same leaf (in the present order)."""
        cdef int k, m, j, count, M = self.M
        cdef double *c
        cdef double shift = self.shift[i]
        for k in range((M + CHUNK - 1) // CHUNK):
            m = k * CHUNK
            count = min(CHUNK, M - m)
            c = self.c + m
            if base == NULL:
                for j in range(count):
                    c[j] = shift
            else:
                gather(count, base + <int64_t> (i - lo) * M, self.ancestor + m, c)
                for j in range(count):
                    c[j] += shift
            add_rows(count, i - lo, &self.G[i, lo], self.E + m, M, c)

    cdef void book(self, const double *score, double total) noexcept nogil:
        """Add what scores with that total say of the error, before samples are reordered."""
        cdef int m
        cdef double inverse = self.M / total
        cdef double *q = self.q
        cdef int32_t *ancestor = self.ancestor
        for m in range(self.M):
            q[ancestor[m]] += inverse * score[m] - 1.0

    cdef void resample(self, int rows) noexcept nogil:
        """Put slot parent[m] in slot m, in the leaf's first rows and in the map to its entry."""
        cdef int j, M = self.M
        cdef double *swap
        cdef int32_t *iswap
        for j in range(rows):
            gather(M, self.E + <int64_t> j * M, self.parent, self.spare + <int64_t> j * M)
        swap = self.E
        self.E, self.spare = self.spare, swap
        gather_index(M, self.ancestor, self.parent, self.ispare)
        iswap = self.ancestor
        self.ancestor, self.ispare = self.ispare, iswap

    # ------------------------------------------------------------------ bootstrap (sections 5.6, 5.7)

    cdef int draw_and_count(self, bitgen_t *bits, int i, double *e, double *total) noexcept nogil:
        """Draw coordinate i from its conditional; scores in c, survivors and their number."""
        cdef int k, m, j, count, kept = 0, M = self.M
        cdef double *c = self.c
        total[0] = 0.0
        for k in range((M + CHUNK - 1) // CHUNK):
            m = k * CHUNK
            count = min(CHUNK, M - m)
            random_standard_uniform_fill(bits, count, e + m)
            c_normal_quantile(count, e + m)
            for j in range(m, m + count):
                self.survivors[kept] = j
                kept += c[j] + e[j] >= 0.0
            if self.soft:  # Eq. 62
                c_normal_cdf(count, c + m)
            else:  # Eq. 57
                for j in range(m, m + count):
                    c[j] = c[j] + e[j] >= 0.0
            total[0] += sum_of(count, c + m)
        self.log_p[i] = log(total[0] / M)
        return kept

    cdef void refill(self, bitgen_t *bits, int kept) noexcept nogil:
        """Keep the survivors, and refill the other places from them uniformly."""
        cdef int j, slot = 0, M = self.M
        random_standard_uniform_fill(bits, M - kept, self.scratch)
        for j in range(kept):
            self.offspring[j] = 1
        for j in range(M - kept):
            self.offspring[<int> (self.scratch[j] * kept)] += 1
        for j in range(kept):
            slot = self.expand(slot, self.survivors[j], self.offspring[j])

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

    cdef double weigh(self, int i) noexcept nogil:
        """w <- w p, p = Phi(c) the probability of the admissible half-line; returns the sum."""
        cdef int m, M = self.M
        cdef double total = 0.0, squares = 0.0, scale = 0.0
        cdef double *w = self.w
        cdef double *p = self.p
        cdef double lowest = self.c[0]
        for m in range(M):
            lowest = min(lowest, self.c[m])
            p[m] = self.c[m]
        self.lowest = lowest
        c_normal_cdf(M, p)
        if self.lowest < FAR:  # p may be too small for a double: take out the largest weight first
            scale = self.weigh_far()
        else:
            for m in range(M):
                w[m] *= p[m]
        for m in range(M):
            total += w[m]
            squares += w[m] * w[m]
        self.log_p[i] = scale + log(total / M)
        self.effective = total * total / squares
        return total

    cdef void level(self) noexcept nogil:
        """After resampling: all weights one, and p and c of the new order."""
        cdef int m
        gather(self.M, self.p, self.parent, self.scratch)
        self.p, self.scratch = self.scratch, self.p
        gather(self.M, self.c, self.parent, self.scratch)
        self.c, self.scratch = self.scratch, self.c
        for m in range(self.M):
            self.w[m] = 1.0

    cdef void scale(self, double total) noexcept nogil:
        """Make the mean weight one."""
        cdef int m
        cdef double inverse = self.M / total
        cdef double *w = self.w
        for m in range(self.M):
            w[m] *= inverse

    cdef void draw_inside(self, bitgen_t *bits, double *e) noexcept nogil:
        """e ~ N(0, 1) given e >= -c, by inversion."""
        cdef int m, M = self.M
        random_standard_uniform_fill(bits, M, e)
        if self.lowest < FAR:
            for m in range(M):
                e[m] = -ndtri_exp(min(log(1.0 - e[m]) + log_ndtr(self.c[m]), LOG_ONE))
            return
        for m in range(M):
            e[m] = (1.0 - e[m]) * self.p[m]
            e[m] = min(e[m], 1.0 - 2.0 ** -53)
        c_normal_quantile(M, e)
        for m in range(M):
            e[m] = -e[m]

    cdef double weigh_far(self) noexcept nogil:
        """w <- w p / exp(s) on the log scale; returns s, which makes the largest weight 1."""
        cdef int m, M = self.M
        cdef double top = -INFINITY
        for m in range(M):
            self.scratch[m] = log(self.w[m]) + log_ndtr(self.c[m])
            top = max(top, self.scratch[m])
        for m in range(M):
            self.w[m] = exp(self.scratch[m] - top)
        return top

    cdef void systematic(self, bitgen_t *bits, double total) noexcept nogil:
        """Systematic resampling: slot m gets the sample at (m + U)/M of the cumulative weight."""
        cdef int m, source = 0, M = self.M
        cdef double u, cumulative = self.w[0], step = total / M
        random_standard_uniform_fill(bits, 1, &u)
        for m in range(M):
            while cumulative <= (m + u) * step and source < M - 1:
                source += 1
                cumulative += self.w[source]
            self.parent[m] = source


# ---------------------------------------------------------------------- test pass (Eqs 59 to 62)

def predict(list segments, const int32_t[::1] link, const int32_t[::1] eves,
            const double[::1] weights, const double[:, ::1] A, bint soft, rng):
    """Probability that each test coordinate is >= 0, from the samples of one population.

    Parameters
    ----------
    segments, link, eves, weights
        As a `Population` has them after `run`.
    A : (t, n) array
        Row k maps innovations to the conditional mean of test pattern k over its standard deviation.
    soft : bool
        Average Phi(mean/sd) (Eq. 62); otherwise draw once a sample and count (Eq. 61).
    rng : numpy.random.Generator
        Consumed only by the hard count, test pattern by test pattern.

    Returns
    -------
    probability, variance : (t,) arrays
        Weighted average over samples, and its variance from the spread between eves.
    """
    cdef bitgen_t *bits = bit_generator(rng)
    cdef int t = A.shape[0], M = link.shape[0]
    cdef int block, first, k
    cdef double[:, ::1] means
    eve_weights = np.bincount(eves, weights=weights, minlength=M)
    cdef const double[::1] weight = weights
    cdef double[::1] eve_weight = eve_weights
    cdef double[::1] mu = np.empty(M), draws = np.empty(M)
    # per test pattern, over all eves: total, sum of squares, sum of products with the eve's weight
    cdef double[:, ::1] sums = np.zeros((t, 3))
    for block in range((t + TEST_ROWS - 1) // TEST_ROWS):
        first = block * TEST_ROWS
        means = product(A, first, min(TEST_ROWS, t - first), segments)
        with rng.bit_generator.lock, nogil:
            for k in range(<int> means.shape[0]):
                gather(M, &means[k, 0], &link[0], &mu[0])
                score(bits, soft, M, &mu[0], &draws[0])
                tally(M, &mu[0], &weight[0], &eves[0], &eve_weight[0], &sums[first + k, 0])
    S = np.asarray(sums)
    total = eve_weights.sum()
    p = S[:, 0] / total
    variance = (S[:, 1] - 2 * p * S[:, 2] + p * p * (eve_weights**2).sum()) / total**2
    return p, np.maximum(variance, 0.0)


cdef void score(bitgen_t *bits, bint soft, int count, double *mu, double *draws) noexcept nogil:
    cdef int m
    if soft:
        c_normal_cdf(count, mu)
    else:
        random_standard_uniform_fill(bits, count, draws)
        c_normal_quantile(count, draws)
        for m in range(count):
            mu[m] = mu[m] + draws[m] >= 0.0


cdef void tally(int M, const double *scores, const double *weight, const int32_t *eves,
                const double *eve_weight, double *sums) noexcept nogil:
    """Sum one test pattern's scores eve by eve (eves are contiguous)."""
    cdef int m
    cdef double here = 0.0
    for m in range(M):
        here += weight[m] * scores[m]
        if m + 1 == M or eves[m + 1] != eves[m]:
            sums[0] += here
            sums[1] += here * here
            sums[2] += here * eve_weight[eves[m]]
            here = 0.0


# ---------------------------------------------------------------------- for the tests

def normal_cdf(x):
    """Phi(x) as the soft count evaluates it."""
    cdef double[::1] out = np.array(x, dtype=np.float64)
    c_normal_cdf(<int> out.shape[0], &out[0])
    return np.asarray(out)


def normal_quantile(u):
    """Phi^{-1}(u) as it turns uniform draws into normal ones."""
    cdef double[::1] out = np.array(u, dtype=np.float64)
    c_normal_quantile(<int> out.shape[0], &out[0])
    return np.asarray(out)
