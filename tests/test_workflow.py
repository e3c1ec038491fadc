"""The workflow at tiny scale, in temporary copies of the project."""

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from itertools import takewhile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpcmc.experiments.classification import Problem
from gpcmc.experiments.seeds import generator
from gpcmc.gp import prior, rbf
from gpcmc.inference import Orthant, infer
from gpcmc.inference.gpml import DEFECTS
from gpcmc.report.kept import TIMED

ROOT = Path(__file__).resolve().parents[1]
MIRROR = ROOT.parent / "shared" / "data"
PARTS = [
    *("Snakefile", "LICENSE", "pyproject.toml", "setup.py"),
    *("config", "data", "notebooks", "paper", "profiles", "src", "workflow"),
]

pytestmark = pytest.mark.slow


def copy_project(folder):
    folder.mkdir()
    ignore = shutil.ignore_patterns("raw", "__pycache__", "*.egg-info", "*.so")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=ignore)
        else:
            shutil.copy2(source, folder / part)
    return folder


def snakemake(folder, *arguments, scale=None, **environment):
    """With the tiny scale's file and those that the arguments begin with, or with a scale named by `--config`."""
    env = os.environ | {"GPCMC_DATA_MIRRORS": str(MIRROR)} | environment
    env.pop("PYTHONPATH", None)
    command = [sys.executable, "-m", "snakemake"]
    if scale is None:
        command += ["--configfile", "config/tiny.yaml", *arguments]
    else:
        command += [*arguments, "--config", f"scale={scale}"]
    return subprocess.run(
        command,
        cwd=folder,
        env=env,
        text=True,
        timeout=1800,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


#: Tables, figures and texts that print CPU seconds or say when a run was made, and checksums of such.
TIMES = {
    *TIMED,
    *("figure1", "figure2", "values", "origins", "paper", "audit_claims"),
    *("provenance", "review", "codecheck", "ro-crate-metadata", "MANIFEST"),
}
#: The same of the whole audit, statements about seconds among them.
TIMED_FILES = {"audit.html", "audit.txt", "summary.txt"}


def made(folder):
    """Every file under results/ and figures/ but logs, by its path in the project."""
    files = [path for top in ("results", "figures") for path in (folder / top).rglob("*")]
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(files)
        if path.is_file() and "logs" not in path.parts
    }


def digests(folder):
    """sha256 of every results file and figure, without logs and what has seconds in it."""
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in made(folder).items()
        if not path.name.endswith("_timing.csv")
        and path.stem not in TIMES
        and path.name not in TIMED_FILES
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A project whose tiny run is finished, on one core."""
    folder = copy_project(tmp_path_factory.mktemp("one") / "project")
    done = snakemake(folder, "--cores", "1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout
    return folder


def test_a_finished_run_has_nothing_to_do(finished):
    assert "Nothing to be done" in snakemake(finished, "--dry-run").stdout


def test_it_does_not_matter_how_the_scale_was_named(finished):
    """The order of keys, and of columns with it, depends on neither files nor arguments."""
    assert "Nothing to be done" in snakemake(finished, "--dry-run", scale="tiny").stdout


def test_summary_has_three_lines(finished):
    lines = (finished / "results/tiny/summary.txt").read_text().splitlines()
    assert len(lines) == 3


def test_every_file_is_made_by_a_rule_and_is_in_the_manifest(finished):
    # of what no rule makes or reads; the stamp of the results' schema is there before any rule runs
    strangers = snakemake(finished, "--list-untracked").stdout.splitlines()
    made_here = {name for name in strangers if name.startswith(("results/", "figures/"))}
    assert made_here <= {"results/tiny/schema.json"}
    manifest = finished / "results/tiny/MANIFEST.sha256"
    listed = dict(reversed(line.split("  ")) for line in manifest.read_text().splitlines())
    files = made(finished)
    assert set(files) - set(listed) == {"results/tiny/MANIFEST.sha256"}
    assert listed == {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in listed}
    (finished / "results/tiny/stranger.csv").write_text("a\n")
    try:
        assert "results/tiny/stranger.csv" in snakemake(finished, "--list-untracked").stdout
    finally:
        (finished / "results/tiny/stranger.csv").unlink()


def test_links_of_the_reviewers_page_lead_to_files(finished):
    page = finished / "results/tiny/review.html"
    links = set(re.findall(r'href="([^"]*)"', page.read_text()))
    missing = {link for link in links if not (page.parent / link).exists()}
    assert len(links) > 70
    assert missing <= {"paper.pdf"} and (not missing or shutil.which("latexmk") is None)


def test_lines_of_values_are_in_their_files(finished):
    values = json.loads((finished / "results/tiny/values.json").read_text())
    lined = {key: value for key, value in values.items() if value["line"]}
    assert len(lined) > 500
    for key, value in lined.items():
        lines = (finished / value["source"]).read_text().splitlines()
        last = int(re.split("[-, ]+", value["line"])[-1])
        assert 1 <= last <= len(lines), key
    cell = values["table1/N50/M10000/ours"]
    assert cell["source"] == "results/tiny/experiment1/N50.csv" and cell["line"] == "2, 4, 6"
    first = pd.read_csv(finished / cell["source"]).iloc[0]
    assert first.seed.startswith(f"{cell['seed']}/") and cell["replicates"] == 3


def test_typeset_and_drawn_again_nothing_changes(finished):
    files = [finished / "results/tiny/paper.pdf"] * (shutil.which("latexmk") is not None)
    files += [finished / f"figures/tiny/{name}" for name in ("evidence.pdf", "figure1.png")]
    before = {path: (path.read_bytes(), path.stat()) for path in files}
    names = [path.relative_to(finished).as_posix() for path in files]
    done = snakemake(finished, "--cores", "1", "--force", *names)
    assert done.returncode == 0, done.stdout
    for path, (content, status) in before.items():
        assert path.stat().st_mtime_ns > status.st_mtime_ns, "it was not made again"
        assert path.read_bytes() == content
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_cores_and_thread_variables_do_not_change_a_byte(finished, tmp_path):
    other = copy_project(tmp_path / "project")
    done = snakemake(
        other, "--cores", "2", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2", MKL_NUM_THREADS="2"
    )
    assert done.returncode == 0, done.stdout
    one, two = digests(finished), digests(other)
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    assert any(name.startswith("results/tiny/experiment4") for name in one)
    records = [
        json.loads((project / "results/tiny/provenance.json").read_text())
        for project in (finished, other)
    ]
    for record in records:
        assert record.pop("start") <= record.pop("end")
        assert record.pop("cpu_hours") > 0 and record.pop("cpu_seconds")
    assert records[0] == records[1]


@pytest.mark.skipif(not MIRROR.exists(), reason="the real data are not here")
def test_a_row_can_be_made_again_from_its_seed(finished):
    folder = finished / "results/tiny/experiment4"
    row = pd.read_csv(folder / "problem7/orthant.csv").iloc[1]
    with np.load(folder / "problem7.npz") as stored:
        problem = Problem(**stored)
    gp = prior(rbf(row.alpha, row.beta), problem.X_train, problem.X_test)
    result = infer(Orthant(samples=int(row.samples)), gp, problem.y_train, rng=generator(row.seed))
    assert result.log_evidence == row.log_evidence
    with np.load(folder / "problem7/orthant_set3.npz") as stored:
        np.testing.assert_array_equal(result.probability, stored["probability"][1])


@pytest.mark.skipif(not MIRROR.exists(), reason="the real data are not here")
def test_chains_that_count_the_variance_once_are_those_of_experiment_4(finished):
    results = finished / "results" / "tiny" / "experiment4"
    for problem in (1, 7):
        for method in ("ess-gpml", "hmc-gpml"):
            name = f"problem{problem}/{method}"
            twice, once = (
                pd.read_csv(results / place / f"{name}.csv") for place in ("", "single_variance")
            )
            twice = twice[twice["replicate"] == 0].reset_index(drop=True)
            chain = ["seed", "set", "dataset", "log_evidence", "effective_samples", "r_hat"]
            pd.testing.assert_frame_equal(once[chain], twice[chain])
            switched = {tuple(ast.literal_eval(on)) for on in once["defects"]}
            assert switched == {tuple(d for d in DEFECTS if d != "double-variance")}
            with (
                np.load(results / f"{name}_set3.npz") as shipped,
                np.load(results / "single_variance" / f"{name}_set3.npz") as repaired,
            ):
                change = repaired["probability"][0] - shipped["probability"][0]
                # nearer to certain, as a variance that is counted twice flattens
                sides = np.sign(shipped["probability"][0] - 0.5)
                assert np.mean(change * sides > 0) > 0.8


@pytest.mark.parametrize(
    ("source", "wanted", "unwanted"),
    [
        (
            "src/gpcmc/orthant/_sampler.pyx",
            ["experiment1_dimension", "experiment4_method", "typeset"],
            [],
        ),
        (
            "src/gpcmc/report/figures.py",
            ["draw_evidence", "typeset"],
            ["experiment1_dimension", "problem"],
        ),
        (
            "src/gpcmc/classifier.py",  # which no job uses
            ["package_report"],
            ["package", "experiment1_dimension", "problem"],
        ),
    ],
)
def test_an_edited_source_makes_its_dependants_run_again(finished, source, wanted, unwanted):
    path = finished / source
    before = path.read_bytes()
    try:
        path.write_bytes(before + b"\n# edited\n")
        listing = snakemake(finished, "--dry-run", "--quiet", "reason").stdout
        jobs = {line.split()[0] for line in listing.splitlines() if len(line.split()) == 2}
        for rule in wanted:
            assert rule in jobs or (rule == "typeset" and shutil.which("latexmk") is None), listing
        assert not jobs & set(unwanted)
    finally:
        path.write_bytes(before)
    assert "Nothing to be done" in snakemake(finished, "--dry-run").stdout


@pytest.mark.skipif(not MIRROR.exists(), reason="the real data are not here")
def test_a_damaged_raw_file_is_refused_by_name(finished):
    raw = finished / "data/raw/crabs.csv"
    good = raw.read_bytes()
    try:
        raw.write_bytes(good.replace(b"8.1", b"8.2", 1))
        done = snakemake(finished, "--cores", "1", "experiment4")
        assert done.returncode != 0
        assert "crabs.csv" in done.stdout
        assert "sha256" in done.stdout
    finally:
        raw.write_bytes(good)
    assert snakemake(finished, "--cores", "1").returncode == 0


#: Configurations that are wrong in several places, by what finds them; of each place what is given, and of the line
#: that refuses it: the key, the value, what is allowed. Two values of one key cannot be given at once.
WRONG = {
    "scale": [("scale: huge", "scale", "'huge'", "config/<scale>.yaml")],
    "schema": [
        ("seed: abc", "seed", "'abc'", "type: integer"),
        ("sede: 1", "sede", "1", "known are ['controls'"),
        ("missing_data: maybe", "missing_data", "'maybe'", "[continue, fail]"),
        ("experiment1: {grid: 5}", "experiment1.grid", "5", "type: array"),
        (
            "experiment4: {methods: {orthant: {samples: [1, 2]}}}",
            "experiment4.methods.orthant.samples",
            "[1, 2]",
            "one value a problem",
        ),
        ("experiment4: {methods: {magic: {}}}", "experiment4.methods.magic", "{}", "'method'"),
        (
            "experiment4: {methods: {ep: {replicates: 3}}}",
            "experiment4.methods.ep.replicates",
            "3",
            "nothing at random",
        ),
        ("experiment3: {runs: 2}", "experiment3.runs", "2", "minimum: 3"),
        (
            "experiment4: {methods: {orthant: {replicates: [3, 3, 3, 3, 3, 2, 3, 3, 3]}}}",
            "experiment4.methods.orthant.replicates",
            "[3, 3, 3, 3, 3, 2, 3, 3, 3]",
            "minimum: 3",
        ),
    ],
    "schema, again": [("seed: 1.5", "seed", "1.5", "type: integer")],
    "options": [
        (
            "experiment4: {methods: {orthant: {samples: -5}}}",
            "experiment4.methods.orthant.samples",
            "-5",
            "minimum: 1",
        ),
        (
            "experiment4: {methods: {ess: {points: 4}}}",
            "experiment4.methods.ess.points",
            "4",
            "'burn_in'",
        ),
        (
            "experiment3: {methods: {best: {grid: [{points: 0}]}}}",
            "experiment3.methods.best.points",
            "0",
            "a power of two",
        ),
        (
            "experiment3: {methods: {hmc-gpml: {grid: [{samples: 4}]}}}",
            "experiment3.methods.hmc-gpml.samples",
            "4",
            "minimum: 8",
        ),
        (
            "experiment5: {tuning: {methods: {ep: {options: {sweeps: 1}}}}}",
            "experiment5.tuning.ep.sweeps",
            "1",
            "'max_sweeps'",
        ),
    ],
    "options, again": [
        (
            "experiment4: {methods: {orthant: {samples: [1, 2, 3, 4, 5, 6, -7, 8, 9]}}}",
            "experiment4.methods.orthant.samples",
            "-7",
            "minimum: 1",
        ),
        (
            "experiment4: {methods: {ess: {method: magic}}}",
            "experiment4.methods.ess.method",
            "'magic'",
            "'orthant'",
        ),
        (
            "experiment3: {methods: {best: {grid: [{points: 48}]}}}",
            "experiment3.methods.best.points",
            "48",
            "a power of two",
        ),
    ],
    "what the schema cannot say": [
        (
            "experiment1: {grid: [{samples: 10, instances: 3}, {samples: 10, instances: 3}]}",
            "experiment1.grid",
            "samples [10, 10]",
            "a different one",
        ),
        (
            "experiment2: {grid: [{samples: 10, datasets: 1, runs: 2}, {samples: 20, datasets: 3, runs: 1}]}",
            "experiment2.grid",
            "'samples': 10",
            "datasets x runs",
        ),
        ("data: {standardise: {crab: true}}", "data.standardise.crab", "unknown", "'crabs'"),
        (
            "experiment4: {methods: {orthant: {data_sets: 3}}}",
            "experiment4.methods.orthant.data_sets",
            "given 3",
            "1 on Problem 7",
        ),
        (
            "experiment4: {data_sets: [2, 2, 2, 2, 2, 2, 2, 1, 1]}",
            "experiment4.data_sets",
            "given 2",
            "1 on Problem 7",
        ),
        (
            "experiment5: {posterior: {settings: {kept: 100000}}}",
            "experiment5.posterior.settings.kept",
            "given 100000",
            "on Problem 1: 24",
        ),
        (
            "experiment5: {posterior: {settings: {predictive: [25, 1, 1, 1, 1, 1, 1, 1, 1]}}}",
            "experiment5.posterior.settings.predictive",
            "given 25",
            "on Problem 1: 24",
        ),
    ],
}


@pytest.fixture(scope="module")
def unmade(tmp_path_factory):
    """A project in which nothing has been run."""
    return copy_project(tmp_path_factory.mktemp("none") / "project")


@pytest.fixture(scope="module")
def refused(unmade):
    """Lines that refuse each of the wrong configurations."""

    @cache
    def lines(which):
        files = []
        for number, (override, *_) in enumerate(WRONG[which]):
            files.append(f"wrong{number}.yaml")
            (unmade / files[-1]).write_text(override)
        done = snakemake(unmade, *files, "--dry-run")
        assert done.returncode != 0
        assert "Job stats" not in done.stdout, "before any job"
        assert "Traceback" not in done.stdout
        return [line.strip() for line in done.stdout.splitlines()]

    return lines


@pytest.mark.parametrize(
    ("which", "key", "given", "allowed"),
    [(which, *row[1:]) for which, rows in WRONG.items() for row in rows],
)
def test_a_wrong_configuration_is_refused_by_name(refused, which, key, given, allowed):
    """Before any job, with the key, what was given and what is allowed."""
    (line,) = [line for line in refused(which) if line.startswith(f"{key}:")]
    assert given in line and allowed in line


@pytest.mark.parametrize("which", [which for which in WRONG if which != "scale"])
def test_a_wrong_configuration_is_refused_with_all_that_is_wrong_in_it(refused, which):
    lines = refused(which)
    after = lines[lines.index("The configuration is refused:") + 1 :]
    found = list(takewhile(lambda line: not line.startswith("File "), after))
    assert len(found) == len(WRONG[which]), found


@pytest.mark.parametrize("scale", ["smoke", "standard", "published"])
def test_every_scale_is_accepted(unmade, scale):
    """The other tests run the tiny one alone."""
    done = snakemake(unmade, "--dry-run", "experiment1", scale=scale)
    assert done.returncode == 0 and "Job stats" in done.stdout, done.stdout


def test_a_tenth_problem_is_asked_for_all_that_it_needs(unmade):
    """As the recipe of README adds one with real data, and forgets lists and standardisation."""
    files = {
        name: unmade / "workflow" / name
        for name in ("schemas/config.schema.yaml", "rules/common.smk")
    }
    before = {name: path.read_text() for name, path in files.items()}
    for name, (old, new) in {
        "schemas/config.schema.yaml": ("maximum: 9", "maximum: 10"),
        "rules/common.smk": ('"9": "usps"', '"9": "usps", "10": "iris"'),
    }.items():
        assert before[name].count(old) == 1
        files[name].write_text(before[name].replace(old, new))
    nine, ten = "[1, 1, 1, 1, 1, 1, 1, 1, 1]", "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"
    tenth = unmade / "tenth.yaml"
    tenth.write_text(
        f"experiment4: {{problems: [10], methods: {{ep: {{max_sweeps: {nine}}}}}}}\n"
        f"experiment5: {{posterior: {{problems: [10], settings: {{kept: {nine}}}}}}}\n"
    )
    try:
        done = snakemake(unmade, str(tenth), "--dry-run")
        for key in ("data_sets", "methods.ep.max_sweeps"):
            assert f"experiment4.{key}: given {nine}" in done.stdout
        assert f"experiment5.posterior.settings.kept: given {nine}" in done.stdout
        assert done.stdout.count("one a problem: 10 or more") == 3
        tenth.write_text(f"experiment4: {{problems: [10], data_sets: {ten}}}")
        done = snakemake(unmade, str(tenth), "--dry-run")
        assert "data.standardise.iris: not given; allowed is true or false" in done.stdout
        tenth.write_text(
            f"data: {{standardise: {{iris: true}}}}\nexperiment4: {{problems: [10], data_sets: {ten}}}"
        )
        assert snakemake(unmade, str(tenth), "--dry-run").returncode == 0
    finally:
        for name, text in before.items():
            files[name].write_text(text)


def test_a_count_in_the_file_of_a_scale_goes_before_the_calibrated_one(unmade):
    scale, budget = (unmade / folder / "smoke.yaml" for folder in ("config", "config/budgets"))
    assert "orthant:\n      samples:" in budget.read_text()
    shutil.copy(budget, budget.with_name("mine.yaml"))
    text = scale.read_text().replace("scale: smoke", "scale: mine")
    wrong = text.replace(" orthant: {replicates: 3}", " orthant: {replicates: 3, samples: -7}")
    assert wrong != text
    scale.with_name("mine.yaml").write_text(wrong)
    done = snakemake(unmade, "--dry-run", scale="mine")
    assert "experiment4.methods.orthant.samples: given -7" in done.stdout


@pytest.mark.parametrize(
    ("target", "folder", "remedy"),
    [
        ("compare", "results", "`snakemake keep_results --cores 2 --config scale=tiny`"),
        ("resume", "pieces", "`make keep SCALE=tiny`"),
    ],
)
def test_that_nothing_is_kept_is_said_before_any_job(unmade, target, folder, remedy):
    done = snakemake(unmade, "--dry-run", target)
    assert done.returncode != 0 and "Job stats" not in done.stdout
    assert f"Nothing is kept in data/reference/tiny/{folder}: {remedy}" in done.stdout


def test_the_last_run_without_network_and_mirror_says_what_it_left_out(finished):
    """Last of the file, because it takes the data away from the finished project."""
    shutil.rmtree(finished / "data/raw", ignore_errors=True)
    shutil.rmtree(finished / "results/tiny/data")
    with open(finished / "config/tiny.yaml", "a") as config:
        config.write("data: {mirrors: [], retries: 0}\n")
    nowhere = "http://127.0.0.1:9"
    offline = {"http_proxy": nowhere, "https_proxy": nowhere, "GPCMC_DATA_MIRRORS": ""}
    done = snakemake(finished, "--cores", "2", **offline)
    assert done.returncode == 0, done.stdout
    rows = pd.read_csv(finished / "results/tiny/experiment4/problem7/ep.csv")
    assert list(rows.status) == ["data not available"]
    summary = (finished / "results/tiny/summary.txt").read_text()
    assert "data/raw/crabs.csv" in summary
    stopped = snakemake(finished, "--cores", "1", "--config", "missing_data=fail", **offline)
    assert stopped.returncode != 0
    assert "data/raw/" in stopped.stdout
    # and a file that is placed by hand afterwards is found
    if MIRROR.exists():
        (finished / "data/raw").mkdir(exist_ok=True)
        shutil.copy2(MIRROR / "crabs.csv", finished / "data/raw/crabs.csv")
        done = snakemake(finished, "--cores", "2", "experiment4", **offline)
        assert done.returncode == 0, done.stdout
        rows = pd.read_csv(finished / "results/tiny/experiment4/problem7/ep.csv")
        assert list(rows.status) == ["ok"]
