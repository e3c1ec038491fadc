"""Rows of a plan, run in any order and in any number of jobs, and put together."""

import random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest

from recheck.record.files import read_arrays
from studies.common.rows import (
    NO_DATA,
    Result,
    block,
    gather,
    part_of,
    planned,
    read_table,
    records,
    run_rows,
    write_table,
)
from studies.common.seeds import generator, seed

INPUTS = {"data": {"x": np.arange(3.0)}}


def plan(methods=("one", "two"), runs=4):
    return planned(
        {
            "row": f"{method}/run{k}",
            "method": method,
            "block": k // 2,
            "samples": 10,
            "seed": seed(1, method, f"run{k}"),
        }
        for method in methods
        for k in range(runs)
    )


def run(row, inputs):
    """Lines whose columns differ, whole numbers beside gaps, and an array of some of the rows."""
    rng = generator(row["seed"])
    line = {"method": row["method"], "value": rng.random() + inputs["data"]["x"].sum()}
    if row["method"] == "two":
        line |= {"count": 7, "flag": bool(rng.random() > 0.5)}
    arrays = {} if row["method"] == "one" else {"draws": rng.standard_normal(5)}
    return Result([line, {"method": row["method"], "seed": row["seed"]}], arrays)


def alone(row):
    return run_rows(run, [row], INPUTS)


def written(tables, order, folder):
    write_table(folder / "all", gather(tables, order))
    return [(folder / f"all{end}").read_bytes() for end in (".csv", ".npz")]


@pytest.fixture
def whole(tmp_path):
    rows, folder = plan(), tmp_path / "whole"
    return written([run_rows(run, records(rows), INPUTS)], rows["row"].tolist(), folder)


@pytest.mark.parametrize(
    "how", ["one by one", "shuffled", "in blocks", "in other processes", "from files"]
)
def test_the_bytes_do_not_depend_on_how_rows_are_run(whole, tmp_path, how):
    rows = records(plan())
    order = [row["row"] for row in rows]
    if how == "shuffled":
        rows = random.Random(3).sample(rows, len(rows))
    if how == "in other processes":
        with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
            tables = list(pool.map(alone, rows))
    elif how in ("in blocks", "from files"):
        parts = [[row for row in rows if row["block"] == k] for k in (1, 0)]
        tables = [run_rows(run, part, INPUTS) for part in parts]
    else:
        tables = [alone(row) for row in rows]
    if how == "from files":
        for k, table in enumerate(tables):
            write_table(tmp_path / f"block{k}", table)
        tables = [read_table(tmp_path / f"block{k}") for k in range(2)]
    assert written(tables, order, tmp_path / "other") == whole


def test_a_whole_number_is_written_as_one_beside_gaps(whole):
    assert b",7," in whole[0] and b"7.0" not in whole[0]


def test_arrays_are_stacked_with_the_names_of_their_rows(whole, tmp_path):
    arrays = read_arrays(tmp_path / "whole/all.npz")
    assert arrays["draws"].shape == (4, 5)
    assert arrays["draws/rows"].tolist() == [f"two/run{k}" for k in range(4)]


@pytest.mark.parametrize(
    ("seconds", "jobs"), [(1.0, [0, 0, 0]), (100.0, [0, 0, 1]), (900.0, [0, 1, 2])]
)
def test_a_block_holds_about_four_minutes(seconds, jobs):
    assert [block(k, seconds) for k in range(3)] == jobs


def test_two_rows_of_one_name_are_refused():
    with pytest.raises(ValueError, match="twice are \\['a'\\]"):
        planned([{"row": "a"}, {"row": "a"}])


def test_without_data_each_row_says_so():
    table = run_rows(run, records(plan(runs=1)), {"data": {}})
    assert table.rows["status"].tolist() == [NO_DATA] * 2
    assert table.rows["method"].tolist() == ["one", "two"]
    assert not table.arrays


def test_entries_that_a_line_does_not_have_are_not_in_its_row():
    first, second = records(planned([{"row": "a", "x": 1}, {"row": "b"}]))
    assert first["x"] == 1 and "x" not in second


def test_a_part_of_a_table_has_all_columns(whole, tmp_path):
    table = read_table(tmp_path / "whole/all")
    part = part_of(table, ["two/run1"])
    assert list(part.rows) == list(table.rows) and len(part.rows) == 2
    assert part.arrays["draws"].shape == (1, 5)
    assert isinstance(part.timing, pd.DataFrame) and len(part.timing) == 1
