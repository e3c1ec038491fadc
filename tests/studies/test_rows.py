"""Rows of a plan, run in any order and in any number of jobs, put together, and taken over by later jobs."""

import json
import random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest

from recheck.record.files import DamagedFileError, read_arrays, write_arrays
from studies.common.blocks import (
    BEFORE,
    Input,
    Reader,
    Spares,
    forget,
    made_from,
    read_block,
    remember,
    table,
    write_block,
)
from studies.common.rows import (
    NO_DATA,
    Result,
    part_of,
    planned,
    read_table,
    records_of,
    run_row,
    table_of,
    write_table,
)
from studies.common.seeds import generator, seed

INPUTS = {"data": {"x": np.arange(3.0)}}


def plan(methods=("one", "two"), runs=4):
    return planned(
        {
            "row": f"{method}/run{k}",
            "method": method,
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
        line |= {"count": 7, "flag": bool(rng.random() > 0.5), "none": None}
    arrays = {} if row["method"] == "one" else {"draws": rng.standard_normal(5)}
    return Result([line, {"method": row["method"], "seed": row["seed"]}], arrays)


def alone(row):
    return run_row(run, row, INPUTS, f"made from {row['row']}")


def block(path, rows, records=None):
    by_name = {record.row: record for record in records or map(alone, rows)}
    write_block(path, {"e": {row["row"]: by_name[row["row"]] for row in rows}})
    return path


def written(paths, folder):
    write_table(folder / "all", table(paths, "e", [row["row"] for row in plan()]))
    return [(folder / f"all{end}").read_bytes() for end in (".csv", ".npz")]


@pytest.fixture
def whole(tmp_path):
    return written([block(tmp_path / "whole.npz", plan())], tmp_path / "whole")


@pytest.mark.parametrize("how", ["one by one", "shuffled", "in blocks", "in other processes"])
def test_the_bytes_do_not_depend_on_how_rows_are_run(whole, tmp_path, how):
    rows, records = plan(), None
    parts = [rows]
    if how == "shuffled":
        parts = [random.Random(3).sample(rows, len(rows))]
    if how == "one by one":
        parts = [[row] for row in rows]
    if how == "in blocks":
        parts = [rows[5:], rows[:5]]
    if how == "in other processes":
        with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
            records = list(pool.map(alone, rows))
    paths = [block(tmp_path / f"{k}.npz", part, records) for k, part in enumerate(parts)]
    assert written(paths, tmp_path / "other") == whole


def test_a_whole_number_is_written_as_one_beside_gaps(whole):
    assert b",7," in whole[0] and b"7.0" not in whole[0] and b"None" not in whole[0]


def test_arrays_are_stacked_with_the_names_of_their_rows(whole, tmp_path):
    arrays = read_arrays(tmp_path / "whole/all.npz")
    assert arrays["draws"].shape == (4, 5)
    assert arrays["draws/rows"].tolist() == [f"two/run{k}" for k in range(4)]


def test_a_block_is_read_as_it_was_written(tmp_path):
    rows = plan()
    one = {row["row"]: alone(row) for row in rows}
    two = {"a": run_row(run, rows[-1] | {"row": "a"}, INPUTS, "x")}
    write_block(tmp_path / "b.npz", {"e": one, "other": two})
    found = read_block(tmp_path / "b.npz")
    assert list(found) == ["e", "other"] and list(found["e"]) == list(one)
    for name, record in {**one, **two}.items():
        same = found["other" if name == "a" else "e"][name]
        assert same[:4] == record[:4]
        assert {k: v.tobytes() for k, v in same.arrays.items()} == {
            k: v.tobytes() for k, v in record.arrays.items()
        }


def test_an_altered_block_is_refused_by_name(tmp_path):
    path = block(tmp_path / "b.npz", plan())
    path.write_bytes(path.read_bytes().replace(b'"value": "', b'"value": "1', 1))
    with pytest.raises(DamagedFileError, match=r"b\.npz"):
        read_block(path)
    write_arrays(path, {"x": np.zeros(1)})
    with pytest.raises(DamagedFileError, match=r"b\.npz: it has no rows"):
        read_block(path)


def test_a_row_that_is_in_no_block_is_named(tmp_path):
    with pytest.raises(ValueError, match="e: 1 rows are in no block, two/run3"):
        table([block(tmp_path / "b.npz", plan()[:-1])], "e", [row["row"] for row in plan()])


def test_two_rows_of_one_name_are_refused():
    with pytest.raises(ValueError, match="twice are \\['a'\\]"):
        planned([{"row": "a"}, {"row": "a"}])


def test_without_data_each_row_says_so():
    found = table_of(run_row(run, row, {"data": {}}) for row in plan(runs=1))
    assert found.rows["status"].tolist() == [NO_DATA] * 2
    assert found.rows["method"].tolist() == ["one", "two"]
    assert not found.arrays


def test_a_part_of_a_table_has_all_columns(whole, tmp_path):
    every = read_table(tmp_path / "whole/all")
    part = part_of(every, ["two/run1"])
    assert list(part.rows) == list(every.rows) and len(part.rows) == 2
    assert part.arrays["draws"].shape == (1, 5)
    assert isinstance(part.timing, pd.DataFrame) and len(part.timing) == 1


def test_a_table_gives_its_records_back(whole, tmp_path):
    names = {row["row"]: "x" for row in plan()}
    records = records_of(read_table(tmp_path / "whole/all"), names)
    path = tmp_path / "again.npz"
    write_block(path, {"e": {record.row: record for record in records}})
    assert written([path], tmp_path / "again") == whole


# --- Rows that are taken over


def remembered(path, rows):
    block(path, rows)
    remember(path)
    return path


def test_rows_are_taken_over_from_whichever_block_had_them(tmp_path):
    rows = plan()
    for k, part in enumerate((rows[:3], rows[3:])):
        remembered(tmp_path / f"rows/{k}.npz", part).unlink()  # as Snakemake does before a job
    spares = Spares(tmp_path / "rows")
    for row in rows:
        record = alone(row)
        assert spares.get(record.made).lines == record.lines
    assert spares.get("made from another setting") is None


def test_a_damaged_spare_is_no_spare(tmp_path):
    path = remembered(tmp_path / "rows/0.npz", plan())
    (spare,) = (tmp_path / "rows" / BEFORE).glob("*.npz")
    spare.write_bytes(spare.read_bytes()[:-100])
    assert Spares(tmp_path / "rows").get(alone(plan()[0]).made) is None
    with pytest.raises(DamagedFileError, match="delete it"):  # it is one file, under two names
        read_block(path)


def test_what_no_job_has_as_its_output_is_forgotten(tmp_path):
    folder = tmp_path / "rows"
    remembered(folder / "0.npz", plan()[:3]).unlink()
    remembered(folder / "0.npz", plan()[:2])
    assert len(list((folder / BEFORE).glob("*.npz"))) == 2
    forget(folder)
    assert len(list((folder / BEFORE).glob("*.npz"))) == 1
    assert Spares(folder).get(alone(plan()[0]).made)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"seconds": 9.0}, True),
        ({"samples": 11}, False),
        ({"code": "b"}, False),
        ({"inputs": {"data": "other"}}, False),
    ],
)
def test_a_row_is_taken_over_if_settings_code_and_inputs_are_the_same(change, same):
    row, code, inputs = plan()[0], "a", {"data": "content"}
    before = made_from("s", "e", row, code, inputs)
    code, inputs = change.pop("code", code), change.pop("inputs", inputs)
    assert (made_from("s", "e", row | change, code, inputs) == before) == same


def test_inputs_are_patterns_or_rows_of_others(tmp_path):
    write_arrays(tmp_path / "x.npz", INPUTS["data"])
    path = str(block(tmp_path / "b.npz", plan()))
    reader = Reader({"e": {}})
    patterns, others = Input([str(tmp_path / "x.npz")]), Input([path], "e", ["two/run1"])
    np.testing.assert_array_equal(reader.arrays(patterns)["x"], INPUTS["data"]["x"])
    digest = json.loads((tmp_path / "x.npz.digest").read_text())["sha256"]
    assert reader.content(patterns) == digest
    assert reader.content(others) == ["made from two/run1"]
    arrays = reader.arrays(others)
    assert arrays["draws/rows"].tolist() == ["two/run1"] and arrays["draws"].shape == (1, 5)
    # what the same job has run already comes first
    own = Reader({"e": {"two/run1": alone(plan()[-1])._replace(row="two/run1")}})
    assert own.content(others) == ["made from two/run3"]
