"""Cao and Katzfuss (2024): how much estimates of Gaussian probabilities vary (N = 900 and 6,400).

Settings are in the block ``cao2024`` of ``config/default.yaml``. Problems are made by the rows themselves, as the
authors' scripts make them.
"""

from __future__ import annotations

from studies.common.plan import Study

STUDY = Study(
    experiments={
        # Estimates of one probability again and again, by the methods of the paper.
        "spread": {},
        # The probabilities by what this library has.
        "reference": {},
    },
    measures={"probabilities": ["spread", "reference"]},
    whole="cao",
)
