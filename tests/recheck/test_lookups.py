"""Numbers of the text: found, formatted, traced, and refused by name."""

import csv
import math
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from made_book import book_of, rows

from recheck.judge.declared import checked
from recheck.paper.lookups import (
    Facts,
    Found,
    Study,
    UnknownKeyError,
    Use,
    collect,
    uses,
    web_link,
    write_origins,
    write_values,
)
from recheck.paper.records import origins
from recheck.paper.typeset import typeset
from recheck.report.layout import Layout

#: Keys, options, and what stands in the text for them.
with Path(__file__).with_name("lookups.csv").open(encoding="utf-8") as file:
    TEXTS = list(csv.reader(file))[1:]
LAYOUT = {
    "units": {"table1/*": "%"},
    "tables": {
        "one": {
            "title": "One",
            "reads": ["part"],
            "blocks": [{"cell": "table1/{N}/{M}", "rows": ["M"], "columns": ["N"]}],
        }
    },
}
FACTS = {
    "protocol": Facts({"margins": {"agree": 2.0}, "power": 0.8}, "data/published/s/protocol.yaml"),
    "run": Facts(
        {"commit": "abc_1", "dirty": False, "seed": 123456, "hours": None},
        "results/tiny/provenance.json",
    ),
}
TEX = r"""\documentclass{article}\pdftrailerid{}
\usepackage{multicol}\usepackage[hidelinks]{hyperref}
\input{values}\input{origins}
\begin{document}
\section{A number: \val{table1/N50/M100}}
% \val{in/a/comment}
\val[value]{table1/N50/M100}, \val[nounit, digits=1]{table1/N50/M100}, \val{x/y@v=once}, 5\%
\val{published:table1/N200/M100},
\val{verdict:table1/N50/M100}, \val[percent]{protocol:power}, \valtext{run:commit}, \val{table1/N200/M100}
\ifval{table1/N200/M100}{yes}{no}\ifval{run:commit}{yes}{no} \val{count:cells/agrees}
\begin{table}\caption{One. \origin{tables/one}}\end{table}
\recheckorigins
\end{document}
"""


@pytest.fixture
def study(tmp_path):
    nan = math.nan
    verdicts = pd.DataFrame(
        [
            ("table1/N50/M100", "cell", "1", "agrees", True, 1.23456, "log", 0.3, 1),
            ("table1/N200/M100", "cell", "1", "not run", False, nan, "log", nan, nan),
            ("table1/N50/M1000", "cell", "1", "depends on a reading", True, 1.1, "log", -0.4, 0.05),
            ("claim/a", "claim", "", "differs", True, nan, "linear", 0.1, 1e-3),
        ],
        columns=[
            *["id", "kind", "table", "verdict", "informative", "factor", "scale", "effect"],
            "p_adjusted",
        ],
    )
    kept = book_of(
        tmp_path,
        rows("table1/N50/M100", [0.2, 0.25, 0.3])
        + rows("x/y", [1.0, 2.0], "v=once")
        + rows("x/y", [3.0, 2.0], "v=twice"),
        verdicts=verdicts,
    )
    book = book_of(tmp_path, rows("table1/N50/M100", [0.21, 0.24, 0.3]), kept, verdicts)
    return Study(
        book,
        checked(Layout, LAYOUT, "layout"),
        "results/tiny/s",
        "data/published/s",
        "data/reference/s/kept",
        "src/studies/s/layout.yaml:3",
    )


def look_up(study, key, options="", numbers="kept"):
    (found,) = collect([Use(key, options, "main.tex:1")], {"s": study}, FACTS, numbers)
    return found


@pytest.mark.parametrize(("key", "options", "text"), TEXTS)
def test_texts(study, key, options, text):
    assert look_up(study, key, options).text == text


def test_where_numbers_come_from(study):
    kept, run = (look_up(study, "table1/N50/M100", numbers=one) for one in ("kept", "run"))
    assert kept.source == "data/reference/s/kept/raw.csv:2-4"
    assert run.source == "results/tiny/s/raw.csv:2-4"
    assert run.text == r"$0.250$ ($0.026$)\,\%"
    assert (kept.seed, kept.count, kept.verdict) == ("1/a", "3 units, 3 runs", "agrees")
    assert kept.digits == "0.25 +- 0.0289"
    assert look_up(study, "verdict:claim/a").source == "data/reference/s/kept/verdicts.csv:5"
    assert look_up(study, "published:table1/N50/M1000").source == "data/published/s/cells.csv:4"
    assert not look_up(study, "table1/N200/M100").known


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("table1/N50/M10", r"is no id; close are \['table1/N50/M100'"),
        ("x/y@v=trice", r"has the readings \['v=once', 'v=twice'\]"),
        ("verdict:table1/N50/M10", "has no verdict; close are"),
        ("published:x/y", "is no cell"),
        ("count:cells/agree", "has the part 'agree'; known are"),
        ("protocol:margins/agrees", r"no entry 'agrees' in data.*close are \['agree'\]"),
        ("protokol:power", "begins with 'protokol'; known are"),
    ],
)
def test_a_key_that_is_not_there(study, key, message):
    with pytest.raises(UnknownKeyError, match=message) as caught:
        look_up(study, key)
    assert str(caught.value).startswith(f"main.tex:1: key {key!r}")


def test_a_choice_that_does_not_apply_changes_nothing(study):
    assert look_up(study, "table1/N50/M100@v=once").known


def test_all_unknown_keys_are_listed(study):
    wanted = [Use("a", "", "main.tex:1"), Use("b", "", "main.tex:7")]
    with pytest.raises(UnknownKeyError, match="main.tex:1(.|\n)*main.tex:7"):
        collect(wanted, {"s": study}, {}, "kept")


@pytest.mark.parametrize("options", ["digit=3", "digits=a", "value=3", "digits"])
def test_options_are_refused(study, options):
    with pytest.raises(ValueError, match="main.tex:1: option"):
        look_up(study, "x/y@v=once", options)


def test_ambiguous_and_wrong_arguments_are_refused(study):
    with pytest.raises(ValueError, match="has the readings"):
        look_up(study, "x/y")
    with pytest.raises(ValueError, match="numbers: needed is kept or run, given was 'mine'"):
        look_up(study, "x/y@v=once", numbers="mine")


def test_scan(tmp_path):
    (tmp_path / "main.tex").write_text(TEX)
    found = uses([tmp_path / "main.tex"])
    assert len(found) == 10
    assert found[0] == Use("table1/N50/M100", "", "main.tex:5")
    assert Use("table1/N50/M100", "nounit, digits=1", "main.tex:7") in found
    assert not any("comment" in use.key for use in found)
    (tmp_path / "bad.tex").write_text("a\n\\newcommand{\\x}[1]{\\val{a/#1}}")
    with pytest.raises(ValueError, match="bad.tex:2: key 'a/#1'.*written out"):
        uses([tmp_path / "bad.tex"])


def test_links():
    record = {"remote": "https://x.org/a", "commit": "f0", "tracked": ["data/reference/", "src/"]}
    assert (
        web_link("data/reference/s/a.csv:17-22,30", record)
        == "https://x.org/a/blob/f0/data/reference/s/a.csv#L17-L22"
    )
    assert web_link("results/tiny/a.csv:1", record) is None
    assert web_link("src/a.py", {}) is None


def made(tmp_path, study, record=None):
    (tmp_path / "main.tex").write_text(TEX)
    found = collect(uses([tmp_path / "main.tex"]), {"s": study}, FACTS, "kept")
    write_values(found, tmp_path / "values.tex")
    write_origins(found, {"s": study}, record or {}, "results/tiny", tmp_path / "origins.tex")
    return (tmp_path / "values.tex").read_text(), (tmp_path / "origins.tex").read_text()


def test_origins_name_files_lines_and_seeds(tmp_path, study):
    values, origins = made(tmp_path, study)
    assert len(re.findall(r"^\\recheck@(?:value|missing)\{", values, re.M)) == 10
    assert origins.count(r"\recheck@row{table1/N50/M100}") == 1
    row = next(line for line in origins.splitlines() if line.startswith(r"\recheck@row{table1/N50"))
    assert row == r"\recheck@row{table1/N50/M100}"
    entry = next(line for line in origins.splitlines() if "tables/one" in line)
    assert (
        r"\href{run:s/tables/one.csv}{numbers}, \href{run:s/measures/part.csv}{measures}" in entry
    )
    assert r"layout.yaml}{code}" in entry
    _, linked = made(
        tmp_path, study, {"remote": "https://x.org/a", "commit": "f0", "tracked": ["src/"]}
    )
    assert r"blob/f0/src/studies/s/layout.yaml\#L3" in linked


def test_the_table_of_origins_has_every_key_once_and_every_file():
    sources = "; ".join(f"{name}.csv:2" for name in "abcde")
    found = [Found(Use("k", "", "main.tex:1"), "1", True, "1", sources, "1/a", "5 units, 5 runs")]
    found.append(Found(Use("l@a;b", "", "main.tex:2"), "2", True, "2", ""))
    found.append(Found(Use("k", "value", "main.tex:3"), "1", True, "1", sources, "1/a"))
    first, second = origins(found, "run {}".format).to_dict("records")
    assert first["source"] == sources and first["rests_on"] == "5 units, 5 runs"
    assert (first["key"], first["number"], first["seed"]) == ("k", "1", "1/a")
    assert second["command"] == "run l@a;b"


@pytest.mark.skipif(not shutil.which("latexmk"), reason="there is no LaTeX here")
def test_the_text_is_typeset_with_links_and_hover_texts(tmp_path, study):
    made(tmp_path, study)
    files = [tmp_path / f"{name}.tex" for name in ("main", "values", "origins")]
    typeset(files, {}, {"main.tex": tmp_path / "main.pdf"}, log=tmp_path / "log")
    content = (tmp_path / "main.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert "undefined" not in (tmp_path / "log").read_text()
    (tmp_path / "main.tex").write_text(
        TEX.replace(r"\input{values}", r"\def\recheckdocument{o.pdf}\input{values}")
    )
    typeset(files, {}, {"main.tex": tmp_path / "other.pdf"})
