"""Declared tables: tidy rows and LaTeX, with and without a number."""

import math

import pandas as pd
import pytest
from made_book import book_of, rows

from recheck.judge.declared import checked
from recheck.record.files import read_csv
from recheck.report.book import Book
from recheck.report.layout import Layout
from recheck.report.tables import tabular, write_tables

LAYOUT = {
    "units": {"table1/*": "%", "*": "s"},
    "labels": {"M": {"M100": "100"}, "method": {"slow": r"slow$^*$"}},
    "order": {"method": ["slow", "fast_1"]},
    "tables": {
        "one": {
            "title": "One",
            "reads": ["part"],
            "blocks": [
                {
                    "cell": "table1/{N}/{M}",
                    "rows": ["M"],
                    "columns": ["N"],
                    "show": ["published", "kept", "run", "verdict"],
                    "head": "$M$",
                    "formats": {"N200": {"factor": 1000}},
                }
            ],
        },
        "two": {
            "title": "Two",
            "reads": ["part"],
            "blocks": [
                {"cell": "x/{P}/{method}/{what}", "rows": ["P", "method"], "columns": ["what"]},
                {
                    "cell": "x/{P}/{method}/{what}",
                    "rows": ["method"],
                    "columns": ["P", "reading"],
                    "where": {"what": ["error"], "P": ["P10", "P2"]},
                    "readings": {"once": "v=once", "twice": "v=twice"},
                    "format": {"significant": 1},
                },
                {"cell": "nothing/{a}", "rows": ["a"], "columns": []},
            ],
        },
    },
}


def layout_of(content):
    return checked(Layout, content, "layout")


@pytest.fixture
def book(tmp_path):
    kept = book_of(
        tmp_path, rows("table1/N50/M100", [0.2, 0.25, 0.3]) + rows("table1/N50/M1000", [0.07, 0.08])
    )
    here = rows("table1/N50/M100", [0.21, 0.24, 0.3])
    here += [
        {"id": "table1/N200/M100", "value": math.nan, "scale": "log", "status": "not comparable"}
    ]
    for problem in ("P2", "P10"):
        for method in ("fast_1", "slow"):
            for k, level in enumerate(("once", "twice")):
                here += rows(f"x/{problem}/{method}/error", [1.0 + k, 2.0], f"v={level}")
    here += rows("x/P2/plain/error", [4.0, 5.0])
    verdicts = pd.DataFrame({"id": ["table1/N50/M100"], "verdict": ["agrees"]})
    return book_of(tmp_path, here, kept, verdicts)


def test_published_kept_and_this_run(book, tmp_path):
    write_tables(layout_of(LAYOUT), book, ["one"], tmp_path)
    text = (tmp_path / "one.tex").read_text()
    assert text.splitlines() == [
        r"\begin{tabular}{llrr}",
        r"\toprule",
        r"$M$ &  & N50 & N200 \\",
        r"\midrule",
        r"100 & published & $0.245$ ($0.0268$) & $1.4$ ($0.3$) \\",
        r" & ours & $0.250$ ($0.029$) & -- \\",
        r" & this run & $0.250$ ($0.026$) & \textit{n.comp.} \\",
        r" & verdict & A & -- \\",
        r"\addlinespace",
        r"M1000 & published & $0.072$ & -- \\",
        r" & ours & $0.0750$ ($0.0050$) & -- \\",
        r" & verdict & -- & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    frame = read_csv(tmp_path / "one.csv").set_index("id")
    assert frame.loc["table1/N50/M100", "unit_of_value"] == "%"
    assert frame.loc["table1/N50/M100", "units"] == 3
    assert frame.loc["table1/N50/M100", "value"] == pytest.approx(0.25)
    assert frame.loc["table1/N200/M100", "status"] == "not comparable"
    assert frame.loc["table1/N50/M1000", "kept"] == pytest.approx(0.075)


def test_a_line_of_this_run_that_would_repeat_ours_is_left_out(book, tmp_path):
    same = Book(
        *(book.kept.estimates.reset_index(drop=True), book.kept.measures),
        *(book.cells.reset_index(drop=True), None, book.kept),
    )
    write_tables(layout_of(LAYOUT), same, ["one"], tmp_path)
    text = (tmp_path / "one.tex").read_text()
    assert "& ours & $0.250$" in text and "this run" not in text


def test_the_verdict_is_that_on_the_kept_numbers(book, tmp_path):
    book.kept.verdicts = book.verdicts.assign(verdict="differs")
    write_tables(layout_of(LAYOUT), book, ["one"], tmp_path)
    assert r" & verdict & D & -- \\" in (tmp_path / "one.tex").read_text()


@pytest.mark.parametrize(
    ("under", "line"), [("v=once", "R: $2.24$"), ("v=twice", "R"), ("v=once; v=twice", "R")]
)
def test_a_cell_that_does_not_agree_under_the_default_has_the_number_that_does(
    tmp_path, under, line
):
    id, column = "table1/N50/M100", {"id": ["table1/N50/M100"], "ours": [2.237], "ours_se": [0.01]}
    here = rows(id, [2.4, 2.3], "v=once") + rows(id, [2.2, 2.3], "v=twice")
    verdicts = pd.DataFrame({**column, "verdict": ["depends on a reading"], "readings": [under]})
    book = book_of(tmp_path, here, None, verdicts)
    book.defaults = {"v": "twice"}
    write_tables(layout_of(LAYOUT), book, ["one"], tmp_path)
    assert rf"verdict & {line} & -- \\" in (tmp_path / "one.tex").read_text()
    # a block that names readings shows them and no other
    block = {**LAYOUT["tables"]["one"]["blocks"][0], "readings": {"twice": "v=twice"}}
    named = {"one": {**LAYOUT["tables"]["one"], "blocks": [{**block, "rows": ["M", "reading"]}]}}
    write_tables(layout_of({**LAYOUT, "tables": named}), book, ["one"], tmp_path)
    assert r"verdict & R & -- \\" in (tmp_path / "one.tex").read_text()


def test_readings_orders_and_empty_blocks(book, tmp_path):
    layout = {**LAYOUT, "tables": {"two": dict(LAYOUT["tables"]["two"])}}
    first, *others = layout["tables"]["two"]["blocks"]
    with pytest.raises(ValueError, match=r"table two, block 1: x/P2/fast_1/error has the readings"):
        write_tables(layout_of(layout), book, None, tmp_path)
    layout["tables"]["two"]["blocks"] = [
        {**first, "rows": ["P", "method", "reading"], "readings": {"twice": "v=twice"}},
        *others,
    ]
    write_tables(layout_of(layout), book, None, tmp_path)
    one, two, three = (tmp_path / "two.tex").read_text().split("\\par\\bigskip\n")
    assert [line.split(" & ")[:2] for line in one.splitlines() if "$" in line] == [
        ["P2", r"slow$^*$"],
        ["", r"fast\_1"],
        ["", "plain"],
        ["P10", r"slow$^*$"],
        ["", r"fast\_1"],
    ]
    assert one.count(r"\addlinespace") == 1
    assert r" & \multicolumn{2}{c}{P10} & \multicolumn{2}{c}{P2} \\" in two
    assert r"\cmidrule(lr){2-3}" in two and r"\cmidrule(lr){4-5}" in two
    assert " & once & twice & once & twice" in two
    assert r"slow$^*$ & $1.5$ ($0.5$) & $2$ & $1.5$ ($0.5$) & $2$ \\" in two.replace(
        "$2.00$", "$2$"
    )
    assert r"plain & -- & -- & $4.5$ ($0.5$) & $4.5$ ($0.5$) \\" in two
    assert "not run at this scale" in three


def test_a_published_number_stands_once_above_its_readings(book, tmp_path):
    block = dict(LAYOUT["tables"]["one"]["blocks"][0], rows=["M", "reading"])
    block |= {"readings": {"once": "v=once", "twice": "v=twice"}, "show": ["published", "run"]}
    table = {**LAYOUT["tables"]["one"], "blocks": [block]}
    write_tables(layout_of({**LAYOUT, "tables": {"one": table}}), book, ["one"], tmp_path)
    text = (tmp_path / "one.tex").read_text()
    assert text.count("published") == 2 and text.count("ours") == 4


def test_reading_that_does_not_apply_is_the_only_one(book):
    assert book.pick("x/P2/plain/error", "v=once")["value"] == 4.5
    assert book.pick("x/P2/slow/error", "v=thrice") is None
    assert book.pick("unknown") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tabels": {}}, r"layout: \['tabels'\] are unknown"),
        (
            {"tables": {"t": {"title": "T", "reads": [], "blocks": []}}},
            "tables: t: blocks: .*at least 1 item",
        ),
        ({"tables": {"t": {"title": "T", "blocks": [1]}}}, "tables: t: reads: .*required"),
        ({"figures": {"f": {"title": "T", "reads": [], "blocks": []}}}, r"\['blocks'\] are unk"),
        ({"units": ["%"]}, r"units: .*dictionary; given was \['%'\]"),
        ({"order": {"M": {"a": 1}}}, "order: M: .*tuple"),
    ],
)
def test_layout_is_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        layout_of({**LAYOUT, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colums": ["N"]}, r"tables: t: blocks: 1: \['colums'\] are unknown"),
        ({"rows": ["K"]}, r"needed are fields of \['N', 'M'\]; wrong are \['K'\]"),
        ({"rows": []}, r"one value in where; wrong are \['M'\]"),
        ({"rows": ["M", "N"]}, "once"),
        ({"show": ["ours"]}, "show: needed are lines of"),
        ({"show": []}, "show: .*at least 1 item"),
        ({"format": {"digits": 2}}, r"format: \['digits'\] are unknown"),
        ({"where": {"K": ["1"]}}, "where: needed are fields"),
    ],
)
def test_block_is_refused_by_name(change, message):
    block = {"cell": "table1/{N}/{M}", "rows": ["M"], "columns": ["N"], **change}
    with pytest.raises(ValueError, match=message):
        layout_of({"tables": {"t": {"title": "T", "reads": ["p"], "blocks": [block]}}})


def test_a_table_that_is_not_declared(book, tmp_path):
    with pytest.raises(ValueError, match="'three' is no table"):
        write_tables(layout_of(LAYOUT), book, ["three"], tmp_path)


def test_tabular_without_a_head_rule():
    assert tabular("l", [["a"]], [["b"], r"\addlinespace", ["c"]]).splitlines()[3:7] == [
        r"\midrule",
        r"b \\",
        r"\addlinespace",
        r"c \\",
    ]
