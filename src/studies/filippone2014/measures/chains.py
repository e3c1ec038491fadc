"""Tables I to III: effective samples, R-hat, acceptance and operations of chains on simulated data."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import as_measures
from studies.common.measuring import Row, Rows
from studies.filippone2014.measures.common import COUNTS, log_ratio, of_chains, row, scheme_of

_SHORT = {"ancillary": "aa", "surrogate": "surr"}
#: Least and largest excess of R-hat over one. An R-hat below 1.001 is as good as one, and may be below one; an infinite
#: one is of chains that stand still. Without these limits the logarithm of a ratio would leave out the best and the
#: worst chains.
_EXCESS = (0.001, 10.0)


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part: a unit is a simulated data set."""
    rows = given.table("chains")
    rows["kernel"] = np.where(rows["relevance"], "ard", "isotropic")
    rows["share"] = rows["ess"] / rows["draws"]
    rows["excess"] = (rows["r_hat_20"] - 1.0).clip(*_EXCESS)
    rows["rate"] = rows["share"] / rows["operations"]
    rows["rate_own"] = rows["share"] / rows["operations_own"]
    return as_measures([*_tables(rows), *_claims(rows)])


def _tables(rows: pd.DataFrame) -> list[Row]:
    """What the tables show."""
    found, least = [], rows["repeats"].min()
    for _, one in rows.iterrows():
        where = f"{one['kernel']}/n{one['n']}/d{one['d']}"
        table = "table1" if one["repeats"] == least else "table3"
        base, unit = f"{table}/{where}/{scheme_of(one)}", f"{where}/set{one['set']}"
        found += of_chains(base, unit, one, 100 * one["share"])
    return found


def _claims(rows: pd.DataFrame) -> list[Row]:
    """Logarithms of ratios on one data set."""
    single = rows[rows["repeats"] == rows["repeats"].min()]
    found = []
    for (kernel, n, d, number), own in single.groupby(["kernel", "n", "d", "set"]):
        unit = f"n{n}/d{d}/set{number}/{kernel}"
        chains = _Chains(own)
        found += chains.samples(unit)
        found += chains.schemes(unit)
    found += _repeated(rows)
    return [_of_data_set(one) for one in found]


def _of_data_set(one: Row) -> Row:
    """The same with a data set as unit: kernels, schemes and samples on the same data are its runs."""
    n, d, number, *run = one["unit"].split("/")
    return one | {"unit": f"{n}/{d}/{number}", "run": "-".join(run)}


class _Chains:
    """The rows of one data set and kernel, by scheme and samples."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.rows = {(one["scheme"], one["samples"]): one for _, one in rows.iterrows()}

    def ratio(self, id: str, unit: str, column: str, *pair: tuple[str, int], **more: Any) -> Row:
        """The log ratio of the first over the second."""
        above, below = (self.rows[key] for key in pair)
        value = log_ratio(above[column], below[column])
        return row(id, unit, value, pd.DataFrame([above, below]), **more)

    def numbers(self, scheme: str) -> list[int]:
        return sorted(samples for name, samples in self.rows if name == scheme)

    def samples(self, unit: str) -> list[Row]:
        """EP against Laplace's method, and one sample against many."""
        found = []
        for samples in sorted({*self.numbers("laplace")} & {*self.numbers("ep")}):
            pair, own = (("ep", samples), ("laplace", samples)), f"{unit}/s{samples}"
            found.append(self.ratio("claim/samples/ep-laplace", own, "ess", *pair))
            for level, column in COUNTS.items():
                more = {"reading": f"counts={level}"}
                found.append(self.ratio("claim/operations/ep-laplace", own, column, *pair, **more))
        for scheme in ("laplace", "ep"):
            numbers = self.numbers(scheme)
            if len(numbers) > 1 and numbers[0] == 1:
                pair = (scheme, 1), (scheme, numbers[-1])
                if scheme == "ep":
                    found.append(self.ratio("claim/samples/one", unit, "ess", *pair))
                own = f"{unit}/{scheme}"
                found.append(self.ratio("claim/samples/acceptance", own, "acceptance", *pair))
        return found

    def schemes(self, unit: str) -> list[Row]:
        """Pseudo-marginal chains with most samples against those that hold latent values, and these with each other."""
        found = []
        for method in ("laplace", "ep"):
            for other in ("ancillary", "surrogate"):
                if (numbers := self.numbers(method)) and (other, 0) in self.rows:
                    found += self._pseudo_marginal(unit, (method, numbers[-1]), other)
        if ("surrogate", 0) in self.rows and ("ancillary", 0) in self.rows:
            pair = ("surrogate", 0), ("ancillary", 0)
            found.append(self.ratio("claim/schemes/surr-aa", unit, "ess", *pair))
            found.append(self.ratio("claim/schemes/surr-convergence", unit, "excess", *pair))
        return found

    def _pseudo_marginal(self, unit: str, best: tuple[str, int], other: str) -> list[Row]:
        pair, approximation = (best, (other, 0)), f"approximation={best[0]}"
        found, more = [], {"reading": approximation}
        if other == "ancillary":
            found.append(self.ratio("claim/schemes/pm-aa", unit, "ess", *pair, **more))
            found.append(self.ratio("claim/schemes/convergence", unit, "excess", *pair, **more))
        for level, column in COUNTS.items():
            more, own = {"reading": f"{approximation};counts={level}"}, f"{unit}/{other}"
            found.append(self.ratio("claim/operations/pm", own, column, *pair, **more))
            rate = "rate" if level == "source" else "rate_own"
            id = f"claim/operations/rate-{_SHORT[other]}"
            found.append(self.ratio(id, unit, rate, *pair, **more))
            if level == "source":  # kernels differ more than data sets
                id = f"rates/{self.rows[best]['kernel']}/{best[0]}/{_SHORT[other]}"
                found.append(self.ratio(id, unit, rate, *pair))
        return found


def _repeated(rows: pd.DataFrame) -> list[Row]:
    """Updates that are repeated: other schemes against pseudo-marginal chains, and ARD against one length scale."""
    most = rows["repeats"].max()
    if most == rows["repeats"].min():
        return []
    found, many = [], rows[rows["repeats"] == most]
    for (kernel, n, d, number), own in many.groupby(["kernel", "n", "d", "set"]):
        chains = _Chains(own)
        for method, other in product(("laplace", "ep"), ("ancillary", "surrogate")):
            numbers, unit = chains.numbers(method), f"n{n}/d{d}/set{number}/{kernel}/{other}"
            if (other, 0) in chains.rows and numbers:
                pair, more = (
                    ((method, numbers[-1]), (other, 0)),
                    {"reading": f"approximation={method}"},
                )
                found.append(chains.ratio("claim/repeats/pm", unit, "share", *pair, **more))
    for (scheme, samples, n, d, number), own in many.groupby(
        ["scheme", "samples", "n", "d", "set"]
    ):
        kernels = own.set_index("kernel")
        if {"ard", "isotropic"} <= {*kernels.index} and samples in (0, rows["samples"].max()):
            pair, unit = kernels.loc[["ard", "isotropic"]], f"n{n}/d{d}/set{number}/{scheme}"
            found.append(row("claim/repeats/ard", unit, log_ratio(*pair["share"]), pair))
    return found
