"""Ten-fold cross-validation of Laplace's method, EP and support vector machines: Kuss and Rasmussen (2005), Table 1."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.rasmussen2006.config import Configuration

#: Folds of each assignment.
FOLDS = 10
#: Arrays of threes and fives, by inputs. Those of the other data sets are scaled when folds are known.
_DIGITS = {"prepared": "pair", "unprepared": "pair_raw"}
#: About the CPU seconds of a fit to digits, and of one to another data set.
_SECONDS = {"laplace": (5.6, 0.4), "ep": (63.0, 2.0), "svm": (2.5, 0.5)}


def plan(config: Configuration) -> list[Line]:
    """Return a row a fold of an assignment: by data set, inputs and method, in alphabetical order.

    All methods share the assignments, and so do both kinds of inputs. ``prepared`` inputs are scaled features and
    smoothed images.
    """
    given = config.rasmussen2006.crossvalidation
    kinds = {"prepared": given.prepared, "unprepared": given.unprepared}
    groups = [
        (data, inputs, method, seeds)
        for inputs, of_method in kinds.items()
        for method, sets in of_method.model_dump().items()
        for data, seeds in sets.items()
    ]
    return planned(
        {
            "row": f"{data}/{inputs}/{method}/seed{k}/fold{fold}",
            "seconds": _SECONDS[method][data != "usps"],
            "patterns": _DIGITS[inputs] if data == "usps" else data,
            "data": data,
            "inputs": inputs,
            "method": method,
            "run": k,
            "fold": fold,
            "seed": seed(config.seed, "crossvalidation", data, f"seed{k}"),
        }
        for data, inputs, method, seeds in sorted(groups)
        for k in range(seeds)
        for fold in range(FOLDS)
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Classify the cases of a fold by a fit to the others.

    One line: ``data``, ``inputs``, ``method``, ``run``, ``fold``, ``cases`` and ``errors`` among them, mean
    ``information``, also by the logistic function of a machine's scores (``information_logistic``), and whether
    hyperparameters ended ``at_bound``.
    """
    from studies.rasmussen2006.crossvalidation import fitted

    scaled = row["inputs"] == "prepared"
    one = {"folds": FOLDS, "fold": row["fold"], "scaled": scaled}
    found = fitted(row["method"], inputs["data"], row["seed"], **one)
    key = {name: row[name] for name in ("data", "inputs", "method", "run", "fold")}
    return Result([{**key, **found, "seed": row["seed"]}])
