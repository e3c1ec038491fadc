"""The workflow at tiny scale, in temporary copies of the project."""

import hashlib
import json
import os
import re
import shutil
import sys
import sysconfig
import venv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from running import MIRROR, copy_project, digests, made, planned, snakemake

from gpcmc.gp import prior, rbf
from gpcmc.inference import Orthant, infer
from recheck.record.files import gather_digests, read_arrays, read_csv, write_csv
from studies.atiya2021.problems import Problem
from studies.common.seeds import generator

pytestmark = pytest.mark.slow

STUDY = "results/tiny/atiya2021"


def runs_rows(name):
    """Whether a rule runs rows of an experiment: it does, if it is none of those that all studies share."""
    shared = {
        "gather",
        "measure",
        "measures",
        "judge",
        "controls",
        "remeasured",
        "audit",
        "summary",
    }
    shared |= {
        "provenance",
        "look_up",
        "notebook",
        "paper",
        "webpage",
        "all",
        "fetch",
        "compile",
        "data_check",
    }
    return not (name in shared or name.startswith("draw_") or name.endswith("_patterns"))


needs_data = pytest.mark.skipif(not MIRROR.exists(), reason="the real data are not here")
needs_latex = pytest.mark.skipif(shutil.which("latexmk") is None, reason="there is no LaTeX here")


@pytest.fixture(scope="module")
def unmade(tmp_path_factory):
    """A project in which nothing has been run."""
    return copy_project(tmp_path_factory.mktemp("none") / "project")


# ---------------------------------------------------------------------------------------------------------------------
# A finished run


def test_a_finished_run_has_nothing_to_do(finished):
    assert planned(finished) == {}


def test_the_summary_is_a_small_table(finished):
    lines = (finished / "results/tiny/summary.txt").read_text().splitlines()
    assert lines[0] == "Verdicts of the complete run, which is kept"
    assert len(lines) < 30 and max(map(len, lines)) < 120
    assert [line for line in lines if line.startswith("Paper: ")]


def test_every_file_is_made_by_a_rule_and_is_in_the_manifest(finished):
    manifest = finished / "results/tiny/MANIFEST.sha256"
    listed = dict(reversed(line.split("  ")) for line in manifest.read_text().splitlines())
    files = made(finished)
    assert set(files) - set(listed) == {"results/tiny/MANIFEST.sha256"}
    assert listed == {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in listed}
    strangers = snakemake(finished, "--list-untracked").stdout.splitlines()
    strangers = [name for name in strangers if name.startswith(("results/", "figures/"))]
    # the stamp is there before any rule runs, and a digest belongs to the file beside it
    assert {name for name in strangers if not name.endswith(".digest")} <= {
        "results/tiny/schema.json"
    }


def test_every_measure_names_lines_that_are_there(finished):
    sources = read_csv(finished / STUDY / "measures.csv")["source"].dropna().unique()
    lengths, checked = {}, 0
    for source in sources:
        for place in source.split("; "):
            name, _, lines = place.partition(":")
            path = finished / STUDY / name
            if name.endswith(".csv") and path.exists():
                if name not in lengths:
                    lengths[name] = len(path.read_text().splitlines())
                checked += 1
                assert all(2 <= int(n) <= lengths[name] for n in re.findall(r"\d+", lines)), place
    assert checked > 500


@needs_data
def test_a_row_can_be_made_again_from_its_seed(finished):
    rows = read_csv(finished / STUDY / "experiment4.csv")
    row = rows[(rows["problem"].astype(str) == "7") & (rows["method"] == "orthant")].iloc[1]
    problem = Problem(**read_arrays(finished / STUDY / "experiment4/problem7.npz"))
    gp = prior(rbf(row.alpha, row.beta), problem.X_train, problem.X_test)
    result = infer(Orthant(samples=int(row.samples)), gp, problem.y_train, rng=generator(row.seed))
    assert result.log_evidence == row.log_evidence
    stored = read_arrays(finished / STUDY / "experiment4.npz")
    place = stored["problem7/probability/rows"].tolist().index(row["row"])
    np.testing.assert_array_equal(result.probability, stored["problem7/probability"][place])


def test_drawn_and_typeset_again_nothing_changes(changed):
    names = [name for name in made(changed) if name.endswith((".tex", ".pdf", ".png", ".html"))]
    before = {name: (changed / name).read_bytes() for name in names}
    shutil.rmtree(changed / "figures")
    shutil.rmtree(changed / STUDY / "tables")
    pdfs = ["draw_paper", "webpage", *(["paper"] if shutil.which("latexmk") else [])]
    done = snakemake(changed, *pdfs, "draw_figures_atiya2021", "--cores", "2", "--forcerun", *pdfs)
    assert done.returncode == 0, done.stdout
    again = {name: (changed / name).read_bytes() for name in names if (changed / name).exists()}
    assert any(name.endswith(".png") for name in again)
    assert [name for name in again if again[name] != before[name]] == []


def site_packages():
    """Where this interpreter finds installed packages."""
    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]


def test_a_folder_with_a_space_cores_and_thread_variables_do_not_change_a_byte(finished, tmp_path):
    """The whole run had two cores and two threads; a part of it has one, elsewhere."""
    other = copy_project(tmp_path / "a spa\N{LATIN SMALL LETTER C WITH CEDILLA}e")
    targets = [
        *("experiment1", "experiment2", f"{STUDY}/ordering.csv"),
        *(f"{STUDY}/experiment3/{row}/0.csv" for row in ("orthant", "ess")),
        *(f"{STUDY}/experiment4/problem1/{row}/0.csv" for row in ("ep", "orthant", "hmc-gpml")),
        f"{STUDY}/defects/linear/ess/0.csv",
    ]
    # an environment in that folder, as make would have made it
    venv.create(other / ".venv", symlinks=True)
    site = sysconfig.get_path("purelib", vars={"base": str(other / ".venv")})
    (Path(site) / "all.pth").write_text("\n".join(site_packages()))
    python = other / ".venv/bin/python"
    variables = {"OMP_NUM_THREADS": "1", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    done = snakemake(other, *targets, "--cores", "1", python=python, **variables)
    assert done.returncode == 0, done.stdout
    one, two = digests(other), digests(finished)
    assert len([name for name in one if name.endswith((".csv", ".npz"))]) > 12
    assert [name for name in one if one[name] != two[name]] == []


# ---------------------------------------------------------------------------------------------------------------------
# What runs again, and what does not


@pytest.fixture(scope="module")
def edited(finished, tmp_path_factory):
    """What a dry run would do after an edit of the finished project, in a copy: other tests copy that project."""
    copy = tmp_path_factory.mktemp("edited") / "project"
    shutil.copytree(finished, copy, symlinks=True)

    def plan(files, edit, *targets):
        paths = [copy / file for file in files]
        before = [(path.read_bytes(), path.stat()) for path in paths]
        try:
            for path, (content, _) in zip(paths, before, strict=True):
                path.write_bytes(edit(content))
            return planned(copy, *targets)
        finally:
            for path, (content, status) in zip(paths, before, strict=True):
                path.write_bytes(content)
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return plan


def test_a_comment_runs_nothing(edited):
    files = [
        *("src/gpcmc/inference/laplace.py", "src/studies/atiya2021/experiments/experiment4.py"),
        *("src/studies/atiya2021/measures/experiment1.py", "src/recheck/judge/verdicts.py"),
        "src/studies/atiya2021/figures/experiments123.py",
    ]
    assert edited(files, lambda text: text + b"\n# a comment\n") == {}


def test_an_edit_of_a_method_runs_the_jobs_of_this_method(edited):
    edit = lambda text: text + b"\nEDITED = 1\n"  # noqa: E731
    jobs = edited(["src/gpcmc/inference/elliptical.py"], edit, "experiment3", "experiment4")
    assert "compile" not in jobs and "atiya2021_patterns" not in jobs
    assert jobs["experiment3_rows"] == 2  # ess, ess-ais
    assert jobs["experiment4_rows"] == 1  # ess


def test_an_edit_of_a_figure_runs_no_method_and_no_judge(edited):
    file = "src/studies/atiya2021/figures/experiments123.py"
    jobs = edited([file], lambda text: text + b"\nEDITED = 1\n")
    assert jobs.keys() <= {
        "draw_figures_atiya2021",
        "draw_paper",
        "paper",
        "webpage",
        "summary",
        "all",
    }


def test_the_extensions_are_built_again_for_their_sources_alone(edited):
    edit = lambda text: text + b"\n# edited\n"  # noqa: E731
    assert edited(["src/gpcmc/orthant/_sampler.pyx"], edit, "experiment1")["compile"] == 1
    assert edited(["pyproject.toml"], edit, "experiment1") == {}


def test_sources_that_change_during_a_run_are_refused(built):
    table = f"{STUDY}/experiment3/laplace/0.csv"
    source = built / "src/gpcmc/inference/laplace.py"
    # stands in for a person who edits while jobs wait
    (built / "src/sitecustomize.py").write_text(
        "import sys\n"
        "if 'run.py' in ' '.join(sys.orig_argv):\n"
        f"    open({str(source)!r}, 'a').write('EDITED = 1\\n')\n"
    )
    done = snakemake(built, table, "--cores", "1")
    assert done.returncode != 0 and not (built / table).exists()
    assert "experiment3/laplace/0.csv: its sources changed during the run" in done.stdout


# ---------------------------------------------------------------------------------------------------------------------
# Results that are altered, damaged or gone


def test_a_damaged_result_is_refused_by_name_and_remade_once_deleted(changed):
    table = changed / STUDY / "experiment1.csv"
    whole = table.read_bytes()
    harmed = [whole.replace(b"1", b"2", 1), b"".join(whole.splitlines(keepends=True)[:-1])]
    for content in harmed:
        table.write_bytes(content)
        done = snakemake(changed, f"{STUDY}/measures/experiment1.csv", "--cores", "1")
        assert done.returncode != 0
        assert "atiya2021/experiment1.csv" in done.stdout
        assert "delete it and make it again" in done.stdout
    table.unlink()
    done = snakemake(changed, f"{STUDY}/measures/experiment1.csv", "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert table.read_bytes() == whole


def test_altered_verdicts_are_refused_by_name(changed):
    table = changed / STUDY / "verdicts.csv"
    table.write_text(table.read_text().replace("undecided", "agrees", 1))
    done = snakemake(changed, "audit", "--cores", "1", "--forcerun", "audit")
    assert done.returncode != 0
    assert "atiya2021/verdicts.csv" in done.stdout
    assert "delete it and make it again" in done.stdout


def test_without_rows_all_that_follows_the_measures_is_built(changed):
    study = changed / STUDY
    plans = {path.stem for path in (changed / "src/studies/atiya2021/experiments").glob("*.py")}
    for path in [*study.glob("*"), changed / "figures"]:
        if path.name.partition(".")[0].removesuffix("_timing") in plans or path.suffix == ".csv":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(study / "tables")
    targets = ["audit", "draw_tables_atiya2021", "draw_figures_atiya2021"]
    targets += ["paper"] if shutil.which("latexmk") else ["results/tiny/values.tex"]
    jobs = planned(changed, *targets)
    assert not [name for name in jobs if runs_rows(name) or name == "measure"]
    done = snakemake(changed, *targets, "--cores", "2")
    assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------------------------------------------------------------
# Targets


@pytest.mark.parametrize(
    ("target", "runs"),
    [
        (
            "table1",
            {
                "experiment1_rows": 2,
                "quadrature_rows": 1,
                "inexact_rows": 1,
                "gather": 3,
                "measure": 1,
            },
        ),
        ("figure1", {"experiment3_rows": 17, "gather": 1, "measure": 1}),
        ("experiment2", {"experiment2_rows": 2, "gather": 1}),
    ],
)
def test_a_target_runs_what_it_needs_and_no_more(unmade, target, runs):
    jobs = planned(unmade, target)
    assert jobs.pop("compile") == 1 and jobs.pop(target) == 1
    assert jobs == runs


def test_there_are_such_targets(unmade):
    targets = {
        *("table2", "table3", "table4", "figure2", "figure_floor", "experiment5", "defects"),
        *("audit", "reference", "calibrate", "notebook", "provenance"),
    }
    assert targets <= planned(unmade, *targets).keys()


def test_a_table_alone_is_that_of_the_whole_run(changed):
    tables = changed / STUDY / "tables"
    before = (tables / "table1.csv").read_bytes()
    shutil.rmtree(tables)
    done = snakemake(changed, "table1", "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert {path.name for path in tables.iterdir()} == {
        *("table1.csv", "table1.csv.digest", "table1.tex")
    }
    assert (tables / "table1.csv").read_bytes() == before


@pytest.mark.parametrize("scale", ["smoke", "standard", "published"])
def test_every_scale_is_accepted(unmade, scale):
    """The other tests run the tiny one alone."""
    assert planned(unmade, scale=scale)["all"] == 1


def test_the_profile_for_a_cluster_plans_the_same_jobs(unmade):
    """All that is neither a run nor local shares an allocation; tests of a cluster itself are in test_slurm.py."""
    jobs = planned(unmade, "--profile", "profiles/slurm")
    assert jobs == planned(unmade)
    profile = yaml.safe_load((unmade / "profiles/slurm/profile.yaml").read_text())
    local = {"all", "compile", "data_check", "fetch", "paper", "summary"}
    alone = {name for name in profile["groups"] if name not in jobs}
    assert not alone, "groups of rules that are not there"
    # tables of rows are read by other experiments, so that no group can hold both
    shared = {name for name in jobs.keys() - local - {"gather"} if not runs_rows(name)}
    assert shared <= profile["groups"].keys()
    assert profile["group-components"].keys() <= set(profile["groups"].values())


# ---------------------------------------------------------------------------------------------------------------------
# Configuration


def test_a_wrong_configuration_is_refused_by_name(unmade):
    """Before any job, with the key, what was given and what is allowed, all at once."""
    settings = ["seed=abc", "sede=1", "missing_data=maybe", "data={retries: -1}"]
    done = snakemake(unmade, "--dry-run", settings=settings)
    assert done.returncode != 0 and "Job stats" not in done.stdout
    assert "Traceback" not in done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    for key, given, allowed in [
        ("seed", "'abc'", "whole number"),
        ("sede", "1", "known are"),
        ("missing_data", "'maybe'", "continue"),
        ("data.retries", "-1", "whole number"),
    ]:
        (line,) = [line for line in lines if line.startswith(f"{key}:")]
        assert given in line and allowed in line


def test_an_unknown_scale_is_refused_by_name(unmade):
    done = snakemake(unmade, "--dry-run", scale="huge")
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert (
        "scale: given 'huge'; allowed is one of ['published', 'smoke', 'standard', 'tiny']"
        in done.stdout
    )


def test_a_scale_whose_file_is_no_text_is_refused_by_name(unmade):
    (unmade / "config/binary.yaml").write_bytes(b"\x80\xff\x00a: b")
    done = snakemake(unmade, "--dry-run", scale="binary")
    (unmade / "config/binary.yaml").unlink()
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert "config/binary.yaml is no text in UTF-8" in done.stdout


def test_nested_keys_can_be_given_on_the_command_line(unmade):
    """Snakemake reads their numbers and truth values as texts."""
    settings = ["data={retries: 1, standardise: {usps: true}}", "seed=5"]
    done = snakemake(unmade, "--dry-run", settings=settings)
    assert done.returncode == 0, done.stdout


def test_what_is_given_goes_over_the_files(unmade):
    """A file over the file of the scale, and the command line over both; null drops a row."""
    (unmade / "my.yaml").write_text(
        "seed: seven\natiya2021: {experiment4: {methods: {ess: null}}, benchmark: {parts: [-2]}}\n"
    )
    target = f"{STUDY}/experiment4/problem1/ess/0.csv"
    assert snakemake(unmade, target, "--dry-run").returncode == 0
    given = [target, "--dry-run", "--configfile", "my.yaml"]
    done = snakemake(unmade, *given, settings=["atiya2021={benchmark: {parts: [4]}}"])
    assert done.returncode != 0 and "seed: given 'seven'" in done.stdout
    assert "parts" not in done.stdout
    done = snakemake(unmade, *given, settings=["seed=7", "atiya2021={benchmark: {parts: [4]}}"])
    (unmade / "my.yaml").unlink()
    assert done.returncode != 0 and f"{target}: no row of the plan" in done.stdout


def test_the_catalogue_finds_the_workflow(unmade):
    planned_there = planned(unmade, "--snakefile", "workflow/Snakefile")
    assert planned_there.pop("default") == 1
    assert planned_there | {"all": 1} == planned(unmade)


# ---------------------------------------------------------------------------------------------------------------------
# Data, LaTeX, kept results


@needs_data
def test_a_damaged_raw_file_is_refused_by_name(changed):
    raw = changed / "data/raw/crabs.csv"
    raw.write_bytes(raw.read_bytes().replace(b"8.1", b"8.2", 1))
    done = snakemake(changed, "experiment4", "--cores", "1")
    assert done.returncode != 0
    assert "crabs.csv" in done.stdout and "sha256" in done.stdout


def test_without_network_and_mirror_it_says_what_is_left_out(built):
    shutil.rmtree(built / "data/raw", ignore_errors=True)
    nowhere = "http://127.0.0.1:9"
    offline = {"http_proxy": nowhere, "https_proxy": nowhere, "GPCMC_DATA_MIRRORS": ""}
    settings = ["data={mirrors: [], retries: 0}"]
    table = f"{STUDY}/experiment4/problem7/ep/0.csv"
    done = snakemake(built, table, "--cores", "2", settings=settings, **offline)
    assert done.returncode == 0, done.stdout
    assert list(read_csv(built / table).status) == ["data not available"]
    status = json.loads((built / "results/tiny/data/crabs.csv.json").read_text())
    assert not status["available"] and "data/raw/crabs.csv" in status["instructions"]
    settings = [*settings, "missing_data=fail"]
    stopped = snakemake(built, table, "--cores", "1", settings=settings, **offline)
    assert stopped.returncode != 0 and "data/raw/" in stopped.stdout
    # and a file that is placed by hand afterwards is found
    if MIRROR.exists():
        (built / "data/raw").mkdir(exist_ok=True)
        shutil.copy2(MIRROR / "crabs.csv", built / "data/raw/crabs.csv")
        done = snakemake(built, table, "--cores", "2", settings=settings[:1], **offline)
        assert done.returncode == 0, done.stdout
        assert list(read_csv(built / table).status) == ["ok"]


def test_without_latex_all_but_the_pdfs_is_built(changed, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    # `which`: Snakemake's plugin for SLURM calls it when it is imported
    for name in ("bash", "cc", "gcc", "git", "env", "which"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    path = os.pathsep.join([os.path.dirname(sys.executable), str(programs)])
    (changed / "results/tiny/summary.txt").unlink()
    done = snakemake(changed, "--cores", "1", PATH=path)
    assert done.returncode == 0, done.stdout
    (line,) = [
        line
        for line in (changed / "results/tiny/summary.txt").read_text().splitlines()
        if line.startswith("Paper: ")
    ]
    assert "there is no LaTeX here" in line and "apt-get install" in line
    assert line.startswith("Paper: results/tiny/paper.html; ")
    assert 'href="paper.pdf"' not in (changed / "results/tiny/paper.html").read_text()


# ---------------------------------------------------------------------------------------------------------------------
# Kept results


@pytest.fixture(scope="module")
def kept(finished, tmp_path_factory):
    """The finished project with its results kept."""
    copy = tmp_path_factory.mktemp("kept") / "project"
    shutil.copytree(finished, copy, symlinks=True)
    done = snakemake(copy, "keep", "--cores", "1")
    assert done.returncode == 0, done.stdout
    return copy


@pytest.mark.parametrize("target", ["resume", "verify"])
def test_where_no_rows_are_kept_none_are_run(unmade, target):
    jobs = planned(unmade, target)
    assert [name for name in jobs if runs_rows(name)] == [target]


def test_results_that_are_kept_are_those_of_the_run(kept):
    folder = kept / "data/reference/atiya2021"
    for name in ("measures.csv.gz", "estimates.csv.gz", "experiment1.csv", "experiment4.csv"):
        made = read_csv(kept / STUDY / name.removesuffix(".gz"))
        pd.testing.assert_frame_equal(read_csv(folder / name), made)
    assert {path.name for path in folder.iterdir()} >= {"verdicts.csv", "provenance.json"}
    assert not [path for path in folder.iterdir() if path.suffix == ".digest"]


def test_kept_rows_are_put_back_and_nothing_is_computed(kept, tmp_path):
    copy = tmp_path / "project"
    shutil.copytree(kept, copy, symlinks=True)
    for name in ("results", "figures"):
        shutil.rmtree(copy / name)
    done = snakemake(copy, "resume", "--cores", "2")
    assert done.returncode == 0, done.stdout
    assert "atiya2021, experiment4:" in done.stdout and "put back" in done.stdout
    jobs = planned(copy, f"{STUDY}/measures.csv")
    assert not [name for name in jobs if runs_rows(name)], jobs
    done = snakemake(copy, f"{STUDY}/experiment4.csv", f"{STUDY}/experiment1.csv", "--cores", "2")
    assert done.returncode == 0, done.stdout
    for name in ("experiment1.csv", "experiment4.csv", "experiment4.npz"):
        assert (copy / STUDY / name).read_bytes() == (kept / STUDY / name).read_bytes()


#: In the module of Hamiltonian Monte Carlo, and what it is changed to.
CONSTANT = ("_JITTER = 0.1 ", "_JITTER = 0.2 ")
#: Parts of the names of rows that rest on it; the toolbox whose defects are studied has a sampler of its own.
HAMILTONIAN = {"hmc", "hmc-ais", "hmc-annealed", "annealing"}


def is_hamiltonian(study, experiment, row):
    return experiment != "defects" and bool(HAMILTONIAN & {*row.split("/")})


def verified(folder):
    """Outcomes by study, experiment and row."""
    frames = [
        read_csv(path).assign(study=path.parent.name)
        for path in (folder / "data/reference").glob("*/verified.csv")
    ]
    return pd.concat(frames).set_index(["study", "experiment", "row"])["outcome"]


def test_a_changed_sampler_turns_its_rows_red_and_no_others(kept, tmp_path):
    copy = tmp_path / "project"
    shutil.copytree(kept, copy, symlinks=True)
    settings = ["share=0.000001"]
    done = snakemake(copy, "verify", "--cores", "2", settings=settings)
    assert done.returncode == 0, done.stdout
    before = verified(copy)
    assert set(before) == {"identical"} and len(before) > 60
    source = copy / "src/gpcmc/inference/hamiltonian.py"
    text = source.read_text()
    assert text.count(CONSTANT[0]) == 1
    source.write_text(text.replace(*CONSTANT))
    done = snakemake(copy, "verify", "--cores", "2", settings=settings)
    assert done.returncode != 0
    after = verified(copy)
    red = after.index[after != "identical"]
    assert list(red) == [name for name in after.index if is_hamiltonian(*name)]
    assert len(red) >= 1 and all(name[2] in done.stdout for name in red), "each is named"


def ids(folder):
    """Ten numbers of different kinds."""
    measures = read_csv(folder / "data/reference/atiya2021/measures.csv.gz")
    first = measures.groupby(measures["id"].str.partition("/")[0], sort=True)["id"].first()
    more = ["neal1997:chains/1997-100/eta", "tables/table1", "figures/floor", "count:agrees/table1"]
    return [*first.tolist()[:8], *more]


def test_a_number_is_looked_up_and_its_rows_are_run_again(kept):
    for key in ids(kept):
        done = snakemake(kept, "number", "--cores", "2", settings=[f"id={key}", "seconds=2"])
        assert done.returncode == 0, done.stdout
        assert "rows:" in done.stdout, key
        assert " different: " not in done.stdout


def test_of_an_altered_kept_row_the_number_says_so(kept, tmp_path):
    copy = tmp_path / "project"
    shutil.copytree(kept, copy, symlinks=True)
    folder = copy / "data/reference/atiya2021"
    frame = read_csv(folder / "experiment1.csv", dtype=str, keep_default_na=False)
    frame["estimate"] = (frame["estimate"].astype(float) + 0.01).astype(str)
    write_csv(folder / "experiment1.csv", frame)
    gather_digests(folder)
    settings = ["id=table1/N50/M10000", "seconds=2"]
    done = snakemake(copy, "number", "--cores", "2", settings=settings)
    assert done.returncode != 0
    assert "different: N50/" in done.stdout and "estimate" in done.stdout


def test_an_unknown_number_is_refused_with_those_that_are_close(kept):
    done = snakemake(kept, "number", "--dry-run", settings=["id=table1/N50/M1000"])
    assert done.returncode != 0 and "Job stats" not in done.stdout
    assert "table1/N50/M10000" in done.stdout
