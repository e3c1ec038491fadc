"""Golden rows: some of the kept rows of a study, and the estimates that its measures make of them.

``golden/<study>`` has them as ``data/reference/<study>`` has all: lines and arrays of each experiment, and the seconds.
They do not change when the results are kept anew; where the columns of an experiment change, or what measures make of
them is meant to change, they are made again from the kept rows::

    PYTHONPATH=src:tests/studies python -m golden
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
from small import numbers

from recheck.judge.measures import estimate
from recheck.judge.published import read_published
from recheck.record.files import gather_digests, write_arrays, write_csv, write_json
from studies.atiya2021.patterns import patterns
from studies.common.kept import Kept
from studies.common.measuring import Rows, measured
from studies.common.plan import declared
from studies.common.rows import part_of, read_table, write_table

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("golden")
#: Names of rows, by experiment. Of Experiment 4 a problem whose patterns are drawn, at all settings of a cell.
CHOSEN = {
    "atiya2021": {
        "experiment1": r"N\d+/instance[0-2]/M(10000|100000|3000000)",
        "quadrature": r"N\d+/instance[0-2]",
        "inexact": r"N\d+/problem[0-3]",
        "experiment2": r"problem[12]/dataset[01]/M(10000|30000|100000)/run[01]",
        "experiment3": r"(orthant|ess(-ais|-gpml)?|hmc-gpml|importance-ep|laplace|ep)/dataset[01]/size[0-2]/run[01]",
        "experiment4": r"problem1/(orthant(-million-hard)?|control-variables|ess-gpml(-400)?|hmc-gpml(-20)?|ess|ep)"
        r"/set\d/dataset[01]/replicate[01]",
        "spread": r"problem[16]/dataset[0-2]",
        "benchmark": r"problem1/(orthant|ess)-part\d+/set[34]/dataset0/replicate[01]",
        "posterior_chains": r"problem1/.*",
        "experiment5": r"problem1/.*",
        "tuning": r"problem1/.*",
        "tuning_gradient": r"problem1/.*",
        "scaling": r"(rough|smooth)/N(50|500)/dataset[01]/.*",
        "asymptotic_variance": r"(rough|smooth)/N(50|500)/dataset[01]",
        "whofits": r"(wisconsin|digits-odd)/split0/.*",
        "variances": r"(process|boundary)/N(20|40)/dataset[01]/.*",
        "advice": r"(linnerud|ionosphere)/.*|(smooth|rough)/N(50|500)/dataset[01]/.*",
        "ordering": r"dataset[0-2]/.*/run0/.*",
        "defects": r"(linear|smooth)/ess/samples(50|200)/replicate[01]",
        "equations": r".*",
        "reference_check": r".*",
    }
}
#: Experiments whose arrays are measured.
WITH_ARRAYS = ("experiment4", "benchmark", "advice")
ESTIMATED = ["id", "reading", "unit", "scale", "value", "se", "df", "units", "runs", "status"]
ESTIMATED += ["source"]


def tables(study: str, folder: Path, part: str = "") -> Path:
    """Write the golden rows as the tables that a part of the measures reads, or all, and the patterns beside them."""
    kept = Kept(GOLDEN / study)
    for experiment in declared(study).measures[part] if part else kept.experiments:
        write_table(folder / experiment, kept.table(experiment))
    drawn = patterns("problem1", seed=kept.provenance["seed"], standardise={})
    write_arrays(folder / "experiment4/problem1.npz", drawn)
    return folder


def rows_of(study: str, experiment: str) -> pd.DataFrame:
    """The golden rows of an experiment."""
    return numbers(Kept(GOLDEN / study).table(experiment).rows)


def alter(folder: Path, experiment: str, query: str, **values: Any) -> None:
    """Give rows of a table that fit a query other values; leave them out where there are none."""
    table = read_table(folder / experiment)
    rows = numbers(table.rows)
    chosen = rows.eval(query)
    if not values:
        rows = rows[~chosen]
    for name, value in values.items():
        rows[name] = rows[name].astype(object).mask(chosen, value)
    timing = table.timing[table.timing["row"].isin(rows["row"])]
    write_table(folder / experiment, table._replace(rows=rows, timing=timing))


def measures(study: str, folder: Path, parts: list[str] | None = None) -> pd.DataFrame:
    """What measures make of such tables: of all parts, or of some."""
    own = Path("data/published", study), Path("data/reference", study)
    published, reference = (ROOT / path for path in own)
    return pd.concat(
        [
            measured(
                import_module(f"studies.{study}.measures.{part}"),
                Rows(folder, published, reference, declared(study).measures[part]),
            )
            for part in parts or declared(study).measures
        ],
        ignore_index=True,
    )


def estimates(study: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Estimates as they are kept here."""
    regions = read_published(ROOT / "data/published" / study).regions
    found = estimate(frame, regions)
    return found[[column for column in ESTIMATED if column in found]].reset_index(drop=True)


def make(study: str) -> None:
    """Take the rows from those that are kept, and the estimates from today's measures."""
    kept, place, timing = Kept(ROOT / "data/reference" / study), GOLDEN / study, []
    for experiment, pattern in CHOSEN[study].items():
        every = kept.table(experiment)
        names = [name for name in every.rows["row"].unique() if re.fullmatch(pattern, name)]
        table = part_of(every, names)
        write_csv(place / f"{experiment}.csv", table.rows.loc[:, (table.rows != "").any()])
        timing.append(table.timing.assign(experiment=experiment))
        if experiment in WITH_ARRAYS:
            write_arrays(place / f"{experiment}.npz", table.arrays, packed=True)
    seconds = pd.concat(timing, ignore_index=True).fillna("")
    seconds = seconds.loc[:, (seconds != "").any()]
    write_csv(place / "timing.csv", seconds)
    record = {"commit": kept.provenance["commit"], "seed": kept.provenance["config"]["seed"]}
    write_json(place / "provenance.json", record | {"code": {name: {} for name in CHOSEN[study]}})
    gather_digests(place)


if __name__ == "__main__":
    import tempfile

    for chosen in CHOSEN:
        make(chosen)
        with tempfile.TemporaryDirectory() as name:
            found = estimates(chosen, measures(chosen, tables(chosen, Path(name))))
        write_csv(GOLDEN / chosen / "estimates.csv", found)
        gather_digests(GOLDEN / chosen)
