"""The text: no number typed by hand, every key known, and it can be typeset."""

from __future__ import annotations

import itertools
import re
import shutil
import zlib
from pathlib import Path

import pandas as pd
import pytest
from made_results import everything

from gpcmc.audit import (
    ResultFiles,
    agreement,
    audit,
    controls,
    explain,
    judge_claims,
    read_claims,
    read_registry,
)
from gpcmc.report import (
    FIGURES,
    TABLES,
    Value,
    build_paper,
    collect,
    provenance,
    trace,
    write_figure,
    write_origins,
    write_table,
    write_values,
)
from gpcmc.report.audit import Audited, appendix, claims_table, controls_table
from gpcmc.report.paper import too_wide
from gpcmc.report.values import GRIDS

ROOT = Path(__file__).parent.parent
PAPER = ROOT / "paper"
TEXTS = sorted(PAPER.glob("*.tex"))


PUBLISHED = ROOT / "data" / "published"


def audited_of(files: ResultFiles) -> Audited:
    """All of the audit, without explanations."""
    registry, claims = read_registry(PUBLISHED), read_claims(PUBLISHED / "claims.yaml")
    found, judged = audit(registry, files), judge_claims(claims, registry, files)
    tried = controls(registry, files, PUBLISHED, claims, judged)
    cells, columns, judged = (explain(f, {}) for f in (found.cells, found.columns, judged))
    return Audited(cells, columns, judged, agreement(found.compared), tried)


def values_of(scale: str, files: ResultFiles, audited: Audited | None = None) -> dict[str, Value]:
    registry = read_registry(PUBLISHED)
    record = provenance(
        ROOT, {"scale": scale, "seed": 1}, ROOT / "data" / "registry.csv", ROOT / "data" / "raw"
    )
    more = audited_of(files) if audited is None else audited
    return collect(registry, audit(registry, files).cells, files, record, more=more)


def without_comments(text: str) -> str:
    return re.sub(r"(?<!\\)%.*", "", text)


#: Numbers that are no counts: decimals with a point or a comma, powers of ten, counts with thousands
#: set apart, fractions of numbers, percentages that are not part of a text about percentiles.
TYPED = "|".join(
    (
        r"\d\.\d",
        r"(?<![\w.])\.\d",
        r"\d\{,\}\d|\d\s*,\\!\s*\d",
        r"\d\s*(?:\\times|\\cdot)\s*10\^",
        r"\d[eE][-+]?\d",
        r"\d\\[,;: ]\d{3}|\d~\d{3}",
        r"\\n?frac\{?\d+\}?\{?\d",
        r"\\(?:num|SI|qty)\b",
        r"\d(?:\\,)?\\%",
    )
)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_decimal_is_typed_by_hand(path: Path) -> None:
    lines = without_comments(path.read_text()).splitlines()
    assert [line for line in lines if re.search(TYPED, line)] == []


@pytest.mark.parametrize(
    "text",
    [
        *("an error of 0.12", "of .5", r"$3\times10^{-4}$", r"$3 \cdot 10^5$", "$0{,}5$", "1e-3"),
        *(r"of 10\,000 samples", r"$\frac{3}{8}$", r"\num{12}", r"by 30\,\%", r"5\%"),
    ],
)
def test_the_search_for_decimals_finds_them(text: str) -> None:
    assert re.search(TYPED, text)


def test_the_search_for_decimals_lets_counts_pass() -> None:
    for text in ("in 20 runs, see Table 4. Then", "$M^{-1/2}$", r"\val{a}\,\%", "Eq.~(44)", "B4e"):
        assert not re.search(TYPED, text)


def used_keys() -> set[str]:
    r"""Every key that the text asks for; of a key with an argument (``#1``), all that a call can make."""
    text = "".join(without_comments(path.read_text()) for path in TEXTS)
    used = set(re.findall(r"\\(?:if)?val(?:text)?\{([^}]+)\}", text))
    called = {str(number) for number in range(1, GRIDS + 1)}
    assert set(re.findall(r"\\gridrow\{(\w+)\}", text)) == called
    templates = {key for key in used if "#" in key}
    made = {key.replace("#1", number) for key, number in itertools.product(templates, called)}
    return used - templates | made


def test_every_key_used_is_defined() -> None:
    used = used_keys()
    assert len(used) > 40 and not any("#" in key for key in used)
    assert used - set(values_of("tiny", ResultFiles())) == set()


def test_every_caption_ends_with_the_origin_of_what_it_stands_under() -> None:
    text = "".join(without_comments(path.read_text()) for path in TEXTS)
    bodies = re.findall(r"\\begin\{(?:table|figure)\}(.*?)\\end\{(?:table|figure)\}", text, re.S)
    assert len(bodies) == len(TABLES) + len(FIGURES) + 1
    for body in bodies:
        (shown,) = re.findall(r"\\(?:input|includegraphics)\{(\w+(?:/\w+)?)\}", body)
        caption = body[body.index(r"\caption{") : body.index(r"\label{")]
        assert rf" \origin{{{shown.replace('audit_', 'audit/')}}}}}" in caption


def test_every_table_and_figure_is_in_the_text() -> None:
    text = "".join(without_comments(path.read_text()) for path in TEXTS)
    assert set(re.findall(r"\\input\{tables/(\w+)\}", text)) == set(TABLES)
    assert set(re.findall(r"\\includegraphics\{figures/(\w+)\}", text)) == set(FIGURES)
    labels = re.findall(r"\\label\{((?:tab|fig):\w+)\}", text)
    assert len(labels) == len(set(labels)) == len(TABLES) + len(FIGURES)
    assert all(f"\\ref{{{label}}}" in text for label in labels)


def test_no_longtable_overtakes_a_float() -> None:
    """It does not wait for those before it, and tables would be out of order."""
    text = without_comments((PAPER / "main.tex").read_text())
    for name in ("audit_claims", "audit"):
        before, found, _ = text.partition(rf"\input{{{name}}}")
        # placeins: all floats are out before a section
        since = re.split(r"\\FloatBarrier|\\section", before)[-1]
        assert found and r"\begin{table}" not in since and r"\begin{figure}" not in since


def test_conclusions_come_with_the_values_that_bear_them() -> None:
    """Sentences that another run may contradict stand in an ifval, or are not said."""
    text = " ".join("".join(without_comments(path.read_text()) for path in TEXTS).split())
    for claim in (
        "because the truth that they are measured against",
        "level off in the same manner",
        "departures are shared by all methods",
        "lie close together on every problem",
        "almost every run falls short",
        "of which the sampler's own noise",
        "Time and memory per sample",
        "four equations are misprinted",
        "whose repair alone moves",
    ):
        assert claim not in text
    for guard, claim in (
        (r"\ifval{floor/N500/remains}", "one wrong truth is not all"),
        (r"\ifval{floor/grid/reproduced}", "do not reproduce this"),
        (r"\ifval{hard/short}", "runs that ended fall short"),
        (r"\ifval{ep/stands}", "at these budgets the statement"),
        (r"\ifval{accuracy/ep/nats-median}", "over certified pairs only"),
        (r"\ifval{furthest/cells}", "the mean errors are, from the largest down"),
        (r"\ifval{mae-med/ours/problems}", "HMC is furthest in"),
        (r"\ifval{evidence/hmc-gpml/stray/cells}", "Our runs that say so of themselves"),
        (r"\ifval{seconds/control-variables/ratio}", "times as many CPU seconds with the two sets"),
        (r"\ifval{hard/overdispersed}", "their standard deviation is"),
        (r"\ifval{mae-post/ours-closer}", r"\val{mae-post/ours-closer}"),
        (r"\ifval{control-variables/usps-limit}", "do so before they sample"),
    ):
        before, found, _ = text.partition(claim)
        assert found
        assert guard in before
        # still inside the braces of its guard
        inside = before.rpartition(guard)[2]
        assert inside.count("{") > inside.count("}"), claim


def test_the_stamp_on_page_one_counts_every_kind_of_discrepancy() -> None:
    text = (PAPER / "main.tex").read_text()
    stamp = text[text.index(r"\begin{minipage}") : text.index(r"\end{minipage}")]
    kinds = {f"audit/{kind}/discrepant" for kind in ("columns", "claims", "variants")}
    assert {"audit/line", "audit/unexplained-count", *kinds} <= set(
        re.findall(r"\\val\{(.*?)\}", stamp)
    )


def test_every_citation_is_in_the_bibliography_and_used() -> None:
    text = "".join(without_comments(path.read_text()) for path in TEXTS)
    cited = {key for group in re.findall(r"\\cite\{([^}]+)\}", text) for key in group.split(",")}
    entries = set(re.findall(r"^@\w+\{(\w+),", (PAPER / "references.bib").read_text(), re.M))
    assert cited == entries


def links_lead_to_rows(pdf: bytes, values: dict[str, Value]) -> None:
    """Every number of the text is a link to its own row, and a button that shows what is in ``values.json``."""
    parts = []
    for found in re.finditer(rb"stream\r?\n", pdf):
        try:
            parts.append(zlib.decompressobj().decompress(pdf[found.end() :]))
        except zlib.error:  # not compressed
            continue
    text = b"".join(parts).decode("latin-1")
    rows = set(re.findall(r"\(val:([^)]*)\)\s*\d+ 0 R", text))
    shown = set(re.findall(r"/TU<(\w*)>/A<</S/GoTo/D\(val:([^)]*)\)", text))
    linked = set(re.findall(r"/A << /S /GoTo /D \(val:([^)]*)\)", text))
    assert len(rows) > 100 and rows == {key for _, key in shown} == linked
    assert rows <= used_keys()
    for tip, key in shown:
        said = bytes.fromhex(tip).decode("latin-1")
        assert said.startswith(
            values[key].digits.split(" +- ")[0].encode("latin-1", "replace").decode("latin-1")
        )
        assert said.endswith(values[key].place)
    addresses = set(re.findall(r"/URI ?\(([^)]*)\)", text))
    assert {"experiment1/.", "tables/table1.csv"} <= addresses and "GoToR" not in text
    assert any(
        a.startswith("https://example.org/us/gpcmc/blob/c0ffee/src/") and "#L" in a
        for a in addresses
    )
    assert not any(a.startswith(("file:", "/")) for a in addresses)


def test_a_box_in_the_margin_is_reported() -> None:
    said = (
        "(1.9pt too wide) in paragraph at lines 1--2",
        "(2.1pt too wide) in paragraph at lines 3--4",
    )
    log = "".join(f"Overfull \\hbox {one}\n [][] \n" for one in said)
    assert too_wide(log) == [f"Overfull \\hbox {said[1]}"]
    assert too_wide("Underfull \\hbox (badness 10000)\nOverfull \\vbox (9pt too high)") == []


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("latexmk") and shutil.which("pdflatex")), reason="there is no LaTeX"
)
def test_the_paper_is_typeset_twice_to_the_same_bytes(tmp_path: Path) -> None:
    files = everything(tmp_path / "results")
    registry = read_registry(ROOT / "data" / "published")
    folder = tmp_path / "results"
    audited = audited_of(files)
    judged = pd.concat([audited.cells, audited.claims])
    values = trace(values_of("smoke", files, audited), judged, files, folder, {})
    write_values(values, tmp_path / "values.json", tmp_path / "values.tex")
    record = {"remote": "https://example.org/us/gpcmc", "commit": "c0ffee"}
    reads = {"tables": {}, "figures": {name: ["experiment1", "experiment4"] for name in FIGURES}}
    write_origins(values, files, record, folder, reads, tmp_path / "origins.tex")
    parts = {"audit": appendix, "audit_claims": claims_table, "audit_controls": controls_table}
    for name, make in parts.items():
        (tmp_path / f"{name}.tex").write_text(make(audited))
    for name in TABLES:
        write_table(name, registry, files, tmp_path / f"{name}.csv", tmp_path / f"table_{name}.tex")
    tables = tmp_path / "tables"
    tables.mkdir()
    for name in TABLES:
        (tmp_path / f"table_{name}.tex").rename(tables / f"{name}.tex")
    for name in FIGURES:
        write_figure(name, registry, files, tmp_path / f"{name}.pdf", tmp_path / f"{name}.png")
    generated = {
        "": [tmp_path / f"{name}.tex" for name in ("values", "origins", *parts)],
        "tables": sorted(tables.iterdir()),
        "figures": [tmp_path / f"{name}.pdf" for name in FIGURES],
    }
    sources = sorted(PAPER.iterdir())
    log = tmp_path / "log"
    for name in ("first", "second"):
        wide = build_paper(
            sources, generated, tmp_path / f"{name}.pdf", epoch=1_000_000_000, log=log
        )
        assert wide == []
    assert (tmp_path / "first.pdf").read_bytes() == (tmp_path / "second.pdf").read_bytes()
    last_run = log.read_text().rpartition("This is pdfTeX")[2]
    assert "undefined" not in last_run and "does not exist" not in last_run
    links_lead_to_rows((tmp_path / "first.pdf").read_bytes(), values)

    (tmp_path / "values.tex").write_text("% no values\n")
    with pytest.raises(RuntimeError, match="latexmk failed"):
        build_paper(sources, generated, tmp_path / "third.pdf", log=log)
    assert not (tmp_path / "third.pdf").exists()
