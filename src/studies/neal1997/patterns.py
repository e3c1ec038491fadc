"""Cases of the experiments, as the author's files have them."""

from __future__ import annotations

import numpy as np

from studies.common.data import registered


def patterns(name: str, **options: object) -> dict[str, np.ndarray]:
    """Return ``X`` (n, d), ``t`` (n,) and ``training``, how many of the first cases are for training."""
    raw = registered(f"neal_{name}")
    return {"X": raw.X, "t": raw.y, "training": np.array(raw.training)}
