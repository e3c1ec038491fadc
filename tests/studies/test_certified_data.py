"""The data set of certified problems: made again from kept rows, read by its own loader, and refused if altered."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpcmc.gp import prior, rbf
from gpcmc.inference import ExpectationPropagation

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks/certified"


@pytest.fixture(scope="module")
def modules(script):
    """The loader, and the script that makes the file."""
    return script("certified/certified.py"), script("certified/make_problems.py")


@pytest.fixture(scope="module")
def content():
    return json.loads((FOLDER / "problems.json").read_text(encoding="utf-8"))


def test_kept_rows_make_the_same_file(modules, content, tmp_path):
    _, build = modules
    made = build.build()
    data, problems = build.added()
    made = made | {"data": made["data"] | data, "problems": made["problems"] + problems}
    build.write(made, tmp_path / "problems.json")
    assert (tmp_path / "problems.json").read_bytes() == (FOLDER / "problems.json").read_bytes()
    for name, table in zip(("certified", "certified_methods"), build.tables(content), strict=True):
        assert table.to_csv(index=False) == (ROOT / f"docs/{name}.csv").read_text(), name


def test_what_the_page_says_of_the_set(modules, content):
    _, build = modules
    problems = content["problems"]
    assert len(problems) >= 100 and (FOLDER / "problems.json").stat().st_size < 4e6
    sizes = {len(content["data"][own["data"]]["y"]) for own in problems}
    assert min(sizes) == 50 and max(sizes) == 2000
    for own in problems:
        assert 0 < own["standard_error"] <= build.LARGEST, own["name"]
        assert any(one in own["methods"] and two in own["methods"] for one, two in build.PAIRS)
        assert all(0 < error <= build.LARGEST for _, error in own["methods"].values())


def test_the_loader_needs_no_library_of_ours():
    code = (
        "import sys, certified; found = certified.load(); one = found['rough/N200/0']\n"
        "assert not {'gpcmc', 'studies', 'scipy', 'pandas'} & set(sys.modules)\n"
        "print(len(found), one.X.shape, certified.covariance(one)[0, 0])"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=FOLDER, env={"PYTHONPATH": ""},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert made.stdout.split(maxsplit=1)[1].strip() == "(200, 2) 3.0"


def test_values_are_near_expectation_propagation(modules):
    """An approximation by other means: it is off by 0.3 nats at most, and another kernel by far more."""
    problems = modules[0].load()
    for name in ("smooth/N100/0", "rough-8/N50/3", "problem3/set2", "added/iris-1-2"):
        one = problems[name]
        gp = prior(rbf(one.alpha, one.beta), one.X, one.X_test)
        np.testing.assert_allclose(modules[0].covariance(one), gp.K, atol=1e-9 * one.beta)
        found = ExpectationPropagation().fit(gp, one.y)
        assert abs(found.log_evidence - one.log_evidence) < 0.3, name
        if one.probability is not None:
            assert abs(found.prediction.probability - one.probability).max() < 0.01


def test_what_was_altered_is_refused_by_name(modules, content, tmp_path):
    changes = [
        ("problems", 3, "log_evidence", content["problems"][3]["name"]),
        ("data", "gauss2-N50-0", "y", "gauss2-N50-0"),
    ]
    for part, place, key, named in changes:
        altered = json.loads(json.dumps(content))
        altered[part][place][key] = "+" * 50 if key == "y" else -1.0
        (tmp_path / "altered.json").write_text(json.dumps(altered))
        with pytest.raises(ValueError, match=f"{named} w"):
            modules[0].load(tmp_path / "altered.json")


def test_values_that_do_not_agree_are_not_certified(modules):
    _, build = modules
    pair = {"minimax-tilting": (-3.0, 0.002, "ok"), "importance-ep": (-3.004, 0.002, "ok")}
    assert build.certified("a", "b", 1, 2, pair)["standard_error"] == 0.002
    others = [
        pair | {"importance-ep": (-3.1, 0.002, "ok")},
        pair | {"importance-ep": (-3.0, 0.02, "ok")},
        pair | {"importance-ep": (-3.0, 0.002, "weights not trusted")},
        {"minimax-tilting": pair["minimax-tilting"], "twisted-ep": (-3.0, 0.001, "ok")},
    ]
    assert [build.certified("a", "b", 1, 2, found) for found in others] == [None] * 4


def test_a_problem_is_added(modules, content, tmp_path, capsys):
    _, build = modules
    path = tmp_path / "problems.json"
    build.write(content, path)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 2))
    y = np.where(X[:, 0] + rng.standard_normal(50) > 0, 1.0, -1.0)
    build.add("mine", X, y, 3.0, 2.0, path=path)
    found = modules[0].load(path)["added/mine"]
    assert found.standard_error <= build.LARGEST and (found.y == y).all()
    with pytest.raises(SystemExit, match="mine: not certified"):
        build.add("mine", X, y, 3.0, 2.0, path=path, most=0)
