"""What stands beside the chains: the Bayes rule, Laplace's method, and draws from priors (Figure 1)."""

from __future__ import annotations

import math

import pandas as pd

from recheck.judge.measures import as_measures
from studies.common.measuring import Row, Rows, exact

#: No cell or claim is of this part.
IDS = ()


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part."""
    found: list[Row] = []
    rule = given.table("bayes")
    for row in rule[rule["data"] != "anew"].to_dict("records"):
        found.append(_named(f"bayes/{row['data']}", row))
    anew = rule[rule["data"] == "anew"]
    rates = 100 * anew["value"]
    common = {"seed": anew["seed"].iloc[0], "df": len(rates) - 1}
    source = anew["source"].iloc[[0, -1]]
    own = {**common, "se": rates.std() / math.sqrt(len(rates))}
    found.append(exact("bayes/anew/error-percent", rates.mean(), source, **own))
    own = {**common, "se": rates.std() / math.sqrt(2 * (len(rates) - 1))}
    found.append(exact("bayes/anew/deviation", rates.std(), source, **own))
    for row in given.table("laplace").to_dict("records"):
        found.append(_named(f"laplace/n{row['training']}", row))
    for row in given.table("priors").to_dict("records"):
        id = f"figure1/{row['prior']}/{row['draw']}/{row['place']:.2f}"
        found.append(exact(id, row["value"], row["source"], seed=row["seed"]))
    return as_measures(found)


def _named(base: str, row: Row) -> Row:
    if row["quantity"] == "error-rate":
        return exact(f"{base}/error-percent", 100 * row["value"], row["source"])
    return exact(f"{base}/{row['quantity']}", row["value"], row["source"])
