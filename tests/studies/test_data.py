"""The data sets: registry, fetching from a hypothetical server, parsing, splitting, checking."""

from __future__ import annotations

import copy
import csv
import gzip
import hashlib
import logging
import os
import pickle
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.common import data as datasets
from studies.common.data import DamagedFileError, DataUnavailableError, Entry, RawData, fetch, split
from studies.common.data.parse import smooth

REPOSITORY = Path(__file__).resolve().parents[2]
REGISTRY = REPOSITORY / "data" / "registry.csv"
#: Data set, what a fact is about, the fact, and a value that it has not.
with Path(__file__).with_name("wrong_facts.csv").open(encoding="utf-8") as file:
    WRONG_FACTS = list(csv.reader(file))[1:]
RIGHT = b"one,two\n" + b"1,2\n" * 1000
WRONG = b"one;two\n" + b"1;2\n" * 1000


def entry_for(content, *sources, name="made", file="made.csv", **facts):
    return Entry(
        name=name,
        file=file,
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        licence="none stated",
        citation="made for this test",
        sources=sources,
        homepage="https://example.org/made",
        facts=facts,
    )


# --- a server that answers as told ----------------------------------------------------------------


def whole(content, length=None):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(length or len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def trickle(pause, pieces, size=2000):
    """Send `pieces` of so many bytes with a pause after each, without saying how many will come."""

    def answer(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(pieces):
            handler.wfile.write(bytes(size))
            handler.server.sent += size
            time.sleep(pause)

    return answer


def silent(handler):
    handler.server.released.wait(10)


def status(code):
    return lambda handler: handler.send_error(code)


class Server(ThreadingHTTPServer):
    """Answers each request to a path with the next of its answers; the last one repeats."""

    daemon_threads = True

    def __init__(self):
        self.answers, self.requests = {}, []
        self.sent = 0
        self.released = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    def address(self, path, *answers):
        self.answers[f"/{path}"] = list(answers)
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"

    def handle_error(self, request, client_address):
        """A client that hangs up early is what several tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        self.server.requests.append(self.path)
        answers = self.server.answers[self.path]
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join(5)


@pytest.fixture(autouse=True)
def no_mirrors_from_outside(monkeypatch):
    monkeypatch.delenv("GPCMC_DATA_MIRRORS", raising=False)


@pytest.fixture
def get(tmp_path):
    """`fetch` into tmp_path/raw, with short waits."""

    def get(entry, *mirrors, **limits):
        limits = {"timeout_seconds": 5, "backoff_seconds": 0.01, **limits}
        return fetch(entry, tmp_path / "raw", mirrors, root=tmp_path, **limits)

    return get


def leftovers(tmp_path):
    return os.listdir(tmp_path / "raw")


# --- fetching from addresses ----------------------------------------------------------------------


def test_right_bytes_are_fetched_once(server, get, tmp_path):
    entry = entry_for(RIGHT, server.address("a", whole(RIGHT)))
    path = get(entry)
    assert path == tmp_path / "raw" / "made.csv"
    assert path.read_bytes() == RIGHT
    assert get(entry_for(RIGHT)) == path  # verified and kept, as one that is placed by hand
    assert server.requests == ["/a"]
    assert leftovers(tmp_path) == ["made.csv"]


@pytest.mark.parametrize("wrong", [WRONG, WRONG[:-1], RIGHT + b"\n", b"<html>log in</html>"])
def test_wrong_bytes_fall_through_and_are_reported(wrong, server, get, tmp_path, caplog):
    first, second = server.address("a", whole(wrong)), server.address("b", whole(RIGHT))
    with caplog.at_level(logging.WARNING):
        assert get(entry_for(RIGHT, first, second)).read_bytes() == RIGHT
    assert server.requests == ["/a", "/b"]  # other bytes are not asked for again
    assert first in caplog.text and "registered" in caplog.text
    assert leftovers(tmp_path) == ["made.csv"]


def test_a_gz_file_arrives_packed(server, get):
    packed = gzip.compress(RIGHT)
    entry = entry_for(packed, server.address("made.gz", whole(packed)), file="made.gz")
    assert get(entry).read_bytes() == packed


TRUNCATED = whole(RIGHT[: len(RIGHT) // 2], len(RIGHT))


@pytest.mark.parametrize(
    ("content", "answer", "limits", "reason", "requests"),
    [
        (RIGHT, TRUNCATED, {"retries": 2}, "tried http", 3),
        (RIGHT, trickle(0.01, 500), {}, f"more than the registered {len(RIGHT)} bytes", 1),
        (RIGHT, silent, {"timeout_seconds": 0.2, "retries": 1}, "(?i)timed out", 2),
        (
            bytes(10**6),
            trickle(0.05, 200),
            {"deadline_seconds": 0.3, "retries": 0},
            "not finished after 0.3 seconds",
            1,
        ),
        (
            bytes(10**6),
            trickle(0.1, 100, size=1),
            {"deadline_seconds": 0.3, "retries": 0},
            "not finished after 0.3 seconds",
            1,
        ),
    ],
    ids=["truncated", "oversize", "silent", "trickling", "one byte at a time"],
)
def test_a_bad_download_never_takes_the_final_name(
    content, answer, limits, reason, requests, server, get, tmp_path
):
    start = time.monotonic()
    with pytest.raises(DataUnavailableError, match=reason):
        get(entry_for(content, server.address("a", answer)), **limits)
    assert time.monotonic() - start < 5
    assert server.requests == ["/a"] * requests
    assert server.sent < 500 * 2000 / 4  # refused early
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("answer", [TRUNCATED, *map(status, (500, 503, 429))])
def test_passing_failure_is_retried(answer, server, get):
    entry = entry_for(RIGHT, server.address("a", answer, answer, whole(RIGHT)))
    assert get(entry, retries=2).read_bytes() == RIGHT
    assert server.requests == ["/a"] * 3


def test_lasting_failure_is_not_retried(server, get):
    entry = entry_for(RIGHT, server.address("a", status(404)), server.address("b", whole(RIGHT)))
    assert get(entry).read_bytes() == RIGHT
    assert server.requests == ["/a", "/b"]


def test_back_off_doubles(server, get, monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr("studies.common.data.download.time.sleep", pauses.append)
    with pytest.raises(DataUnavailableError):
        get(entry_for(RIGHT, server.address("a", status(500))), retries=3, backoff_seconds=0.5)
    assert pauses == [0.5, 1.0, 2.0]


# --- files placed by hand, mirrors, nothing at all ------------------------------------------------


@pytest.mark.parametrize("wrong", [WRONG, b"", RIGHT * 2])
def test_damaged_file_placed_by_hand_is_refused_by_name(wrong, server, get, tmp_path):
    entry = entry_for(RIGHT, server.address("a", whole(RIGHT)))
    placed = tmp_path / "raw" / "made.csv"
    placed.parent.mkdir()
    placed.write_bytes(wrong)
    with pytest.raises(DamagedFileError) as caught:
        get(entry)
    message = str(caught.value)
    for part in (str(placed), entry.sha256, f"{len(RIGHT)} bytes", f"{len(wrong)} bytes", "Delete"):
        assert part in message
    assert placed.read_bytes() == wrong
    assert server.requests == []


def mirror(folder, content):
    folder.mkdir()
    (folder / "made.csv").write_bytes(content)
    return folder


def test_mirrors_come_first_in_order(server, get, tmp_path, caplog, monkeypatch):
    address = server.address("a", whole(RIGHT))
    damaged = mirror(tmp_path / "damaged", WRONG)
    empty = tmp_path / "empty"
    empty.mkdir()
    mirror(tmp_path / "good", RIGHT)
    # Were the good one read before the variable's, the variable's would not be reported.
    monkeypatch.setenv("GPCMC_DATA_MIRRORS", str(mirror(tmp_path / "variable", WRONG)))
    with caplog.at_level(logging.WARNING):
        path = get(entry_for(RIGHT, address), "absent", damaged, empty, "good")
    assert path.read_bytes() == RIGHT
    assert server.requests == []
    assert str(damaged) in caplog.text and "variable" not in caplog.text
    assert leftovers(tmp_path) == ["made.csv"]


def test_mirrors_from_the_environment(server, get, tmp_path, monkeypatch):
    mirror(tmp_path / "relative", RIGHT)
    monkeypatch.setenv(
        "GPCMC_DATA_MIRRORS", os.pathsep.join(["", str(tmp_path / "absent"), "relative"])
    )
    address = server.address("a", whole(RIGHT))
    assert get(entry_for(RIGHT, address)).read_bytes() == RIGHT
    assert server.requests == []


def test_a_mirror_may_have_releases_unpacked(get, tmp_path):
    """A file ``<folder>-<name>`` of the registry may be ``<folder>/<name>`` there."""
    (tmp_path / "mirror").mkdir()
    mirror(tmp_path / "mirror" / "release-1", RIGHT)
    path = get(replace(entry_for(RIGHT), file="release-1-made.csv"), "mirror")
    assert path.name == "release-1-made.csv" and path.read_bytes() == RIGHT


def test_a_copy_from_a_read_only_mirror_can_be_deleted(get, tmp_path):
    (mirror(tmp_path / "mirror", RIGHT) / "made.csv").chmod(0o444)
    path = get(entry_for(RIGHT), "mirror")
    assert path.stat().st_mode & 0o200 and not path.is_symlink()


def test_nothing_available_lists_all_reasons_and_the_remedy(server, get, tmp_path):
    gone = server.address("gone", status(404))
    wrong = server.address("wrong", whole(WRONG))
    entry = entry_for(RIGHT, gone, wrong, "http://127.0.0.1:9/refused")
    damaged = mirror(tmp_path / "damaged", WRONG)
    with pytest.raises(DataUnavailableError) as caught:
        get(entry, "absent", damaged, retries=0)
    error = caught.value
    sources = [str(tmp_path / "absent"), str(damaged), *entry.sources]
    assert [source for source, _ in error.attempts] == sources
    assert all(reason for _, reason in error.attempts)
    told = [
        str(tmp_path / "raw/made.csv"),
        entry.sha256,
        entry.homepage,
        "GPCMC_DATA_MIRRORS",
        "by hand",
    ]
    for part in (*told, *(text for attempt in error.attempts for text in attempt)):
        assert part in str(error)
    assert error.instructions in str(error)
    assert leftovers(tmp_path) == []


def test_errors_survive_pickling(tmp_path):
    entry = entry_for(RIGHT)
    made = (
        DamagedFileError(entry, tmp_path, "?"),
        DataUnavailableError(entry, tmp_path, (("a", "b"),)),
    )
    assert [*map(str, pickle.loads(pickle.dumps(made)))] == [*map(str, made)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retries", -1),
        ("timeout_seconds", 0),
        ("deadline_seconds", float("nan")),
        ("backoff_seconds", -1),
        ("patience", 1),
    ],
)
def test_limits_are_validated(name, value, get):
    with pytest.raises(ValueError, match=f"{name}={value}, need"):
        get(entry_for(RIGHT), **{name: value})


# --- the registry ---------------------------------------------------------------------------------


def test_registry_of_the_repository():
    entries = datasets.read_registry(REGISTRY)
    assert {entry.name for entry in entries} == {
        *("abalone", "breast_cancer", "crabs", "ionosphere", "pima", "sonar", "usps"),
        *(f"neal_{name}_{release}" for name in ("classes", "outliers") for release in (1997, 2022)),
    }
    assert datasets.PAPER_SIZES.keys() < datasets.DATASETS.keys()
    assert all(entry.sources for entry in entries)
    # An official file in another format is a homepage, never a source.
    assert not any(entry.homepage in entry.sources for entry in entries)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("d643", "D643", "sha256"),
        (",6812,", ",-1,", "bytes"),
        (",6812,", ",0,", "bytes"),
        (",6812,", ",many,", "bytes"),
        ("crabs.csv,d", "../crabs.csv,d", "file"),
        ("zip.test.gz,8", "zip.train.gz,8", "twice"),
        ("https://raw", "file://raw", "sources"),
        ("CC BY 4.0", "", "licence"),
        ("licence,", "license,", "columns"),
        (",https://www.stats.ox.ac.uk/pub/PRNN/crabs.dat", "", "one value for each"),
    ],
)
def test_registry_is_validated(old, new, named, tmp_path):
    text = REGISTRY.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "registry.csv"
    path.write_text(text.replace(old, new), encoding="utf-8")
    (tmp_path / "facts.yaml").write_text("crabs: {}\nusps: {}\n")
    with pytest.raises(ValueError, match=named):
        datasets.read_registry(path)


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        (
            "registry.csv",
            REGISTRY.read_bytes() + b'"crabs,',
            r"registry\.csv, line \d+: no CSV file",
        ),
        ("facts.yaml", b"", r"facts\.yaml: given None, need a mapping"),
        ("facts.yaml", b"- a\n", r"facts\.yaml: given \['a'\], need a mapping"),
    ],
)
def test_files_that_are_none_are_refused_by_name(file, content, named, tmp_path):
    for name in ("registry.csv", "facts.yaml"):
        (tmp_path / name).write_bytes(REGISTRY.with_name(name).read_bytes())
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=named):
        datasets.read_registry(tmp_path / "registry.csv")


def test_the_home_of_nobody_is_a_mirror_that_is_not_there(get, monkeypatch):
    monkeypatch.setenv("GPCMC_DATA_MIRRORS", "~nobody-of-this-name")
    with pytest.raises(DataUnavailableError, match="no such folder"):
        get(entry_for(RIGHT))


def test_facts_about_what_is_not_registered_are_refused(tmp_path):
    (tmp_path / "registry.csv").write_bytes(REGISTRY.read_bytes())
    (tmp_path / "facts.yaml").write_text("crabs: {}\niris: {}\n")
    with pytest.raises(ValueError, match=r"facts\.yaml: facts of \['iris'\], need data sets that"):
        datasets.read_registry(tmp_path / "registry.csv")


# --- parsing made files ---------------------------------------------------------------------------

CRABS = b"""rownames,sp,sex,index,FL,RW,CL,CW,BD
1,B,M,1,8.1,6.7,16.1,19,7
2,O,F,1,9,8.5,20,22,9.5
"""
BREAST = b"""1,5,1,1,1,2,1,3,1,1,2
2,5,1,1,1,2,1,3,1,1,2
3,5,4,4,5,7,?,3,2,1,2
3,8,10,10,8,7,10,9,7,1,4
"""


def digit(label, grey):
    return f"{label}.0000 ".encode() + b" ".join([b"%.3f" % grey] * 256) + b" \n"


#: Of the whole table, so that made files have them too.
LENIENT = {"missing values": "0"}


def place(folder, name, stated=None, **files):
    """Write made files under their registered names and register them, with their format and the facts `stated`."""
    real = next(entry.facts for entry in datasets.read_registry(REGISTRY) if entry.name == name)
    facts = {"format": real.get("format", {})}
    for part in ("files", "arrays"):
        facts[part] = {key: (stated or {}).get(key, LENIENT) for key in real[part]}
    entries = []
    for file, content in files.items():
        (folder / file).write_bytes(content)
        entries.append(entry_for(content, name=name, file=file, **facts))
    return tuple(entries)


def test_parse_crabs(tmp_path):
    registry = place(tmp_path, "crabs", **{"crabs.csv": CRABS})
    raw, indexed = (datasets.load(name, tmp_path, registry) for name in ("crabs", "crabs_index"))
    np.testing.assert_array_equal(raw.X, [[0, 8.1, 6.7, 16.1, 19, 7], [1, 9, 8.5, 20, 22, 9.5]])
    np.testing.assert_array_equal(indexed.X, np.column_stack([[1, 1], raw.X[:, 1:], [0, 1]]))
    np.testing.assert_array_equal(raw.y, [1, -1])


def test_parse_breast_cancer(tmp_path):
    stated = {"breast-cancer-wisconsin.data": {"missing values of 6": "1"}}
    registry = place(tmp_path, "breast_cancer", stated, **{"breast-cancer-wisconsin.data": BREAST})
    first, last = [5, 1, 1, 1, 2, 1, 3, 1, 1], [8, 10, 10, 8, 7, 10, 9, 7, 1]
    raw = datasets.load("breast_cancer", tmp_path, registry)
    np.testing.assert_array_equal(raw.X, [first, last])
    np.testing.assert_array_equal(raw.y, [-1, 1])
    repeated = datasets.load("wisconsin", tmp_path, registry)
    np.testing.assert_array_equal(repeated.X, [first, first, last])


def test_parse_usps(tmp_path):
    train, test = digit(3, -1) + digit(4, 0) + digit(5, 1), digit(5, 0.25)
    files = {"zip.train.gz": gzip.compress(train), "zip.test.gz": gzip.compress(test)}
    registry = place(tmp_path, "usps", **files)
    for entries in (registry, registry[::-1]):  # the order of the registry does not matter
        raw = datasets.load("usps_raw", tmp_path, entries)
        np.testing.assert_array_equal(raw.X, np.repeat([[-1.0], [1.0], [0.25]], 256, axis=1))
        np.testing.assert_array_equal(raw.y, [1, -1, -1])
        every = datasets.load("usps_zip_raw", tmp_path, entries)
        assert every.y.tolist() == [3, 4, 5, 5] and every.training == 3


def test_parsing_refuses_a_damaged_file(tmp_path):
    registry = place(tmp_path, "crabs", **{"crabs.csv": CRABS})
    (tmp_path / "crabs.csv").write_bytes(CRABS.replace(b"8.1", b"8.2"))
    with pytest.raises(DamagedFileError, match=r"crabs\.csv"):
        datasets.load("crabs", tmp_path, registry)


@pytest.mark.parametrize("name", datasets.DATASETS)
def test_parsing_names_a_missing_file(name, tmp_path):
    with pytest.raises(DataUnavailableError, match=rf"data set {datasets.DATASETS[name][0]}\) is"):
        datasets.load(name, tmp_path, datasets.read_registry(REGISTRY))


def test_unknown_data_set_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"dataset='iris', need one of \['crabs'"):
        datasets.load("iris", tmp_path, ())
    with pytest.raises(ValueError, match="dataset='crabs', need one that the registry has"):
        datasets.load("crabs", tmp_path, ())
    with pytest.raises(ValueError, match="dataset='iris', need one that the registry has.*'usps'"):
        datasets.check(tmp_path, datasets.read_registry(REGISTRY), ["iris"])


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("made", {"files": {"made.csv": LENIENT}}),  # no recipe
        ("crabs", {}),
        ("crabs", {"files": {"crabs.csv": LENIENT}, "arrays": {"crabs": LENIENT}}),
        (
            "crabs",
            {"files": {"crabs.csv": LENIENT}, "arrays": {"crabs": LENIENT, "crabs_index": {}}},
        ),
        ("crabs", {"files": {}, "arrays": {"crabs": LENIENT, "crabs_index": LENIENT}}),
    ],
)
def test_a_data_set_without_facts_is_refused_by_name(name, facts, tmp_path):
    registry = [entry_for(CRABS, name=name, file=f"{name}.csv", **facts)]
    with pytest.raises(ValueError, match=rf"{name}: .*{name}\.csv.*facts\.yaml.*data/parse\.py"):
        datasets.check(tmp_path, registry)


def test_files_that_no_fact_is_about_are_refused(tmp_path):
    first, second = place(tmp_path, "usps", **{"zip.train.gz": b"1", "zip.test.gz": b"2"})
    for entries in ([first], [first, second, replace(first, file="zip.more.gz")]):
        with pytest.raises(ValueError, match=r"usps: facts are stated about .*zip\.test\.gz"):
            datasets.load("usps", tmp_path, entries)


# --- the real files -------------------------------------------------------------------------------


# Read at import: a fixture above takes the variable away from the tests themselves.
MIRRORS = [
    "data/raw",
    "../shared/data",
    *filter(None, os.environ.get("GPCMC_DATA_MIRRORS", "").split(os.pathsep)),
]


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Folder of the real files, taken from mirrors only: tests open no connection to the world."""
    folder, registry = tmp_path_factory.mktemp("raw"), datasets.read_registry(REGISTRY)
    for entry in registry:
        try:
            fetch(replace(entry, sources=()), folder, MIRRORS, root=REPOSITORY)
        except DataUnavailableError:
            pytest.skip(f"{entry.file} is in no mirror ({', '.join(MIRRORS)}); see data/README.md")
    return folder, registry


def test_facts_of_the_real_data(real):
    table = datasets.check(*real)
    datasets.require(table)
    assert table["ok"].notna().all()
    assert [*dict.fromkeys(table["dataset"])] == [*dict.fromkeys(entry.name for entry in real[1])]
    parts = set(table["fact"].str.split(":").str[0])
    assert parts == {entry.file for entry in real[1]} | {*datasets.DATASETS}


@pytest.mark.parametrize(("name", "part", "fact", "wrong"), WRONG_FACTS)
def test_a_wrong_fact_is_refused_by_name(name, part, fact, wrong, real):
    (folder, registry), wrong = real, yaml.safe_load(wrong)
    source = datasets.DATASETS[name][0]
    entries = [
        replace(entry, facts=copy.deepcopy(entry.facts))
        for entry in datasets.files_of(source, registry)
    ]
    for entry in entries:
        entry.facts["files" if "." in part else "arrays"][part][fact] = wrong
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        datasets.load(name, folder, entries)
    message = str(caught.value)
    assert f"{source}: {part}: {fact}: expected {wrong}, found " in message
    assert "1 of" in message and "data/facts.yaml" in message and "parse.py" in message


@pytest.mark.parametrize("name", datasets.PAPER_SIZES)
def test_the_paper_uses_every_pattern_once(name, real):
    raw = datasets.load(name, *real)
    n_train, n_test = datasets.PAPER_SIZES[name]
    parts = split(raw, n_train, n_test, standardise=False, rng=np.random.default_rng(1))
    assert raw.X.dtype == raw.y.dtype == np.float64 and set(raw.y) == {-1.0, 1.0}
    used = np.r_[parts.train_index, parts.test_index]
    np.testing.assert_array_equal(np.sort(used), np.arange(len(raw.X)))


def test_smoothing_is_a_normalised_gaussian_and_the_outside_is_background():
    """The weights are written out here; an image of one value with a bright dot tells them apart."""
    offsets = np.arange(-3, 4)
    weights = np.exp(-0.5 * (offsets / 0.75) ** 2)
    kernel = np.outer(weights, weights) / weights.sum() ** 2
    image = np.full((16, 16), -1.0)
    image[8, 5] = 1.0
    expected = np.full((16, 16), -1.0)
    expected[5:12, 2:9] += 2.0 * kernel
    np.testing.assert_allclose(smooth(image.reshape(1, 256)), expected.reshape(1, 256), atol=1e-14)
    bright = smooth(np.full((1, 256), 1.0)).reshape(16, 16)
    inside = weights[3:].sum() / weights.sum()  # of a pixel in the corner, along one axis
    np.testing.assert_allclose(bright[0, 0], 2.0 * inside**2 - 1.0, atol=1e-14)
    np.testing.assert_allclose(bright[8, 8], 1.0, atol=1e-14)


# --- the data check -------------------------------------------------------------------------------


def test_check_finds_wrong_facts_and_missing_files(tmp_path):
    facts = {"shape": "200 x 9", "missing values": "0", "counts of sex": "F 1, M 1"}
    cannibal = CRABS.replace(b"2,O,F,1,9,", b"2,O,<X>,1,-9,")
    made = place(tmp_path, "crabs", {"crabs.csv": facts}, **{"crabs.csv": cannibal})
    missing = [entry for entry in datasets.read_registry(REGISTRY) if entry.name != "crabs"]
    table = datasets.check(tmp_path, (*made, *missing))
    assert list(table.columns) == ["dataset", "fact", "expected", "found", "ok"]
    found = table.set_index("fact")
    assert (*found.loc["crabs.csv: shape"],) == ("crabs", "200 x 9", "2 x 9", False)
    assert found.loc["crabs.csv: counts of sex", "found"] == "<X> 1, M 1"
    assert found.loc["crabs.csv: missing values", "ok"]
    absent = table[table["ok"].isna()]
    assert list(absent["dataset"]) == [*dict.fromkeys(entry.name for entry in missing)]
    assert set(absent["found"]) == {"data not available"}

    with pytest.raises(
        ValueError, match=r"crabs: crabs\.csv: shape: expected 200 x 9, found 2 x 9"
    ):
        datasets.require(table)
    datasets.require(absent)

    page = datasets.to_html(table)
    assert "3 of 5 facts hold" in page and "not available: abalone, breast_cancer" in page
    assert page.count(">NO<") == 2 and "bold" in page and "&lt;X&gt; 1, M 1" in page
    assert "http" not in page  # self-contained


# --- splits ---------------------------------------------------------------------------------------


def made(n_negative, n_positive, d=3):
    """Sorted by class, as real files are; the first feature is constant, the second is the row."""
    n = n_negative + n_positive
    X = np.random.default_rng(n).normal(5, 3, (n, d))
    X[:, 0], X[:, 1] = 0.1, np.arange(n)
    y = np.repeat([-1.0, 1.0], [n_negative, n_positive])
    return RawData("made", X, y)


@st.composite
def sizes(draw):
    n_negative, n_positive = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    n_train = draw(st.integers(1, n_negative + n_positive - 1))
    n_test = draw(st.integers(1, n_negative + n_positive - n_train))
    return n_negative, n_positive, n_train, n_test


@settings(max_examples=200, deadline=None)
@given(sizes=sizes(), seed=st.integers(0, 2**32), standardise=st.booleans())
def test_split_properties(sizes, seed, standardise):
    n_negative, n_positive, n_train, n_test = sizes
    raw = made(n_negative, n_positive)
    kept = raw.X.copy()
    parts = split(raw, n_train, n_test, standardise=standardise, rng=np.random.default_rng(seed))
    for X, y, index, size in (
        (parts.X_train, parts.y_train, parts.train_index, n_train),
        (parts.X_test, parts.y_test, parts.test_index, n_test),
    ):
        assert X.shape == (size, 3) and y.shape == index.shape == (size,)
        np.testing.assert_array_equal(y, raw.y[index])
        share = size * n_positive / (n_negative + n_positive)
        assert abs(np.sum(y > 0) - share) <= 1
        assert np.isfinite(X).all()
        if not standardise:
            np.testing.assert_array_equal(X, raw.X[index])
    used = np.r_[parts.train_index, parts.test_index]
    assert len(set(used)) == n_train + n_test
    np.testing.assert_array_equal(raw.X, kept)

    again = split(raw, n_train, n_test, standardise=standardise, rng=np.random.default_rng(seed))
    np.testing.assert_array_equal(parts.X_train, again.X_train)
    np.testing.assert_array_equal(parts.test_index, again.test_index)


def test_standardised_by_the_training_patterns_only():
    raw = made(40, 60)
    parts = split(raw, 50, 50, standardise=True, rng=np.random.default_rng(3))
    np.testing.assert_allclose(parts.X_train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(parts.X_train[:, 1:].std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(parts.X_train[:, 0], 0, atol=1e-12)  # constant: only shifted
    train = raw.X[parts.train_index, 1:]
    expected = (raw.X[parts.test_index, 1:] - train.mean(axis=0)) / train.std(axis=0)
    np.testing.assert_allclose(parts.X_test[:, 1:], expected, rtol=1e-12)
    assert abs(parts.X_test[:, 1:].mean(axis=0)).max() > 1e-3


def test_classes_are_shuffled_and_seeds_matter():
    raw = made(50, 50)
    one, other = (
        split(raw, 50, 50, standardise=False, rng=np.random.default_rng(seed)) for seed in (1, 2)
    )
    assert not np.array_equal(one.train_index, other.train_index)
    for y in (one.y_train, one.y_test):
        # The number of runs of equal labels is about 26 with standard deviation 3.5; sorted: 2.
        assert 10 < 1 + np.count_nonzero(np.diff(y)) < 42


@pytest.mark.parametrize(("n_train", "n_test"), [(0, 5), (5, 0), (-1, 5), (7, 4)])
def test_split_sizes_are_validated(n_train, n_test):
    with pytest.raises(ValueError, match=f"n_train={n_train}, n_test={n_test}"):
        split(made(5, 5), n_train, n_test, standardise=False, rng=np.random.default_rng(0))


def test_split_needs_a_generator():
    with pytest.raises(ValueError, match=r"rng=7, need a numpy\.random\.Generator"):
        split(made(5, 5), 5, 5, standardise=False, rng=7)
