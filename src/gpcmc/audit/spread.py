"""How much MAE-POST varies between data sets of one problem of Experiment 4 (section 6.4).

The published cell rests on one unknown data set, and so does ours; without this variance nobody
could say whether they agree. Further data sets are drawn from the problem's law and classified with
Laplace's approximation: the data set, not the method, makes MAE-POST what it is, and this method
takes less than a second even with 1000 patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from gpcmc.experiments.classification import synthetic_problem
from gpcmc.experiments.seeds import generator, seed
from gpcmc.gp import prior, rbf
from gpcmc.inference import METHODS, infer

__all__ = ["mae_post_of_data_sets"]


def mae_post_of_data_sets(
    problems: Iterable[int],
    *,
    root: int,
    hyperparameters: Sequence[Mapping[str, float]],
    data_sets: int,
) -> pd.DataFrame:
    """MAE-POST on further data sets of the synthetic problems.

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
    DataFrame
        ``problem``, ``dataset``, ``seed``, ``set``, ``method``, ``mae_post``.

    Raises
    ------
    ValueError
        Fewer than two data sets.
    """
    if data_sets < 2:
        raise ValueError(f"data_sets: needed are at least 2, given was {data_sets}")
    method = METHODS["laplace"]()
    rows = []
    for number in sorted(problem for problem in problems if problem < 7):
        for dataset in range(data_sets):
            path = seed(root, "audit", "spread", f"problem{number}", f"dataset{dataset}")
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
    return pd.DataFrame(rows, columns=["problem", "dataset", "seed", "set", "method", "mae_post"])
