"""Result files: equal bytes for equal content, and a clear refusal of every damaged one."""

import json

import numpy as np
import pandas as pd
import pytest

from recheck.files import (
    DamagedFileError,
    digest_path,
    read_arrays,
    read_csv,
    read_json,
    sha256,
    write_arrays,
    write_csv,
    write_json,
    write_text,
)

FRAME = pd.DataFrame({"name": ["a", "b,c", 'd"'], "value": [0.1, 1 / 3, 1e-300]})
ARRAYS = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([True, False]), "file": np.array(["x"])}


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_csv_comes_back_to_the_last_bit(tmp_path, name):
    path = tmp_path / "deeper" / name
    write_csv(path, FRAME, job="one")
    pd.testing.assert_frame_equal(read_csv(path), FRAME, check_exact=True)
    assert read_json(digest_path(path))["about"] == {"job": "one"}
    assert read_json(digest_path(path))["rows"] == 3
    before = path.read_bytes()
    write_csv(path, FRAME)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.partial"))
    assert list(read_csv(path, usecols=["value"])) == ["value"]
    assert len(read_csv(path, nrows=1)) == 1


def test_an_empty_table_is_a_table(tmp_path):
    write_csv(tmp_path / "t.csv", FRAME.iloc[:0])
    assert read_csv(tmp_path / "t.csv").empty


def test_arrays_come_back_and_bytes_do_not_depend_on_order(tmp_path):
    write_arrays(tmp_path / "1.npz", ARRAYS)
    write_arrays(tmp_path / "2.npz", dict(reversed(ARRAYS.items())))
    assert sha256(tmp_path / "1.npz") == sha256(tmp_path / "2.npz")
    stored = read_arrays(tmp_path / "1.npz")
    assert stored.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(stored[name], array)


def test_objects_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"arrays\['x'\].*Python objects"):
        write_arrays(tmp_path / "o.npz", {"x": np.array([{}])})
    assert not list(tmp_path.iterdir())


def test_about_that_json_cannot_hold_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        write_csv(tmp_path / "t.csv", FRAME, what=object())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_every_damage_is_refused_by_name(tmp_path, name):
    path = tmp_path / name
    write_csv(path, FRAME)
    whole = path.read_bytes()
    for damaged in (whole[:-7], whole.replace(whole[-9:-8], b"7"), b""):
        path.write_bytes(damaged)
        with pytest.raises(
            DamagedFileError, match=f"{name}: .*changed.*delete it and run snakemake"
        ):
            read_csv(path)
    path.write_bytes(whole)
    stored = json.loads(digest_path(path).read_text())
    digest_path(path).write_text(json.dumps(stored | {"rows": 2}))
    with pytest.raises(DamagedFileError, match="3 rows, its digest says 2"):
        read_csv(path)
    digest_path(path).write_text("[]")
    with pytest.raises(DamagedFileError, match="not a digest"):
        read_csv(path)
    digest_path(path).unlink()
    with pytest.raises(DamagedFileError, match="no digest"):
        read_csv(path)


def test_damaged_arrays_and_json_are_refused_by_name(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, ARRAYS)
    stored = json.loads(digest_path(path).read_text())
    digest_path(path).write_text(json.dumps(stored | {"rows": 9}))
    with pytest.raises(DamagedFileError, match="3 arrays, its digest says 9"):
        read_arrays(path)
    path.write_bytes(b"PK no archive")
    with pytest.raises(DamagedFileError, match=r"a\.npz.*changed"):
        read_arrays(path)
    digest_path(path).write_text(json.dumps({"rows": 1, "sha256": sha256(path)}))
    with pytest.raises(DamagedFileError, match=r"a\.npz: not an npz"):
        read_arrays(path)
    write_text(tmp_path / "x.json", "{")
    with pytest.raises(DamagedFileError, match=r"x\.json"):
        read_json(tmp_path / "x.json")


def test_json_is_written_in_order(tmp_path):
    write_json(tmp_path / "x.json", {"b": 1, "a": "é"})
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == '{\n "a": "é",\n "b": 1\n}\n'


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_csv(tmp_path / "no.csv")
