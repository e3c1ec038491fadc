"""Section 4.4: chains on real data. The source's numbers are lost, so that these are shown and not judged."""

from __future__ import annotations

import pandas as pd

from recheck.judge.measures import as_measures
from studies.common.measuring import Rows
from studies.filippone2014.measures.common import of_chains, scheme_of


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part: a unit is a data set."""
    rows, _ = given.available("real")
    found = []
    for _, one in rows.iterrows():
        if one["repeats"] == 1:
            base = f"real/{one['name']}/{scheme_of(one)}"
            found += of_chains(base, "", one, 100 * one["ess"] / one["draws"], se=0.0)
    return as_measures(found)
