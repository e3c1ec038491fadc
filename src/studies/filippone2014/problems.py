"""Names that plans share: data sets, kernels, schemes, and the random streams of simulated data.

The workflow imports this module before any job starts, so it imports nothing heavy.
"""

from __future__ import annotations

from studies.common.seeds import seed

#: Cases of the real data sets: complete ones, and of Abalone no infants.
CASES = {"breast": 683, "pima": 768, "ionosphere": 351, "sonar": 208, "crabs": 200, "abalone": 2835}
#: Names in the register of raw files, where they are others.
REGISTERED = {"breast": "breast_cancer"}
KERNELS = ("isotropic", "ard")
PSEUDO_MARGINAL = ("laplace", "ep")
LATENT = ("sufficient", "ancillary", "surrogate")
#: Inputs of the data sets of Figures 1 and 2.
INPUTS = 2


def data_path(root: int, part: str, n: int, d: int, number: int) -> str:
    """Return the path of the stream that makes a data set."""
    return seed(root, "filippone2014", part, f"n{n}", f"d{d}", f"set{number}")


def used(name: str, cases: int) -> int:
    """Return how many cases of a real data set are used: the first so many, or all if it says 0."""
    return min(cases or CASES[name], CASES[name])


def real_path(root: int, name: str, cases: int) -> str:
    """Return the path of the streams of chains on a real data set."""
    return seed(root, "filippone2014", "real", name, f"cases{used(name, cases)}")
