"""Scrambled Sobol' points: SciPy's, to the last bit, in whatever pieces they are drawn."""

import numpy as np
import pytest
from scipy.stats import qmc

from gpcmc._sobol import Sobol


@pytest.mark.parametrize(
    ("dimension", "pieces"),
    [(1, [1]), (1, [1, 1, 2, 4]), (3, [8, 8]), (77, [100, 28, 1000]), (1100, [64])],
)
@pytest.mark.filterwarnings("ignore:The balance properties")
def test_points_are_scipys(dimension, pieces):
    theirs = qmc.Sobol(dimension, rng=np.random.default_rng(5))
    ours = Sobol(dimension, np.random.default_rng(5))
    for m in pieces:
        np.testing.assert_array_equal(ours.random(m), theirs.random(m).T)
