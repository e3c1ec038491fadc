"""Kept results: rows of a long run as the workflow wrote them, in plain files, and what checks them.

``data/reference/<study>`` has for each experiment ``<experiment>.csv`` and, if there are any, its arrays. It also has
the seconds of all rows (``timing.csv``), and the measures, verdicts and their like. ``provenance.json`` says at which
commit and with which configuration and code they were made, ``verified.csv`` which rows were run again since.
``digests.json`` has the checksums of all of them.

A row is checked by running it again. `differences` sets what that finds beside what is kept.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.record.files import (
    gather_digests,
    read_arrays,
    read_csv,
    read_json,
    write_arrays,
    write_csv,
    write_json,
)
from studies.common.blocks import Reader, Records, put, put_part
from studies.common.code import digest_of_rows, modules_of_row
from studies.common.plan import Plan
from studies.common.rows import TEXT, Row, Table, read_table, records_of, settings

#: Says which kept rows a run began with, at which commit they were made, and on what.
RESUMED = "resumed.json"
#: What is kept of a study beside its rows.
DERIVED = {"measures": ".csv.gz", "estimates": ".csv.gz"}
DERIVED |= dict.fromkeys(("verdicts", "readings", "outcomes", "controls"), ".csv")
#: Numbers that differ by less, relative to the larger of one and their size, differ by rounding. Measured with the
#: kernels of another processor: most results differ by less than 1e-10, importance sampling by 2e-8. Markov chains are
#: beyond it: one acceptance that falls otherwise gives another chain.
ROUNDING = 1e-7
#: What a column of a count of work begins with.
WORK = "work_"
#: Outcomes of a row that is run again.
IDENTICAL, ROUNDED, SAME_LAW, DIFFERENT = "identical", "rounding", "same law", "different"
#: Of a row with other random numbers, none of whose results has an error, beside rows that are of the same law.
UNJUDGED = "not judged"
#: Where some rows have other random numbers: how many must be of the same law, or equal, before the rest of a method's
#: rows are taken for it, too.
LEAST = 10
#: Settings in which replicates differ.
NUMBERS = {"row", "seed", "replicate", "run"}
#: Kept replicates, whose scatter is the error of a result that states none.
REPLICATES = 4


def modules_of(row: Row) -> str:
    """Return what a row rests on beside the module of its experiment, sorted, with commas between."""
    return ",".join(modules_of_row(row))


def codes(study: str, experiment: str, rows: Iterable[Row]) -> dict[str, str]:
    """Return the digests of the code of rows, by what `modules_of` says."""
    return {modules_of(row): digest_of_rows(study, experiment, [row]) for row in rows}


class Kept:
    """The kept results of a study.

    Parameters
    ----------
    folder : path
        ``data/reference/<study>``.

    Raises
    ------
    FileNotFoundError
        If nothing is kept there.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.study = self.folder.name
        if not (self.folder / "provenance.json").exists():
            raise FileNotFoundError(
                f"{folder}: nothing is kept there; `make keep` stores a run of the published scale"
            )
        self.provenance: dict[str, Any] = read_json(self.folder / "provenance.json")

    @property
    def made_on(self) -> dict[str, Any]:
        """The commit, processor and linear algebra with which the rows were computed."""
        first = self.provenance.get("resumed", self.provenance)
        return {name: first[name] for name in ("commit", "cpu", "blas")}

    @property
    def renewed(self) -> dict[str, dict[str, Any]]:
        """What rows were made with that `studies.common.renew` made again since, by experiment and modules."""
        found: dict[str, dict[str, Any]] = self.provenance.get("renewed", {})
        return found

    def kernels(self, experiment: str) -> set[str]:
        """Return the kernels of the linear algebra (`kernels`) that the rows of an experiment were made with."""
        again, groups = self.renewed.get(experiment, {}), self.provenance["code"][experiment]
        rest = [] if again.keys() >= groups.keys() else [self.made_on]
        return {kernels(one["blas"]) for one in (*again.values(), *rest)}

    @cached_property
    def experiments(self) -> list[str]:
        """The experiments whose rows are kept."""
        return sorted(
            name for name in self.provenance["code"] if (self.folder / f"{name}.csv").exists()
        )

    @cached_property
    def timing(self) -> pd.DataFrame:
        """Seconds by ``experiment`` and ``row``, every entry a text."""
        return read_csv(self.folder / "timing.csv", **TEXT)

    @cached_property
    def seconds(self) -> pd.Series:
        """CPU seconds of each row, by experiment and row."""
        spent = self.timing.filter(regex="cpu_seconds$").replace("", "0").astype(float).sum(axis=1)
        return spent.groupby([self.timing["experiment"], self.timing["row"]], sort=False).sum()

    def same(self, experiment: str, rows: Iterable[Row]) -> set[str]:
        """Return which rows of a plan are kept with the settings that they have there.

        None is, if the configuration had other keys when they were made.
        """
        try:
            config = import_module(f"studies.{self.study}.config").check(self.provenance["config"])
        except ValueError:
            return set()
        module = import_module(f"studies.{self.study}.experiments.{experiment}")
        old = settings(module.plan(config))
        return {name for name, now in settings(rows).items() if old.get(name) == now}

    def table(self, experiment: str) -> Table:
        """Return the rows of an experiment; DamagedFileError names a file that is not what was written."""
        rows = read_csv(self.folder / f"{experiment}.csv", **TEXT)
        timing = self.timing[self.timing["experiment"] == experiment].drop(columns="experiment")
        timing = timing.loc[:, (timing != "").any()]
        path = self.folder / f"{experiment}.npz"
        return Table(rows, timing, read_arrays(path) if path.exists() else {})

    def _outcomes(self, experiment: str) -> pd.Series:
        """What rows that were run again have come to, by the digest of their code."""
        path = self.folder / "verified.csv"
        names = ["experiment", "code", "outcome"]
        found = read_csv(path, **TEXT) if path.exists() else pd.DataFrame(columns=names)
        return found[found["experiment"] == experiment].set_index("code")["outcome"]

    def few(self, experiment: str) -> set[str]:
        """Return the digests of code under which rows run again have other random numbers, and too few are judged.

        `LEAST` rows that are of the same law, or equal but for rounding, are enough.
        """
        outcomes = self._outcomes(experiment)
        other = outcomes.isin([SAME_LAW, UNJUDGED]).groupby(level="code").any()
        judged = outcomes.isin([IDENTICAL, ROUNDED, SAME_LAW]).groupby(level="code").sum()
        return set(other.index[other & (judged < LEAST)])

    def verified(self, experiment: str) -> set[str]:
        """Return the digests of code under which kept rows are what they would be now, as far as rows run again tell.

        None of these has another result: they are identical, or equal but for rounding. Where some differ in their
        random numbers, `LEAST` or more are of the same law or equal; rows that cannot be judged do not count.
        """
        good = self._outcomes(experiment).isin([IDENTICAL, ROUNDED, SAME_LAW, UNJUDGED])
        every = good.groupby(level="code").all()
        return set(every.index[every]) - self.few(experiment)


def kernels(libraries: Iterable[Mapping[str, str]]) -> str:
    """Return the processors whose kernels libraries of linear algebra use (`recheck.record.provenance.blas`)."""
    return ", ".join(sorted({one["architecture"] for one in libraries if "architecture" in one}))


def keep(study: str, results: str | Path, store: str | Path, code: Mapping[str, Any]) -> int:
    """Store the rows of a finished run, and what was made of them.

    Parameters
    ----------
    study : str
    results : path
        ``results/<scale>``.
    store : path
        ``data/reference/<study>``; other files in it, such as the certified reference, stay.
    code : mapping
        Of each experiment, what `codes` says.

    Returns
    -------
    int
        How many rows are kept.
    """
    made, store = Path(results, study), Path(store)
    timing, count = [], 0
    for experiment in sorted(code):
        table = read_table(made / experiment)
        count += table.rows["row"].nunique()
        timing.append(store_rows(store, experiment, table))
    store_timing(store, timing)
    for name, end in DERIVED.items():
        write_csv(store / f"{name}{end}", read_csv(made / f"{name}.csv", **TEXT))
    record = read_json(Path(results, "provenance.json")) | {"code": dict(code)}
    if (made / RESUMED).exists():
        record["resumed"] = read_json(made / RESUMED)
        record["renewed"] = record["resumed"].pop("renewed", {})
    write_json(store / "provenance.json", record)
    gather_digests(store)
    return count


def store_rows(store: Path, experiment: str, table: Table) -> pd.DataFrame:
    """Write the rows of an experiment and their arrays, and return their seconds, for `store_timing`."""
    write_csv(store / f"{experiment}.csv", table.rows)
    if table.arrays:
        write_arrays(store / f"{experiment}.npz", table.arrays, packed=True)
    else:
        (store / f"{experiment}.npz").unlink(missing_ok=True)
    return table.timing.assign(experiment=experiment)


def store_timing(store: Path, timing: Iterable[pd.DataFrame]) -> None:
    """Write the seconds of all experiments."""
    frame = pd.concat(timing, ignore_index=True).fillna("")
    write_csv(store / "timing.csv", frame[["experiment", *frame.columns.drop("experiment")]])


def resume(kept: Kept, plan: Plan) -> list[str]:
    """Put kept rows where their jobs would write them, and return a line on each experiment.

    A row is put back if it is kept with the settings that it has now, and if its code is what it was, or rows of the
    same code were run again under today's and found to be what they were (`Kept.verified`). A block all of whose rows
    are put back is there, so that no job runs; of others the job runs and takes over what there is.

    Parameters
    ----------
    kept : Kept
    plan : Plan
        ``resumed.json`` in the results of the study says what was put back.
    """
    study, lines, age = kept.study, list[str](), time.time()
    good, renewed = dict[str, set[str]](), dict[str, Any]()
    for experiment, rows in plan.plans(study).items():
        if experiment not in kept.experiments:
            lines.append(f"{study}, {experiment}: nothing is kept")
            continue
        known = set(kept.table(experiment).rows["row"])
        same = kept.same(experiment, rows) & known
        mine, other = as_today(kept, experiment, [row for row in rows if row["row"] in same])
        good[experiment] = mine
        left = {modules_of(row) for row in rows if row["row"] not in mine}
        again = kept.renewed.get(experiment, {})
        renewed[experiment] = {name: made for name, made in again.items() if name not in left}
        counts = {
            "put back": len(mine),
            "have other settings": len(rows) - len(same),
            "were made by other code": len(other),
        }
        said = [f"{number} {what}" for what, number in counts.items() if number]
        lines.append(f"{study}, {experiment}: {', '.join(said)}")
    _put_blocks(kept, plan, good, age)
    write_json(
        Path(plan.results, study, RESUMED), {**kept.made_on, "renewed": renewed, "rows": lines}
    )
    return lines


def as_today(kept: Kept, experiment: str, rows: Sequence[Row]) -> tuple[set[str], set[str]]:
    """Names of rows whose code is what it was, or was found to give the same; and of all others."""
    digests, verified = kept.provenance["code"][experiment], kept.verified(experiment)
    here, good, other = dict[str, str](), set[str](), set[str]()
    for row in rows:
        modules = modules_of(row)
        if modules not in here:
            here[modules] = digest_of_rows(kept.study, experiment, [row])
        fits = digests.get(modules) == here[modules] or here[modules] in verified
        (good if fits else other).add(row["row"])
    return good, other


def _put_blocks(kept: Kept, plan: Plan, good: Mapping[str, set[str]], age: float) -> None:
    study, tables = kept.study, dict[str, dict[str, Any]]()
    folder = Path(plan.results, study, "rows")
    for block in plan.blocks(study).values():
        found: Records = {experiment: {} for experiment, _ in block.rows}
        reader = Reader(found)
        for experiment, row in block.rows:
            name = row["row"]
            if name not in good.get(experiment, ()):
                continue
            try:
                made = reader.made(study, experiment, row, plan.inputs(study, experiment, row))
            except (FileNotFoundError, KeyError):
                continue  # it reads a row that is not put back
            if experiment not in tables:
                every = kept.table(experiment)
                own = records_of(every, dict.fromkeys(good[experiment], ""))
                tables[experiment] = {record.row: record for record in own}
            found[experiment][name] = tables[experiment][name]._replace(made=made)
        number = sum(map(len, found.values()))
        if number == len(block.rows):
            put(plan.path(block), found, age)
        elif number:
            put_part(folder, block.name, found)


def changed(kept: Kept, plans: Mapping[str, Iterable[Row]]) -> dict[str, set[int]]:
    """Return the lines of kept rows, by file, whose settings are others in these plans; a file begins with line 1."""
    found = {}
    for experiment in kept.experiments:
        same = kept.same(experiment, plans.get(experiment, ()))
        names = read_csv(kept.folder / f"{experiment}.csv", usecols=["row"], **TEXT)["row"]
        lines = enumerate(names, start=2)
        found[f"{experiment}.csv"] = {line for line, name in lines if name not in same}
    return found


def drawn(
    kept: Kept, plans: Mapping[str, Sequence[Row]], share: float, seed: int
) -> dict[str, list[str]]:
    """Draw rows whose CPU seconds are a share of all: of each experiment and method at least one.

    The first has replicates, if any has, for their scatter is an error. Where rows that were run again have other
    random numbers, and too few are judged (`Kept.few`), at least `LEAST` are drawn, those with replicates first.

    Parameters
    ----------
    kept : Kept
    plans : mapping
        Lines of the plan of each experiment; rows that are not kept with the same settings are not drawn.
    share : float
        Of the CPU seconds of each experiment and method.
    seed : int
        Of the draw.

    Returns
    -------
    dict
        Names of rows by experiment.
    """
    rng, found = np.random.default_rng(seed), dict[str, list[str]]()
    for experiment in kept.experiments:
        plan = plans.get(experiment, ())
        same, few = kept.same(experiment, plan), kept.few(experiment)
        groups, replicates = dict[str, list[str]](), _replicates(plan)
        for row in plan:
            if row["row"] in same:
                code = digest_of_rows(kept.study, experiment, [row])
                groups.setdefault(code, []).append(row["row"])
        for code, names in groups.items():
            least = LEAST if code in few else 1
            seconds = [float(kept.seconds.get((experiment, name), 0.0)) for name in names]
            spent, limit = 0.0, share * sum(seconds)
            order = [*rng.permutation(len(names))]
            judged = sorted(order, key=lambda k: replicates[names[k]] < REPLICATES)
            order = judged if code in few else [judged[0], *(k for k in order if k != judged[0])]
            for count, k in enumerate(order, start=1):
                found.setdefault(experiment, []).append(names[k])
                spent += seconds[k]
                if spent >= limit and count >= least:
                    break
    return found


def _replicates(plan: Iterable[Row]) -> dict[str, int]:
    """How many rows have the settings of each row, but for `NUMBERS`."""
    keys = {
        row["row"]: repr({name: row[name] for name in row if name not in NUMBERS}) for row in plan
    }
    counts = Counter(keys.values())
    return {name: counts[key] for name, key in keys.items()}


def differences(kept: Table, found: Table) -> str:
    """Return the first difference between kept rows and the same rows run again; empty if there is none.

    A difference by rounding (`ROUNDING`) begins with "rounding", and so does one of a count of work, which is no
    result: rounding may decide whether a tolerance is met. Seconds are not compared.
    """
    old = kept.rows.reset_index(drop=True)
    new = found.rows.reset_index(drop=True)
    if len(old) != len(new):
        return f"{len(old)} lines kept, {len(new)} here"
    rounded, nothing = "", pd.Series("", old.index)
    for column in old.columns.union(new.columns, sort=False):
        pairs = zip(old.get(column, nothing), new.get(column, nothing), strict=True)
        for line, (one, two) in enumerate(pairs, start=1):
            distance = apart(one, two)
            if not distance:
                continue
            said = f"line {line}, {column}: {one or 'nothing'} kept, {two or 'nothing'} here"
            if distance > ROUNDING and not column.startswith(WORK):
                return said
            rounded = rounded or f"{ROUNDED}: {said}"
    if kept.arrays.keys() != found.arrays.keys():
        return f"arrays {sorted(kept.arrays)} kept, {sorted(found.arrays)} here"
    for name, array in kept.arrays.items():
        other = found.arrays[name]
        if array.dtype.kind in "US":
            continue
        one, two = (f"{array.dtype} {array.shape}" for array in (array, other))
        if one != two:
            return f"array {name}: {one} kept, {two} here"
        if array.tobytes() != other.tobytes():
            if array.dtype.kind != "f" or _distance(array, other) > ROUNDING:
                return f"array {name}: other values"
            rounded = rounded or f"rounding: array {name}"
    return rounded


def apart(one: str, two: str) -> float:
    """How far two entries are from each other: infinitely far, if they are other texts."""
    try:
        return 0.0 if one == two else _distance(np.array(float(one)), np.array(float(two)))
    except ValueError:
        return math.inf


def _distance(one: np.ndarray, two: np.ndarray) -> float:
    """The largest difference of two arrays, relative to the larger of one and their size."""
    size = np.maximum(1.0, np.maximum(np.abs(one), np.abs(two)))
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.abs(one - two) / size, nan=math.inf)
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    return float(np.where(same, 0.0, apart).max(initial=0.0))
