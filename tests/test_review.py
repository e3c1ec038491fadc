"""The reviewer's page, CODECHECK, RO-Crate, checksums and times, on a few made files."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import pandas as pd
import pytest
import yaml
from rocrate.rocrate import ROCrate

from gpcmc.audit import ResultFiles
from gpcmc.report import (
    Item,
    claim_items,
    items,
    run_timing,
    write_codecheck,
    write_crate,
    write_manifest,
    write_review,
)

ROOT = Path(__file__).parent.parent
TEMPLATE = ROOT / "workflow/report/review.html.jinja"
RECORD = {
    "scale": "tiny",
    "commit": "c0ffee",
    "commit_time": 1_000_000_000,
    "dirty": True,
    "remote": "https://example.org/us/gpcmc",
    "config_sha256": "abcdef" * 8,
    "seed": 7,
    "cpu": "a <fast> one",
    "cpu_hours": 0.06,
}
TABLES = {
    "table1": ("Table 1: probabilities", ["experiment1"]),
    "seconds": ("CPU seconds", ["experiment4", "experiment4_timing", "spread", "reference"]),
    "brackets": ("Brackets", []),
}
FIGURES = {
    "figure1": ("Figure 1", ["experiment1", "experiment4"]),
    "floor": ("The floor", ["experiment1"]),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ResultFiles:
    """Two experiments, one of them with a problem without data, three tables and two figures."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    for name, verdicts in (("table1", "id,verdict\na,consistent\nb,not run\nc,not run\n"),):
        write(f"results/tiny/tables/{name}.csv", verdicts)
    for name in ("seconds", "brackets"):
        write(f"results/tiny/tables/{name}.csv", "id\na\n")
    for name in TABLES:
        write(f"results/tiny/tables/{name}.tex", "")
    for name in FIGURES:
        for ending in ("pdf", "png"):
            write(f"figures/tiny/{name}.{ending}", name)
    write("results/tiny/experiment1/N50_timing.csv", "run,cpu_seconds\n0,60\n1,30\n")
    write(
        "results/tiny/experiment4/problem1/ep_timing.csv",
        "cpu_seconds,prediction_cpu_seconds,effective_per_second\n120,6,1e9\n",
    )
    write("results/tiny/experiment4/problem7/ep_timing.csv", "problem,method,cpu_seconds\n7,ep,\n")
    experiment4 = [write(f"results/tiny/experiment4/problem{p}/ep.csv", "seed\n") for p in (1, 7)]
    return ResultFiles(
        experiment1=(write("results/tiny/experiment1/N50.csv", "seed\n1\n"),),
        experiment4=tuple(experiment4),
        experiment4_timing=tuple(path.with_name("ep_timing.csv") for path in experiment4),
        spread=(write("results/tiny/experiment4/spread.csv", "seed\n"),),
        reference=(write("data/reference/evidence.csv", "seed\n"),),
    )


@pytest.fixture
def found(files: ResultFiles) -> list[Item]:
    return items("tiny", files, TABLES, FIGURES)


def test_each_table_and_figure_has_its_command_minutes_files_and_verdict(
    found: list[Item],
) -> None:
    one, seconds, brackets, first, floor = found
    assert one.command == "snakemake --cores 1 table1 --config scale=tiny"
    assert one.files == ("results/tiny/tables/table1.csv", "results/tiny/tables/table1.tex")
    assert (one.verdict, one.minutes, one.untimed) == ("1 consistent, 2 not run", 1.5, ())
    # seconds of the method and of its predictions, and nothing else
    assert (seconds.minutes, seconds.verdict) == (pytest.approx(2.1), "")
    assert seconds.untimed == ("results/tiny/experiment4/spread.csv",)
    assert (brackets.minutes, brackets.untimed) == (0.0, ())
    assert first.minutes == pytest.approx(3.6) and first.kind == "figure"
    assert (floor.command, floor.files) == (
        "snakemake --cores 1 figure_floor --config scale=tiny",
        ("figures/tiny/floor.pdf", "figures/tiny/floor.png"),
    )


def write_all(found: list[Item], folder: Path) -> None:
    claims = pd.DataFrame(
        {
            "statement": ["a < b", "a = b"],
            "section": ["6.1", "6.4"],
            "verdict": ["consistent", "not run"],
            "result_file": ["experiment1/N*.csv; data/reference/evidence.csv", ""],
        }
    )
    files = ResultFiles(experiment1=(Path("results/tiny/experiment1/N50.csv"),))
    audited = pd.DataFrame(
        {
            "id": ["table1/N50/M100", "table1/N50/M200"],
            "verdict": ["discrepant", "not run"],
            "result_file": [
                "results/tiny/experiment1/N50.csv; results/tiny/experiment4/spread.csv",
                "",
            ],
        }
    )
    everything = [*found, *claim_items("tiny", files, claims)]
    write_review(everything, audited, RECORD, TEMPLATE, folder / "review.html")
    write_codecheck(everything, "results/tiny/paper.pdf", RECORD, folder / "codecheck.yml")
    inside = sorted(str(path) for path in Path("results").rglob("*.csv"))
    write_crate(everything, inside, RECORD, folder / "ro-crate-metadata.json")


def test_the_page_needs_no_other_and_its_links_lead_to_files(
    found: list[Item], tmp_path: Path
) -> None:
    folder = Path("results/tiny")
    write_all(found, folder)
    page = (folder / "review.html").read_text()
    assert "<script" not in page and "a &lt;fast&gt; one" in page
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    made_elsewhere = {
        "paper.pdf",
        "audit.html",
        "audit_claims.csv",
        "values.json",
        "provenance.json",
        "MANIFEST.sha256",
    }
    missing = {Path(link).name for link in links if not (folder / link).exists()}
    assert missing == made_elsewhere
    text = " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())
    for said in (
        "commit c0ffee with uncommitted changes",
        "CPU hours of the methods: 0.06. Audit of 2 published cells: 1 discrepant, 1 not run",
        "Table 1: probabilities snakemake --cores 1 table1 --config scale=tiny 1.50",
        "2.10 and, not timed: spread.csv",
        "a < b (6.1) snakemake --cores 1 audit --config scale=tiny 1.50 audit_claims.csv consistent",
        "a = b (6.4) snakemake --cores 1 audit --config scale=tiny 0.00 audit_claims.csv not run",
    ):
        assert said in text
    assert page.count('class="bad">discrepant') == 1


def test_the_codecheck_manifest_has_what_its_specification_asks_of_authors(
    found: list[Item],
) -> None:
    write_all(found, Path("results/tiny"))
    text = Path("results/tiny/codecheck.yml").read_text()
    assert text.startswith("---\n")
    config = yaml.safe_load(text)
    assert config["version"] == "https://codecheck.org.uk/spec/config/1.0/"
    assert config["repository"] == config["paper"]["reference"] == RECORD["remote"]
    assert all(author["name"] for author in config["paper"]["authors"])
    listed = [entry["file"] for entry in config["manifest"]]
    assert listed[0] == "results/tiny/paper.pdf" and len(listed) == 1 + 3 + 2 * 2
    assert all(Path(file).is_file() for file in listed[1:])
    assert (
        "table1 --config scale=tiny; CPU minutes: 1.5; 1 consistent"
        in config["manifest"][1]["comment"]
    )


def test_the_crate_is_read_by_the_library_and_says_what_makes_what(found: list[Item]) -> None:
    folder = Path("results/tiny")
    write_all(found, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        crate = ROCrate(folder)
    assert crate.datePublished.isoformat() == "2001-09-09T01:46:40+00:00"
    assert crate.license and crate.creator and crate.mainEntity["version"] == "c0ffee"
    inside = [entity.id for entity in crate.data_entities]
    assert "tables/table1.csv" in inside and all((folder / name).is_file() for name in inside)
    actions = {action["name"]: action for action in crate.get_by_type("CreateAction")}
    assert set(actions) == {title for title, _ in (TABLES | FIGURES).values()}
    assert actions["The floor"]["description"].endswith("figure_floor --config scale=tiny")
    images = actions["The floor"]["result"]
    assert [(folder / image["contentUrl"]).read_text() for image in images] == ["floor"] * 2


def test_written_again_they_are_the_same(found: list[Item], tmp_path: Path) -> None:
    names = ("review.html", "codecheck.yml", "ro-crate-metadata.json")
    folder, seen = Path("results/tiny"), []
    for _ in range(2):
        write_all(found, folder)
        seen.append([(folder / name).read_bytes() for name in names])
        for name in names:
            (folder / name).unlink()
    assert seen[0] == seen[1]
    assert str(tmp_path) not in b"".join(seen[0]).decode()


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum")
def test_checksums_can_be_checked_and_find_a_changed_file(files: ResultFiles) -> None:
    paths = sorted(Path("results").rglob("*.csv"), reverse=True)
    write_manifest([*paths, paths[0]], "results/tiny/MANIFEST.sha256")
    listed = Path("results/tiny/MANIFEST.sha256").read_text().splitlines()
    assert [line.split("  ")[1] for line in listed] == sorted(str(path) for path in paths)
    command = ["sha256sum", "--check", "--strict", "--quiet", "results/tiny/MANIFEST.sha256"]
    assert subprocess.run(command).returncode == 0
    paths[1].write_text("changed")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and str(paths[1]) in done.stdout


def test_times_of_a_run_are_from_its_first_log_to_its_last_result(files: ResultFiles) -> None:
    logs = Path("results/tiny/logs/experiment1")
    logs.mkdir(parents=True)
    timings = sorted(Path("results").rglob("*_timing.csv"))
    for number, path in enumerate(timings):
        os.utime(path, (0, 1_000_000_000 + 60 * number))
    for name, stamp in (("first.log", 999_999_000), ("second.log", 999_999_500)):
        (logs / name).write_text("")
        os.utime(logs / name, (0, stamp))
    assert run_timing(timings, "results/tiny/logs") == {
        "start": "2001-09-09T01:30:00+00:00",
        "end": "2001-09-09T01:48:40+00:00",
        "cpu_hours": 0.06,
        "cpu_seconds": {"experiment1": 90.0, "experiment4": 126.0},
    }
