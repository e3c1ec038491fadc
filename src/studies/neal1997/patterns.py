"""Cases of the experiments, as the author's files have them."""

from __future__ import annotations

import numpy as np

#: Where raw files and their register are, from the root of the repository.
RAW, REGISTRY = "data/raw", "data/registry.csv"


def patterns(*, name: str) -> dict[str, np.ndarray]:
    """Return ``X`` (n, d), ``t`` (n,) and ``training``, how many of the first cases are for training."""
    from studies.common.data import read_registry
    from studies.common.data.fbm import load_example

    X, t, training = load_example(f"neal_{name}", RAW, read_registry(REGISTRY))
    return {"X": X, "t": t, "training": np.array(training)}
