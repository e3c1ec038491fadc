"""The data sets: registry, fetching from a hypothetical server, parsing, splitting, checking."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from gpcmc.gp import Prior
from gpcmc.inference import ExpectationPropagation, Laplace, infer
from studies.common import data as datasets
from studies.common.data import DamagedFileError, DataUnavailableError, Entry, RawData, fetch, split
from studies.common.data.parse import PIXELS, usps_table
from studies.neal1997.jobs import FILES as NEAL
from studies.rasmussen2006.jobs import FILES as RASMUSSEN

REPOSITORY = Path(__file__).resolve().parents[2]
REGISTRY = REPOSITORY / "data" / "registry.csv"
RIGHT = b"one,two\n" + b"1,2\n" * 1000
WRONG = b"one;two\n" + b"1;2\n" * 1000


def entry_for(content: bytes, *sources: str, name: str = "made", file: str = "made.csv") -> Entry:
    return Entry(
        name=name,
        file=file,
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        licence="none stated",
        citation="made for this test",
        sources=sources,
        homepage="https://example.org/made",
    )


# --- a server that answers as told ----------------------------------------------------------------

Answer = Callable[[BaseHTTPRequestHandler], None]


def whole(content: bytes) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def truncated(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(RIGHT)))
    handler.end_headers()
    handler.wfile.write(RIGHT[: len(RIGHT) // 2])


def trickle(pause: float, pieces: int) -> Answer:
    """Send `pieces` of 2000 bytes with a pause after each, without saying how many will come."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(pieces):
            handler.wfile.write(bytes(2000))
            handler.server.sent += 2000  # type: ignore[attr-defined]
            time.sleep(pause)

    return answer


def silent(handler: BaseHTTPRequestHandler) -> None:
    handler.server.released.wait(10)  # type: ignore[attr-defined]


def status(code: int) -> Answer:
    return lambda handler: handler.send_error(code)


class Server(ThreadingHTTPServer):
    """Answers each request to a path with the next of its answers; the last one repeats."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[str] = []
        self.sent = 0
        self.released = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    def address(self, path: str, *answers: Answer) -> str:
        self.answers[f"/{path}"] = list(answers)
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up early is what several tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        answers = self.server.answers[self.path]
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
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
def no_mirrors_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPCMC_DATA_MIRRORS", raising=False)


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Path]:
    """`fetch` into tmp_path/raw, with short waits."""

    def get(entry: Entry, *mirrors: str | Path, **limits: float) -> Path:
        limits = {"timeout_seconds": 5, "backoff_seconds": 0.01, **limits}
        return fetch(entry, tmp_path / "raw", mirrors, root=tmp_path, **limits)

    return get


def leftovers(tmp_path: Path) -> list[str]:
    return os.listdir(tmp_path / "raw")


# --- fetching from addresses ----------------------------------------------------------------------


def test_right_bytes_are_fetched_once(server: Server, get: Callable[..., Path], tmp_path: Path):
    entry = entry_for(RIGHT, server.address("a", whole(RIGHT)))
    path = get(entry)
    assert path == tmp_path / "raw" / "made.csv"
    assert path.read_bytes() == RIGHT
    assert get(entry) == path  # verified and kept
    assert server.requests == ["/a"]
    assert leftovers(tmp_path) == ["made.csv"]


@pytest.mark.parametrize("wrong", [WRONG, WRONG[:-1], RIGHT + b"\n", b"<html>log in</html>"])
def test_wrong_bytes_fall_through_and_are_reported(
    wrong: bytes,
    server: Server,
    get: Callable[..., Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    first, second = server.address("a", whole(wrong)), server.address("b", whole(RIGHT))
    with caplog.at_level(logging.WARNING):
        assert get(entry_for(RIGHT, first, second)).read_bytes() == RIGHT
    assert server.requests == ["/a", "/b"]  # other bytes are not asked for again
    assert first in caplog.text and "registered" in caplog.text
    assert leftovers(tmp_path) == ["made.csv"]


def test_a_gz_file_arrives_packed(server: Server, get: Callable[..., Path]):
    packed = gzip.compress(RIGHT)
    entry = entry_for(packed, server.address("made.gz", whole(packed)), file="made.gz")
    assert get(entry).read_bytes() == packed


def test_truncated_download_never_takes_the_final_name(
    server: Server, get: Callable[..., Path], tmp_path: Path
):
    entry = entry_for(RIGHT, server.address("a", truncated))
    with pytest.raises(DataUnavailableError):
        get(entry, retries=2)
    assert server.requests == ["/a"] * 3
    assert leftovers(tmp_path) == []


def test_truncated_download_is_retried(server: Server, get: Callable[..., Path]):
    entry = entry_for(RIGHT, server.address("a", truncated, whole(RIGHT)))
    assert get(entry, retries=1).read_bytes() == RIGHT


def test_oversize_stream_is_refused_early(server: Server, get: Callable[..., Path], tmp_path: Path):
    entry = entry_for(RIGHT, server.address("a", trickle(0.01, 500)))
    with pytest.raises(DataUnavailableError, match=f"more than the registered {len(RIGHT)} bytes"):
        get(entry)
    assert server.requests == ["/a"]
    assert server.sent < 500 * 2000 / 4
    assert leftovers(tmp_path) == []


def test_silent_server_times_out(server: Server, get: Callable[..., Path]):
    entry = entry_for(RIGHT, server.address("a", silent))
    start = time.monotonic()
    with pytest.raises(DataUnavailableError, match=r"(?i)timed out"):
        get(entry, timeout_seconds=0.2, retries=1)
    assert time.monotonic() - start < 5
    assert server.requests == ["/a"] * 2


def test_trickling_server_meets_the_deadline(server: Server, get: Callable[..., Path]):
    entry = entry_for(bytes(10**6), server.address("a", trickle(0.05, 200)))
    start = time.monotonic()
    with pytest.raises(DataUnavailableError, match=r"not finished after 0\.3 seconds"):
        get(entry, deadline_seconds=0.3, retries=0)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("code", [500, 503, 429])
def test_passing_failure_is_retried(code: int, server: Server, get: Callable[..., Path]):
    entry = entry_for(RIGHT, server.address("a", status(code), status(code), whole(RIGHT)))
    assert get(entry, retries=2).read_bytes() == RIGHT
    assert server.requests == ["/a"] * 3


def test_lasting_failure_is_not_retried(server: Server, get: Callable[..., Path]):
    entry = entry_for(RIGHT, server.address("a", status(404)), server.address("b", whole(RIGHT)))
    assert get(entry).read_bytes() == RIGHT
    assert server.requests == ["/a", "/b"]


def test_back_off_doubles(
    server: Server, get: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
):
    pauses: list[float] = []
    monkeypatch.setattr("studies.common.data.download.time.sleep", pauses.append)
    with pytest.raises(DataUnavailableError):
        get(entry_for(RIGHT, server.address("a", status(500))), retries=3, backoff_seconds=0.5)
    assert pauses == [0.5, 1.0, 2.0]


# --- files placed by hand, mirrors, nothing at all ------------------------------------------------


@pytest.mark.parametrize("wrong", [WRONG, b"", RIGHT * 2])
def test_damaged_file_placed_by_hand_is_refused_by_name(
    wrong: bytes, server: Server, get: Callable[..., Path], tmp_path: Path
):
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


def test_right_file_placed_by_hand_is_kept(get: Callable[..., Path], tmp_path: Path):
    placed = tmp_path / "raw" / "made.csv"
    placed.parent.mkdir()
    placed.write_bytes(RIGHT)
    assert get(entry_for(RIGHT)) == placed


def mirror(folder: Path, content: bytes) -> Path:
    folder.mkdir()
    (folder / "made.csv").write_bytes(content)
    return folder


def test_mirrors_come_first_in_order(
    server: Server,
    get: Callable[..., Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
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


def test_mirrors_from_the_environment(
    server: Server, get: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mirror(tmp_path / "relative", RIGHT)
    monkeypatch.setenv(
        "GPCMC_DATA_MIRRORS", os.pathsep.join(["", str(tmp_path / "absent"), "relative"])
    )
    address = server.address("a", whole(RIGHT))
    assert get(entry_for(RIGHT, address)).read_bytes() == RIGHT
    assert server.requests == []


def test_a_mirror_may_have_releases_unpacked(get: Callable[..., Path], tmp_path: Path):
    """A file ``<folder>-<name>`` of the registry may be ``<folder>/<name>`` there."""
    (tmp_path / "mirror").mkdir()
    mirror(tmp_path / "mirror" / "release-1", RIGHT)
    path = get(replace(entry_for(RIGHT), file="release-1-made.csv"), "mirror")
    assert path.name == "release-1-made.csv" and path.read_bytes() == RIGHT


def test_a_copy_from_a_read_only_mirror_can_be_deleted(get: Callable[..., Path], tmp_path: Path):
    (mirror(tmp_path / "mirror", RIGHT) / "made.csv").chmod(0o444)
    path = get(entry_for(RIGHT), "mirror")
    assert path.stat().st_mode & 0o200 and not path.is_symlink()


def test_nothing_available_lists_all_reasons_and_the_remedy(
    server: Server, get: Callable[..., Path], tmp_path: Path
):
    gone = server.address("gone", status(404))
    wrong = server.address("wrong", whole(WRONG))
    entry = entry_for(RIGHT, gone, wrong, "http://127.0.0.1:9/refused")
    damaged = mirror(tmp_path / "damaged", WRONG)
    with pytest.raises(DataUnavailableError) as caught:
        get(entry, "absent", damaged, retries=0)
    error = caught.value
    assert [source for source, _ in error.attempts] == [
        str(tmp_path / "absent"),
        str(damaged),
        *entry.sources,
    ]
    assert all(reason for _, reason in error.attempts)
    for part in (
        *(text for attempt in error.attempts for text in attempt),
        str(tmp_path / "raw" / "made.csv"),
        entry.sha256,
        entry.homepage,
        "GPCMC_DATA_MIRRORS",
        "by hand",
    ):
        assert part in str(error)
    assert error.instructions in str(error)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("error", [DamagedFileError, DataUnavailableError])
def test_errors_survive_pickling(error: type[Exception], tmp_path: Path):
    detail = "3 bytes" if error is DamagedFileError else (("a", "b"),)
    made = error(entry_for(RIGHT), tmp_path, detail)
    assert str(pickle.loads(pickle.dumps(made))) == str(made)


@pytest.mark.parametrize(
    "limits",
    [
        {"retries": -1},
        {"timeout_seconds": 0},
        {"deadline_seconds": float("nan")},
        {"backoff_seconds": -1},
    ],
)
def test_limits_are_validated(limits: dict[str, float], get: Callable[..., Path]):
    with pytest.raises(ValueError, match=next(iter(limits))):
        get(entry_for(RIGHT), **limits)


# --- the registry ---------------------------------------------------------------------------------


def test_registry_of_the_repository():
    entries = datasets.read_registry(REGISTRY)
    own = ["crabs.csv", "breast-cancer-wisconsin.data", "zip.train.gz", "zip.test.gz"]
    assert [entry.file for entry in entries][: len(own)] == own
    others = {file for files in RASMUSSEN.values() for file in files} | {*NEAL.values()}
    others |= {"abalone.csv"}  # of filippone2014, if a configuration asks for it
    assert {entry.file for entry in entries} == {*own} | others
    assert set(datasets.DATASETS) == set(datasets.PAPER_SIZES)
    names = {entry.name for entry in entries if entry.file in own}
    assert names == set(datasets.DATASETS) - {"usps_raw"}
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
def test_registry_is_validated(old: str, new: str, named: str, tmp_path: Path):
    text = REGISTRY.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "registry.csv"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=named):
        datasets.read_registry(path)


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


def digit(label: int, grey: float) -> bytes:
    return f"{label}.0000 ".encode() + b" ".join([b"%.3f" % grey] * 256) + b" \n"


def place(folder: Path, name: str, **files: bytes) -> tuple[Entry, ...]:
    """Write made files under their registered names and register them."""
    entries = []
    for file, content in files.items():
        (folder / file).write_bytes(content)
        entries.append(entry_for(content, name=name, file=file))
    return tuple(entries)


def test_parse_crabs(tmp_path: Path):
    raw = datasets.load("crabs", tmp_path, place(tmp_path, "crabs", **{"crabs.csv": CRABS}))
    assert raw.feature_names == ("species", "FL", "RW", "CL", "CW", "BD")
    np.testing.assert_array_equal(raw.X, [[0, 8.1, 6.7, 16.1, 19, 7], [1, 9, 8.5, 20, 22, 9.5]])
    np.testing.assert_array_equal(raw.y, [1, -1])
    assert raw.class_names == ("female", "male")


def test_parse_breast_cancer(tmp_path: Path):
    registry = place(tmp_path, "breast_cancer", **{"breast-cancer-wisconsin.data": BREAST})
    raw = datasets.load("breast_cancer", tmp_path, registry)
    np.testing.assert_array_equal(
        raw.X, [[5, 1, 1, 1, 2, 1, 3, 1, 1], [8, 10, 10, 8, 7, 10, 9, 7, 1]]
    )
    np.testing.assert_array_equal(raw.y, [-1, 1])
    assert len(raw.feature_names) == 9


def test_parse_usps(tmp_path: Path):
    registry = place(
        tmp_path,
        "usps",
        **{
            "zip.train.gz": gzip.compress(digit(3, -1) + digit(4, 0) + digit(5, 1)),
            "zip.test.gz": gzip.compress(digit(5, 0.25)),
        },
    )
    for entries in (registry, registry[::-1]):  # the order of the registry does not matter
        raw = datasets.load("usps_raw", tmp_path, entries)
        np.testing.assert_array_equal(raw.X, np.repeat([[-1.0], [1.0], [0.25]], 256, axis=1))
        np.testing.assert_array_equal(raw.y, [1, -1, -1])


def test_parsing_refuses_a_damaged_file(tmp_path: Path):
    registry = place(tmp_path, "crabs", **{"crabs.csv": CRABS})
    (tmp_path / "crabs.csv").write_bytes(CRABS.replace(b"8.1", b"8.2"))
    with pytest.raises(DamagedFileError, match=r"crabs\.csv"):
        datasets.load_crabs(tmp_path, registry)


def test_parsing_names_a_missing_file(tmp_path: Path):
    with pytest.raises(DataUnavailableError, match=r"zip\.train\.gz"):
        datasets.load_usps(tmp_path, datasets.read_registry(REGISTRY))


def test_unknown_data_set_is_named(tmp_path: Path):
    with pytest.raises(ValueError, match="iris"):
        datasets.load("iris", tmp_path, ())
    with pytest.raises(ValueError, match="crabs"):
        datasets.load("crabs", tmp_path, ())


def test_a_data_set_without_facts_is_refused_by_name(tmp_path: Path):
    with pytest.raises(ValueError, match=r"dataset='iris'.*'usps'.*data/checking\.py"):
        datasets.check(tmp_path, datasets.read_registry(REGISTRY), ["iris"])


# --- the real files -------------------------------------------------------------------------------


# Read at import: a fixture above takes the variable away from the tests themselves.
MIRRORS = [
    "data/raw",
    "../shared/data",
    *filter(None, os.environ.get("GPCMC_DATA_MIRRORS", "").split(os.pathsep)),
]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Entry, ...]]:
    """Folder of the real files, taken from mirrors only: tests open no connection to the world."""
    folder, registry = tmp_path_factory.mktemp("raw"), datasets.read_registry(REGISTRY)
    for entry in registry:
        try:
            fetch(replace(entry, sources=()), folder, MIRRORS, root=REPOSITORY)
        except DataUnavailableError:
            pytest.skip(f"{entry.file} is in no mirror ({', '.join(MIRRORS)}); see data/README.md")
    return folder, registry


@pytest.mark.slow
def test_facts_of_the_real_data(real: tuple[Path, tuple[Entry, ...]]):
    table = datasets.check(*real)
    datasets.require(table)
    assert table["ok"].notna().all()
    assert set(table["dataset"]) == set(datasets.DATASETS) - {"usps_raw"}


@pytest.mark.parametrize(
    ("name", "patterns", "features", "positive"),
    [
        ("crabs", 200, 6, 100),
        ("breast_cancer", 449, 9, 236),
        ("usps", 1540, 256, 824),
        ("usps_raw", 1540, 256, 824),
    ],
)
def test_arrays_of_the_real_data(
    name: str, patterns: int, features: int, positive: int, real: tuple[Path, tuple[Entry, ...]]
):
    raw = datasets.load(name, *real)
    assert raw.X.shape == (patterns, features) == (len(raw.y), len(raw.feature_names))
    assert raw.X.dtype == raw.y.dtype == np.float64 and np.isfinite(raw.X).all()
    assert int((raw.y == 1).sum()) == positive and set(raw.y) == {-1.0, 1.0}
    n_train, n_test = datasets.PAPER_SIZES[name]
    parts = split(raw, n_train, n_test, standardise=False, rng=np.random.default_rng(1))
    assert parts.X_train.shape == (n_train, features) and parts.X_test.shape == (n_test, features)
    used = np.r_[parts.train_index, parts.test_index]
    np.testing.assert_array_equal(np.sort(used), np.arange(patterns))  # every pattern, once


def test_smoothing_is_a_normalised_gaussian_and_the_outside_is_background():
    """The weights are written out here; an image of one value with a bright dot tells them apart."""
    offsets = np.arange(-3, 4)
    weights = np.exp(-0.5 * (offsets / 0.75) ** 2)
    kernel = np.outer(weights, weights) / weights.sum() ** 2
    image = np.full((16, 16), -1.0)
    image[8, 5] = 1.0
    expected = np.full((16, 16), -1.0)
    expected[5:12, 2:9] += 2.0 * kernel
    np.testing.assert_allclose(
        datasets.smooth(image.reshape(1, 256)), expected.reshape(1, 256), atol=1e-14
    )
    bright = datasets.smooth(np.full((1, 256), 1.0)).reshape(16, 16)
    inside = weights[3:].sum() / weights.sum()  # of a pixel in the corner, along one axis
    np.testing.assert_allclose(bright[0, 0], 2.0 * inside**2 - 1.0, atol=1e-14)
    np.testing.assert_allclose(bright[8, 8], 1.0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("smoothed", "laplace", "ep"), [(True, -98.96, -90.28), (False, -123.1, -107.8)]
)
def test_log_evidence_on_usps_is_that_of_the_book(
    smoothed: bool, laplace: float, ep: float, real: tuple[Path, tuple[Entry, ...]]
):
    """Rasmussen and Williams (2006, section 3.7.3) print -99 at (2.85, 2.35) and -90 at (2.6, 4.1), on their own split.

    On raw images both are missed by far, so that the evidence tells the files apart.
    """
    table = usps_table(*real)
    order = np.argsort(park_miller(len(table), 27 * 2**16), kind="stable")
    digest = hashlib.sha256(order.astype("<i4").tobytes()).hexdigest()
    assert digest == "2deceef83c212b301978efc2ff303afb719ccfbdfb54d582f47169b2065bfd70"
    train = table.iloc[order[:4649]]
    train = train[train["digit"].isin((3, 5))]
    assert len(train) == 767
    X, y = train[list(PIXELS)].to_numpy(), np.where(train["digit"] == 3, 1.0, -1.0)
    X = datasets.smooth(X) if smoothed else X

    def gram(log_length: float, log_amplitude: float) -> Prior:
        squares = cdist(X, X, "sqeuclidean")
        return Prior(np.exp(2 * log_amplitude - squares / (2 * np.exp(2 * log_length))))

    found = infer(Laplace(), gram(2.85, 2.35), y, rng=None).log_evidence
    assert found == pytest.approx(laplace, abs=0.06)
    found = infer(ExpectationPropagation(), gram(2.6, 4.1), y, rng=None).log_evidence
    assert found == pytest.approx(ep, abs=0.06)


def park_miller(count: int, state: int) -> np.ndarray:
    """The book's random numbers: x_k = 16807 x_(k-1) mod (2^31 - 1)."""
    found = []
    for _ in range(count):
        state = 16807 * state % (2**31 - 1)
        found.append(state)
    return np.array(found)


# --- the data check -------------------------------------------------------------------------------


def test_check_finds_wrong_facts_and_missing_files(tmp_path: Path):
    missing = datasets.read_registry(REGISTRY)[1:]
    cannibal = CRABS.replace(b"2,O,F,1,9,", b"2,O,X,1,-9,")
    table = datasets.check(
        tmp_path, (*place(tmp_path, "crabs", **{"crabs.csv": cannibal}), *missing)
    )
    assert list(table.columns) == ["dataset", "fact", "expected", "found", "ok"]
    facts = table.set_index("fact")
    assert facts.loc["entries that break the table's schema", "found"] == "2"
    assert (facts.loc["rows", "expected"], facts.loc["rows", "found"]) == ("200", "2")
    assert not facts.loc["rows", "ok"] and facts.loc["missing values", "ok"]
    absent = table[table["ok"].isna()]
    assert list(absent["dataset"]) == ["breast_cancer", "usps"]
    assert set(absent["found"]) == {"data not available"}

    with pytest.raises(ValueError, match="crabs: rows: expected 200, found 2"):
        datasets.require(table)
    datasets.require(absent)

    page = datasets.to_html(table)
    assert page.count("<h2>") == 3 and "data not available" in page and 'class="wrong"' in page
    assert "entries that break the table&#x27;s schema" in page
    assert "http" not in page  # self-contained


# --- splits ---------------------------------------------------------------------------------------


def made(n_negative: int, n_positive: int, d: int = 3) -> RawData:
    """Sorted by class, as real files are; the first feature is constant, the second is the row."""
    n = n_negative + n_positive
    X = np.random.default_rng(n).normal(5, 3, (n, d))
    X[:, 0], X[:, 1] = 0.1, np.arange(n)
    y = np.repeat([-1.0, 1.0], [n_negative, n_positive])
    return RawData("made", X, y, tuple("abc"[:d]), ("no", "yes"), ())


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int, int, int]:
    n_negative, n_positive = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    n_train = draw(st.integers(1, n_negative + n_positive - 1))
    n_test = draw(st.integers(1, n_negative + n_positive - n_train))
    return n_negative, n_positive, n_train, n_test


@settings(max_examples=200, deadline=None)
@given(sizes=sizes(), seed=st.integers(0, 2**32), standardise=st.booleans())
def test_split_properties(sizes: tuple[int, int, int, int], seed: int, standardise: bool):
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
def test_split_sizes_are_validated(n_train: int, n_test: int):
    with pytest.raises(ValueError, match=f"n_train={n_train}, n_test={n_test}"):
        split(made(5, 5), n_train, n_test, standardise=False, rng=np.random.default_rng(0))


def test_split_needs_a_generator():
    with pytest.raises(ValueError, match=r"rng=7, need a numpy\.random\.Generator"):
        split(made(5, 5), 5, 5, standardise=False, rng=7)
