"""Patterns of the twenty real data sets of `advice`, split and standardised."""

from __future__ import annotations

from studies.atiya2021.advice.names import DATA_SETS
from studies.atiya2021.problems import Problem
from studies.atiya2021.whofits.data import drawn
from studies.common.seeds import generator, seed


def real_data(name: str, root: int) -> Problem:
    """Return a data set, split at random with shares of the classes kept, and scaled by its training patterns.

    Parameters
    ----------
    name : str
        A key of `DATA_SETS`.
    root : int
        Root of the random streams, of which the split has its own.

    Raises
    ------
    DataUnavailableError, DamagedFileError, ValueError
        If a raw file is missing, is damaged, or its facts are not the registered ones.
    """
    # the word of an earlier name of the experiment keeps the splits
    return drawn(name, DATA_SETS[name], generator(seed(root, "packaged", name)))
