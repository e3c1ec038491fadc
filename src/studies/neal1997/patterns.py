"""Cases of the experiments, as the author's files have them."""

from __future__ import annotations

import numpy as np

from studies.common.data import load, read_registry

#: Where raw files and their register are, from the root of the repository.
RAW, REGISTRY = "data/raw", "data/registry.csv"


def patterns(name: str, **options: object) -> dict[str, np.ndarray]:
    """Return ``X`` (n, d), ``t`` (n,) and ``training``, how many of the first cases are for training."""
    raw = load(f"neal_{name}", RAW, read_registry(REGISTRY))
    return {"X": raw.X, "t": raw.y, "training": np.array(raw.training)}
