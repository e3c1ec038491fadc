"""Cao and Katzfuss (2024): how much estimates of Gaussian probabilities vary (N = 900 and 6,400).

Settings are in the block ``cao2024`` of ``config/default.yaml``. Problems are made by the rows themselves, from a seed.
"""

from __future__ import annotations

from studies.common.plan import Study

STUDY = Study(
    experiments={
        # Thirty estimates of one probability, again and again.
        "spread": {},
        # Probabilities of orthants by twisted expectation propagation.
        "reference": {},
    },
    measures={"probabilities": ["spread", "reference"]},
    whole="cao",
)
