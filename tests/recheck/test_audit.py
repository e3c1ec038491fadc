"""The audit's table and page, the lists of the supplement, and the lines that a run ends with."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from recheck.judge.published import read_published
from recheck.paper.summary import summary
from recheck.paper.typeset import LATEX_PACKAGES
from recheck.record.files import read_csv, write_csv
from recheck.report.audit import (
    audit_lines,
    audit_tables,
    picture,
    protocol_table,
    readings_table,
    write_audit,
)
from recheck.report.book import read
from recheck.report.layout import Layout

PI = Path(__file__).parent / "pi" / "data" / "published" / "pi"
NONE = math.nan


def row(id, verdict, kind="cell", informative=True, **more):
    numbers = [
        "published",
        "ours",
        "ours_se",
        "units",
        "runs",
        "effect",
        "low",
        "high",
        "p_adjusted",
    ]
    empty = dict.fromkeys([*numbers, "factor", "q05", "q25", "q50", "q75", "q95"], NONE)
    texts = {"table": "1", "printed": "", "scale": "log", "readings": "", "note": "", "source": ""}
    return {"id": id, "kind": kind, **texts, **empty} | {
        "verdict": verdict,
        "informative": informative,
        **more,
    }


QUANTILES = {"q05": 0.8, "q25": 0.9, "q50": 1.0, "q75": 1.1, "q95": 1.3}


@pytest.fixture
def verdicts():
    seen = {
        "published": 1.2,
        "printed": "1.2",
        "ours": 1.0,
        "ours_se": 0.1,
        "units": 5.0,
        "runs": 5.0,
    }
    effect = {"effect": -0.18, "low": 0.6, "high": 1.2, "p_adjusted": 0.5, "factor": 1.6}
    source = {"source": "raw.csv:2-6; b.csv:3", "note": "a <note> & more"}
    return pd.DataFrame(
        [
            row("t/a", "agrees", **seen, **effect, **source, **QUANTILES),
            row("t/b", "differs"),
            row("t/c", "undecided", informative=False, factor=math.inf),
            row("t/d", "depends on a reading", readings="v=once"),
            row("t/e", "not run", informative=False),
            row("t", "differs", "column", **effect),
            row(
                "claim/bias",
                "agrees",
                "claim",
                printed="-0.005 to 0.005",
                ours=0.1,
                low=0,
                high=0.2,
            ),
        ]
    )


def test_first_line_says_what_is_informative(verdicts):
    lines = audit_lines(verdicts)
    assert lines == [
        "3 of 5 cells are informative (a factor of 2 would be detected): "
        "1 agrees, 1 differs, 1 depends on a reading.",
        "All 5 cells: 1 agrees, 1 differs, 1 depends on a reading, 1 is undecided, 1 was not run.",
        "1 column: 1 differs.",
        "1 claim: 1 agrees.",
    ]
    assert audit_lines(verdicts.assign(informative="False"))[0].startswith("None of 5 cells")


def test_several_studies_have_lines_of_their_own(verdicts):
    both = pd.concat([verdicts.assign(study="one"), verdicts.assign(study="two")])
    alone = audit_lines(verdicts)
    assert audit_lines(both) == [f"{name}: {line}" for name in ("one", "two") for line in alone]


def test_a_summary_has_the_verdicts_first_and_then_what_was_measured_again(verdicts):
    again = pd.DataFrame({"outcome": ["identical", "identical", "differs", "not run"]})
    text = summary(
        {"one": verdicts},
        {"one": again, "two": again.iloc[:0]},
        ["a.pdf", "b.html"],
        ["place x in data/raw"],
        scale="tiny",
        kept=True,
    )
    lines = text.splitlines()
    assert lines[0] == "Verdicts of the complete run, which is kept"
    assert lines[2].split("  ")[-1] == "not run"
    assert lines[3].split() == ["one", "cells", *"11111"]
    assert lines[4].split()[0] == "columns" and lines[5].split()[0] == "claims"
    assert "at the scale tiny" in lines[7]
    assert lines[10].split() == ["one", "estimates", "2", "-", "1", "1"]
    assert lines[12:] == ["Paper: a.pdf, b.html", "", "Missing: place x in data/raw"]


def test_a_summary_says_how_latex_and_pandoc_are_installed(verdicts):
    text = summary({"one": verdicts}, {}, scale="tiny", kept=False)
    assert text.startswith("Verdicts of this run, at the scale tiny")
    assert f"apt-get install {LATEX_PACKAGES}" in text
    assert "pip install pypandoc_binary" in text
    one = summary({"one": verdicts}, {}, ["a.html"], scale="tiny", kept=False)
    assert "Paper: a.html; no PDF: there is no LaTeX here" in one and "pandoc" not in one


def test_page_is_whole_without_a_network(verdicts, tmp_path):
    published = read_published(PI)
    units = Layout(units={"t/a": "%"})
    write_audit(
        {"one": verdicts, "two": verdicts},
        {"one": units, "two": Layout()},
        {"one": published, "two": published},
        tmp_path / "audit.csv",
        tmp_path / "audit.html",
        scale="tiny",
    )
    table = read_csv(tmp_path / "audit.csv")
    assert list(table["study"].unique()) == ["one", "two"] and len(table) == 14
    assert list(table.columns)[:2] == ["study", "id"]
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert page.count("<tr id=") == 14
    assert 'id="audit:one/t/a"' in page
    assert "a &lt;note&gt; &amp; more" in page
    assert 'href="one/raw.csv"' in page and "raw.csv:2-6" in page
    assert (
        "1.00 (0.10)%" in page
        and "∞" in page
        and "Ten thousand points give pi without bias" in page
    )
    assert not re.search(r"https?:", page)
    assert page.index("one: 3 of 5 cells") < page.index("one: All 5 cells") < page.index("two: 3")


def test_the_printed_number_stands_where_it_falls():
    def at(svg):
        return [float(x) for x in re.findall(r"translate\((\S+) ", svg)]

    middle = at(picture(row("a", "agrees", published=1.0, **QUANTILES)))[0]
    twice = at(picture(row("a", "agrees", published=2.0, **QUANTILES)))[0]
    half = at(picture(row("a", "agrees", published=0.5, **QUANTILES)))[0]
    assert twice - middle == pytest.approx(middle - half, abs=0.11) and twice > middle
    far = picture(row("a", "differs", published=100.0, **QUANTILES))
    assert "M8 0" in far  # an arrow at the edge
    linear = picture(row("a", "agrees", scale="linear", published=1.2, **QUANTILES))
    assert at(linear)[0] > middle and "printed 1.20" in linear
    assert picture(row("a", "not run")) == ""
    assert "<rect" not in picture(row("t", "differs", "column", effect=0.1, low=0.9, high=1.4))
    rounded = picture(
        row("r", "agrees", printed="-99", published=-99.0, ours=-98.9, low=-98.9, high=-98.9)
    )
    assert "printed \N{MINUS SIGN}99" in rounded or "printed -99" in rounded
    given = {"ours": 3e6, "low": 2e6, "high": 4e6}
    claim = picture(row("c", "agrees", "claim", printed="above 1e+06", **given), (1e6, math.inf))
    assert claim.count('class="tick"') == 1
    bound = picture(row("b", "agrees", printed="<0.001", **given), (-math.inf, 0.001))
    assert bound.count('class="tick"') == 1


def test_lists_of_the_supplement(verdicts):
    published = read_published(PI)
    lists = audit_tables(verdicts, Layout(units={"t/a": "%"}), published)
    assert list(lists) == ["audit_cells", "audit_columns", "audit_claims"]  # there are no contrasts
    assert (
        r"\hypertarget{audit:t/a}{}\nolinkurl{t/a} & $1.2$ & $1.00$ ($0.10$)\,\%"
        in lists["audit_cells"]
    )
    assert r"& $0.835$ & $0.600$ to $1.20$ & $1.60$ & agrees \\" in lists["audit_cells"]
    assert r"agrees under \nolinkurl{v=once}" in lists["audit_cells"]
    assert "Ten thousand points give pi without bias (3)" in lists["audit_claims"]
    # a cell that is judged by its rounding has neither effect nor interval
    exact = {"printed": "21", "published": 21.0, "ours": 22.0, "ours_se": 0.0}
    exact |= {"note": "judged by its rounding", "low": 22.0, "high": 22.0}
    (text,) = audit_tables(verdicts.iloc[:1].assign(**exact), Layout(), published).values()
    assert r"\nolinkurl{t/a} & $21$ & $22$ & -- & -- &" in text
    columns = ["choice", "level", "kind", "compared", "agrees", "differs", "log_likelihood"]
    evidence = pd.DataFrame([["points", "stratified", "cell", 1, 0, 1, -3.5]], columns=columns)
    text = readings_table(published, evidence)
    assert r"stratified & each cell of a grid has one point & 0/1 & 1 & $0$" in text
    assert "independent & each point is uniform on the square & -- & -- & --" in text
    # cells that are judged by their rounding have counts and no likelihood
    evidence = evidence.assign(agrees=1, differs=0, log_likelihood=NONE)
    text = readings_table(published, evidence)
    assert r"stratified & each cell of a grid has one point & 1/1 & 0 & -- \\" in text
    assert "2024-05-01, before results" in protocol_table(published)


def test_texts_of_verdicts_stay_texts(verdicts, tmp_path):
    write_csv(tmp_path / "v.csv", verdicts.iloc[:1].assign(printed="0.020"))
    found = read(tmp_path / "v.csv").iloc[0]
    assert (found["printed"], found["table"], found["readings"]) == ("0.020", "1", "")
