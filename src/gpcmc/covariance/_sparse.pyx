# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sparse Cholesky factors by supernodes, entries of inverses on their pattern, and conditionals on neighbours.

`Symbolic` finds, once for a pattern, how the lower factor of P = L L' fills in. `factorized` is multifrontal: a
supernode's dense front takes its columns of P and what its children leave, is factorised by LAPACK, and leaves an
update to its parent. `selected` goes back from the root (Takahashi's recursion by blocks): with G = L21 L11^-1 and Z
= P^-1,

    Z21 = -Z22 G,      Z11 = (L11 L11')^-1 + G' Z22 G,

where Z22 is part of the parent's front. The work is about that of two factorisations.

References
----------
Duff and Reid (1983), ACM Transactions on Mathematical Software 9, 302. Liu (1990), SIAM Journal on Matrix Analysis 11,
134. Takahashi, Fagan and Chin (1973).
"""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dgemm, dsymm, dsyrk, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

cdef char *LEFT = b"L"
cdef char *RIGHT = b"R"
cdef char *LOWER = b"L"
cdef char *NO = b"N"
cdef char *TRANS = b"T"
cdef char *UNIT = b"N"
cdef double ONE = 1.0
cdef double MINUS = -1.0
cdef double ZERO = 0.0


def elimination_tree(const int32_t[::1] pointers, const int32_t[::1] columns):
    """Return the parent (n,) of each column of the factor; -1 for a root.

    Parameters
    ----------
    pointers, columns : arrays of int32
        Of the lower triangle of the pattern, by rows.
    """
    cdef int n = pointers.shape[0] - 1, i, k, j, up
    parent_ = np.full(n, -1, dtype=np.int32)
    ancestor_ = np.full(n, -1, dtype=np.int32)
    cdef int32_t[::1] parent = parent_, ancestor = ancestor_
    with nogil:
        for i in range(n):
            for k in range(pointers[i], pointers[i + 1]):
                j = columns[k]
                while j != -1 and j < i:
                    up = ancestor[j]
                    ancestor[j] = i
                    if up == -1:
                        parent[j] = i
                    j = up
    return parent_


def column_counts(const int32_t[::1] pointers, const int32_t[::1] columns, const int32_t[::1] parent):
    """Return the number (n,) of entries of each column of the factor, with its diagonal."""
    cdef int n = parent.shape[0], i, k, j
    count_ = np.ones(n, dtype=np.int64)
    mark_ = np.full(n, -1, dtype=np.int32)
    cdef int64_t[::1] count = count_
    cdef int32_t[::1] mark = mark_
    with nogil:
        for i in range(n):
            mark[i] = i
            for k in range(pointers[i], pointers[i + 1]):
                j = columns[k]
                while mark[j] != i:
                    count[j] += 1
                    mark[j] = i
                    j = parent[j]
    return count_


def postorder(const int32_t[::1] parent, const int64_t[::1] weight):
    """Return the columns (n,) with children before their parents, the heaviest child last."""
    cdef int n = parent.shape[0], i, top, at, found = 0, child
    by_weight = np.argsort(-np.asarray(weight), kind="stable").astype(np.int32)
    cdef int32_t[::1] lightest_last = by_weight
    first_ = np.full(n + 1, -1, dtype=np.int32)
    following_ = np.full(n, -1, dtype=np.int32)
    order_ = np.empty(n, dtype=np.int32)
    stack_ = np.empty(n + 1, dtype=np.int32)
    cdef int32_t[::1] first = first_, following = following_, order = order_, stack = stack_
    for k in range(n):  # a list of children, the lightest first
        i = lightest_last[k]
        at = parent[i] if parent[i] >= 0 else n
        following[i] = first[at]
        first[at] = i
    top = 0
    stack[0] = n
    while top >= 0:
        at = stack[top]
        child = first[at]
        if child >= 0:
            first[at] = following[child]
            top += 1
            stack[top] = child
        else:
            top -= 1
            if at < n:
                order[found] = at
                found += 1
    return order_


def structures(const int32_t[::1] pointers, const int32_t[::1] rows, const int32_t[::1] cuts,
               const int32_t[::1] above):
    """Return the rows of each supernode's front, its own columns first, all sorted, and where they begin (s + 1,).

    Parameters
    ----------
    pointers, rows : arrays of int32
        Of the lower triangle of the pattern, by columns.
    cuts : (s + 1,) array of int32
        First columns of the supernodes, and n.
    above : (s,) array of int32
        Parents of the supernodes; -1 for a root.
    """
    cdef int s, supernodes = above.shape[0], n = pointers.shape[0] - 1, j, k, r
    mark_ = np.full(n, -1, dtype=np.int32)
    cdef int32_t[::1] mark = mark_, have
    children = [[] for _ in range(supernodes)]
    found = []
    for s in range(supernodes):
        last = cuts[s + 1]
        fresh = []
        for j in range(cuts[s], last):
            for k in range(pointers[j], pointers[j + 1]):
                r = rows[k]
                if r >= last and mark[r] != s:
                    mark[r] = s
                    fresh.append(r)
        for child in children[s]:
            have = found[child]
            for k in range(cuts[child + 1] - cuts[child], have.shape[0]):
                r = have[k]
                if r >= last and mark[r] != s:
                    mark[r] = s
                    fresh.append(r)
        below = np.array(fresh, dtype=np.int32)
        below.sort()
        found.append(np.concatenate([np.arange(cuts[s], last, dtype=np.int32), below]))
        if above[s] >= 0:
            children[above[s]].append(s)
    sizes = np.array([len(one) for one in found], dtype=np.int64)
    return np.concatenate(found), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def factorized(const int32_t[::1] cuts, const int32_t[::1] above, const int32_t[::1] fronts,
               const int64_t[::1] begin, const int64_t[::1] panels, const int32_t[::1] pointers,
               const int32_t[::1] rows, const double[::1] data, double[::1] L):
    """Factorise P, given by the columns of its lower triangle, into the panels L; return whether it is definite.

    A panel is (rows, columns) in Fortran's order; `panels` says where each begins.
    """
    cdef int supernodes = above.shape[0], s, j, k, w, r, rest, info, n = pointers.shape[0] - 1, child, c, i
    cdef int64_t column, target
    cdef double **updates = <double **> malloc(supernodes * sizeof(double *))
    first_ = np.full(supernodes, -1, dtype=np.int32)
    following_ = np.full(supernodes, -1, dtype=np.int32)
    place_ = np.zeros(n, dtype=np.int32)
    cdef int32_t[::1] first = first_, following = following_, place = place_
    cdef double *F
    cdef double *U
    cdef double *panel
    cdef const int32_t *front
    cdef const int32_t *of_child
    cdef bint good = True
    with nogil:
        for s in range(supernodes):
            updates[s] = NULL
        for s in range(supernodes):
            front = &fronts[begin[s]]
            r = <int> (begin[s + 1] - begin[s])
            w = cuts[s + 1] - cuts[s]
            rest = r - w
            for k in range(r):
                place[front[k]] = k
            panel = &L[panels[s]]
            memset(panel, 0, <size_t> r * w * sizeof(double))
            U = NULL
            if rest:
                U = <double *> malloc(<size_t> rest * rest * sizeof(double))
                memset(U, 0, <size_t> rest * rest * sizeof(double))
            for j in range(w):
                for k in range(pointers[cuts[s] + j], pointers[cuts[s] + j + 1]):
                    panel[<int64_t> j * r + place[rows[k]]] = data[k]
            child = first[s]
            while child >= 0:
                c = cuts[child + 1] - cuts[child]
                of_child = &fronts[begin[child] + c]
                k = <int> (begin[child + 1] - begin[child]) - c
                F = updates[child]
                for j in range(k):
                    column = place[of_child[j]]
                    if column < w:
                        for i in range(j, k):
                            panel[column * r + place[of_child[i]]] += F[<int64_t> j * k + i]
                    else:
                        target = (column - w) * rest - w
                        for i in range(j, k):
                            U[target + place[of_child[i]]] += F[<int64_t> j * k + i]
                free(F)
                updates[child] = NULL
                child = following[child]
            dpotrf(LOWER, &w, panel, &r, &info)
            if info != 0:
                good = False
                free(U)
                break
            if rest:
                dtrsm(RIGHT, LOWER, TRANS, UNIT, &rest, &w, &ONE, panel, &r, panel + w, &r)
                dsyrk(LOWER, NO, &rest, &w, &MINUS, panel + w, &r, &ONE, U, &rest)
                updates[s] = U
                following[s] = first[above[s]]
                first[above[s]] = s
        for s in range(supernodes):
            free(updates[s])
        free(updates)
    return good


def selected(const int32_t[::1] cuts, const int32_t[::1] above, const int32_t[::1] fronts,
             const int64_t[::1] begin, const int64_t[::1] panels, const int32_t[::1] pointers,
             const int32_t[::1] rows, const double[::1] L, double[::1] found):
    """Write the entries of P^-1 at the pattern of P's lower triangle (by columns) to `found`."""
    cdef int supernodes = above.shape[0], s, up, j, k, i, w, r, rest, size, info, n = pointers.shape[0] - 1
    cdef int64_t place_of
    cdef double **Z = <double **> malloc(supernodes * sizeof(double *))
    left_ = np.zeros(supernodes, dtype=np.int32)
    place_ = np.zeros(n, dtype=np.int32)
    cdef int32_t[::1] left = left_, place = place_
    cdef const int32_t *front
    cdef const double *panel
    cdef double *front_of_Z
    cdef double *Z22
    cdef double *G
    cdef double *parent
    with nogil:
        for s in range(supernodes):
            Z[s] = NULL
            if above[s] >= 0:
                left[above[s]] += 1
        for s in range(supernodes - 1, -1, -1):
            front = &fronts[begin[s]]
            r = <int> (begin[s + 1] - begin[s])
            w = cuts[s + 1] - cuts[s]
            rest = r - w
            panel = &L[panels[s]]
            front_of_Z = <double *> malloc(<size_t> r * r * sizeof(double))
            Z[s] = front_of_Z
            # (L11 L11')^-1
            for j in range(w):
                for i in range(j, w):
                    front_of_Z[<int64_t> j * r + i] = panel[<int64_t> j * r + i]
            dpotri(LOWER, &w, front_of_Z, &r, &info)
            if rest:
                up = above[s]
                parent = Z[up]
                size = <int> (begin[up + 1] - begin[up])
                for k in range(size):
                    place[fronts[begin[up] + k]] = k
                Z22 = front_of_Z + <int64_t> w * r + w
                for j in range(rest):
                    place_of = <int64_t> place[front[w + j]] * size
                    for i in range(j, rest):
                        Z22[<int64_t> j * r + i] = parent[place_of + place[front[w + i]]]
                G = <double *> malloc(<size_t> rest * w * sizeof(double))
                for j in range(w):
                    for i in range(rest):
                        G[<int64_t> j * rest + i] = panel[<int64_t> j * r + w + i]
                dtrsm(RIGHT, LOWER, NO, UNIT, &rest, &w, &ONE, <double *> panel, &r, G, &rest)
                dsymm(LEFT, LOWER, &rest, &w, &MINUS, Z22, &r, G, &rest, &ZERO, front_of_Z + w, &r)
                dgemm(TRANS, NO, &w, &w, &rest, &MINUS, G, &rest, front_of_Z + w, &r, &ONE, front_of_Z, &r)
                free(G)
                left[up] -= 1
                if left[up] == 0:
                    free(Z[up])
                    Z[up] = NULL
            for k in range(r):
                place[front[k]] = k
            for j in range(w):
                for k in range(pointers[cuts[s] + j], pointers[cuts[s] + j + 1]):
                    found[k] = front_of_Z[<int64_t> j * r + place[rows[k]]]
            if left[s] == 0:
                free(front_of_Z)
                Z[s] = NULL
        free(Z)


def solve_lower(const int32_t[::1] cuts, const int32_t[::1] fronts, const int64_t[::1] begin,
                const int64_t[::1] panels, const double[::1] L, double[:, ::1] X):
    """Replace X (n, k) by L^-1 X; supernodes where X is zero are passed over."""
    cdef int supernodes = cuts.shape[0] - 1, s, j, i, w, r, rest, columns = X.shape[1]
    cdef int64_t k
    cdef double *panel
    cdef double *T
    cdef double *own
    cdef const int32_t *front
    cdef int longest = 1
    cdef bint empty
    for s in range(supernodes):
        longest = max(longest, <int> (begin[s + 1] - begin[s]))
    cdef double[::1] work = np.empty(<int64_t> longest * columns)
    with nogil:
        T = &work[0]
        for s in range(supernodes):
            front = &fronts[begin[s]]
            r = <int> (begin[s + 1] - begin[s])
            w = cuts[s + 1] - cuts[s]
            rest = r - w
            own = &X[cuts[s], 0]
            empty = True
            for k in range(<int64_t> w * columns):
                if own[k] != 0.0:
                    empty = False
                    break
            if empty:
                continue
            panel = <double *> &L[panels[s]]
            dtrsm(RIGHT, LOWER, TRANS, UNIT, &columns, &w, &ONE, panel, &r, own, &columns)
            if rest:
                dgemm(NO, TRANS, &columns, &rest, &w, &ONE, own, &columns, panel + w, &r, &ZERO, T, &columns)
                for i in range(rest):
                    for j in range(columns):
                        X[front[w + i], j] -= T[<int64_t> i * columns + j]


def solve_upper(const int32_t[::1] cuts, const int32_t[::1] fronts, const int64_t[::1] begin,
                const int64_t[::1] panels, const double[::1] L, double[:, ::1] X):
    """Replace X (n, k) by L'^-1 X."""
    cdef int supernodes = cuts.shape[0] - 1, s, j, i, w, r, rest, columns = X.shape[1]
    cdef double *panel
    cdef double *T
    cdef double *own
    cdef const int32_t *front
    cdef int longest = 1
    for s in range(supernodes):
        longest = max(longest, <int> (begin[s + 1] - begin[s]))
    cdef double[::1] work = np.empty(<int64_t> longest * columns)
    with nogil:
        T = &work[0]
        for s in range(supernodes - 1, -1, -1):
            front = &fronts[begin[s]]
            r = <int> (begin[s + 1] - begin[s])
            w = cuts[s + 1] - cuts[s]
            rest = r - w
            own = &X[cuts[s], 0]
            panel = <double *> &L[panels[s]]
            if rest:
                for i in range(rest):
                    for j in range(columns):
                        T[<int64_t> i * columns + j] = X[front[w + i], j]
                dgemm(NO, NO, &columns, &w, &rest, &MINUS, T, &columns, panel + w, &r, &ONE, own, &columns)
            dtrsm(RIGHT, LOWER, NO, UNIT, &columns, &w, &ONE, panel, &r, own, &columns)


def conditionals(double[:, :, ::1] A, double[:, ::1] k, const int32_t[::1] counts, double[::1] left):
    """Regress values on their neighbours: replace k (n, m) by A^-1 k, and subtract k' A^-1 k from `left` (n,).

    A (n, m, m) are the neighbours' covariances; the first counts (n,) matter. Their lower triangles are replaced
    by Cholesky factors. Returns whether all are positive definite.
    """
    cdef int n = A.shape[0], m = A.shape[1], i, a, b, c, size
    cdef double total
    with nogil:
        for i in range(n):
            size = counts[i]
            for a in range(size):
                for b in range(a + 1):
                    total = A[i, a, b]
                    for c in range(b):
                        total -= A[i, a, c] * A[i, b, c]
                    if a > b:
                        A[i, a, b] = total / A[i, b, b]
                    elif total > 0.0:
                        A[i, a, a] = sqrt(total)
                    else:
                        with gil:
                            return False
            for a in range(size):
                total = k[i, a]
                for c in range(a):
                    total -= A[i, a, c] * k[i, c]
                k[i, a] = total / A[i, a, a]
                left[i] -= k[i, a] * k[i, a]
            back(&A[i, 0, 0], &k[i, 0], size, m)
            for a in range(size, m):
                k[i, a] = 0.0
    return True


cdef inline void back(const double *A, double *x, int size, int m) noexcept nogil:
    """Replace x by L'^-1 x."""
    cdef int a, c
    cdef double total
    for a in range(size - 1, -1, -1):
        total = x[a]
        for c in range(a + 1, size):
            total -= A[c * m + a] * x[c]
        x[a] = total / A[a * m + a]


def regressed(const double[:, :, ::1] factors, double[:, ::1] x, const int32_t[::1] counts):
    """Replace x (n, m) by A^-1 x, given the Cholesky factors that `conditionals` left."""
    cdef int n = x.shape[0], m = x.shape[1], i, a, c
    cdef double total
    with nogil:
        for i in range(n):
            for a in range(counts[i]):
                total = x[i, a]
                for c in range(a):
                    total -= factors[i, a, c] * x[i, c]
                x[i, a] = total / factors[i, a, a]
            back(&factors[i, 0, 0], &x[i, 0], counts[i], m)
            for a in range(counts[i], m):
                x[i, a] = 0.0


def multiplied(const int32_t[::1] order, const int32_t[:, ::1] neighbours, const int32_t[::1] counts,
               const double[:, ::1] beta, const double[::1] D, double[:, ::1] X):
    """Replace X (n, k) by K X = B^-1 D B'^-1 X, B = I - beta, values in the order given after their neighbours."""
    cdef int n = order.shape[0], columns = X.shape[1], p, i, a, j, c
    cdef double b
    with nogil:
        for p in range(n - 1, -1, -1):
            i = order[p]
            for a in range(counts[i]):
                j = neighbours[i, a]
                b = beta[i, a]
                for c in range(columns):
                    X[j, c] += b * X[i, c]
        for i in range(n):
            for c in range(columns):
                X[i, c] *= D[i]
        for p in range(n):
            i = order[p]
            for a in range(counts[i]):
                j = neighbours[i, a]
                b = beta[i, a]
                for c in range(columns):
                    X[i, c] += b * X[j, c]


def entries(const int32_t[::1] place, const int32_t[:, ::1] neighbours, const int32_t[::1] counts,
            const int32_t[::1] pointers, const int32_t[::1] rows):
    """Return where in the lower triangle, by columns, the pairs of each value and its neighbours are (n, pairs).

    The value is the first of its group, and pairs are in the order (0, 0), (1, 0), (1, 1), (2, 0), ...; `place` (n,)
    says which row is whose.
    """
    cdef int n = neighbours.shape[0], m = neighbours.shape[1], i, a, b, lo, hi, mid, row, column, one, other
    found_ = np.zeros((n, (m + 1) * (m + 2) // 2), dtype=np.int32)
    cdef int32_t[:, ::1] found = found_
    with nogil:
        for i in range(n):
            for a in range(counts[i] + 1):
                one = place[i] if a == 0 else place[neighbours[i, a - 1]]
                for b in range(a + 1):
                    other = place[i] if b == 0 else place[neighbours[i, b - 1]]
                    row, column = max(one, other), min(one, other)
                    lo, hi = pointers[column], pointers[column + 1] - 1
                    while lo < hi:
                        mid = (lo + hi) // 2
                        if rows[mid] < row:
                            lo = mid + 1
                        else:
                            hi = mid
                    found[i, a * (a + 1) // 2 + b] = lo
    return found_


def precision(const int32_t[:, ::1] where, const int32_t[::1] counts, const double[:, ::1] beta,
              const double[::1] D, double[::1] data):
    """Add B' D^-1 B to the lower triangle's entries `data`."""
    cdef int n = where.shape[0], i, a, b
    cdef double one, other, inverse
    with nogil:
        for i in range(n):
            inverse = 1.0 / D[i]
            for a in range(counts[i] + 1):
                one = inverse if a == 0 else -beta[i, a - 1] * inverse
                for b in range(a + 1):
                    other = 1.0 if b == 0 else -beta[i, b - 1]
                    data[where[i, a * (a + 1) // 2 + b]] += one * other


def grouped(const int32_t[:, ::1] where, const int32_t[::1] counts, const double[:, ::1] beta,
            const double[::1] data, double[:, ::1] found):
    """Add Sigma b of each value and its neighbours to `found` (n, m + 1), b = (1, -beta), Sigma's entries in `data`."""
    cdef int n = where.shape[0], i, a, b
    cdef double one, other, value
    with nogil:
        for i in range(n):
            for a in range(counts[i] + 1):
                one = 1.0 if a == 0 else -beta[i, a - 1]
                for b in range(a + 1):
                    other = 1.0 if b == 0 else -beta[i, b - 1]
                    value = data[where[i, a * (a + 1) // 2 + b]]
                    found[i, a] += other * value
                    if a != b:
                        found[i, b] += one * value
