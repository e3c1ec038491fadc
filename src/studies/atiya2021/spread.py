"""How MAE-POST varies between data sets of Experiment 4's synthetic problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from gpcmc.gp.covariance import prior, rbf
from gpcmc.inference.ep import ExpectationPropagation
from studies.atiya2021.problems import data_set_seed, synthetic_problem
from studies.atiya2021.runs import infer
from studies.common.pieces import Piece, Pieces, Row, join
from studies.common.seeds import generator
from studies.common.timing import import_late

#: Data sets of a finished piece.
AT_ONCE = 20


def mae_post_of_data_sets(
    data_sets: Mapping[str, int],
    *,
    root: int,
    hyperparameters: Sequence[Mapping[str, float]],
    pieces: Pieces,
) -> Piece:
    """Return MAE-POST on many data sets of the synthetic problems.

    The published cell rests on one unknown data set; without this variance nobody could say whether ours agrees. The
    data set, not the method, makes MAE-POST what it is, and expectation propagation takes milliseconds.

    Parameters
    ----------
    data_sets : mapping of str to int
        How many data sets, at least 2, of each problem.
    root : int
        Root of the random streams. The first data sets are those of the other methods.
    hyperparameters : sequence of {"set": int, "alpha": float, "beta": float}
    pieces : Pieces
        Finished data sets, twenty a piece.

    Returns
    -------
    rows : list of dict
        ``problem``, ``dataset``, ``seed``, ``set``, ``method``, ``mae_post``.
    timing, arrays
        Empty.

    Raises
    ------
    ValueError
        If there are fewer than two data sets.
    """
    if any(count < 2 for count in data_sets.values()):
        raise ValueError(f"data_sets must be at least 2 for each problem; got {dict(data_sets)}")
    import_late()
    return join(
        pieces.get(
            f"problem{number}_dataset{first}",
            partial(_some, int(number), range(first, min(first + AT_ONCE, count)), root, hyperparameters),
        )
        for number, count in data_sets.items()
        for first in range(0, count, AT_ONCE)
    )  # fmt: skip


def _some(
    number: int, data_sets: range, root: int, hyperparameters: Sequence[Mapping[str, float]]
) -> Piece:
    method = ExpectationPropagation()
    rows: list[Row] = []
    for dataset in data_sets:
        path = data_set_seed(number, dataset, root)
        problem = synthetic_problem(number, generator(path))
        for hyper in hyperparameters:
            gp = prior(rbf(hyper["alpha"], hyper["beta"]), problem.X_train, problem.X_test)
            found = infer(method, gp, problem.y_train, rng=None)
            rows.append(
                {
                    "problem": number,
                    "dataset": dataset,
                    "seed": path,
                    "set": int(hyper["set"]),
                    "method": "ep",
                    "mae_post": float(np.mean(np.abs(found.probability - problem.bayes_posterior))),
                }
            )
    return rows, [], {}
