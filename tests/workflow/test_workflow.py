"""The workflow at tiny scale, in temporary copies of the project: what only a run of Snakemake can show.

What is planned, and what runs again after which edit, is asked without Snakemake in tests/studies/test_plan.py and
test_code.py.
"""

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
from running import MIRROR, change, copy_project, digests, jobs_of, linked, made, planned, snakemake

from gpcmc.gp import prior, rbf
from gpcmc.inference import Orthant, infer
from recheck.record.files import gather_digests, read_arrays, read_csv, write_csv
from studies.atiya2021.problems import Problem
from studies.common.configuration import read_config
from studies.common.plan import Plan
from studies.common.seeds import generator

pytestmark = pytest.mark.slow

STUDY = "results/tiny/atiya2021"
#: Blocks by the experiment, as at larger scales.
APART = "pack={seconds: 60, across: experiment}"
needs_data = pytest.mark.skipif(not MIRROR.exists(), reason="the real data are not here")


@pytest.fixture(scope="module")
def unmade(tmp_path_factory):
    """A project in which nothing has been run."""
    return copy_project(tmp_path_factory.mktemp("none") / "project")


# ---------------------------------------------------------------------------------------------------------------------
# A finished run


def test_a_finished_run_has_nothing_to_do_whenever_its_sources_were_touched(changed):
    for path in (changed / "src").rglob("*.py*"):
        change(path, path.read_bytes())
    assert planned(changed) == {}


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
    # without a number of cores, as every look at a run
    done = snakemake(finished, "--list-untracked")
    assert done.returncode == 0, done.stdout
    strangers = {name for name in done.stdout.splitlines() if name in files}
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


def test_drawn_and_typeset_again_nothing_changes_and_a_table_alone_is_that_of_the_run(changed):
    """A table and a figure of the paper's study by themselves, all of a smaller study, and the documents."""
    names = [name for name in made(changed) if name.endswith((".tex", ".pdf", ".png", ".html"))]
    before = {name: (changed / name).read_bytes() for name in names}
    table = (changed / STUDY / "tables/table1.csv").read_bytes()
    shutil.rmtree(changed / "figures")
    shutil.rmtree(changed / STUDY / "tables")
    done = snakemake(changed, "table1", "figure1", "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert {path.name for path in (changed / STUDY / "tables").iterdir()} == {
        *("table1.csv", "table1.csv.digest", "table1.tex")
    }
    assert (changed / STUDY / "tables/table1.csv").read_bytes() == table
    again = ["draw_cao2024", "webpage", *(["paper"] if shutil.which("latexmk") else [])]
    done = snakemake(changed, *again, "--cores", "2", "--forcerun", *again)
    assert done.returncode == 0, done.stdout
    now = {name: (changed / name).read_bytes() for name in names if (changed / name).exists()}
    assert {"atiya2021", "cao2024"} == {
        Path(name).parent.name for name in now if name.startswith("figures/")
    }
    assert [name for name in now if now[name] != before[name]] == []


def site_packages():
    """Where this interpreter finds installed packages."""
    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]


def test_a_folder_with_a_space_cores_packs_and_thread_variables_do_not_change_a_byte(
    finished, tmp_path
):
    """The whole run had two cores, two threads and one pack a study; a part of it has other ones, elsewhere."""
    other = copy_project(tmp_path / "a spa\N{LATIN SMALL LETTER C WITH CEDILLA}e")
    # an environment in that folder, as make would have made it
    venv.create(other / ".venv", symlinks=True)
    site = sysconfig.get_path("purelib", vars={"base": str(other / ".venv")})
    (Path(site) / "all.pth").write_text("\n".join(site_packages()))
    python = other / ".venv/bin/python"
    variables = {"OMP_NUM_THREADS": "1", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    targets = ["experiment1", "experiment2", "experiment3", "defects"]
    given = {"settings": ["pack={seconds: 3, across: experiment}"], "python": python}
    done = snakemake(other, *targets, "--cores", "1", **given, **variables)
    assert done.returncode == 0, done.stdout
    one, two = digests(other), digests(finished)
    assert len([name for name in one if name.endswith((".csv", ".npz"))]) > 8
    assert [name for name in one if one[name] != two[name]] == []


# ---------------------------------------------------------------------------------------------------------------------
# What runs again, and what does not


#: Ends of names of rows that rest on Hamiltonian Monte Carlo; one module has all methods that estimate the evidence
#: alone, and the toolbox whose defects are studied has a sampler of its own.
RESTS = {"hmc", "hmc-ais", "hmc-annealed", "ess-annealed", "genz-bretz"}


def test_after_an_edit_of_a_method_its_rows_run_again_and_no_others(changed):
    """All rows of the study are one job: it runs, and takes over what does not rest on the method."""
    block = changed / STUDY / "rows/rows-0.npz"

    def timing():
        lines = read_arrays(block)["lines"].tobytes().decode().splitlines()
        return {(one["experiment"], one["row"]): one["timing"] for one in map(json.loads, lines)}

    source = changed / "src/gpcmc/chains/hamiltonian.py"
    change(source, source.read_text() + "\nEDITED = 1\n")
    before = timing()
    done = snakemake(changed, f"{STUDY}/rows/rows-0.npz", "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert jobs_of(done.stdout) == {"run": 1}
    now = timing()
    assert now.keys() == before.keys()
    named = {key for key in before if key[0] != "defects" and RESTS & {*key[1].split("/")}}
    assert named == {key for key in before if now[key] != before[key]} != set()


def test_sources_that_change_during_a_run_are_refused(built):
    block = f"{STUDY}/rows/quadrature-0.npz"
    source = built / "src/studies/atiya2021/experiments/quadrature.py"
    change(source, source.read_bytes())  # a file of this copy alone
    # stands in for a person who edits while jobs wait
    (built / "src/sitecustomize.py").write_text(
        "import sys\n"
        "if 'run.py' in ' '.join(sys.orig_argv):\n"
        f"    open({str(source)!r}, 'a').write('EDITED = 1\\n')\n"
    )
    done = snakemake(built, block, "--cores", "1", settings=[APART])
    assert done.returncode != 0 and not (built / block).exists()
    assert "rows/quadrature-0.npz: its sources changed during the run" in done.stdout


def test_what_moved_since_the_run_before_is_said(changed):
    """One command after a run with another setting: the old numbers beside the new ones."""
    settings = ["neal1997={bayes: {sets: 21}}"]
    done = snakemake(changed, "moved", "--cores", "2", settings=settings)
    assert done.returncode == 0, done.stdout
    assert re.search(r"neal1997: \d+ estimates moved", done.stdout)
    assert "cao2024: no run before had other measures" in done.stdout


# ---------------------------------------------------------------------------------------------------------------------
# Results that are altered, damaged or gone


def test_damaged_rows_and_verdicts_are_refused_by_name_and_remade_once_deleted(changed):
    block = changed / STUDY / "rows/rows-0.npz"
    whole = block.read_bytes()
    change(block, whole[:-1000])
    table = changed / STUDY / "verdicts.csv"
    change(table, table.read_text().replace("undecided", "agrees", 1))
    done = snakemake(changed, "table1", "audit", "--cores", "1", "-k", "--forcerun", "audit")
    assert done.returncode != 0
    for name in ("atiya2021/rows/rows-0.npz", "atiya2021/verdicts.csv"):
        assert name in done.stdout
    assert done.stdout.count("delete it and make it again") >= 2


def test_without_rows_all_that_follows_the_measures_is_built(changed):
    """Of every study; what is drawn is that of a small one."""
    for folder in (changed / STUDY).parent.glob("*/rows"):
        shutil.rmtree(folder)
    for path in (changed / STUDY).glob("experiment*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    small = changed / "results/tiny/cao2024"
    shutil.rmtree(small / "tables")
    for name in ("audit.csv", "values.tex"):
        (changed / "results/tiny" / name).unlink()
    targets = ["audit", "draw_cao2024", "results/tiny/values.tex"]
    done = snakemake(changed, *targets, "--cores", "2", "--forcerun", "draw_cao2024")
    assert done.returncode == 0, done.stdout
    assert jobs_of(done.stdout).keys() == {"audit", "draw_cao2024", "look_up"}
    assert (small / "tables").exists() and not (changed / STUDY / "rows").exists()


# ---------------------------------------------------------------------------------------------------------------------
# Targets and configurations


def test_a_target_that_there_is_not_is_answered_by_those_that_there_are(unmade):
    done = snakemake(unmade, "tabel4", "--dry-run")
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert "tabel4: there is no such target; there are " in done.stdout
    assert "'table4'" in done.stdout and "'experiment3'" in done.stdout


def test_the_profile_for_a_cluster_plans_the_same_jobs(unmade):
    """All that is neither a run nor local shares an allocation; tests of a cluster itself are in test_slurm.py.

    That each name of a group is planned at some scale is tested with the pages, where no job is started.
    """
    jobs = planned(unmade, "--profile", "profiles/slurm")
    assert jobs == planned(unmade)
    standard = Plan(read_config("standard", unmade / "config"))
    profile = yaml.safe_load((unmade / "profiles/slurm/profile.yaml").read_text())
    local = {"all", "compile", "fetch", "paper", "summary", "run"}
    groups = [(study, group) for study in standard.studies for group in standard.patterns(study)]
    patterns = {f"{study}_{group}_patterns" for study, group in groups}
    assert (jobs.keys() | patterns) - local <= profile["groups"].keys()
    assert profile["group-components"].keys() <= set(profile["groups"].values())


def test_a_wrong_configuration_is_refused_by_name(unmade):
    """Before any job, with the key, what was given and what is allowed, all at once.

    What is given goes over what a file has, and null drops a row: neither its parts nor its method are wrong then.
    """
    (unmade / "my.yaml").write_text(
        "seed: seven\natiya2021: {experiment4: {methods: {ess: null}}, benchmark: {parts: [-2]}}\n"
    )
    settings = ["sede=1", "missing_data=maybe", "data={retries: -1}"]
    settings += ["atiya2021={benchmark: {parts: [4]}}"]
    done = snakemake(unmade, "--dry-run", "--configfile", "my.yaml", settings=settings)
    (unmade / "my.yaml").unlink()
    assert done.returncode != 0 and "Job stats" not in done.stdout
    assert "Traceback" not in done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    for key, given, allowed in [
        ("seed", "'seven'", "whole number"),
        ("sede", "1", "known are"),
        ("missing_data", "'maybe'", "continue"),
        ("data.retries", "-1", "whole number"),
    ]:
        (line,) = [line for line in lines if line.startswith(f"{key}:")]
        assert given in line and allowed in line
    assert not [line for line in lines if line.startswith("atiya2021.")]


def test_it_runs_from_elsewhere_with_a_configuration_of_its_own(unmade, tmp_path):
    """As the catalogue's users start it; results lie with the sources."""
    shutil.copytree(unmade / "config", tmp_path / "config")
    mine = tmp_path / "config/tiny.yaml"
    mine.write_text(mine.read_text() + "\nseed: -1\n")
    where = ["--snakefile", str(unmade / "workflow/Snakefile"), "--dry-run"]
    done = snakemake(tmp_path, *where)
    assert done.returncode != 0 and "seed: given -1" in done.stdout
    shutil.rmtree(tmp_path / "config")
    done = snakemake(tmp_path, *where)
    assert done.returncode == 0 and "measure_atiya2021" in done.stdout, done.stdout
    done = snakemake(unmade, "--directory", str(tmp_path), "--dry-run")
    assert done.returncode != 0 and "--directory: results lie beside the sources" in done.stdout


def test_what_looks_at_a_run_needs_no_number_of_cores(finished):
    for look in ("--list-params-changes", "--unlock"):
        done = snakemake(finished, look)
        assert done.returncode == 0 and "Traceback" not in done.stdout, done.stdout


# ---------------------------------------------------------------------------------------------------------------------
# Data, LaTeX

NOWHERE = "http://127.0.0.1:9"
OFFLINE = {"http_proxy": NOWHERE, "https_proxy": NOWHERE, "GPCMC_DATA_MIRRORS": ""}


@needs_data
def test_a_damaged_raw_file_is_refused_by_name(changed):
    raw = changed / "data/raw/crabs.csv"
    change(raw, raw.read_bytes().replace(b"8.1", b"8.2", 1))
    done = snakemake(changed, "experiment4", "--cores", "1")
    assert done.returncode != 0
    assert "crabs.csv" in done.stdout and "sha256" in done.stdout


def test_a_whole_run_without_network_and_mirror_ends_and_says_what_is_left_out(finished, tmp_path):
    """Rows of simulated data are those of the finished run; the others say that there are no data."""
    folder = linked(finished, tmp_path / "project")
    shutil.rmtree(folder / "data/raw", ignore_errors=True)
    for path in (folder / "results/tiny/data").iterdir():
        path.unlink()
    settings = ["data={mirrors: [], retries: 0}"]
    stopped = snakemake(
        folder, "fetch", "--cores", "1", settings=[*settings, "missing_data=fail"], **OFFLINE
    )
    assert stopped.returncode != 0 and "data/raw/" in stopped.stdout
    done = snakemake(folder, "--cores", "2", settings=settings, **OFFLINE)
    assert done.returncode == 0, done.stdout
    status = json.loads((folder / "results/tiny/data/crabs.csv.json").read_text())
    assert not status["available"] and "data/raw/crabs.csv" in status["instructions"]
    summary = (folder / "results/tiny/summary.txt").read_text()
    assert "place data/raw/crabs.csv" in summary
    rows = read_csv(folder / STUDY / "experiment4.csv")
    lost = rows["status"] == "data not available"
    assert set(rows.loc[lost, "problem"].astype(str)) == {"7"} and not lost.all()
    before = read_csv(finished / STUDY / "experiment4.csv").set_index("row")
    kept = rows[~lost].set_index("row")["log_evidence"]
    # control variables have no evidence
    pd.testing.assert_series_equal(kept, before.loc[kept.index, "log_evidence"], check_exact=True)
    # drawn from what is kept, in another process
    drawn = [*(folder / "results/tiny/paper").rglob("*.p[dn][fg]")]
    assert len(drawn) > 20
    for path in drawn:
        assert path.read_bytes() == (finished / path.relative_to(folder)).read_bytes(), path
    # it is finished: nothing is fetched again while nothing is placed
    assert planned(folder, settings=settings, **OFFLINE) == {}
    # and a file that is placed by hand afterwards is found, once
    if MIRROR.exists():
        (folder / "data/raw").mkdir(exist_ok=True)
        shutil.copy2(MIRROR / "crabs.csv", folder / "data/raw/crabs.csv")
        done = snakemake(folder, "experiment4", "--cores", "2", settings=settings, **OFFLINE)
        assert done.returncode == 0, done.stdout
        statuses = set(read_csv(folder / STUDY / "experiment4.csv")["status"])
        assert "data not available" not in statuses and "ok" in statuses


def test_rows_of_simulated_data_never_lack_data(finished):
    """Whether they read rows of another experiment or none."""
    for name in ("defects", "experiment1", "experiment2", "ordering", "scaling"):
        frame = read_csv(finished / STUDY / f"{name}.csv")
        assert len(frame) and not frame.eq("data not available").any(axis=None), name


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
    copy = linked(finished, tmp_path_factory.mktemp("kept") / "project")
    done = snakemake(copy, "keep", "--cores", "1")
    assert done.returncode == 0, done.stdout
    return copy


def test_results_that_are_kept_are_those_of_the_run(kept):
    folder = kept / "data/reference/atiya2021"
    for name in ("measures.csv.gz", "estimates.csv.gz", "experiment1.csv", "experiment4.csv"):
        made = read_csv(kept / STUDY / name.removesuffix(".gz"))
        pd.testing.assert_frame_equal(read_csv(folder / name), made)
    assert {path.name for path in folder.iterdir()} >= {"verdicts.csv", "provenance.json"}
    assert not [path for path in folder.iterdir() if path.suffix == ".digest"]


def test_kept_rows_are_put_back_and_nothing_is_computed(kept, tmp_path):
    copy = linked(kept, tmp_path / "project")
    for name in ("results", "figures"):
        shutil.rmtree(copy / name)
    done = snakemake(copy, "resume", "--cores", "2")
    assert done.returncode == 0, done.stdout
    assert "atiya2021, experiment4:" in done.stdout and "put back" in done.stdout
    done = snakemake(copy, "experiment4", "experiment1", "--cores", "2")
    assert done.returncode == 0 and "run" not in jobs_of(done.stdout), done.stdout
    for name in ("experiment1.csv", "experiment4.csv", "experiment4.npz"):
        assert (copy / STUDY / name).read_bytes() == (kept / STUDY / name).read_bytes()


#: In the energy of Hamiltonian Monte Carlo, and what it is changed to: another law, which no random number explains.
CONSTANT = ("return 0.5 * squares", "return 2.0 * squares")
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
    copy = linked(kept, tmp_path / "project")
    settings = ["share=0.000001"]
    done = snakemake(copy, "verify", "--cores", "2", settings=settings)
    assert done.returncode == 0, done.stdout
    before = verified(copy)
    assert set(before) == {"identical"} and len(before) > 60
    source = copy / "src/gpcmc/chains/hamiltonian.py"
    text = source.read_text()
    assert text.count(CONSTANT[0]) == 1
    change(source, text.replace(*CONSTANT))
    done = snakemake(copy, "verify", "--cores", "2", settings=settings)
    assert done.returncode != 0
    after = verified(copy)
    red = after.index[after != "identical"]
    assert list(red) == [name for name in after.index if is_hamiltonian(*name)]
    assert len(red) >= 1 and all(name[2] in done.stdout for name in red), "each is named"


def test_a_number_is_looked_up_its_rows_are_run_again_and_an_altered_one_is_named(kept, tmp_path):
    """That ids of all kinds are found, and what is close is named, is asked in tests/studies/test_number.py."""
    done = snakemake(kept, "number", "--cores", "2", settings=["id=table1/N50/M10000", "seconds=2"])
    assert done.returncode == 0, done.stdout
    assert "rows:" in done.stdout and " different: " not in done.stdout and "nan" not in done.stdout
    copy = linked(kept, tmp_path / "project")
    folder = copy / "data/reference/atiya2021"
    frame = read_csv(folder / "experiment1.csv", dtype=str, keep_default_na=False)
    # by more than its error: less would be another run of the same law
    frame["estimate"] = (frame["estimate"].astype(float) + 10.0).astype(str)
    write_csv(folder / "experiment1.csv", frame)
    gather_digests(folder)
    done = snakemake(copy, "number", "--cores", "2", settings=["id=table1/N50/M10000", "seconds=2"])
    assert done.returncode != 0
    assert "different: N50/" in done.stdout and "estimate" in done.stdout
