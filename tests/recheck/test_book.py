import pandas as pd
import pytest
from made_study import measures, published, rows

from recheck.judge.measures import estimate
from recheck.record.files import write_csv
from recheck.report.book import Book


@pytest.fixture
def frame():
    once = rows("t/N1/M2", [[3.0], [5.0]], reading="v=once")
    return measures(rows("t/N1/M2", [[1.0], [2.0]]), once, rows("other", [[1.0]]))


@pytest.fixture
def book(frame, tmp_path):
    cells = published(tmp_path, [{"id": "t/N1/M2", "printed": "1.5"}]).cells
    return Book(
        estimate(frame), frame, cells, pd.DataFrame({"id": ["t/N1/M2"], "verdict": ["agrees"]})
    )


def test_get_has_the_estimate_of_a_reading(book):
    assert book.get("t/N1/M2").value == 1.5 and book.get("t/N1/M2", "v=once").value == 4.0
    assert book.get("t/N1/M2").source == "raw.csv:2,12"
    assert (
        book.verdicts.loc["t/N1/M2", "verdict"] == "agrees"
        and book.cells.loc["t/N1/M2", "printed"] == "1.5"
    )


def test_readings_of_which_none_is_the_default_have_to_be_named():
    frame = measures(*[rows("a", [[1.0]], reading=f"v={level}") for level in ("once", "twice")])
    tables = estimate(frame), frame, pd.DataFrame({"id": []})
    assert Book(*tables, defaults={"v": "once"}).pick("a")["reading"] == "v=once"
    with pytest.raises(ValueError, match=r"here: a has the readings .*; name one of them"):
        Book(*tables, defaults={"v": "moments"}).pick("a", where="here")


def test_get_names_what_is_absent(book):
    with pytest.raises(KeyError, match="t/N1/M3.*unknown"):
        book.get("t/N1/M3")
    with pytest.raises(KeyError, match="v=once"):
        book.get("t/N1/M2", "v=twice")


def test_select_and_rows_have_fields(book):
    found = book.select("t/{N}/M{m}")
    assert found[["N", "m", "reading", "value"]].to_numpy().tolist() == [
        ["N1", "2", "", 1.5],
        ["N1", "2", "v=once", 4.0],
    ]
    assert len(book.rows("t/{N}/M{m}")) == 4 and book.select("x/{a}").empty
    assert book.select("t/{N}").empty, "a template is of whole ids"


def test_a_book_is_read_from_a_run_and_kept_results(book, frame, tmp_path):
    run, kept = tmp_path / "run", tmp_path / "kept"
    for folder, end in ((run, ""), (kept, ".gz")):
        write_csv(folder / f"measures.csv{end}", frame)
        write_csv(folder / f"estimates.csv{end}", estimate(frame))
    write_csv(
        kept / "verdicts.csv",
        pd.DataFrame({"id": ["t/N1/M2"], "verdict": ["differs"], "note": [""]}),
    )
    found = Book.read(run, tmp_path, kept)
    pd.testing.assert_frame_equal(found.estimates, book.estimates)
    assert found.verdicts.empty and found.kept.verdicts.loc["t/N1/M2", "verdict"] == "differs"
    assert found.kept.get("other").value == 1.0
    assert Book.read(run, tmp_path).kept is None
