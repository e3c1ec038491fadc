"""Operations of the order of n^3 in the work of chains, for Tables I to III: as the source counts, and our own count.

The source's count is one factorization for each Newton step, five operations for each sweep of expectation propagation
(its section 2.1), and one more for the draws of an estimate; one factorization in an ancillary or sufficient update,
and three in a surrogate one (of K + S, of R, and the product that R takes).

Our own count is of what the library does. A factorization of an (n, n) matrix is one operation, and so is a triangular
solution with n right sides, an inverse from a factor, and a product of two (n, n) matrices; the n rank-one updates of a
sweep together are one too. A Newton step takes one factorization. A sweep of all sites at once takes two operations, a
factorization and the inverse of the factor, whose columns' lengths are the variances. Every estimate takes five
besides: a factorization that checks K, one with pivots that makes a root of it, and a product, a factorization and an
inverse for the Gaussian in the coordinates of that root. With Laplace's method there are two more, a factorization at
the mode and an inverse; with expectation propagation one, a triangular solution at the first sites, which are zero. A
surrogate update takes five: three factorizations and two products.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, sections 2.1, 4.2, 4.3, Tables I to III.
"""

from __future__ import annotations

from collections.abc import Mapping

#: What one of each takes, as the source counts and by our own count.
_EACH = {
    "newton_steps": (1, 1),
    "laplace_estimates": (1, 7),
    "sweeps": (5, 2),
    "ep_estimates": (1, 6),
    "ancillary": (1, 1),
    "sufficient": (1, 1),
    "surrogate": (3, 5),
}


def cubic_operations(work: Mapping[str, int], *, own: bool = False) -> int:
    """Return how many operations of the order of n^3 some work took.

    Parameters
    ----------
    work : mapping of str to int
        Counts of a `studies.filippone2014.tuned_chains.Chain`; those that are not of such operations are left out.
    own : bool
        Whether to count what the library does, and not as the source counts.
    """
    return sum(count * _EACH[name][own] for name, count in work.items() if name in _EACH)
