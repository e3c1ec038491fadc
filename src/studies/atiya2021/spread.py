"""How MAE-POST varies between data sets of Experiment 4's synthetic problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from gpcmc.gp.covariance import prior, rbf
from gpcmc.inference.laplace import Laplace
from studies.atiya2021.problems import SYNTHETIC, data_set_seed, synthetic_problem
from studies.atiya2021.runs import infer
from studies.common.pieces import Piece, Row
from studies.common.seeds import generator


def mae_post_of_data_sets(
    problems: Iterable[int],
    *,
    root: int,
    hyperparameters: Sequence[Mapping[str, float]],
    data_sets: int,
) -> Piece:
    """Return MAE-POST on further data sets of the synthetic problems.

    The published cell rests on one unknown data set, and so does ours; without this variance nobody
    could say whether they agree. The data sets are classified with Laplace's approximation: the data
    set, not the method, makes MAE-POST what it is, and this method takes less than a second.

    Parameters
    ----------
    problems : iterable of int
        Problems, 1 to 9; the real ones, which have one data set, are passed over.
    root : int
        Root of the random streams.
    hyperparameters : sequence of {"set": int, "alpha": float, "beta": float}
    data_sets : int
        Data sets of each problem, at least 2.

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
    if data_sets < 2:
        raise ValueError(f"data_sets must be at least 2; got {data_sets}")
    method = Laplace()
    rows: list[Row] = []
    for number in sorted(problem for problem in problems if problem in SYNTHETIC):
        for dataset in range(data_sets):
            path = data_set_seed(number, dataset, root)
            problem = synthetic_problem(number, generator(path))
            for hyper in hyperparameters:
                gp = prior(rbf(hyper["alpha"], hyper["beta"]), problem.X_train, problem.X_test)
                found = infer(method, gp, problem.y_train, rng=None)
                error = float(np.mean(np.abs(found.probability - problem.bayes_posterior)))
                rows.append(
                    {
                        "problem": number,
                        "dataset": dataset,
                        "seed": path,
                        "set": int(hyper["set"]),
                        "method": "laplace",
                        "mae_post": error,
                    }
                )
    return rows, [], {}
