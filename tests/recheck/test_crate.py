"""The record of a run in a public vocabulary: read again by the library, and by the validator of its profile."""

import json
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("rocrate")
import rocrate
from rocrate.rocrate import ROCrate

from recheck.record.crate import PROFILES, run_crate

ABOUT = {
    "name": "pi: a re-run",
    "description": "Random points in a circle.",
    "authors": "The pi developers",
    "license": "BSD-3-Clause",
    "language": "snakemake",
}
RECORD = {
    **{"scale": "tiny", "seed": 1, "config_sha256": "0" * 64, "commit": "f" * 40, "cpu_hours": 0.1},
    **{"packages": {"snakemake": "9.20"}, "cpu": "any", "system": "Linux x86_64"},
    **{"start": "2026-01-01T00:00:00+00:00", "end": "2026-01-01T01:00:00+00:00"},
}
RAW = {
    "name": "crabs",
    "address": "https://example.org/crabs.csv",
    "sha256": "0" * 64,
    "licence": "CC BY 4.0",
}
SOURCES, RESULTS = ["Snakefile", "config/default.yaml"], ["results/tiny/audit.csv"]


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """A crate of a made-up run."""
    monkeypatch.chdir(tmp_path)
    for name in (*SOURCES, *RESULTS):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(f"{name}\n")
    run_crate(ABOUT, RECORD, SOURCES, [RAW], RESULTS).write_zip("run.crate.zip")
    return tmp_path / "run.crate.zip"


def test_the_library_reads_what_was_run_read_and_written(packed):
    crate = ROCrate(packed)
    assert crate.mainEntity.id == "Snakefile"
    assert {profile.id for profile in crate.root_dataset["conformsTo"]} == set(PROFILES)
    (run,) = crate.get_by_type("CreateAction")
    assert run["instrument"] == crate.mainEntity
    assert (run["startTime"], run["endTime"]) == (RECORD["start"], RECORD["end"])
    read = {one.id for one in run["object"]}
    assert read == {"config/default.yaml", RAW["address"], "#scale", "#seed", "#config_sha256"}
    assert [one.id for one in run["result"]] == RESULTS
    with zipfile.ZipFile(packed) as archive:  # raw files stay where they are
        assert {*SOURCES, *RESULTS, "ro-crate-metadata.json"} == set(archive.namelist())


def test_it_conforms_to_the_profile(packed):
    """The validator asks the internet for the vocabulary; it gets the copy that the library brings."""
    services = pytest.importorskip("rocrate_validator.services", reason="pip install roc-validator")
    text = Path(rocrate.__file__).parent.joinpath("data/ro-crate.jsonld").read_text()
    # of version 1.3; in 1.1, on which the profile is built, Bioschemas' terms have this address
    vocabulary = json.loads(
        text.replace("https://bioschemas.org/terms/", "https://bioschemas.org/")
    )
    with zipfile.ZipFile(packed) as archive:
        archive.extractall("open")
    path = Path("open/ro-crate-metadata.json")
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"@context": vocabulary["@context"]}))
    done = services.validate(
        services.ValidationSettings(rocrate_uri="open", profile_identifier="workflow-run-crate-0.5")
    )
    assert [issue.message for issue in done.get_issues()] == []
