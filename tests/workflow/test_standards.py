"""What others' tools read about this project says what the project says: citation, deposit, check."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCALE = "standard"  # of `make paper`
KINDS = {
    "tables": "results/{scale}/{study}/tables/{name}.csv",
    "figures": "figures/{scale}/{study}/{name}.pdf",
}


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def citation() -> dict:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def deposit() -> dict:
    return json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def check() -> dict:
    return yaml.safe_load((ROOT / "codecheck.yml").read_text(encoding="utf-8"))


def test_citation_is_of_this_version(project, citation):
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["keywords"] == project["keywords"]
    assert citation["title"].startswith(f"{project['name']}: ")
    named = {author["name"] for author in citation["authors"]}
    assert named == {author["name"] for author in project["authors"]}
    assert citation.keys() >= {"cff-version", "message", "title", "authors"}
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith("BSD 3-Clause License") and named.pop() in licence


def test_the_deposit_says_what_the_citation_says(citation, deposit):
    for key in ("title", "version", "license", "keywords"):
        assert deposit[key] == citation[key], key
    page = (ROOT / "docs/cite.rst").read_text(encoding="utf-8")
    assert all(f"{key} = {{{citation[key]}}}" in page for key in ("title", "version"))
    assert deposit["creators"] == citation["authors"]
    (preprint,) = citation["references"][0]["identifiers"]
    assert preprint["value"] in [one["identifier"] for one in deposit["related_identifiers"]]


def test_the_paper_has_one_title(citation, check):
    source = (ROOT / "paper/main.tex").read_text(encoding="utf-8")
    title = re.search(r"\\title\{(.*)\}", source)[1].replace(r"\\ ", " ")
    assert title == citation["references"][1]["title"] == check["paper"]["title"]
    assert r"\author{\valtext{run:config/paper/author}}" in source
    default = yaml.safe_load((ROOT / "config/default.yaml").read_text(encoding="utf-8"))
    author = default["paper"]["author"]
    assert [{"name": author}] == citation["references"][1]["authors"] == check["paper"]["authors"]


@pytest.mark.parametrize("name", ["CITATION.cff", ".zenodo.json", "codecheck.yml"])
def test_addresses_are_those_of_pyproject(project, name):
    """The home of the project may move: its addresses are set in pyproject.toml, and here they are compared."""
    elsewhere = {
        "https://codecheck.org.uk/spec/config/2.0/",
        "https://doi.org/10.48550/arXiv.1302.7220",
    }
    text = (ROOT / name).read_text(encoding="utf-8")
    found = set(re.findall(r"https?://[^\s\"']+", text)) - elsewhere
    assert found and found <= set(project["urls"].values())


def test_the_check_lists_every_table_and_figure(check):
    shown = {}
    for path in sorted((ROOT / "src/studies").glob("*/layout.yaml")):
        layout = yaml.safe_load(path.read_text(encoding="utf-8"))
        for kind, form in KINDS.items():
            for name, item in layout[kind].items():
                file = form.format(scale=SCALE, study=path.parent.name, name=name)
                shown[file] = item["title"]
    listed = {item["file"]: item["comment"] for item in check["manifest"]}
    assert len(listed) == len(check["manifest"])
    documents = {f"results/{SCALE}/{name}" for name in ("paper.pdf", "supplement.pdf", "audit.csv")}
    assert listed.keys() == shown.keys() | documents
    assert {file: listed[file] for file in shown} == shown


def test_the_check_is_of_the_scale_that_make_paper_runs():
    default = yaml.safe_load((ROOT / "config/default.yaml").read_text(encoding="utf-8"))
    assert default["scale"] == SCALE
