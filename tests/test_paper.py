"""The text: no number typed by hand, every key known, and it can be typeset."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from made_results import everything

from gpcmc.audit import (
    ResultFiles,
    agreement,
    audit,
    controls,
    explain,
    full_audit,
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
    write_figure,
    write_table,
    write_values,
)
from gpcmc.report.audit import Audited, appendix, claims_table, controls_table

ROOT = Path(__file__).parent.parent
PAPER = ROOT / "paper"
TEXTS = sorted(PAPER.glob("*.tex"))


PUBLISHED = ROOT / "data" / "published"


def audited_of(files: ResultFiles) -> Audited:
    """All of the audit, without explanations."""
    registry, claims = read_registry(PUBLISHED), read_claims(PUBLISHED / "claims.yaml")
    found, judged = full_audit(registry, files), judge_claims(claims, registry, files)
    tried = controls(registry, files, PUBLISHED, claims, judged)
    cells, columns, judged = (explain(f, {}) for f in (found.cells, found.columns, judged))
    return Audited(cells, columns, judged, agreement(found.compared), tried)


def values_of(scale: str, files: ResultFiles, audited: Audited | None = None) -> dict[str, Value]:
    registry = read_registry(PUBLISHED)
    record = provenance(
        ROOT, {"scale": scale, "seed": 1}, ROOT / "data" / "registry.csv", ROOT / "data" / "raw"
    )
    more = audited_of(files) if audited is None else audited
    return collect(registry, audit(registry, files), files, record, more=more)


def without_comments(text: str) -> str:
    return re.sub(r"(?<!\\)%.*", "", text)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_decimal_is_typed_by_hand(path: Path) -> None:
    typed = re.findall(
        r".*(?:\d\.\d|(?<![\w.])\.\d|\d\s*(?:\\times|\\cdot)\s*10\^).*",
        without_comments(path.read_text()),
    )
    assert typed == []


def test_the_search_for_decimals_finds_them() -> None:
    pattern = r"\d\.\d|(?<![\w.])\.\d|\d\s*(?:\\times|\\cdot)\s*10\^"
    for text in ("an error of 0.12", "of .5", r"$3\times10^{-4}$"):
        assert re.search(pattern, text)
    assert not re.search(pattern, "in 20 runs, see Table 4. Then")


def test_every_key_used_is_defined() -> None:
    defined = values_of("tiny", ResultFiles())
    used = set()
    for path in TEXTS:
        used |= set(re.findall(r"\\(?:if)?val\{([^}#]+)\}", without_comments(path.read_text())))
    assert len(used) > 40
    assert used - set(defined) == set()


def test_every_table_and_figure_is_in_the_text() -> None:
    text = "".join(without_comments(path.read_text()) for path in TEXTS)
    assert set(re.findall(r"\\input\{tables/(\w+)\}", text)) == set(TABLES)
    assert set(re.findall(r"\\includegraphics\{figures/(\w+)\}", text)) == set(FIGURES)
    labels = re.findall(r"\\label\{((?:tab|fig):\w+)\}", text)
    assert len(labels) == len(set(labels)) == len(TABLES) + len(FIGURES)
    assert all(f"\\ref{{{label}}}" in text for label in labels)


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
    ):
        assert claim not in text
    for guard, claim in (
        (r"\ifval{floor/N500/remains}", "one wrong truth is not all"),
        (r"\ifval{floor/grid/reproduced}", "do not reproduce this"),
        (r"\ifval{hard/short}", "there it falls short by"),
        (r"\ifval{ep/stands}", "at these budgets the statement"),
        (r"\ifval{furthest/cells}", "the mean errors are, from the largest down"),
        (r"\ifval{mae-med/ours/problems}", "HMC is furthest in"),
        (r"\ifval{evidence/hmc-gpml/stray/cells}", "Our runs that say so of themselves"),
        (r"\ifval{seconds/control-variables/ratio}", "times as many CPU seconds with the two sets"),
        (r"\ifval{hard/overdispersed}", "say of themselves"),
        (r"\ifval{mae-post/ours-closer}", "mae-post/ours-problems"),
    ):
        before, found, _ = text.partition(claim)
        assert found
        assert guard in before
        # still inside the braces of its guard
        inside = before.rpartition(guard)[2]
        assert inside.count("{") > inside.count("}"), claim


def test_every_citation_is_in_the_bibliography_and_used() -> None:
    text = "".join(without_comments(path.read_text()) for path in TEXTS)
    cited = {key for group in re.findall(r"\\cite\{([^}]+)\}", text) for key in group.split(",")}
    entries = set(re.findall(r"^@\w+\{(\w+),", (PAPER / "references.bib").read_text(), re.M))
    assert cited == entries


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("latexmk") and shutil.which("pdflatex")), reason="there is no LaTeX"
)
def test_the_paper_is_typeset_twice_to_the_same_bytes(tmp_path: Path) -> None:
    files = everything(tmp_path / "results")
    registry = read_registry(ROOT / "data" / "published")
    audited = audited_of(files)
    values = values_of("smoke", files, audited)
    write_values(values, tmp_path / "values.json", tmp_path / "values.tex")
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
        "": [tmp_path / f"{name}.tex" for name in ("values", *parts)],
        "tables": sorted(tables.iterdir()),
        "figures": [tmp_path / f"{name}.pdf" for name in FIGURES],
    }
    sources = sorted(PAPER.iterdir())
    log = tmp_path / "log"
    for name in ("first", "second"):
        build_paper(sources, generated, tmp_path / f"{name}.pdf", epoch=1_000_000_000, log=log)
    assert (tmp_path / "first.pdf").read_bytes() == (tmp_path / "second.pdf").read_bytes()
    last_run = log.read_text().rpartition("This is pdfTeX")[2]
    assert "undefined" not in last_run
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", last_run)]
    assert max(too_wide, default=0.0) < 10

    (tmp_path / "values.tex").write_text("% no values\n")
    with pytest.raises(RuntimeError, match="latexmk failed"):
        build_paper(sources, generated, tmp_path / "third.pdf", log=log)
    assert not (tmp_path / "third.pdf").exists()
