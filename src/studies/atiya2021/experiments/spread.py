"""MAE-POST on many data sets of the synthetic problems of Experiment 4 (Table 4)."""

from __future__ import annotations

from studies.atiya2021.methods import seconds
from studies.atiya2021.names import REAL, TRAINING, data_set_seed
from studies.atiya2021.settings import Configuration, on_problem
from studies.common.rows import Inputs, Line, Result, Row, planned


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set; the first ones are those of the other methods."""
    given = config.atiya2021.experiment4
    settings = [setting.model_dump() for setting in given.hyperparameters]
    return planned(
        {
            "row": f"problem{problem}/dataset{dataset}",
            "problem": problem,
            "seconds": len(settings) * seconds("ep", {}, TRAINING[problem]),
            "dataset": dataset,
            "seed": data_set_seed(problem, dataset, config.seed),
            "settings": settings,
        }
        for problem in given.problems
        if problem not in REAL
        for dataset in range(on_problem(given.spread_data_sets, problem))
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Classify a data set at each setting: ``problem``, ``dataset``, ``seed``, ``set``, ``method``, ``mae_post``."""
    from studies.atiya2021.spread import on_data_set

    key = {name: row[name] for name in ("problem", "dataset", "seed")}
    found = on_data_set(row["problem"], row["seed"], row["settings"])
    return Result([key | line for line in found])
