"""The advice for the marginal likelihood: patterns, the fit, rows, and measures against values by hand."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta as beta_law
from scipy.stats import t as student_law
from small import ROOT, load, needs_data, plan, put
from test_scaling import arcsine

from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import prior
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.methods import infer
from gpcmc.rectangle.classification import Twisted
from studies.atiya2021.advice import runs
from studies.atiya2021.advice.data import real_data
from studies.atiya2021.advice.names import DATA_SETS
from studies.atiya2021.config import check
from studies.atiya2021.experiments import advice as experiment
from studies.atiya2021.measures import advice as measures
from studies.atiya2021.problems import Problem
from studies.atiya2021.scaling import from_process, two_normals

RAW = [name for name, given in DATA_SETS.items() if given.registered]
SHIPPED = [name for name in DATA_SETS if name not in RAW]


@pytest.mark.parametrize(
    "name", [*SHIPPED, *(pytest.param(name, marks=needs_data) for name in RAW)]
)
def test_a_data_set_is_what_the_table_says(name, monkeypatch):
    monkeypatch.setattr("studies.atiya2021.whofits.data.RAW", ROOT.parent / "shared/data")
    given, found = DATA_SETS[name], real_data(name, 1)
    assert (len(found.y_train), len(found.y_test)) == (given.training, given.test)
    assert found.X_train.shape[1] == given.inputs
    assert given.training <= 200 and given.test <= 200
    assert {*found.y_train} == {*found.y_test} == {-1.0, 1.0}
    assert abs(np.mean(found.y_train) - np.mean(found.y_test)) < 2.0 / given.test
    np.testing.assert_allclose(found.X_train.mean(axis=0), 0.0, atol=1e-9)
    spread = found.X_train.std(axis=0)
    assert ((abs(spread - 1.0) < 1e-9) | (spread < 1e-9)).all()
    again, other = real_data(name, 1), real_data(name, 2)
    assert np.array_equal(again.X_train, found.X_train)
    assert not np.array_equal(other.X_train, found.X_train)


def test_the_fit_is_a_maximum():
    problem = real_data("wine-0-1", 1)
    found = runs.fitted(problem)

    def evidence(*away):
        gp = prior(rbf(*np.exp(np.add(found.theta, away))), problem.X_train)
        return infer(ExpectationPropagation(), gp, problem.y_train, rng=None).log_evidence

    centre = evidence(0.0, 0.0)
    assert centre == pytest.approx(found.log_evidence, abs=0.01)
    # beta may be at its upper bound
    assert max(evidence(-0.4, 0.0), evidence(0.4, 0.0), evidence(0.0, -0.8)) <= centre + 0.01
    assert runs.hyperparameters(problem) == pytest.approx(tuple(np.exp(found.theta)))


def test_the_rule_is_followed_where_the_truth_is_known():
    """Three patterns, whose orthant has a closed form: 5 standard errors at 15 degrees of freedom, 1.6e-4."""
    X, y = two_normals(2, 3, "1/three/N3")
    nothing = Problem(X, y, np.empty((0, 2)), np.empty(0), np.empty(0))
    method = Twisted(points=4096, tolerance=1e-3)
    found = runs.estimate(nothing, (1.0, 2.0), method, "1/some")
    (line,) = found.lines
    assert line["status"] == "ok" and line["log_evidence_se"] <= method.largest_se
    assert abs(line["log_evidence"] - arcsine((X, y), 1.0, 2.0)) < 5 * line["log_evidence_se"]
    assert line["rounds"] >= 1 and line["samples"] >= 1152 and not found.arrays


# --- rows


def test_a_data_set_more_leaves_the_rows_of_the_others():
    few = plan("atiya2021", "advice", advice__data_sets=["crabs"])
    more = plan("atiya2021", "advice", advice__data_sets=["linnerud", "crabs"])
    names = {row["row"] for row in few}
    assert few == [row for row in more if row["row"] in names] and len(more) > len(few)
    drawn = [row["seed"] for row in few if "seed" in row]
    assert len({*drawn}) == len(drawn)


def test_simulated_data_sets_are_those_of_the_study_of_scaling():
    few = {"scaling__sizes": [{"patterns": 12, "data_sets": 2}], "scaling__curve__patterns": 12}
    scaling = plan("atiya2021", "scaling", **few)
    drawn = {(row["kernel"], row["N"], row["dataset"]): row for row in scaling}
    sizes = [{"patterns": 12, "data_sets": 2}]
    rows = plan("atiya2021", "advice", advice__simulated__sizes=sizes)
    rows = [row for row in rows if not row["patterns"]]
    assert {row["dataset"] for row in rows} == {0, 1}
    for row in rows:
        other = drawn[row["kernel"], row["N"], row["dataset"]]
        assert row["drawn"] == other["data"]
        assert all(row[key] == other[key] for key in ("inputs", "alpha", "beta"))
    row = next(row for row in rows if row["method"] == "ep")
    law = {name: row[name] for name in ("alpha", "beta")}
    X, y = from_process(row["inputs"], row["N"], row["drawn"], **law)
    gp = prior(rbf(**law), X)
    (line,) = experiment.run(row, {}).lines
    assert line["log_evidence"] == ExpectationPropagation().fit(gp, y).log_evidence


def test_a_configuration_without_the_advice_has_no_rows():
    config = load("tiny")
    del config["atiya2021"]["advice"]
    assert experiment.plan(check(config)) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("data_sets", ["iris"], "advice.data_sets"),
        ("methods/rule-of-thumb", {"method": "ep"}, "allowed are names that begin otherwise"),
        ("methods/truth", {"method": "ep"}, "allowed are names that begin otherwise"),
        ("methods/sampler/few", 3, "advice.methods.sampler.few: unknown key"),
        ("simulated/kernels", ["normals-rough"], "advice.simulated.kernels: given 'normals-rough'"),
        ("simulated/methods", ["hmc"], "advice.simulated.methods: given 'hmc'"),
        (
            "simulated/sizes",
            [{"patterns": 9, "data_sets": 1, "kernels": ["rough"]}],
            "advice.simulated.sizes: given kernels",
        ),
        ("simulated/sizes", [{"patterns": 9, "data_sets": 1}] * 2, "a different one in each row"),
        ("rule/points", 100, "advice.rule.points"),
        ("rule/tolerances", [0.0], "advice.rule.tolerances"),
    ],
)
def test_what_is_wrong_is_refused(path, value, said):
    config = load("tiny")
    put(config, f"atiya2021/advice/{path}", value)
    with pytest.raises(ValueError, match=said):
        check(config)


def test_every_row_has_what_it_runs_on():
    rows = experiment.plan(check(load("tiny")))
    real = [row for row in rows if row["patterns"]]
    assert {row["patterns"] for row in real} == {f"advice/{row['data']}" for row in real}
    assert {row["kernel"] for row in rows} == {"fitted", "rough"}
    for kind in (real, [row for row in rows if not row["patterns"]]):
        assert {"truth", "ep", "twisted-ep", "rule-0.1"} <= {row["method"] for row in kind}
    problem = dataclasses.asdict(real_data("linnerud", 1))
    made = [
        experiment.run(row, {"problem": problem})
        for row in real
        if row["data"] == "linnerud" and row["method"] in ("fit-ep", "ep", "rule-0.1")
    ]
    assert [one.lines[0]["status"] for one in made] == ["ok"] * 3
    assert len({one.lines[0]["alpha"] for one in made}) == 1


# --- measures


def followed(errors, se, tolerance, seconds=1.0, rounds=1, truth_se=0.0):
    """Rows of one problem: the longer run, whose value is zero, the default, which takes two seconds, and the rule."""
    about = {"data": "rough/N50/dataset0", "kernel": "rough", "N": 50, "dataset": 0}
    about |= {"inference": "twisted-ep", "status": "ok", "randomizations": np.nan}
    about |= {"samples": 1152.0, "rounds": np.nan, "tolerance": np.nan, "replicate": np.nan}
    rule = {"tolerance": tolerance, "rounds": rounds, "cpu_seconds": seconds}
    lines = [
        {"method": "truth", "log_evidence": 0.0, "log_evidence_se": truth_se},
        {"method": "twisted-ep", "log_evidence": 0.2, "log_evidence_se": 0.1, "cpu_seconds": 2.0},
        *(
            {"method": "rule", "log_evidence": error, "log_evidence_se": se, "replicate": k} | rule
            for k, error in enumerate(errors)
        ),
    ]
    return pd.DataFrame([about | one | {"source": f"a.csv:{k}"} for k, one in enumerate(lines)])


def of_rule(rows, group="rough-N50"):
    found = {one["id"]: one["value"] for one in measures._followed(measures.judged(rows))}
    path = f"advice/{group}/tolerance-100/"
    return {key.removeprefix(path): value for key, value in found.items() if key.startswith(path)}


def test_the_rule_is_measured_as_by_hand():
    edge = 0.04 * student_law.ppf(0.975, 15)  # .0853
    rows = followed([0.0, edge - 1e-9, -edge - 1e-9, 0.11], se=0.04, tolerance=0.1)
    rows.loc[rows["replicate"] == 3, ["status", "rounds"]] = ["tolerance not met", 4.0]
    found = of_rule(rows)
    assert (found["runs"], found["covered"], found["within"], found["reached"]) == (4, 2, 3, 3)
    assert (found["covered-alone"], found["covered-alone-share"]) == (2, 0.5)
    assert (found["first"], found["first-covered"]) == (3, 2) and found["largest"] == pytest.approx(
        0.11
    )
    assert found["covered-low"] == pytest.approx(beta_law.ppf(0.025, 2, 3))
    assert found["covered-high"] == pytest.approx(beta_law.ppf(0.975, 3, 2))
    assert found["seconds-share"] == found["seconds-ratio"] == pytest.approx(0.5)
    assert (found["cheaper"], found["problems"]) == (1, 1)
    assert of_rule(rows, "all") == of_rule(rows, "simulated") == found
    assert not of_rule(rows, "real")


def test_the_error_of_the_longer_run_is_in_the_interval():
    joint = np.hypot(0.04, 0.05) * student_law.ppf(0.975, 15)
    found = of_rule(followed([joint - 1e-9, joint + 1e-9], 0.04, 0.1, truth_se=0.05))
    assert (found["covered"], found["blind"]) == (1, 2)
    assert found["covered-alone"] == 0, "as it is stated"
    found = of_rule(followed([0.0, 0.0], 0.04, 0.1, seconds=3.0))
    assert (found["covered"], found["covered-high"], found["cheaper"]) == (2, 1.0, 0)
    assert found["seconds-ratio-largest"] == pytest.approx(1.5)
