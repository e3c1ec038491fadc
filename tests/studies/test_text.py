"""Statements that the texts make without a key are what the kept results say."""

import re
from pathlib import Path

import pandas as pd
import pytest

from recheck.judge.measures import levels_of

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "data/reference/atiya2021"


@pytest.fixture(scope="module")
def value():
    """The kept estimate of an id without readings."""
    table = pd.read_csv(KEPT / "estimates.csv.gz", keep_default_na=False)
    return dict(zip(table["id"], pd.to_numeric(table["value"], errors="coerce"), strict=True)).get


def written(path):
    return re.sub(r"\s+", " ", (ROOT / path).read_text(encoding="utf-8"))


def test_numbers_of_the_readme(value):
    text = written("README.md")
    closer, common = (value(f"ep/{what}-every-run/orthant") for what in ("closer", "common"))
    assert f"closer than the sampler's in {closer:.0f} of {common:.0f} cases" in text
    runs, off = value("scaling/reference/data-sets"), value("scaling/eves/off/all")
    assert f"Of our {runs:.0f} runs, {off:.0f} miss the log likelihood by more than a nat" in text
    assert value("scaling/eves/off/below-20") == off
    verdicts = pd.read_csv(KEPT / "verdicts.csv")
    cells = verdicts[verdicts["kind"] == "cell"]
    informative = int(cells["informative"].sum())
    assert f"only {informative} of {len(cells)} would have shown a factor of two" in text
    assert not (cells["verdict"] == "differs").any()


def test_the_abstract_is_short():
    """At most 180 words and eight numbers."""
    text = (ROOT / "paper/main.tex").read_text(encoding="utf-8")
    abstract = re.search(r"\\begin{abstract}\s*\\noindent(.*?)\\end{abstract}", text, re.S)[1]
    numbers = re.findall(r"\\val(?:\[.*?\])?{.*?}", abstract)
    assert len(numbers) <= 8
    assert not re.search(r"\d", re.sub(r"\\val(\[.*?\])?{.*?}|\\cite{.*?}", "", abstract))
    assert len(re.sub(r"\\cite{.*?}", "", abstract).split()) <= 180


def test_numbers_of_the_findings(value):
    text = written("docs/findings.rst")
    for n in (50, 1000):
        closer = f"scaling/closer/hmc-annealed/sampler/N{n}"
        assert value(f"{closer}/data-sets") == 60
        assert re.search(rf"\bon {value(f'{closer}/closer'):.0f} (of 60 )?with {n}\b", text)


@pytest.mark.parametrize("path", ["docs/findings.rst", "docs/choose.rst"])
def test_the_error_of_ep_on_the_best_kernel(path, value):
    assert 0.03 < value("scaling/suited/best/ep/largest") <= 0.04
    assert "within 0.04 nats up to 2000 patterns" in written(path)


def test_the_data_sets_of_the_chooser(value):
    text = written("docs/choose.rst")
    assert f"on all {value('scaling/data-sets'):.0f} data sets of our paper" in text
    assert f"It was the smoothest on {value('scaling/suited/smoothest'):.0f};" in text


def test_growth_that_the_paper_names(value):
    """Section 2: tenfold, double and fourfold from 500 to 2000 patterns."""
    limits = {
        ("rough", "sampler"): (8.0, 12.5),
        ("rough", "sampler-soft"): (8.0, 12.5),
        ("rough", "ep"): (1.8, 2.4),
        ("rough", "importance-ep"): (1.8, 2.4),
        ("rougher", "ep"): (3.5, 4.5),
        ("rougher", "importance-ep"): (3.5, 4.5),
    }
    for (kernel, method), (low, high) in limits.items():
        few, many = (value(f"scaling/{kernel}/N{n}/{method}/median") for n in (500, 2000))
        assert low < many / few < high


def test_cells_that_the_paper_names():
    """Section 6: three undecided cells that every reading rejects, and eight that differ under one."""
    verdicts = pd.read_csv(KEPT / "verdicts.csv")
    cells = verdicts[(verdicts["kind"] == "cell") & (verdicts["verdict"] == "undecided")]
    rejected = {*cells.loc[cells["p_adjusted"] <= 0.05, "id"]}
    three = {f"table4/{name}/mae-med" for name in ("P6/ess", "P6/hmc", "P9/hmc")}
    assert rejected == three
    outcomes = pd.read_csv(KEPT / "outcomes.csv", keep_default_na=False)
    outcomes = outcomes[(outcomes["kind"] == "cell") & outcomes["differs"]]
    levels = dict.fromkeys(("count", "ess", "hmc"), "equal-seconds")
    levels |= {"variance": "once", "images": "smoothed"}
    fits = [levels_of(reading).items() <= levels.items() for reading in outcomes["reading"]]
    differ = {*outcomes.loc[fits, "id"]}
    methods = ("new", "titsias", "ess", "hmc")
    fifth = {f"table4/P5/{method}/mae-med" for method in methods}
    assert differ == three | fifth | {"table4/P4/hmc/mae-med"}
