"""What the workflow asks a plan: blocks, what they read, targets, digests, refusals. Nothing starts Snakemake here."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from small import ROOT, SCALES, load

from recheck.judge.declared import read_yaml
from recheck.record.files import write_json
from studies.common import code
from studies.common.plan import Plan, declared, seconds_of, studies
from studies.common.start import (
    OPTIONS,
    asked_of_raw,
    checked_options,
    content,
    content_of,
    refuse_other_schema,
)

STUDIES = studies()
#: Jobs of a run that are no rows and no patterns: compile, fetch, two a study, what is made of all studies, and `all`.
OTHERS = (
    2
    + 2 * len(STUDIES)
    + len(["audit", "provenance", "look_up", "paper", "webpage", "notebook", "summary", "all"])
)


@cache
def plan(scale, **changes):
    return Plan(load(scale, 20210308) | changes)


def blocks(given, apart=False):
    """All blocks, but for those of experiments that `all` does not run."""
    return [
        block
        for study in STUDIES
        for block in given.blocks(study).values()
        if apart or not {name for name, _ in block.rows} & {*declared(study).apart}
    ]


def pattern_jobs(given):
    return [group for study in STUDIES for group in given.patterns(study) if group != "apart"]


@pytest.mark.parametrize(("scale", "most"), [("tiny", 30), ("standard", 130)])
def test_a_run_has_few_jobs(scale, most):
    given = plan(scale)
    assert OTHERS + len(blocks(given)) + len(pattern_jobs(given)) <= most


@pytest.mark.parametrize("scale", SCALES)
def test_every_row_is_in_one_block_in_the_order_of_its_plan(scale):
    given = plan(scale)
    for study in STUDIES:
        found = {}
        for block in given.blocks(study).values():
            for experiment, row in block.rows:
                found.setdefault(experiment, []).append(row["row"])
        assert found.keys() == declared(study).experiments.keys()
        for experiment, names in found.items():
            assert names == [row["row"] for row in given.rows(study, experiment)], experiment


@pytest.mark.parametrize("scale", SCALES)
def test_no_block_takes_longer_than_the_configuration_says(scale):
    given = plan(scale)
    limit = given.general.pack.seconds
    for block in blocks(given, apart=True):
        assert block.seconds <= limit or len(block.rows) == 1, block.name


def test_no_job_of_the_published_scale_takes_ten_minutes():
    """But for the certified reference, which is computed once and kept."""
    given = plan("published")
    assert max(block.seconds for block in blocks(given)) < 600
    assert max(seconds_of(row) for block in blocks(given) for _, row in block.rows) < 480


@pytest.mark.parametrize("scale", ["tiny", "standard"])
def test_a_block_reads_patterns_that_are_made_and_blocks_that_come_before_it(scale):
    given = plan(scale)
    for study in STUDIES:
        made = {
            f"{given.results}/{study}/{name}.npz"
            for names in given.patterns(study).values()
            for name in names
        }
        for block in given.blocks(study).values():
            read = set(given.inputs_of(block))
            assert read <= made, block.name
            if not block.name.startswith("reference_"):
                made.add(given.path(block))


def test_patterns_are_made_by_one_job_each():
    for scale in SCALES:
        for study in STUDIES:
            names = [name for names in plan(scale).patterns(study).values() for name in names]
            assert len(names) == len(set(names))


def jobs_of(given, study, parts):
    """Blocks and patterns that parts of the measures need, with what these need."""
    found, waiting = set(), list(given.measured(study, parts))
    by_path = {given.path(block): block for block in given.blocks(study).values()}
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += given.inputs_of(by_path[path]) if path in by_path else []
    groups = {
        group
        for group, names in given.patterns(study).items()
        if any(f"{given.results}/{study}/{name}.npz" in found for name in names)
    }
    return {by_path[path].name for path in found if path in by_path}, groups


@pytest.mark.parametrize(
    ("item", "experiments", "most"),
    [
        ("tables/table1", {"experiment1", "quadrature", "inexact"}, 10),
        ("tables/table4", {"experiment4", "spread"}, 60),
        ("figures/figure1", {"experiment3"}, 10),
    ],
)
def test_a_table_alone_needs_no_row_of_another(item, experiments, most):
    given, (kind, name) = plan("standard"), item.split("/")
    layout = read_yaml(ROOT / "src/studies/atiya2021/layout.yaml")
    parts = given.parts_of("atiya2021", layout[kind][name])
    names, groups = jobs_of(given, "atiya2021", parts)
    assert {name.rpartition("-")[0] for name in names} == experiments
    # and: compile, fetch, and the table itself
    assert len(names) + len(groups) + 3 <= most
    assert groups <= {"experiment4"}


def test_a_target_has_the_experiments_that_it_says():
    given = plan("standard")
    assert given.targets["experiment3"] == ("atiya2021", ["experiment3"])
    files = given.files("atiya2021", ["experiment3"])
    assert files and all("/rows/experiment3-" in path for path in files)
    assert {"experiment5", "defects", "crossvalidation", "outliers"} <= given.targets.keys()


def test_what_a_study_says_of_itself_fits_together():
    for study in STUDIES:
        known = declared(study)
        modules = {
            path.stem for path in (ROOT / "src/studies" / study / "experiments").glob("[a-z]*.py")
        }
        assert known.experiments.keys() == modules
        read = {name for names in known.measures.values() for name in names}
        used_by_others = {"defects_reference", "pilot", *known.apart}
        assert read | used_by_others >= known.experiments.keys() >= read
        targets = {name for names in known.targets.values() for name in names}
        assert targets <= known.experiments.keys()


def test_the_paper_is_about_the_study_that_the_configuration_names(tmp_path):
    config = load("tiny")
    assert Plan(config).studies[0] == "atiya2021"
    config["paper"] = config["paper"] | {"study": "neal1997"}
    assert Plan(config).studies == ["neal1997", *(one for one in STUDIES if one != "neal1997")]
    config["paper"] = config["paper"] | {"study": "abc2020"}
    with pytest.raises(ValueError, match=r"paper\.study: given 'abc2020'; allowed is one of"):
        Plan(config)


def test_another_setting_changes_the_blocks_of_its_experiment_alone():
    one, other = plan("standard"), load("standard", 20210308)
    other["atiya2021"]["experiment1"]["grid"][0]["samples"] = 12345
    other = Plan(other)
    for study in STUDIES:
        for name, block in one.blocks(study).items():
            same = other.blocks(study)[name].rows == block.rows
            assert same == (not name.startswith(("experiment1-", "quadrature-")) or same)


# --- Digests


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """Three modules, of which two make numbers."""
    folder = tmp_path / "gpcmc"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("from gpcmc.two import x\n")
    (folder / "two.py").write_text("x = 1\n")
    monkeypatch.setattr(code, "_SOURCE", tmp_path)
    code.forget_modules()
    yield folder
    code.forget_modules()


def test_digests_are_those_of_the_files_whether_noted_or_not(sources, tmp_path):
    notes = tmp_path / "digests.json"
    first = code.digest(["gpcmc.one"])
    code.note_digests(notes)
    assert json.loads(notes.read_text())
    code.forget_modules()
    code.read_digests(notes)
    assert code.digest(["gpcmc.one"]) == first
    # an edit between a look and its note is none that was looked at
    (sources / "two.py").write_text("x = 22\n")
    code.note_digests(notes)
    code.forget_modules()
    code.read_digests(notes)
    assert code.digest(["gpcmc.one"]) != first
    notes.write_text("no JSON")
    code.forget_modules()
    code.read_digests(notes)
    assert code.digest(["gpcmc.one"]) != first


def test_an_edit_of_a_method_concerns_the_blocks_that_have_rows_of_it():
    given = plan("standard")
    rests = {
        block.name: any(
            "gpcmc.chains.elliptical" in code.code_digests(code.modules_of_row(row))
            for _, row in block.rows
            if row.get("modules")
        )
        for block in given.blocks("atiya2021").values()
    }
    assert any(rests.values()) and not all(rests.values())
    assert not any(there for name, there in rests.items() if name.startswith("experiment1-"))


# --- What must hold when the workflow starts


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"share": "abc"}, "share: given 'abc'; allowed is a number above 0, at most 1"),
        ({"share": -1}, "share: given -1"),
        ({"share": 2}, "share: given 2"),
        ({"share": "nan"}, "share: given 'nan'"),
        ({"share": "inf"}, "share: given 'inf'"),
        ({"share": True}, "share: given True"),
        ({"seconds": -5}, "seconds: given -5"),
        ({"seconds": 0}, "seconds: given 0"),
        ({"draw": "x"}, "draw: given 'x'; allowed is a whole number"),
        ({"draw": -1}, "draw: given -1"),
    ],
)
def test_keys_of_targets_are_checked(given, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        checked_options(given, {"seed": 7})


def test_keys_of_targets_have_defaults():
    assert checked_options({}, {"seed": 7}) == OPTIONS | {"draw": 7}
    assert checked_options({"share": "0.5", "draw": "3"}, {"seed": 7})["share"] == 0.5


def test_results_of_another_schema_are_refused_by_name_and_what_systems_put_there_is_not(tmp_path):
    folder = tmp_path / "results/tiny"
    refuse_other_schema(folder)
    folder.mkdir(parents=True)
    (folder / ".DS_Store").write_text("")
    (folder / "x.csv.partial").write_text("")
    refuse_other_schema(folder)
    (folder / "some.csv").write_text("x\n1\n")
    for stamp, said in ((None, "none"), ('{"version": 0}', "0"), ("{", "unreadable")):
        if stamp:
            (folder / "schema.json").write_text(stamp)
        with pytest.raises(
            ValueError, match=f"tiny was written under another schema .* version {said}"
        ):
            refuse_other_schema(folder)


def test_results_that_are_a_file_are_refused(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(ValueError, match="must be a folder"):
        refuse_other_schema(tmp_path / "results/tiny")


def test_raw_files_are_looked_for_again_once_they_change_and_then_no_more(tmp_path):
    raw, status = tmp_path / "raw", str(tmp_path / "a.json")
    raw.mkdir()

    def fetched():
        """What the job notes at its end."""
        asked = asked_of_raw([status], raw)
        found = content_of(raw / "a")
        write_json(status, {"file": "a", "found": found, "asked": asked.get("a")})
        return asked

    assert fetched() == {} == asked_of_raw([status], raw)
    # still missing: nothing to do
    assert asked_of_raw([status], raw) == {}
    (raw / "a").write_text("placed by hand")
    asked = asked_of_raw([status], raw)
    assert asked == {"a": content_of(raw / "a")}
    assert fetched() == asked == asked_of_raw([status], raw), "it does not change its own parameter"
    (raw / "a").write_text("damaged")
    assert asked_of_raw([status], raw) != asked
    (raw / "a").unlink()
    assert asked_of_raw([status], raw) == asked, "what was made of it is there"


def test_content_is_that_of_the_files_whenever_they_were_touched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("x")
    one = content(["a"])
    Path("a").touch()
    assert content(["a"]) == one
    Path("a").write_text("y")
    assert content(["a"]) != one
