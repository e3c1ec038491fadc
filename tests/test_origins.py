"""From a number back to its origin: file, line, replicates, seed, verdict, code, and the links to them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from made_results import everything

from gpcmc.audit import (
    VERDICTS,
    Estimator,
    ResultFiles,
    audit,
    read_audit,
    read_registry,
    slopes,
    write_audit,
)
from gpcmc.audit.experiment4 import run_gaps
from gpcmc.report import (
    FIGURES,
    TABLES,
    Value,
    collect,
    provenance,
    trace,
    web_link,
    write_origins,
    write_table,
    write_values,
)
from gpcmc.report.provenance import web_address
from gpcmc.report.value import Source, code_of

ROOT = Path(__file__).parent.parent
READS = {
    "table1": ["experiment1"],
    "defects": ["defects"],
    "variance": ["experiment1", "experiment2"],
}


def number(value: float | str, source: str) -> Value:
    return Value(value, None, str(value), source)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with two experiments, the defects, one table of each, an audit and a provenance."""
    monkeypatch.chdir(tmp_path)
    run = Path("results/tiny")

    def write(name: str, rows: list[dict[str, object]]) -> None:
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(path, index=False)

    for dimension in (50, 200):
        write(
            f"experiment1/N{dimension}.csv",
            [
                {
                    "dimension": dimension,
                    "samples": m,
                    "seed": f"7/experiment1/N{dimension}/M{m}/{i}",
                }
                for m in (100, 1000)
                for i in range(3)
            ],
        )
        write(f"experiment1/N{dimension}_timing.csv", [{"seed": "9", "cpu_seconds": 1.0}])
    write("experiment2/problem1.csv", [{"problem": 1, "seed": f"7/experiment2/{i}"} for i in "ab"])
    for case in ("linear", "rough"):
        for sampler in ("ess", "hmc"):
            seed = f"7/defects/{case}/{sampler}"
            write(
                f"defects/{case}_{sampler}.csv",
                [
                    {"sampler": sampler, "switched": s, "seed": f"{seed}/{i}"}
                    for s in ("all", "only stale-energy")
                    for i in range(2)
                ],
            )
    write(
        "tables/defects.csv",
        [
            {"case": c, "sampler": s, "switched": w, "nats": n + k / 7}
            for n, c in enumerate(("linear", "rough"))
            for s in ("ess", "hmc")
            for k, w in enumerate(("all", "only stale-energy"))
        ],
    )
    write(
        "tables/variance.csv",
        [
            {"experiment": 1, "problem": 1, "dimension": 50, "samples": m, "ratio": r, "verdict": v}
            for m, r, v in ((100, 1.23456, "low"), (1000, 2.34567, "high"))
        ]
        + [{"experiment": 2, "problem": 1, "dimension": None, "ratio": 5.4321, "verdict": "high"}],
    )
    write(
        "audit.csv",
        [
            {"id": "table1/N50/M100", "table": 1, "verdict": "discrepant", "replicates": 2},
            {"id": "table1/N50/M1000", "table": 1, "verdict": "consistent", "replicates": 3},
            {"id": "table2/problem1/M10", "table": 2, "verdict": "not run", "replicates": 0},
        ],
    )
    (run / "provenance.json").write_text(
        json.dumps(
            {"blas": 1, "config": {"seed": 3}, "config_sha256": "abcdef", "seed": 3}, indent=1
        )
    )
    return run


def traced(folder: Path, **values: Value) -> dict[str, Value]:
    keys = {key.replace("__", "/").replace("_", "-"): value for key, value in values.items()}
    files = ResultFiles.of(
        {
            name: sorted(folder.glob(f"{name}/*.csv"))
            for name in ("experiment1", "experiment2", "defects")
        }
    )
    audited = pd.read_csv(folder / "audit.csv")
    return trace(keys, audited, files, folder, READS)


def only(folder: Path, key: str, value: float | str, source: str) -> Value:
    return traced(folder, **{key: number(value, source)})[key]


def test_a_key_names_the_row_of_a_table_and_the_rows_behind_it(folder: Path) -> None:
    found = only(
        folder, "defects/rough/ess/only-stale-energy/nats", 1 + 1 / 7, "tables/defects.csv"
    )
    assert found.source == "results/tiny/tables/defects.csv" and found.line == "7"
    line = Path(found.source).read_text().splitlines()[int(found.line) - 1]
    assert line.startswith("rough,ess,only stale-energy,1.142857")
    assert found.replicates == 2 and found.seed == "7/defects/rough/ess"


def test_of_several_rows_it_is_the_one_with_the_number(folder: Path) -> None:
    found = only(folder, "variance/experiment1/problem1/ratio", 2.34567, "tables/variance.csv")
    assert (found.line, found.verdict) == ("3", "high")
    # its dimension and samples lead to three of the runs
    assert (found.replicates, found.seed) == (3, "7/experiment1/N50/M1000")


def test_a_summary_has_the_lines_that_it_summarises(folder: Path) -> None:
    found = only(folder, "variance/experiment1/ratio", 1.8, "tables/variance.csv")
    assert (found.line, found.verdict) == ("2-3", None)
    assert (found.replicates, found.seed) == (12, "7/experiment1")
    # a round number is no fingerprint: this one stands in one row, in a column that is not meant
    found = only(folder, "variance/factor", 2.0, "tables/variance.csv")
    assert (found.line, found.replicates) == (None, None)
    # nor is one that stands in two rows
    path = folder / "tables/variance.csv"
    path.write_text(path.read_text().replace("2.34567", "1.23456"))
    assert only(folder, "variance/largest", 1.23456, "tables/variance.csv").line is None
    assert only(folder, "variance/largest", 5.4321, "tables/variance.csv").line == "4"


def test_an_audited_cell_has_its_verdict_and_its_rows(folder: Path) -> None:
    result = "results/tiny/experiment1/N50.csv"
    ours = only(folder, "table1/N50/M100/ours", 0.25, result)
    assert (ours.cell, ours.verdict) == ("table1/N50/M100", "discrepant")
    # two of its three rows counted
    assert (ours.line, ours.replicates, ours.seed) == ("2-4", 2, "7/experiment1/N50/M100")
    published = only(folder, "table1/N50/M1000/published", 0.245, "audit.csv")
    assert (published.source, published.line) == ("results/tiny/audit.csv", "3")
    assert (published.replicates, published.verdict) == (None, "consistent")
    counted = only(folder, "audit/table1/consistent", 1, "audit.csv")
    assert (counted.line, counted.cell, counted.verdict) == ("2-3", None, None)


def test_rows_too_many_to_list_are_named_by_what_selects_them(folder: Path) -> None:
    """As in real files, which are ordered by instance: those of a cell lie in as many stretches."""
    path = folder / "experiment1/N50.csv"
    seed = "7/experiment1/N50/instance{}/M{}"
    rows = [
        {"dimension": 50, "samples": m, "seed": seed.format(i, m)}
        for i in range(30)
        for m in (100, 1000)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)
    ours = only(folder, "table1/N50/M1000/ours", 0.25, path.as_posix())
    assert (ours.line, ours.rows, ours.which) == (None, {"samples": "1000"}, "samples=1000")
    assert (ours.also, ours.seed) == ("results/tiny/audit.csv:3", "7/experiment1/N50")
    pd.DataFrame(rows[:20]).to_csv(path, index=False)
    ours = only(folder, "table1/N50/M1000/ours", 0.25, path.as_posix())
    assert ours.line == "3, 5, 7, 9, 11, 13, 15, 17, 19, 21" and ours.which == ""


def test_a_value_may_say_itself_on_which_rows_it_rests(folder: Path) -> None:
    def one(source: str, **rows: object) -> Value:
        filter_ = Source(source, rows).filter
        return traced(folder, any=Value(1, None, "1", source, rows=filter_))["any"]

    found = one("experiment1/N*.csv", dimension=200, samples=(100, 1000))
    assert (found.source, found.line) == ("results/tiny/experiment1/N200.csv", "2-7")
    assert (found.replicates, found.seed) == (6, "7/experiment1/N200")
    found = one("experiment1/N*.csv", samples=100)
    assert (found.line, found.which, found.replicates) == (None, "samples=100", 6)
    assert one("audit.csv").line == "2-4"
    assert one("audit.csv", verdict="not run").line == "4"
    assert one("audit.csv", verdict="equivalent").line is None
    assert one("audit.csv", nothing=1).line is None


def test_the_number_of_runs_that_a_row_of_a_table_gives_is_the_one_that_counts(
    folder: Path,
) -> None:
    path = folder / "tables/variance.csv"
    pd.read_csv(path).assign(runs=[2, 2, 1]).to_csv(path, index=False)
    found = only(folder, "variance/experiment1/problem1/ratio", 2.34567, "tables/variance.csv")
    assert (found.line, found.replicates) == ("3", 2)
    assert found.also == "results/tiny/experiment1/N50.csv"


def test_patterns_are_narrowed_to_the_files_that_the_key_names(folder: Path) -> None:
    found = only(folder, "slope/N200", -0.5, "experiment1/N*.csv")
    assert (found.source, found.replicates) == ("results/tiny/experiment1/N200.csv", 6)
    found = only(folder, "slope/table1", -0.5, "experiment1/N*.csv")
    assert (found.source, found.line) == ("results/tiny/experiment1/N*.csv", None)
    assert (found.replicates, found.seed) == (None, "7/experiment1")
    found = only(folder, "defects/hmc/clear", "none", "defects/*.csv")
    assert (found.source, found.replicates) == ("results/tiny/defects/*_hmc.csv", 8)


def test_other_sources(folder: Path) -> None:
    assert only(folder, "run/seed", "3", "provenance.json").line == "4"
    assert only(folder, "run/config", "abc", "provenance.json").line == "6"
    assert only(folder, "software/blas", "openblas", "provenance.json").line == "2"
    said = only(folder, "tradeoff/target", -4.5, "paper, section 6.3")
    assert (said.source, said.line, said.seed) == ("paper, section 6.3", None, None)


def test_a_file_whose_entries_span_lines_gives_no_line(folder: Path) -> None:
    path = folder / "tables/defects.csv"
    path.write_text(path.read_text().replace("linear,ess,all", '"lin\near",ess,all'))
    found = only(
        folder, "defects/rough/ess/only-stale-energy/nats", 1 + 1 / 7, "tables/defects.csv"
    )
    assert found.line is None


def test_a_value_that_is_called_like_a_statement_has_not_its_verdict(folder: Path) -> None:
    statement = {"id": "variance/experiment1", "statement": "The variance", "verdict": "equivalent"}
    statement |= {"result_file": "experiment1/N*.csv", "parameters": "samples=100; moment=variance"}
    cells = pd.read_csv(folder / "audit.csv")
    pd.DataFrame([statement]).to_csv(folder / "audit_claims.csv", index=False)
    values = {
        "variance/experiment1/own-ratio": Value(0.9, None, "0.9", "tables/variance.csv"),
        "claim/variance/experiment1/effect": Value(2.0, None, "2.0", "audit_claims.csv"),
        "table1/N50/M100/ours": Value(0.1, None, "0.1", "experiment1/N50.csv"),
    }
    judged = pd.concat([cells, pd.DataFrame([statement])])
    own, effect, cell = trace(values, judged, ResultFiles(), folder, READS).values()
    assert own.cell is None and own.verdict is None
    assert (effect.cell, effect.verdict, effect.line) == ("variance/experiment1", "equivalent", "2")
    # the runs that its check reads
    assert (effect.also, effect.replicates) == ("results/tiny/experiment1/N*.csv", 6)
    assert effect.seed == "7/experiment1"
    assert (cell.cell, cell.verdict) == ("table1/N50/M100", "discrepant")


# ---------------------------------------------------------------------------- a whole run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Value], ResultFiles, Path]:
    """Every value of a made run, traced; tables for some of them."""
    folder = tmp_path_factory.mktemp("run") / "results" / "smoke"
    files = everything(folder, methods=("orthant", "ep"))
    registry = read_registry(ROOT / "data/published")
    (folder / "tables").mkdir()
    for name in ("spread", "floor", "variance", "brackets"):
        tables = folder / "tables"
        write_table(name, registry, files, tables / f"{name}.csv", tables / f"{name}.tex")
    write_audit(audit(registry, files).cells, registry, folder / "audit.csv")
    audited = read_audit(folder / "audit.csv")
    record = provenance(ROOT, {"scale": "smoke", "seed": 1}, ROOT / "data/registry.csv", folder)
    values = collect(registry, audited, files, record)
    reads = {"spread": ["experiment2"], "floor": ["experiment1"], **READS}
    return trace(values, audited, files, folder, reads), files, folder


def test_numbers_stand_in_the_line_that_is_named(
    run: tuple[dict[str, Value], ResultFiles, Path],
) -> None:
    """All published and measured values of cells, and each number of a table with a line of its own."""
    values, _, _ = run
    checked = 0
    for key, value in values.items():
        kind = key.rpartition("/")[2]
        own = (value.cell and kind == "published") or "/tables/" in value.source
        if not (own and value.line and value.line.isdigit() and isinstance(value.value, float)):
            continue
        frame = pd.read_csv(value.source)
        row = pd.to_numeric(frame.iloc[int(value.line) - 2], errors="coerce")
        if kind in frame or value.cell:
            checked += 1
            assert ((row - value.value).abs() <= 1e-5 * abs(value.value)).any(), key
    assert checked > 125


def test_lines_of_cells_are_the_runs_of_that_cell(
    run: tuple[dict[str, Value], ResultFiles, Path],
) -> None:
    values, _, _ = run
    for samples in (10_000, 30_000):
        value = values[f"table1/N200/M{samples}/ours"]
        first, last = map(int, str(value.line).split("-"))
        rows = pd.read_csv(value.source).iloc[first - 2 : last - 1]
        assert set(rows["samples"]) == {samples} and len(rows) == value.replicates
        error = 100 * ((rows["estimate"] - rows["truth"]) / rows["truth"]).abs().mean()
        # the audit has six digits
        assert value.value == pytest.approx(error, rel=1e-5)


def test_a_number_of_all_problems_stands_in_its_table(
    run: tuple[dict[str, Value], ResultFiles, Path],
) -> None:
    for experiment in (1, 2):
        for name in ("ratio", "own_ratio"):
            value = run[0][f"variance/experiment{experiment}/{name.replace('_', '-')}"]
            row = pd.read_csv(value.source).iloc[int(str(value.line)) - 2]
            assert row[name] == pytest.approx(value.value, rel=1e-6)
            assert (row["experiment"], row["runs"]) == (experiment, value.replicates)
            assert pd.isna(row["problem"])


def test_one_run_is_named_with_its_line_and_seed(
    run: tuple[dict[str, Value], ResultFiles, Path],
) -> None:
    for key in ("hard/furthest", "hard/cell"):
        value = run[0][key]
        row = pd.read_csv(value.source).iloc[int(str(value.line)) - 2]
        assert (row["seed"], value.replicates) == (value.seed, 1)
        names = {"problem": 0, "set": 0, "dataset": 0, "replicate": 0}
        assert value.rows == {name: str(row[name]) for name in names}


def test_counted_rows_have_the_verdict_that_is_counted(
    run: tuple[dict[str, Value], ResultFiles, Path],
) -> None:
    counted = 0
    for verdict in VERDICTS:
        value = run[0][f"audit/{verdict.replace(' ', '-')}"]
        assert value.rows == {"verdict": verdict}
        if value.line is not None:
            ends = [part.split("-") for part in value.line.split(", ")]
            lines = [n for part in ends for n in range(int(part[0]), int(part[-1]) + 1)]
            assert set(pd.read_csv(value.source)["verdict"].iloc[[n - 2 for n in lines]]) == {
                verdict
            }
            assert len(lines) == value.value
            counted += len(lines)
    assert counted > 20


def test_every_number_of_the_text_has_a_line_or_what_selects_its_rows(
    run: tuple[dict[str, Value], ResultFiles, Path],
) -> None:
    values, _, folder = run
    texts = "".join(path.read_text() for path in (ROOT / "paper").glob("*.tex"))
    used = values.keys() & set(re.findall(r"\\val\{([^}#]*)\}", texts))
    numbers = {key: values[key] for key in used if isinstance(values[key].value, int | float)}
    made = {k: v for k, v in numbers.items() if v.source.startswith(folder.as_posix())}
    lost = {k for k, v in made.items() if v.source.endswith(".csv") and v.line is v.rows is None}
    assert len(made) > 80 and not lost


def test_every_value_names_the_line_that_prints_it_and_what_made_it(
    run: tuple[dict[str, Value], ResultFiles, Path],
) -> None:
    values = run[0]
    for key, value in values.items():
        path, line = value.code.split(":")
        assert path.startswith("src/gpcmc/report/"), key
        text = (ROOT / path).read_text().splitlines()
        assert re.search(r"\bout(\.\w+\(|\[)", text[int(line) - 1]), (key, value.code)
        if value.made is not None:
            path, line = value.made.split(":")
            text = (ROOT / path).read_text().splitlines()
            assert re.match(r"\s*(def|@)", text[int(line) - 1]), (key, value.made)
    for key, function in (
        ("table1/N50/M10000/ours", Estimator._table1),
        ("table3/problem2/M30000/ours", Estimator._table2or3),
        ("table4/problem1/new/mae_post/ours", Estimator.mae_post),
        ("table4/problem1/new/mae_med/ours", Estimator._mae_med),
        ("variance/experiment2/ratio", TABLES["variance"]),
        ("slope/table1/problem1/ours", slopes),
        ("hard/furthest", run_gaps),
    ):
        assert values[key].made == code_of(function), key


def test_constants_have_the_line_that_defines_them(
    run: tuple[dict[str, Value], ResultFiles, Path],
) -> None:
    value = run[0]["settings/hmc-gpml/skip"]
    line = (ROOT / value.source).read_text().splitlines()[int(str(value.line)) - 1]
    assert re.fullmatch(rf"skip\b.*= {value.value}", line.strip())


def test_values_link_to_rows_of_the_appendix_and_show_their_digits(
    run: tuple[dict[str, Value], ResultFiles, Path], tmp_path: Path
) -> None:
    values, files, folder = run
    write_values(values, tmp_path / "v.json", tmp_path / "v.tex")
    record = {"remote": "https://example.org/us/gpcmc", "commit": "c0ffee"}
    reads = {
        "tables": {"floor": ["experiment1"]},
        "figures": {"floor": ["experiment1", "quadrature"]},
    }
    write_origins(values, files, record, folder, reads, tmp_path / "o.tex")
    rows = (tmp_path / "o.tex").read_text()
    assert re.findall(r"^\\gpcmcrow\{([^}]*)\}", rows, re.M) == list(values)
    for kind, names in (("tables", TABLES), ("figures", FIGURES)):
        for name in names:
            assert rf"\gpcmcfiles{{{kind}/{name}}}" in rows
    floor = next(
        line for line in rows.splitlines() if line.startswith(r"\gpcmcfiles{figures/floor}")
    )
    assert "experiment1/N*.csv" in floor and "experiment1/quadrature.csv" in floor
    assert "draw_floor" in floor and r"/blob/c0ffee/src/gpcmc/report/figures.py\#L" in floor
    key = "table1/N50/M10000/ours"
    row = next(line for line in rows.splitlines() if line.startswith(rf"\gpcmcrow{{{key}}}"))
    assert r"\href{experiment1/N50.csv}" in row and r"\hyperlink{audit:table1/N50/M10000}" in row
    tip = re.search(rf"\{{{key}\}}\{{.*\}}\{{(\w+)\}}", (tmp_path / "v.tex").read_text())
    assert tip is not None
    shown = bytes.fromhex(tip.group(1)).decode("latin-1")
    value = values[key]
    assert f"{value.value:.10g} \xb1 {value.se:.3g}; {value.replicates} replicates; seed" in shown
    assert shown.endswith(value.place)


def test_what_selects_rows_is_shown_as_text(tmp_path: Path) -> None:
    value = Value(1, None, "1", "controls.csv", code="src/a.py:1", made="src/b.py:2")
    value = replace(value, rows={"control": "raised by 30 %|a/b"}, also="x/a.csv; y/b.csv:3")
    reads = {"tables": {}, "figures": {}}
    write_origins({"k": value}, ResultFiles(), {}, tmp_path, reads, tmp_path / "o.tex")
    row = next(line for line in (tmp_path / "o.tex").read_text().splitlines() if "row{k}" in line)
    assert r"\texttt{control=raised by 30 \%|\allowbreak{}a/\allowbreak{}b}" in row
    assert row.count(r"\href") == 4 and r"\nolinkurl{y/b.csv:3}" in row
    assert r"made in" in row and r"printed in" in row


# ---------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/us/gpcmc.git", "https://github.com/us/gpcmc"),
        (
            "https://name:secret@git.example.org/group/sub/gpcmc/",
            "https://git.example.org/group/sub/gpcmc",
        ),
        ("git@github.com:us/gpcmc.git", "https://github.com/us/gpcmc"),
        ("ssh://git@example.org/us/gpcmc.git", "https://example.org/us/gpcmc"),
        ("/srv/git/gpcmc.git", None),
        ("file:///srv/git/gpcmc.git", None),
        ("../gpcmc", None),
        (None, None),
    ],
)
def test_a_remote_is_a_web_address_without_credentials_or_none(
    remote: str | None, address: str | None
) -> None:
    assert web_address(remote) == address


def test_only_what_is_under_version_control_is_linked_at_the_commit() -> None:
    record = {"remote": "https://example.org/us/gpcmc", "commit": "c0ffee"}
    base = "https://example.org/us/gpcmc/blob/c0ffee"
    assert (
        web_link("src/gpcmc/audit/compare.py:12", record)
        == f"{base}/src/gpcmc/audit/compare.py#L12"
    )
    assert (
        web_link("data/published/table1.csv:2-5, 9", record)
        == f"{base}/data/published/table1.csv#L2-L5"
    )
    assert web_link("data/reference/evidence.csv", record) == f"{base}/data/reference/evidence.csv"
    assert web_link("results/smoke/audit.csv:3", record) is None
    assert web_link("data/raw/crabs.csv", record) is None
    for missing in (
        {"commit": "c0ffee"},
        {"remote": "https://example.org/us/gpcmc", "commit": None},
    ):
        assert web_link("src/gpcmc/audit/compare.py:12", missing) is None
