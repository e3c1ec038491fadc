"""The configuration: every scale is allowed, and whatever is wrong is refused with key, value, what is allowed."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from studies.atiya2021.config import check
from studies.atiya2021.jobs import PAPER, REAL, Job, jobs
from studies.atiya2021.methods import METHODS as METHODS_OF_STUDY
from studies.atiya2021.runners import RUNNERS

ROOT = Path(__file__).resolve().parents[2]
SCALES = ["tiny", "smoke", "standard", "published"]
NAN, INF = float("nan"), float("inf")


def load(scale):
    text = (ROOT / f"config/{scale}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text) | {"scale": scale}


TINY = load("tiny")


def changed(path, value):
    config = copy.deepcopy(TINY)
    *folders, last = path.split("/")
    part = config
    for name in folders:
        part = part[int(name) if isinstance(part, list) else name]
    if value is MISSING:
        del part[int(last) if isinstance(part, list) else last]
    else:
        part[last] = value
    return config


MISSING = object()


def refusals(config):
    with pytest.raises(ValueError, match="The configuration is refused:") as refusal:
        check(config)
    return [line.strip() for line in str(refusal.value).splitlines()[1:]]


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_is_allowed(scale):
    config = load(scale)
    checked = check(config)
    assert checked == config
    assert json.dumps(checked) == json.dumps(checked, sort_keys=True)


FOUR, FIVE = "atiya2021/experiment4", "atiya2021/experiment5"
METHODS = f"{FOUR}/methods"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        # one value
        (f"{FOUR}/hyperparameters/0/alpha", NAN, "given nan; allowed is a number from 1e-06 to 1e+06"),
        (f"{FOUR}/hyperparameters/0/alpha", INF, "given inf; allowed is a number"),
        (f"{FOUR}/hyperparameters/0/beta", 1e300, "given 1e+300; allowed is a number"),
        ("atiya2021/experiment1/grid/0/samples", 1e15, "allowed is a whole number from 1 to"),
        ("atiya2021/experiment1/grid/0/samples", "1e15", "given '1e15'; allowed is a whole number"),
        (f"{METHODS}/orthant/samples", 10**15, "given 1000000000000000; allowed is a number up to"),
        (f"{METHODS}/orthant/replicates", 10**9, "allowed is a whole number from 3 to 10000"),
        ("atiya2021/experiment3/runs", True, "given True; allowed is a whole number"),
        (f"{FIVE}/posterior/settings/chains", 3, "given 3; allowed is an even number"),
        ("atiya2021/defects/reference_points", 100, "given 100; allowed is a power of two"),
        ("seed", -1, "given -1; allowed is a whole number from 0"),
        ("numbers", "both", "given 'both'; allowed is one of ['kept', 'run']"),
        ("data/standardise/usps", 1, "given 1; allowed is one of [True, False]"),
        ("data/mirrors", "x", "given 'x'; allowed is a list of entries"),
        # lists
        (f"{FOUR}/problems", [1, 1], "each once"),
        (f"{FOUR}/problems", [10], "a list of one or more of [1, 2"),
        ("atiya2021/experiment1/grid", [], "given []; allowed is a list of 2 or more entries"),
        (f"{METHODS}/orthant/samples", [1, 2], "allowed is one value, or a list of nine"),
        (f"{FIVE}/posterior/methods/pm-ep-1/burn_in", [1] * 8, "or a list of nine"),
        # blocks
        (FOUR, None, "given None; allowed is a block with the keys ['data_sets', "),
        (FOUR, MISSING, "missing; allowed is a block with the keys ['data_sets', "),
        (f"{METHODS}/orthant", None, "given None; allowed is a block"),
        (f"{METHODS}/orthant/method", MISSING, "missing; allowed is one of ['control-variables', "),
        ("seed", MISSING, "missing; allowed is a whole number"),
        (f"{METHODS}/Or thant", {"method": "ep"}, "allowed is a name of small letters"),
        ("controls", {"runs": 1}, "unknown key (given {'runs': 1}); known are ['atiya2021', 'data', "),
        ("data/standardise/mnist", True, "unknown key (given True); known are ['breast_cancer', "),
        # methods
        (f"{METHODS}/best/method", "best", "given 'best'; allowed is one of ["),
        (f"{METHODS}/orthant/smaples", 5, "unknown key (given 5); known are ['count', "),
        (f"{METHODS}/orthant/scheme", "boot", "allowed is one of ['bootstrap', 'adapted']"),
        (f"{METHODS}/best/points", 33, "points must be a power of two"),
        (f"{METHODS}/hmc/tuning", 2.5, "given 2.5; allowed is a whole number"),
        (f"{METHODS}/ep/replicates", 3, "allowed is nothing, for ep draws nothing at random"),
        (f"{METHODS}/orthant/replicates", MISSING, "missing; allowed are 3 or more"),
        (f"{METHODS}/control-variables/burn_in", 10**5, "allowed are at most the iterations: 300"),
        (f"{METHODS}/orthant/problems", [10], "given [10]; allowed is a list of one or more of [1, 2"),
        ("atiya2021/experiment3/methods/ess/grid", [{"samples": 3200}] * 2, "allowed is each size once"),
        ("atiya2021/experiment3/methods/ess/grid", MISSING, "missing; allowed is a list of sizes"),
        (f"{FIVE}/posterior/methods/pm-ep-1/burn_in", 25, "at most the iterations: 24"),
        (f"{FIVE}/posterior/settings/kept", 300, "at most the iterations of ancillary on Problem 1: 24"),
        (f"{FIVE}/posterior/methods/ancillary/samples", 3, "unknown key (given 3); known are ['burn_in'"),
        (f"{FIVE}/tuning/methods/laplace/options", {"x": 1}, "unknown key (given 1)"),
        (f"{FIVE}/tuning/methods/orthant-500/replicates", MISSING, "missing; allowed are 3 or more"),
        (f"{FIVE}/gradient/ep-gradient/method", "orthant", "given 'orthant'; allowed is one of ['ep', "),
        (f"{FIVE}/gradient/ep-ard/relevance", "yes", "given 'yes'; allowed is one of [True, False]"),
        (f"{FIVE}/gradient/logistic/options/likelihood", "logit", "one of ['probit', 'logistic']"),
        (f"{FIVE}/gradient/ep-ard/restarts", 3, "unknown key (given 3); known are ['method', 'options', "),
        (f"{FIVE}/gradient/ep", {"method": "ep"}, "given 'ep'; allowed are names that tuning has not"),
        (f"{FIVE}/gradient", {}, "given {}"),
        # combinations
        ("atiya2021/experiment2/grid/0/runs", 1, "allowed are at least 3 datasets x runs"),
        ("atiya2021/experiment1/grid/0/samples", 30000, "allowed is a different one in each row"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_name(path, value, said):
    lines = refusals(changed(path, value))
    assert any(said in line for line in lines), lines
    named = [part for part in path.split("/") if not part.isdigit()][:2]
    assert all(part in lines[0] for part in named), lines
    assert max(map(len, lines)) < 400, "a missing block must not print the configuration"


def test_everything_that_is_wrong_is_said_at_once():
    config = changed("seed", "a")
    config["atiya2021"]["experiment1"]["count"] = "firm"
    config["atiya2021"]["ordering"]["problem"] = 5
    assert [line.split(":")[0] for line in refusals(config)] == [
        "seed", "atiya2021.experiment1.count", "atiya2021.ordering.problem",
    ]  # fmt: skip
    for config in ([1], None, "x"):
        with pytest.raises(ValueError, match="it must be a block"):
            check(config)


def test_other_studies_are_not_looked_at():
    assert "atiya2021" in check(TINY | {"scale": "my-own-scale"})
    with pytest.raises(ValueError, match="nobody1999: unknown key"):
        check(TINY | {"nobody1999": {}})


# --- jobs


@pytest.mark.parametrize("scale", SCALES)
def test_the_jobs_of_a_scale(scale):
    found = jobs(check(load(scale)))
    outputs = [path for job in found.values() for path in job.outputs.values()]
    assert len(set(outputs)) == len(outputs)
    assert {job.kind for job in found.values()} == RUNNERS.keys()
    made = set(outputs)
    for name, job in found.items():
        assert isinstance(job, Job) and job.name == name and 500 < job.mem_mb < 8000
        assert json.loads(json.dumps(job.arguments)) == job.arguments
        inputs = set(job.inputs.values())
        assert inputs <= made or all(path.startswith("../data/") for path in inputs)
        assert all((ROOT / path).exists() for path in job.files)
    four = load(scale)["atiya2021"]["experiment4"]
    expected = {
        f"experiment4/problem{p}_{name}"
        for name, row in four["methods"].items()
        for p in row.get("problems", four["problems"])
    }
    if 9 in four["problems"]:
        expected |= {f"experiment4/problem9_raw_{name}" for name in PAPER}
    assert expected == {name for name, job in found.items() if job.kind == "experiment4"}


@pytest.mark.parametrize("scale", SCALES)
def test_parts_of_counts_are_counts_that_the_methods_take(scale):
    for job in jobs(check(load(scale))).values():
        if job.kind == "benchmark":
            METHODS_OF_STUDY[job.arguments["method"]](**job.arguments["options"])


def test_the_kept_pieces_are_of_these_jobs():
    folder = ROOT / "data/reference/atiya2021/kept/pieces"
    if not folder.is_dir():
        pytest.skip("no pieces are kept")
    stored = {p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.zip")}
    assert stored <= jobs(check(load("published"))).keys()


def test_a_job_of_options_that_are_lists():
    config = load("standard")
    found = jobs(check(config))
    best = config["atiya2021"]["experiment4"]["methods"]["best"]
    for problem in (1, 6, 9):
        job = found[f"experiment4/problem{problem}_best"]
        assert job.arguments["options"]["points"] == best["points"][problem - 1]
        assert job.inputs == {"problem": f"experiment4/problem{problem}.npz"}
    assert {name for name, job in found.items() if job.kind == "problem" and job.inputs} == {
        *(f"problem{number}" for number in REAL),
        "problem9_raw",
    }
    raw = {name for name in found if name.startswith("experiment4/problem9_raw_")}
    assert raw == {f"experiment4/problem9_raw_{row}" for row in PAPER}


def test_a_row_of_experiment_4_may_name_its_problems():
    config = load("standard")
    config["atiya2021"]["experiment4"]["methods"]["ep"]["problems"] = [1, 7]
    found = {name for name in jobs(check(config)) if name.endswith("_ep")}
    assert {"experiment4/problem1_ep", "experiment4/problem7_ep"} <= found
    assert "experiment4/problem2_ep" not in found


def test_jobs_and_configuration_are_imported_lightly():
    source = (
        "import sys, studies.atiya2021.jobs, studies.atiya2021.config, studies.common.code;"
        "print(sorted({'numpy', 'scipy', 'pandas', 'gpcmc', 'snakemake'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(ROOT / "src")}, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
