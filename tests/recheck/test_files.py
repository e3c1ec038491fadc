"""Result files: equal bytes for equal content, and a clear refusal of every damaged one."""

import gzip
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recheck.record import files
from recheck.record.files import (
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
            DamagedFileError, match=f"{name}: .*changed.*delete it and make it again"
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


def packed(path, content, rows):
    path.write_bytes(content)
    digest = {"sha256": sha256(path), "rows": rows, "about": {}}
    digest_path(path).write_text(json.dumps(digest))
    return path


def zipped(entries, **more):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def plain_array():
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        plain_array(),
        zipped({"a.npy": b"\x93NUMPY\x01\x00\xff\xff{'descr': '<f8', 'shape': (9"}),
        zipped({"a.npy": b"x" * 100}).replace(b"PK\x01\x02", b"PK\x01\x03"),
        zipped({"a.txt": b"no array"}),
        b"",
    ],
)
def test_odd_archives_are_damaged_files(tmp_path, content):
    with pytest.raises(DamagedFileError, match="odd.npz"):
        read_arrays(packed(tmp_path / "odd.npz", content, 2))


def test_an_archive_that_unpacks_to_more_than_a_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LARGEST", 1000)
    with pytest.raises(DamagedFileError, match="bytes when it is unpacked"):
        read_arrays(packed(tmp_path / "bomb.npz", zipped({"a.npy": b"0" * 10_000}), 1))


def test_compressed_tables_that_end_early_are_damaged(tmp_path):
    content = gzip.compress(b"a\n1\n")[:-6]
    with pytest.raises(DamagedFileError, match="not compressed as its name says"):
        read_csv(packed(tmp_path / "a.csv.gz", content, 1))


@pytest.mark.parametrize(
    "text", ["[]", "1", "[" * 100_000, '{"a.csv": []}', '{"a.csv": {"sha256": "0", "rows": "x"}}']
)
def test_digests_of_another_form_are_damaged(tmp_path, text):
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "digests.json").write_text(text)
    with pytest.raises(DamagedFileError):
        read_csv(tmp_path / "a.csv")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.integers(0, 10**6), st.binary(max_size=8), st.sampled_from(["x.npz", "x.csv", "x.csv.gz"])
)
def test_nonsense_with_a_matching_digest_is_damaged_or_read(tmp_path, place, bits, name):
    """Bytes of a file are replaced, and its digest with them: what cannot be read is refused by name."""
    path = tmp_path / name
    write, read = (write_arrays, read_arrays) if name.endswith("npz") else (write_csv, read_csv)
    write(path, ARRAYS if name.endswith("npz") else FRAME)
    content = path.read_bytes()
    at = place % (len(content) + 1)
    packed(path, content[:at] + bits + content[at + len(bits) :], 3)
    try:
        read(path)
    except DamagedFileError as error:
        if name not in str(error):
            raise
