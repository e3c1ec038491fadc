"""Tables, figures, values and provenance, on made results."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from made_results import everything

from gpcmc.audit import ResultFiles, audit, read_registry
from gpcmc.report import (
    FIGURES,
    TABLES,
    collect,
    latex,
    provenance,
    summary,
    write_figure,
    write_provenance,
    write_table,
    write_values,
)
from gpcmc.report.experiment4 import differences, evidence, methods_in_order, reliability
from gpcmc.report.provenance import config_digest

ROOT = Path(__file__).parent.parent
REGISTRY = ROOT / "data" / "registry.csv"


@pytest.fixture(scope="module")
def registry() -> pd.DataFrame:
    return read_registry(ROOT / "data" / "published")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ResultFiles:
    return everything(tmp_path_factory.mktemp("results"))


def record(scale: str) -> dict[str, object]:
    return provenance(ROOT, {"scale": scale, "seed": 1}, REGISTRY, ROOT / "data" / "raw")


# ---------------------------------------------------------------------------- LaTeX


def test_escaped_text_has_no_active_character() -> None:
    text = latex.escape(r"50% of a_b & c#d {e} $f$ ~g ^h \i <j>")
    assert re.sub(r"\\[%_&#{}$]|\\text[a-z]+\{\}", "", text).isprintable()
    assert not re.search(r"(?<!\\)[%_&#$~^]", text)


@pytest.mark.parametrize(
    ("value", "se", "text"),
    [
        (0.2451, 0.0267, "$0.245$ ($0.027$)"),
        (-35.12346, 0.0021, "$-35.1235$ ($0.0021$)"),
        (123.4, 11.0, "$123$ ($11$)"),
        (0.12345, 0.0, "$0.123$"),
        (0.0, None, "$0.00$"),
    ],
)
def test_a_number_shows_two_digits_of_its_standard_error(
    value: float, se: float | None, text: str
) -> None:
    assert latex.number(value, se) == text


def test_other_forms_of_numbers() -> None:
    assert latex.concise(0.11774, 0.00031, decimals=4) == "$0.1177(3)$"
    assert latex.concise(0.11774, 0.00001, decimals=4) == "$0.1177$"
    assert latex.scientific(0.0123) == r"$1.2\cdot10^{-2}$"
    assert latex.count(3_000_000) == r"3\,000\,000"
    with pytest.raises(ValueError, match="finite"):
        latex.number(float("nan"))


# ---------------------------------------------------------------------------- tables


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("full", [True, False])
def test_every_table_is_made_with_and_without_results(
    name: str, full: bool, registry: pd.DataFrame, files: ResultFiles, tmp_path: Path
) -> None:
    write_table(
        name, registry, files if full else ResultFiles(), tmp_path / "t.csv", tmp_path / "t.tex"
    )
    tex = (tmp_path / "t.tex").read_text()
    assert "nan" not in tex.lower().replace("mean", "")
    width = 0
    for line in tex.splitlines():
        if line.startswith(r"\begin{tabular}"):
            # p{50mm} and >{...} are one column and none
            columns = re.sub(r">\{.*?\}(?=p)|\{\d+mm\}", "", line.removeprefix(r"\begin{tabular}"))
            width = len(columns.strip("{}"))
        elif line.endswith(r"\\"):
            spanned = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
            assert line.count(" & ") + 1 + spanned == width, line
    assert not full or len(pd.read_csv(tmp_path / "t.csv"))


def test_an_unknown_table_is_refused(registry: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="table5"):
        write_table("table5", registry, ResultFiles(), tmp_path / "a", tmp_path / "b")


def test_published_cells_are_printed_as_published(
    registry: pd.DataFrame, files: ResultFiles
) -> None:
    for number in (1, 2, 3):
        tex = TABLES[f"table{number}"](registry, files).tex
        for _, cell in registry[registry["table"] == number].iterrows():
            assert f"${cell['printed']}$ (${cell['printed_bracket']}$)" in tex
    tex = TABLES["table4"](registry, files).tex
    assert (
        "$0.06711$" in tex and "NEW & $1.4$ & $3.2$" in tex and "HMC & $8.1$ & $8.8$ & $17$" in tex
    )


def test_ours_stands_beside_published_in_table_1(
    registry: pd.DataFrame, files: ResultFiles
) -> None:
    frame = TABLES["table1"](registry, files).frame.set_index("id")
    rows = pd.read_csv(files.experiment1[0]).query("samples == 10000")
    error = 100 * ((rows["estimate"] - rows["truth"]) / rows["truth"]).abs()
    cell = frame.loc["table1/N50/M10000"]
    assert cell["ours"] == pytest.approx(error.mean())
    assert cell["ours_se"] == pytest.approx(error.std() / np.sqrt(50))
    assert cell["ours_nats"] == pytest.approx((rows["estimate"] - rows["truth"]).abs().mean())


def test_tables_1_to_3_say_how_many_are_behind_ours(
    registry: pd.DataFrame, files: ResultFiles, tmp_path: Path
) -> None:
    fewer = tmp_path / "N50.csv"
    frame = pd.read_csv(files.experiment1[0])
    frame[(frame["samples"] < 1_000_000) | (frame["instance"] < 3)].to_csv(fewer, index=False)
    table = TABLES["table1"](registry, ResultFiles.of({"experiment1": fewer}))
    rows = table.frame.dropna(subset="problems").set_index("samples")["problems"]
    assert rows[10_000] == 50 and rows[3_000_000] == 3
    assert " & ours & 3 & " in table.tex and " & ours & 50 & " in table.tex
    values = collect(registry, audit(registry, files), files, record("smoke"))
    assert values["experiment1/problems"].value == "50"
    some = ResultFiles.of({"experiment1": [fewer, *files.experiment1[1:]]})
    values = collect(registry, audit(registry, some), some, record("smoke"))
    assert values["experiment1/problems"].value == "3 and 50"
    for name in ("table2", "table3"):
        assert r" & ours & $4\times4$ & " in TABLES[name](registry, files).tex


def test_a_further_method_is_one_further_row(registry: pd.DataFrame, tmp_path: Path) -> None:
    plain = TABLES["table4"](registry, everything(tmp_path / "a")).frame
    more = everything(tmp_path / "b", methods=("orthant", "laplace", "ep", "best", "unheard-of"))
    table = TABLES["table4"](registry, more)
    assert set(table.frame["method"]) - set(plain["method"]) == {"best", "unheard-of"}
    assert "unheard-of &" in table.tex
    assert methods_in_order(["unheard-of", "ep", "orthant"]) == ["orthant", "ep", "unheard-of"]


def test_missing_data_are_said_in_every_table_of_experiment_4(
    registry: pd.DataFrame, files: ResultFiles
) -> None:
    assert TABLES["evidence"](registry, files).tex.count("data not available") == 18
    assert "no data" in TABLES["metrics"](registry, files).tex
    assert "no data" in TABLES["table4"](registry, files).tex


# ---------------------------------------------------------------------------- Experiment 4


def test_evidence_is_measured_from_the_orthant_sampler(files: ResultFiles) -> None:
    frame = evidence(files)
    assert len(frame) == 9 * 6 * 3
    good = frame[(frame["method"] == "ep") & (frame["status"] == "ok")]
    # the sampler's three replicates are 0, .01, .02 up, and averaged on the probability scale
    np.testing.assert_allclose(good["difference"], -np.log(np.mean(np.exp([0.0, 0.01, 0.02]))))
    assert frame[frame["method"] == "orthant"]["difference"].isna().all()
    assert frame[frame["problem"] == 8]["log_evidence"].isna().all()
    assert frame["trivial"].sum() == 8 * 3


def test_differences_of_the_reference_are_its_own_noise(files: ResultFiles) -> None:
    frame = differences(files).set_index(["problem", "method"])
    # three replicates with a standard deviation of 0.05: standard error about 0.026
    assert frame.loc[(1, "orthant"), "probability"] == pytest.approx(0.026, abs=0.008)
    assert frame.loc[(1, "ep"), "probability"] > frame.loc[(1, "orthant"), "probability"]
    assert np.isnan(frame.loc[(8, "ep"), "probability"])


def test_trivial_sets_are_left_out_of_the_averages(
    registry: pd.DataFrame, files: ResultFiles, tmp_path: Path
) -> None:
    """Set 4 is trivial; whatever its rows say, the averages of the report stay."""
    paths = []
    for path in files.experiment4:
        frame = pd.read_csv(path)
        if "trivial" in frame:
            coin = frame["trivial"] == True  # noqa: E712 (the column has gaps)
            frame.loc[coin, "error_rate"] = 0.5
            if path.stem == "ep":
                frame.loc[coin, "log_evidence"] += 1000.0
        paths.append(tmp_path / "experiment4" / path.parent.name / path.name)
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(paths[-1], index=False)
    probabilities = []
    for path in files.probabilities:
        other = tmp_path / "experiment4" / path.parent.name / path.name
        with np.load(path) as data:
            arrays = dict(data)
        if path.stem == "ep_set4" and "probability" in arrays:
            arrays["probability"] = np.ones_like(arrays["probability"])
        np.savez(other, **arrays)
        probabilities.append(other)
    changed = dataclasses.replace(
        files, experiment4=tuple(paths), probabilities=tuple(probabilities)
    )
    pd.testing.assert_frame_equal(differences(files), differences(changed))
    assert (differences(files).query("status == 'ok'")["sets"] == 5).all()
    was, now = (collect(registry, audit(registry, f), f, record("smoke")) for f in (files, changed))
    for key, value in was.items():
        if key.startswith(("evidence/ep/", "probability/", "error-rate/", "hard/")):
            assert now[key].value == value.value, key


def test_reliability_of_probabilities_that_are_right(files: ResultFiles) -> None:
    frame = reliability(files)
    assert set(frame["group"]) == {"synthetic", "Crabs", "USPS 3 v 5"}
    part = frame[(frame["group"] == "synthetic") & (frame["patterns"] > 15)]
    assert len(part) > 15
    assert ((part["frequency"] - part["predicted"]).abs() < 5 * part["frequency_se"]).all()
    middle = part[part["predicted"].between(0.2, 0.8)]
    np.testing.assert_allclose(middle["bayes"], middle["predicted"], atol=0.05)
    # one hyperparameter set of six is trivial and left out
    assert frame[frame["method"] == "ep"]["predictions"].sum() == 5 * (300 + 30 + 40)


# ---------------------------------------------------------------------------- figures


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_with_and_without_results(
    name: str, registry: pd.DataFrame, files: ResultFiles, tmp_path: Path
) -> None:
    for part in (files, ResultFiles()):
        write_figure(name, registry, part, tmp_path / "f.pdf", tmp_path / "f.png")
        assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
        assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert not plt.get_fignums()


def test_floor_figure_takes_a_wrong_truth_out_only_where_there_is_one(
    registry: pd.DataFrame, files: ResultFiles
) -> None:
    panels = FIGURES["floor"](registry, files).axes
    crosses = [sum(line.get_marker() == "x" for line in axes.get_lines()) for axes in panels]
    assert crosses == [0, 1, 1]
    tex = TABLES["floor"](registry, files).tex
    assert "$N=50$" not in tex and "$N=200$" in tex and "$N=500$" in tex


def test_figures_have_embedded_fonts_and_no_dates(
    registry: pd.DataFrame, files: ResultFiles, tmp_path: Path
) -> None:
    write_figure("floor", registry, files, tmp_path / "f.pdf", tmp_path / "f.png")
    pdf = (tmp_path / "f.pdf").read_bytes()
    assert b"/Type3" not in pdf and b"/FontFile2" in pdf
    assert b"CreationDate" not in pdf


@pytest.mark.slow
def test_equal_results_give_equal_bytes_in_another_process(
    registry: pd.DataFrame, files: ResultFiles, tmp_path: Path
) -> None:
    code = (
        "import sys; from gpcmc.audit import *; from gpcmc.report import write_figure\n"
        "folder, path, out = sys.argv[1:]\n"
        "write_figure('error_experiment1', read_registry(folder),"
        " ResultFiles.of({'experiment1': path}), out + '.pdf', out + '.png')"
    )
    found = []
    for name in ("a", "b"):
        out = tmp_path / name
        arguments = [ROOT / "data" / "published", files.experiment1[0], out]
        subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=True)
        found.append([out.with_suffix(ending).read_bytes() for ending in (".pdf", ".png")])
    assert found[0] == found[1]


# ---------------------------------------------------------------------------- values


def test_values_have_the_same_keys_at_every_scale(
    registry: pd.DataFrame, files: ResultFiles
) -> None:
    full = collect(registry, audit(registry, files), files, record("published"))
    nothing = ResultFiles()
    empty = collect(registry, audit(registry, nothing), nothing, record("tiny"))
    assert list(full) == list(empty) == sorted(full)
    assert full["scale/stamp"].value is None and "tiny" in empty["scale/stamp"].text
    assert empty["table1/N50/M10000/ours"].text == "not run"
    assert full["table4/problem8/new/mae_med/ours"].text == "data not available"
    assert full["audit/cells"].value == 125
    assert full["brackets/problem4/runs"].value == empty["brackets/problem4/runs"].value == 15
    assert full["brackets/problems1-3/runs"].text == "20"
    cell = full["table1/N50/M10000/ours"]
    assert cell.source.endswith("N50.csv") and cell.se is not None and cell.text.endswith(r"\,\%")


def test_values_file_is_json_without_nan(
    registry: pd.DataFrame, files: ResultFiles, tmp_path: Path
) -> None:
    values = collect(registry, audit(registry, files), files, record("smoke"))
    write_values(values, tmp_path / "v.json", tmp_path / "v.tex")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    loaded = json.loads((tmp_path / "v.json").read_text(), parse_constant=refuse)
    assert list(loaded) == list(values)
    assert set(loaded["audit/cells"]) == {"value", "se", "text", "source"}
    tex = (tmp_path / "v.tex").read_text()
    for key, value in values.items():
        kind = "missing" if value.value is None else "value"
        assert f"\\gpcmc{kind}{{{key}}}{{{value.text}}}\n" in tex


def test_grids_are_set_beside_the_one_wrong_truth(
    registry: pd.DataFrame, files: ResultFiles, tmp_path: Path
) -> None:
    values = collect(registry, audit(registry, files), files, record("smoke"))
    assert values["floor/grid/1/step"].value == 0.1 and values["floor/grid/3/step"].value is None
    # made with all truths wrong alike
    assert values["floor/grid/1/N500/share"].value == pytest.approx(1.0)
    assert values["floor/grid/reproduced"].value is None
    frame = pd.read_csv(files.quadrature[0])
    frame["ape_percent"] = np.where(frame["instance"] == 0, 1.6, 1e-4)
    frame.to_csv(tmp_path / "quadrature.csv", index=False)
    one = dataclasses.replace(files, quadrature=(tmp_path / "quadrature.csv",))
    values = collect(registry, audit(registry, one), one, record("smoke"))
    assert values["floor/grid/1/N500/share"].value == pytest.approx(50, rel=0.01)
    assert "N = 500 and spacing 0.1" in str(values["floor/grid/reproduced"].value)
    assert "N = 50 " not in str(values["floor/grid/reproduced"].value)


def test_what_one_wrong_truth_leaves_is_said_only_above_two_standard_errors(
    registry: pd.DataFrame, files: ResultFiles
) -> None:
    audited = audit(registry, files)
    last = audited["id"] == "table1/N500/M3000000"
    for ours, se, there in ((0.005, 0.001, True), (0.005, 0.004, False), (0.02, 0.001, False)):
        audited.loc[last, ["ours", "ours_se"]] = ours, se
        value = collect(registry, audited, files, record("smoke"))["floor/N500/remains"].value
        assert (value is not None) == there
        assert not there or value == pytest.approx(0.0131 / ours)


def test_the_hardest_cell_is_named_with_what_the_sampler_says_of_itself(
    registry: pd.DataFrame, files: ResultFiles, tmp_path: Path
) -> None:
    paths = []
    for path in files.experiment4:
        frame = pd.read_csv(path)
        if path.parent.name == "problem6" and path.stem == "orthant":
            hard = frame["set"] == 6
            frame.loc[hard, "log_evidence"] -= 8.0 + 4.0 * frame.loc[hard, "replicate"]
        paths.append(tmp_path / "experiment4" / path.parent.name / path.name)
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(paths[-1], index=False)
    hard = dataclasses.replace(files, experiment4=tuple(paths))
    values = collect(registry, audit(registry, hard), hard, record("smoke"))
    assert values["hard/cell"].value == "Problem 6, set 6"
    assert (values["hard/alpha"].text, values["hard/beta"].text) == ("0.5", "3")
    # replicates at -8, -12 and -16: their average on the probability scale is log 3 below the best
    assert values["hard/short"].value == pytest.approx(8 + np.log(3), abs=0.1)
    assert values["hard/overdispersed"].value == pytest.approx(4.0, abs=0.1)
    assert values["hard/own"].value == pytest.approx(0.01)
    values = collect(registry, audit(registry, files), files, record("smoke"))
    assert values["hard/cell"].value is not None
    assert values["hard/short"].value is None and values["hard/overdispersed"].value is None


def test_range_over_methods_is_beside_that_over_data_sets(
    registry: pd.DataFrame, files: ResultFiles
) -> None:
    values = collect(registry, audit(registry, files), files, record("smoke"))
    # Problem 6: 0.0384 to 0.0359 about a mean of 0.0371
    assert values["mae-post/published-range"].value == pytest.approx(6.7, abs=0.1)
    lowest, highest = (values[f"mae-post/data-sets-{name}"].value for name in ("lowest", "highest"))
    assert 7 < lowest < 20 < highest < 40  # six of ten data sets, made with a log deviation of 0.2
    assert values["mae-post/published-closer"].value == 6
    assert values["mae-post/ours-problems"].value == 6


# ---------------------------------------------------------------------------- provenance, summary


def test_provenance_says_what_made_the_results_and_nothing_of_this_machines_paths(
    tmp_path: Path,
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "crabs.csv").write_text("damaged")
    config = {"scale": "tiny", "seed": 7, "b": [1, 2]}
    found = provenance(tmp_path, config, REGISTRY, raw)
    write_provenance(found, tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text()
    loaded = json.loads(text)
    assert loaded["config"] == config and loaded["seed"] == 7
    assert loaded["config_sha256"] == config_digest({"b": [1, 2], "seed": 7, "scale": "tiny"})
    assert loaded["raw_data"]["crabs.csv"]["as_registered"] is False
    assert loaded["raw_data"]["zip.test.gz"]["sha256"] is None
    assert loaded["packages"]["numpy"] == np.__version__
    assert any(library.get("user_api") == "blas" for library in loaded["blas"])
    assert "num_threads" not in text and str(tmp_path) not in text
    assert loaded["commit"] is None and loaded["dirty"] is None


def test_summary_has_three_lines(registry: pd.DataFrame, files: ResultFiles) -> None:
    audited = audit(registry, files)
    lines = summary(audited, files, "smoke", "results/smoke/paper.pdf").splitlines()
    assert [line.split(":")[0] for line in lines] == ["Paper", "Audit", "Left out"]
    assert lines[0].endswith("results/smoke/paper.pdf")
    assert "125 published cells" in lines[1]
    assert "Breast Cancer: data not available" in lines[2]
    assert "place by hand data/raw/breast-cancer-wisconsin.data" in lines[2]
    assert "cells not run" in lines[2]
    without = summary(audited, files, "smoke", None).splitlines()
    assert "apt-get install" in without[0] and len(without) == 3
