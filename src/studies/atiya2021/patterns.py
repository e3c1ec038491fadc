"""Patterns of the first data set of each problem of Experiment 4, and of the real data sets of other experiments."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from studies.atiya2021.advice.data import real_data
from studies.atiya2021.advice.names import DATA_SETS
from studies.atiya2021.names import RAW, REAL, REGISTRY, data_set_seed
from studies.atiya2021.problems import real_problem, synthetic_problem
from studies.atiya2021.whofits.data import split_problem
from studies.atiya2021.whofits.names import split_of
from studies.common.data import read_registry
from studies.common.seeds import generator


def patterns(name: str, *, seed: int, standardise: Mapping[str, bool]) -> dict[str, np.ndarray]:
    """Return the patterns of a problem's first data set, or of another real data set: the fields of `Problem`.

    Parameters
    ----------
    name : str
        The problem, ``problem1`` to ``problem9``; ``problem9_raw`` has the images as scanned. Or a key of
        `DATA_SETS`; or a split of a data set that is fitted, such as ``pima-split0``.
    seed : int
        Root of the random streams.
    standardise : mapping
        Of each real data set of Experiment 4, whether features are scaled by the training patterns' means and
        deviations; other real data sets have a table of their own.

    Raises
    ------
    DataUnavailableError, DamagedFileError, ValueError
        If a raw file is missing, is damaged, or its facts are not the registered ones.
    """
    if name in DATA_SETS:
        return dataclasses.asdict(real_data(name, seed))
    if (found := split_of(name)) is not None:
        return dataclasses.asdict(split_problem(*found, seed))
    number = int(name.removeprefix("problem").removesuffix("_raw"))
    rng = generator(data_set_seed(number, 0, seed))
    if number not in REAL:
        return dataclasses.asdict(synthetic_problem(number, rng))
    data, registry = REAL[number], read_registry(REGISTRY)
    images = f"{data}_raw" if name.endswith("_raw") else data
    scaled = standardise[data]
    return dataclasses.asdict(real_problem(images, RAW, registry, standardise=scaled, rng=rng))
