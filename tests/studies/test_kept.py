"""Pieces that the repository keeps: storing, putting back, and what is refused."""

import copy
import json
import pickle
import zipfile

import numpy as np
import pytest

from studies.common import kept, pieces
from studies.common.counts import Count
from studies.common.kept import keep, resume
from studies.common.pieces import DamagedPieceError, Pieces, decode, encode

MODULES = ["studies.common.seeds"]


def make(folder, names=("a", "b"), parameters=1, job=None):
    """Pieces of a job; returns which of them were computed."""
    computed = []

    def compute(name):
        computed.append(name)
        return [{"name": name, "x": 0.5}], [{"cpu_seconds": 1.0}], {"x": np.arange(3.0)}

    made = Pieces(folder, MODULES, parameters, job=job or f"{folder.parent.name}/{folder.name}")
    for name in names:
        made.get(name, lambda name=name: compute(name))
    return computed


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(bytes(content))


def repack(archive, change):
    """Write an archive again, its entries (name to bytes) changed by a function."""
    with zipfile.ZipFile(archive) as stored:
        entries = {name: stored.read(name) for name in stored.namelist()}
    change(entries)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_LZMA) as stored:
        for name, content in entries.items():
            stored.writestr(name, content)


def test_pieces_come_back_and_only_the_rest_is_computed(tmp_path):
    make(tmp_path / "run/experiment4/problem1_ep")
    aside = tmp_path / "run/experiment1/N50.finished"  # as the workflow sets aside a complete job
    make(aside, job="experiment1/N50")
    found = keep(tmp_path / "run", tmp_path / "store")
    assert [(job.job, job.pieces, job.refused) for job in found] == [
        ("experiment1/N50", 2, ()),
        ("experiment4/problem1_ep", 2, ()),
    ]
    assert resume(tmp_path / "store", tmp_path / "other") == found
    assert make(tmp_path / "other/experiment1/N50", "abc") == ["c"]
    assert make(tmp_path / "other/experiment4/problem1_ep", parameters=2) == ["a", "b"]
    assert not list((tmp_path / "other").rglob("*.partial"))


def test_a_count_of_pieces_voids_none(tmp_path):
    """Of three sets one is computed where two are there; a job with one set drops the others when it is done."""
    folder = tmp_path / "run/evidence/conditionals"
    of = {k: [{"n": 50, "sets": Count(k)}, {"data": "0f"}] for k in (1, 2, 3)}
    assert make(folder, ("set0", "set1"), of[2]) == ["set0", "set1"]
    assert make(folder, ("set0", "set1", "set2"), of[3]) == ["set2"]
    assert make(folder, ("set0",), [{"n": 51, "sets": Count(1)}, {"data": "0f"}]) == ["set0"]
    last = Pieces(folder, MODULES, of[1], job="evidence/conditionals")
    last.get("set0", lambda: pytest.fail("it is there"))
    last.finish()
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["done", f"{last.key}.json", f"set0-{last.key}.npz"]
    )
    # what a script of the workflow is given went through these
    assert type(copy.deepcopy(Count(3))) is type(pickle.loads(pickle.dumps(Count(3)))) is Count


def test_the_store_grows_and_its_bytes_depend_on_the_pieces_alone(tmp_path):
    make(tmp_path / "run/e/job", "a")
    keep(tmp_path / "run", tmp_path / "store")
    make(tmp_path / "more/e/job", "b")
    assert keep(tmp_path / "more", tmp_path / "store")[0].pieces == 2
    make(tmp_path / "both/e/job", "ba")
    keep(tmp_path / "both", tmp_path / "once")
    assert (tmp_path / "store/e/job.zip").read_bytes() == (tmp_path / "once/e/job.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "store/e/job.zip") as archive:
        assert {member.date_time[0] for member in archive.infolist()} == {1980}, "no clock"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"code": {"studies.common.seeds": "0"}}, "studies.common.seeds"),
        ({"libraries": {"numpy": "1.0"}}, "numpy"),
        ({"modules": ["gpcmc.gone"]}, "gpcmc.gone"),
    ],
)
def test_pieces_of_other_sources_are_neither_kept_nor_put_back(tmp_path, changes, named):
    make(tmp_path / "run/e/new")
    keep(tmp_path / "run", tmp_path / "store")
    record = pieces.record(MODULES, 1) | changes
    piece = [{"x": 1.0}], [], {}
    old = kept.carried(kept.Archive("e/old"), record, {"a": piece})
    kept.write_archive(old, tmp_path / "store/e/old.zip")
    new, old = resume(tmp_path / "store", tmp_path / "other")
    assert (new.job, new.pieces, new.outdated) == ("e/new", 2, ())
    assert (old.job, old.pieces) == ("e/old", 0) and named in old.outdated
    assert not (tmp_path / "other/e/old").exists()
    assert named in kept.summary([new, old], "put back")
    keep(tmp_path / "run", tmp_path / "store")
    assert [path.name for path in (tmp_path / "store/e").iterdir()] == ["new.zip"]


def test_resuming_from_nothing_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="store must hold archives of pieces"):
        resume(tmp_path / "store", tmp_path / "run")


# --- what is damaged


def test_a_flipped_byte_in_an_archive_costs_one_piece(tmp_path):
    make(tmp_path / "run/e/job")
    make(tmp_path / "run/e/other")
    keep(tmp_path / "run", tmp_path / "store")
    archive = tmp_path / "store/e/job.zip"
    with zipfile.ZipFile(archive) as stored:
        (name,) = (n for n in stored.namelist() if n.startswith("b-"))
        place = stored.getinfo(name).header_offset + len(name) + 60
    flip(archive, place)
    job, other = resume(tmp_path / "store", tmp_path / "back")
    assert (job.pieces, other.pieces, other.refused) == (1, 2, ())
    (line,) = job.refused
    assert line.startswith(f"e/job, piece b, {archive}: refused, it cannot be read")
    assert line in kept.summary([job, other], "put back")
    assert make(tmp_path / "back/e/job") == ["b"]


def test_a_damaged_archive_is_named_and_the_others_are_restored(tmp_path):
    make(tmp_path / "run/e/job")
    make(tmp_path / "run/e/other")
    keep(tmp_path / "run", tmp_path / "store")
    whole = (tmp_path / "store/e/job.zip").read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"no archive"):
        (tmp_path / "store/e/job.zip").write_bytes(content)
        job, other = resume(tmp_path / "store", tmp_path / "back")
        assert (job.pieces, other.pieces) == (0, 2)
        assert "job.zip: the archive refused" in job.refused[0]


@pytest.mark.parametrize("name", ["../../x.json", "/x.json", "a/b-0123456789abcdef.npz", "x.txt"])
def test_entries_with_other_names_are_refused_and_the_rest_is_restored(tmp_path, name):
    make(tmp_path / "run/e/job")
    keep(tmp_path / "run", tmp_path / "store")
    repack(tmp_path / "store/e/job.zip", lambda entries: entries.update({name: b"{}"}))
    before = set(tmp_path.rglob("*"))
    (job,) = resume(tmp_path / "store", tmp_path / "a/b/c/back")
    assert job.pieces == 2 and repr(name) in job.refused[0]
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert all(path.is_relative_to(tmp_path / "a/b/c/back/e/job") for path in written)


def test_an_altered_number_is_refused_and_computed_again(tmp_path, capsys):
    folder = tmp_path / "run/e/job"
    make(folder)
    (path,) = folder.glob("a-*.npz")
    with np.load(path) as stored:
        found = dict(stored)
    found["x"] = found["x"] * 0.9
    np.savez(path, **found)
    assert make(folder) == ["a"]
    said = capsys.readouterr().err
    assert f"e/job, piece a, {path}: refused, its content does not fit its digest" in said
    assert make(folder) == []


def test_two_pieces_cannot_be_exchanged(tmp_path, capsys):
    make(tmp_path / "run/e/job")
    keep(tmp_path / "run", tmp_path / "store")

    def exchange(entries):
        a, b = (n for n in entries if n.endswith(".npz"))
        entries[a], entries[b] = entries[b], entries[a]

    repack(tmp_path / "store/e/job.zip", exchange)
    (job,) = resume(tmp_path / "store", tmp_path / "back")
    assert job.pieces == 0 and "it is piece b of e/job" in job.refused[0]
    with pytest.raises(DamagedPieceError, match="it is piece a of e/job"):
        decode("e/other", "a", encode("e/job", "a", ([], [], {})))


def test_a_record_that_does_not_fit_its_key_is_refused(tmp_path):
    make(tmp_path / "run/e/job")
    keep(tmp_path / "run", tmp_path / "store")

    def edit(entries):
        (name,) = (n for n in entries if n.endswith(".json"))
        entries[name] = json.dumps(json.loads(entries[name]) | {"parameters": 2}).encode()

    repack(tmp_path / "store/e/job.zip", edit)
    (job,) = resume(tmp_path / "store", tmp_path / "back")
    assert job.pieces == 0 and "it does not fit its key" in job.refused[0]


def test_what_a_piece_may_not_be():
    with pytest.raises(ValueError, match="arrays must not be named rows or about"):
        encode("e/job", "a", ([], [], {"rows": np.ones(1)}))
    for content in (b"", b"x", encode("e/job", "a", ([], [], {}))[:-30]):
        with pytest.raises(DamagedPieceError, match="it cannot be read"):
            decode("e/job", "a", content)
