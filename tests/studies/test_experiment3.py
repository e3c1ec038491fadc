"""Experiment 3 on methods whose answers are known; nothing here is left to chance."""

from dataclasses import dataclass
from types import SimpleNamespace as Namespace

import numpy as np
import pandas as pd
import pytest

from gpcmc.inference import ConvergenceError
from gpcmc.orthant import ExtinctionError
from gpcmc.orthant.truths import linear_kernel_truth
from gpcmc.posterior import UNTRUSTED, Prediction
from studies.atiya2021.experiment2 import data_set
from studies.atiya2021.experiments import experiment3
from studies.atiya2021.measures import experiment3 as measures
from studies.atiya2021.methods import METHODS, MODULES
from studies.atiya2021.problems import EXPERIMENT2, two_class_data
from studies.atiya2021.settings import TradeoffRow
from studies.common.seeds import generator


@dataclass(frozen=True, slots=True)
class Answer:
    """A posterior that says what it is told to."""

    log_evidence: float | None
    log_evidence_se: float | None
    prediction: Prediction
    work: dict[str, int]
    diagnostics: dict[str, float]
    status: str


@dataclass(frozen=True, slots=True)
class Fake:
    """Off by `offset` nats plus a random digit, every probability 1/2."""

    samples: int = 10
    offset: float = 0.0
    tags: tuple[str, ...] = ()
    evidence: bool = True
    fail: str = ""
    says: str = "ok"
    status: str = ""

    def fit(self, prior, y, *, rng):
        t = prior.K_star.shape[1]
        if self.fail == "extinct" and len(y) > 100:
            raise ExtinctionError("none left")
        if self.fail == "convergence":
            raise ConvergenceError("no", None)
        noise = 0.0 if rng is None else rng.integers(10)
        return Answer(
            log_evidence=-100.0 + self.offset + noise if self.evidence else None,
            log_evidence_se=0.5 if self.evidence else None,
            prediction=Prediction(np.full(t, 0.5), np.zeros(t)),
            work={"samples": self.samples},
            diagnostics={"k_hat": 0.25},
            status=self.says,
        )


@pytest.fixture
def run(monkeypatch):
    """Run all rows of a method: lines, timing."""
    monkeypatch.setitem(METHODS, "fake", Fake)
    monkeypatch.setitem(MODULES, "fake", __name__)

    def call(*, name="row", method="fake", options=None, runs=1, **given):
        fields = {"method": method, "grid": [], "data_sets": 1} | given
        row = TradeoffRow.model_construct(**fields, **options or {})
        study = Namespace(experiment3=Namespace(runs=runs, methods={name: row}))
        plan = experiment3.plan(Namespace(seed=5, atiya2021=study))
        found = [experiment3.run(line, {}) for line in plan]
        lines = [line for one in found for line in one.lines]
        return lines, [line for one in found for line in one.timing]

    return call


def problem3(dataset=0):
    return data_set(3, f"5/experiment2/problem3/dataset{dataset}")


def test_the_problem_is_experiment_2s_and_its_truth_the_closed_form():
    gp, y, truth = problem3()
    x, labels, x_star = two_class_data(EXPERIMENT2[3], generator("5/experiment2/problem3/dataset0"))
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_allclose(gp.K, np.outer(x, x))
    np.testing.assert_allclose(gp.K_star, np.outer(x, x_star))
    exact = linear_kernel_truth(x, labels, x_star)
    assert truth.log_evidence == exact.log_evidence
    assert gp.K_star.shape == (400, 200)


def test_errors_of_a_known_answer(run):
    truth = problem3()[2]
    rows, timing = run(options={"offset": -3.0, "tags": ["a", "b"]})
    (row,) = rows
    error = -103.0 - truth.log_evidence
    assert row["log_evidence_error"] == error
    assert row["ape_percent"] == pytest.approx(100 * abs(error) / abs(truth.log_evidence))
    assert row["probability_mae"] == pytest.approx(np.mean(np.abs(0.5 - truth.probability)))
    assert (row["truth"], row["status"]) == (truth.log_evidence, "ok")
    assert (row["work_samples"], row["k_hat"], row["tags"]) == (10, 0.25, "a+b")
    assert "seed" not in row, "a method that draws nothing has no seed"
    assert set(timing[0]) == {"method", "dataset", "size", "run", "cpu_seconds"}


def test_further_data_sets_get_one_run_a_size_and_have_truths_of_their_own(run):
    rows, timing = run(grid=[{"samples": 10}, {"samples": 20}], runs=2, data_sets=3)
    keys = [(row["dataset"], row["size"], row["run"]) for row in rows]
    first = [(0, size, r) for size in (0, 1) for r in range(2)]
    assert keys == [*first, (1, 0, 0), (1, 1, 0), (2, 0, 0), (2, 1, 0)]
    assert [(t["dataset"], t["size"], t["run"]) for t in timing] == keys
    assert len({row["seed"] for row in rows}) == 8
    truths = [problem3(k)[2].log_evidence for k in range(3)]
    assert len(set(truths)) == 3
    assert [row["truth"] for row in rows] == [truths[k[0]] for k in keys]


def test_every_size_and_run_has_its_own_stream(run):
    grid = [{"samples": 10}, {"samples": 20, "offset": 1.0}]
    rows, timing = run(grid=grid, runs=3)
    keys = [(row["method"], row["size"], row["run"]) for row in rows]
    assert keys == [("row", size, r) for size in (0, 1) for r in range(3)]
    assert [(t["size"], t["run"]) for t in timing] == [k[1:] for k in keys]
    assert [row["samples"] for row in rows] == [10] * 3 + [20] * 3
    assert len({row["seed"] for row in rows}) == 6
    for row in rows:
        digit = generator(row["seed"]).integers(10)
        assert row["log_evidence"] == -100.0 + row.get("offset", 0.0) + digit
    overridden, _ = run(options={"samples": 7, "offset": 2.0}, grid=grid[:1])
    assert (overridden[0]["samples"], overridden[0]["work_samples"]) == (10, 10)
    digit = generator(overridden[0]["seed"]).integers(10)
    assert overridden[0]["log_evidence"] == -98.0 + digit
    # a size keeps its numbers when others come or go, and another row has other numbers
    again, _ = run(grid=grid[1:], runs=3)
    assert [r["log_evidence"] for r in again] == [r["log_evidence"] for r in rows[3:]]
    assert {r["seed"] for r in run(name="other", grid=grid, runs=3)[0]}.isdisjoint(
        {r["seed"] for r in rows}
    )


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"fail": "convergence"}, "not converged"),
        ({"fail": "extinct"}, "extinct"),
        ({"says": UNTRUSTED}, UNTRUSTED),
    ],
)
def test_a_run_that_failed_is_a_row(run, options, status):
    rows, timing = run(options=options, grid=[{"samples": 10}], runs=2)
    assert [row["status"] for row in rows] == [status] * 2
    answered = "fail" not in options
    assert len(timing) == 2 * answered
    assert ("log_evidence_error" in rows[0]) == answered


def test_a_method_without_evidence_has_no_evidence_error(run):
    (row,) = run(options={"evidence": False})[0]
    assert row["log_evidence"] is None
    assert "log_evidence_error" not in row and "ape_percent" not in row
    assert row["probability_mae"] > 0


def test_laplace_is_near_the_truth(run):
    (row,) = run(method="laplace")[0]
    assert abs(row["log_evidence_error"]) < 0.02
    assert row["probability_mae"] < 0.005


def test_bad_input(run):
    with pytest.raises(ValueError, match="rng must be a numpy.random.Generator"):
        run(method="orthant", options={"samples": 10})
    with pytest.raises(ValueError, match="options must not be named as results are"):
        run(options={"tags": "a"}, grid=[{"status": "ok"}])
    with pytest.raises(ValueError, match="samples must be an integer >= 1"):
        run(method="orthant", grid=[{"samples": 0}])


def test_warnings_are_right_if_the_errors_of_warned_runs_exceed_their_standard_errors():
    """Of errors twice as large as they should be in warned runs, and as large as they should be in the others."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=400) * np.repeat([2.0, 1.0], 200)
    rows = pd.DataFrame(
        {
            "method": ["importance-ep"] * 400 + ["ess"],
            "status": [UNTRUSTED] * 200 + ["ok"] * 201,
            "log_evidence_error": [*(0.1 * z), 9.0],
            "log_evidence_se": 0.1,
            "source": "experiment3.csv:2",
        }
    )
    found = {row["id"]: row for row in measures._weights(rows)}
    path = "experiment3/weights"
    assert [found[f"{path}/{name}/runs"]["value"] for name in ("warned", "passed")] == [200, 200]
    for name, truth in (("warned", 2.0), ("passed", 1.0)):  # a false alarm in 15,000
        row = found[f"{path}/{name}/rms-z"]
        assert abs(row["value"] - truth) < 4 * row["se"]
    row = found[f"{path}/warned/mean-z"]
    assert row["value"] == pytest.approx(z[:200].mean()) and row["se"] == pytest.approx(
        z[:200].std(ddof=1) / 200**0.5
    )


def test_a_chains_squared_error_times_seconds_is_set_over_the_samplers():
    """Runs with the same errors, whose seconds are twice the sampler's at the longest size, four times at the other."""
    seconds = {("orthant", 0): 1.0, ("orthant", 1): 1.0, ("ess-ais", 0): 4.0, ("ess-ais", 1): 2.0}
    rows = pd.DataFrame(
        [
            {"method": method, "size": size, "nats": nats, "cpu_seconds": spent}
            for (method, size), spent in seconds.items()
            for nats in (0.1, 0.2)
        ]
    ).assign(source="experiment3.csv:2")
    found = {row["id"]: row["value"] for row in measures._pooled(rows)}
    expected = {"time/pooled/ess-ais": 2.0, "time/pooled/ess-ais/all-sizes": 3.0}
    assert found == {name: pytest.approx(value) for name, value in expected.items()}
