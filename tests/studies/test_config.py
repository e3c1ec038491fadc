"""The configuration of the paper: every scale is allowed, plans, and the options of methods; what all plans import.

What is wrong is refused: see ``test_studies.py``.
"""

import subprocess
import sys

import pytest
from small import MISSING, ROOT, SCALES, load, plan, put

from studies.atiya2021.config import check
from studies.atiya2021.experiments import scaling
from studies.atiya2021.experiments.experiment4 import PAPER
from studies.atiya2021.methods import METHODS
from studies.common.configuration import read_config


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_is_allowed(scale):
    config = load(scale)
    checked = check(config)
    given = checked.model_dump(exclude_unset=True)
    assert given == {key: config[key] for key in given}
    # options are columns of results: their order must not depend on who set them first
    for row in checked.atiya2021.experiment4.methods.values():
        assert list(row.options) == sorted(row.options)


def test_everything_that_is_wrong_is_said_at_once():
    config = load("tiny")
    wrong = {"seed": "a", "atiya2021/experiment1/count": "firm", "atiya2021/ordering/problem": 5}
    for path, value in wrong.items():
        put(config, path, value)
    with pytest.raises(ValueError, match="The configuration is refused:") as refusal:
        check(config)
    said = [line.strip().split(":")[0] for line in str(refusal.value).splitlines()[1:]]
    assert said == [path.replace("/", ".") for path in wrong]
    for config in ([1], None, "x"):
        with pytest.raises(ValueError, match="it must be a block"):
            check(config)


def test_texts_within_blocks_become_what_yaml_says_and_are_no_sixties():
    given = {"atiya2021": {"experiment1": {"count": "7"}}}
    assert (
        read_config("tiny", ROOT / "config", given=given)["atiya2021"]["experiment1"]["count"] == 7
    )
    for text in ("1:30", "[1,"):
        given = {"atiya2021": {"experiment1": {"count": text}}}
        with pytest.raises(ValueError, match="a setting cannot be read") as refusal:
            read_config("tiny", ROOT / "config", given=given)
        assert repr(text) in str(refusal.value)


def test_other_studies_are_not_looked_at():
    assert check(load("tiny") | {"scale": "my-own-scale", "neal1997": None}).atiya2021
    with pytest.raises(ValueError, match="nobody1999: unknown key"):
        check(load("tiny") | {"nobody1999": {}})


def test_without_the_extensions_the_options_of_methods_wait(monkeypatch):
    wrong = load("tiny")
    put(wrong, "atiya2021/experiment4/methods/orthant/smaples", 5)
    monkeypatch.setattr("studies.atiya2021.combinations._built", lambda: False)
    assert check(wrong).atiya2021.experiment4.methods["orthant"].options["smaples"] == 5


# --- plans


@pytest.mark.parametrize("scale", SCALES)
def test_no_stream_is_used_twice_but_for_the_two_counts_that_share_theirs(scale):
    for name in ("experiment1", "experiment2", "experiment3", "experiment4", "defects", "scaling"):
        rows = plan("atiya2021", name, scale=scale)
        seeds = [r.get("seed") for r in rows if not r["row"].startswith("problem9_raw")]
        drawn = [seed for seed in seeds if seed is not None]
        assert len(set(drawn)) == len(drawn), name


@pytest.mark.parametrize("scale", SCALES)
def test_methods_take_the_options_of_their_rows(scale):
    for name in ("experiment3", "scaling"):
        for row in plan("atiya2021", name, scale=scale):
            METHODS[row["inference"]](**row["options"])
    for name in ("benchmark", "experiment4"):
        for row in plan("atiya2021", name, scale=scale):
            METHODS[row["fitter"]["method"]](**row["fitter"]["options"])


def test_a_configuration_of_kept_rows_may_be_older_than_the_study_of_scaling():
    config = load("tiny")
    # nor did it know the experiment that takes data sets from there
    for name in ("scaling", "advice"):
        put(config, f"atiya2021/{name}", MISSING)
    assert scaling.plan(check(config)) == []


def test_options_that_are_lists_have_one_value_a_problem():
    best = load("standard")["atiya2021"]["experiment4"]["methods"]["best"]
    rows = plan("atiya2021", "experiment4", scale="standard")
    own = [row for row in rows if row["method"] == "best"]
    assert own and all(
        row["fitter"]["options"]["points"] == best["points"][row["problem"] - 1] for row in own
    )
    assert not [row for row in rows if row["problem"] == "9_raw"], "the published scale has it"
    rows = plan("atiya2021", "experiment4", scale="published")
    scanned = [row for row in rows if row["problem"] == "9_raw"]
    assert {row["method"] for row in scanned} == {*PAPER}
    assert not any(row["dataset"] for row in scanned)


def test_a_row_of_experiment_4_may_name_its_problems():
    changes = {"experiment4__methods__ep__problems": [1, 7]}
    rows = plan("atiya2021", "experiment4", scale="standard", **changes)
    assert {row["problem"] for row in rows if row["method"] == "ep"} == {1, 7}


def test_plans_and_configuration_are_imported_lightly():
    source = (
        "import sys; from importlib import import_module; from pathlib import Path\n"
        "for path in Path('src/studies').glob('*/experiments/[a-z]*.py'):\n"
        "    import_module('.'.join(path.with_suffix('').parts[1:]))\n"
        "import studies.common.code\n"
        "heavy = {'scipy', 'sklearn', 'gpcmc', 'snakemake', 'studies.neal1997.model'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(ROOT / "src")}, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
