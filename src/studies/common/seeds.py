"""Random streams named by what they are for.

A seed is a readable path such as ``20210308/experiment1/N50/instance3/samples10000``: the root of all
streams, then the names of the cell. Every row of a results file carries its seed, and
``generator(seed)`` gives the stream that the row was made with, whatever ran before or beside it.
"""

from __future__ import annotations

import hashlib

import numpy as np


def seed(root: int | str, *names: str) -> str:
    """Return the path of a stream below `root` (itself a root or a path)."""
    return "/".join((str(root), *names))


def generator(path: str) -> np.random.Generator:
    """Return the generator of a path that `seed` made.

    Raises
    ------
    ValueError
        If the path does not begin with a whole number, the root.
    """
    root, *names = path.split("/")
    if not root.isdigit():
        raise ValueError(
            f"path must begin with the root, a whole number, as in 20210308/a; got {path!r}"
        )
    # the names key the stream through their digests: neither their number nor order of use matters
    key = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) for name in names]
    return np.random.default_rng(np.random.SeedSequence(int(root), spawn_key=key))


def random_state(path: str) -> int:
    """Return the `random_state` of a path, for scikit-learn.

    Raises
    ------
    ValueError
        As `generator`.
    """
    return int(generator(path).integers(2**31))
