"""The certified reference: its digests, its verdicts, and the one that is kept with the repository.

Statistical comparisons with fixed seeds. Where a cell must come out certified, a right one is refused with a
probability of at most 0.0054 under other seeds; where values are compared with a closed form, the bound is
five standard errors of 32 randomisations (31 degrees of freedom: 2e-5).
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from truths import reference as stored_case

from gpcmc.covariance import Dense
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.gp import prior, rbf
from gpcmc.inference import Inference, Twisted, infer
from gpcmc.orthant.truths import constant_kernel_truth
from gpcmc.posterior import NOT_CONVERGED, UNTRUSTED
from recheck.record.files import read_csv, write_csv
from studies.atiya2021.config import check as check_configuration
from studies.atiya2021.experiments import reference_check, reference_truths
from studies.atiya2021.names import REAL, data_set_seed
from studies.atiya2021.problems import SYNTHETIC, Problem, real_problem, synthetic_problem
from studies.atiya2021.reference import cells as reference_module
from studies.atiya2021.reference import certify as module
from studies.atiya2021.reference import truths as truths_module
from studies.atiya2021.reference.cells import (
    CellKey,
    Reference,
    certified_cell,
    digest,
    load_reference,
    save_reference,
    store,
)
from studies.atiya2021.reference.certify import (
    AGREES,
    CERTIFIED,
    CERTIFIER,
    DIFFERS,
    LEVEL,
    MAX_Z,
    REFERENCE,
    UNCERTIFIED,
    Plan,
    largest_of,
    verdict,
)
from studies.atiya2021.reference.check import NO_REFERENCE, checked
from studies.atiya2021.reference.truths import certified_classes, certified_orthant
from studies.common import data as datasets
from studies.common.configuration import read_config
from studies.common.rows import Table, write_table
from studies.common.seeds import generator

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "data" / "reference" / "atiya2021" / "certified"
MIRROR = ROOT.parent / "shared" / "data"
SETS = [
    {"set": 1, "alpha": 5.0, "beta": 1.0},
    {"set": 2, "alpha": 5.0, "beta": 5.0},
    {"set": 3, "alpha": 3.0, "beta": 2.0},
    {"set": 4, "alpha": 0.5, "beta": 0.5},
    {"set": 5, "alpha": 3.0, "beta": 1.0},
    {"set": 6, "alpha": 0.5, "beta": 3.0},
]
ROUGH = [SETS[5]]


def small_problem(n=20, t=5, seed=0):
    rng = np.random.default_rng(seed)
    X, X_star = rng.standard_normal((n, 2)), rng.standard_normal((t, 2))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return Problem(X, y, X_star, np.ones(t), np.full(t, np.nan))


FEW = Plan(chains=2000)


def compute(problem=None, settings=ROUGH, plan=FEW):
    """Lines of a reference, and its arrays by the names that it has for them."""
    problem, lines, arrays = problem or small_problem(), [], {}
    for setting in settings:
        path = f"7/reference/problem1/set{setting['set']}"
        found = certified_cell(problem, CellKey(1, **setting), path, plan)
        lines += found.lines
        for name, array in found.arrays.items():
            arrays[f"problem1_set{setting['set']}{name.removeprefix('probability')}"] = array
    return lines, arrays


def made(log_evidence=-50.0, se=5e-4, probability=(0.2, 0.7), probability_se=1e-4, status="ok"):
    probability = np.array(probability)
    errors = np.full(len(probability), probability_se)
    return Inference(log_evidence, se, probability, errors, {"samples": 1}, {}, status)


def certifier(**changes):
    return made(**{"se": 4e-3, "probability_se": 8e-4} | changes)


# --- digests and the file


def test_digest_is_stable_and_sensitive():
    problem = Problem(
        np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 1.0]), np.eye(2), np.ones(2), np.ones(2)
    )
    known = digest(problem, 3.0, 2.0)
    assert known == "22e976ac281dabcc", "frozen: the kept reference rests on it"
    other = [digest(problem, 3.0, 2.5), digest(problem, 3.5, 2.0), digest(problem, 2.0, 3.0)]
    for name in ("X_train", "y_train", "X_test"):
        array = getattr(problem, name).copy()
        array.flat[-1] += 1e-6
        other.append(digest(dataclasses.replace(problem, **{name: array}), 3.0, 2.0))
        reordered = np.ascontiguousarray(getattr(problem, name)[::-1])
        if name != "y_train":
            other.append(digest(dataclasses.replace(problem, **{name: reordered}), 3.0, 2.0))
    reshaped = dataclasses.replace(problem, X_train=problem.X_train.reshape(2, 3))
    other.append(digest(reshaped, 3.0, 2.0))
    assert len({known, *other}) == 1 + len(other)
    # rounding, memory order and what is not inferred from do not matter
    rounded = problem.X_train.copy()
    rounded[0, 0] = -1e-13
    same = dataclasses.replace(problem, X_train=np.asfortranarray(rounded), y_test=-np.ones(2))
    assert digest(same, 3.0, 2.0) == known


@pytest.fixture(scope="module")
def tiny():
    """The reference of a problem with 20 patterns at two sets, and the problem."""
    problem = small_problem()
    rows, arrays = compute(problem, [SETS[2], SETS[5]])
    return Reference(pd.DataFrame(rows), arrays), problem


def test_save_and_load_keep_every_bit(tiny, tmp_path):
    known, problem = tiny
    shuffled = known.evidence.iloc[::-1]
    save_reference(tmp_path, shuffled, known.arrays)
    loaded = load_reference(tmp_path)
    pd.testing.assert_frame_equal(loaded.evidence, known.evidence, check_exact=True)
    cell = loaded.cell(1, 6, digest(problem, 0.5, 3.0))
    assert cell.log_evidence == known.evidence["log_evidence"][1]
    assert cell.certified is True and cell.trivial is False
    np.testing.assert_array_equal(cell.probability, known.arrays["problem1_set6"])
    np.testing.assert_array_equal(cell.probability_se, known.arrays["problem1_set6_se"])


def test_other_data_are_refused_by_name(tiny):
    known, problem = tiny
    right = digest(problem, 0.5, 3.0)
    assert known.cell(1, 6, right) is not None
    assert known.cell(1, 5, right) is None and known.cell(2, 6, right) is None
    wrong = digest(problem, 0.5, 3.1)
    with pytest.raises(ValueError, match="computed on other data") as refusal:
        known.cell(1, 6, wrong)
    for part in ("problem 1, set 6", right, wrong, "snakemake reference"):
        assert part in str(refusal.value)


def test_incomplete_files_are_refused(tiny, tmp_path):
    known, _ = tiny
    with pytest.raises(FileNotFoundError):
        load_reference(tmp_path)
    lacking = {k: v for k, v in known.arrays.items() if k != "problem1_set6_se"}
    with pytest.raises(ValueError, match=r"problem1_set6_se must have shape \(5,\); got None"):
        save_reference(tmp_path, known.evidence, lacking)
    short = dict(known.arrays) | {"problem1_set3": np.zeros(4)}
    with pytest.raises(ValueError, match=r"problem1_set3 must have shape \(5,\); got \(4,\)"):
        save_reference(tmp_path, known.evidence, short)
    with pytest.raises(ValueError, match="several of .'problem1_set3'"):
        save_reference(tmp_path, pd.concat([known.evidence, known.evidence[:1]]), known.arrays)


# --- verdicts


def test_bound_for_many_comparisons():
    assert largest_of(1, LEVEL) == pytest.approx(MAX_Z)
    for count in (2, 50, 1000):
        bound = largest_of(count, LEVEL)
        assert (1 - 2 * norm.sf(bound)) ** count == pytest.approx(1 - LEVEL, abs=1e-12)
    assert largest_of(1000, LEVEL) == pytest.approx(4.69, abs=0.01)
    assert largest_of(50, LEVEL, 15) > largest_of(50, LEVEL, 100) > largest_of(50, LEVEL)
    assert largest_of(0, LEVEL) == pytest.approx(MAX_Z), "no test patterns"


def test_agreement_is_certified():
    joint = np.hypot(5e-4, 4e-3)
    found = verdict(made(), certifier(log_evidence=-50.0 - 2.9 * joint))
    assert (found["verdict"], found["reason"]) == (CERTIFIED, AGREES)
    assert found["z"] == pytest.approx(2.9)
    # one of a thousand probabilities at four errors is what chance does
    t, shift = 1000, np.zeros(1000)
    shift[17] = 4.0 * np.hypot(1e-4, 8e-4)
    many = verdict(made(probability=np.full(t, 0.5)), certifier(probability=0.5 + shift))
    assert many["verdict"] == CERTIFIED and many["max_z"] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("best", "other", "reason"),
    [
        ({"log_evidence": -50 + 5 * np.hypot(5e-4, 4e-3)}, {}, "log evidence differs"),
        ({"log_evidence": -50 - 5 * np.hypot(5e-4, 4e-3)}, {}, "log evidence differs"),
        ({}, {"log_evidence": -50 + 3.1 * np.hypot(5e-4, 4e-3)}, "log evidence differs"),
        ({}, {"log_evidence": np.nan}, "log evidence differs"),
        ({"probability": (0.2, 0.7 + 5 * 8.1e-4)}, {}, "probability differs"),
        ({"probability": (0.2, 0.7 - 5 * 8.1e-4)}, {}, "probability differs"),
        ({"probability": (0.2, np.nan)}, {}, "probability differs"),
        ({"se": 1.1e-3}, {}, "reference: standard error"),
        ({"probability_se": 2.1e-4}, {}, "reference: standard error"),
        ({"probability_se": np.nan}, {}, "reference: standard error"),
        ({}, {"se": 5.1e-3}, "certifier: standard error"),
        ({}, {"probability_se": 1.1e-3}, "certifier: standard error"),
        ({"status": UNTRUSTED}, {}, f"reference: {UNTRUSTED}"),
    ],
)
def test_whatever_is_wrong_is_not_certified(best, other, reason):
    found = verdict(made(**best), certifier(**other))
    assert found["verdict"] == UNCERTIFIED and reason in found["reason"]


def test_exact_agreement_without_error_is_certified():
    # K = beta I: both methods are exact up to rounding
    exact = {"se": 0.0, "probability_se": 0.0}
    found = verdict(made(**exact), made(log_evidence=-50 + 1e-11, **exact))
    assert found["verdict"] == CERTIFIED
    assert verdict(made(**exact), made(log_evidence=-50 + 1e-8, **exact))["verdict"] == UNCERTIFIED


# --- end to end


def test_a_cell_from_data_to_verdict(tiny):
    known, _ = tiny
    assert list(known.evidence["verdict"]) == [CERTIFIED] * 2
    assert not known.evidence["trivial"].any()
    for row in known.evidence.to_dict("records"):
        assert row["log_evidence_se"] < REFERENCE.evidence
        assert row["max_probability_se"] < REFERENCE.probability
        assert row["certifier_se"] < CERTIFIER.evidence
        assert row["certifier_max_probability_se"] < CERTIFIER.probability


def test_reference_and_certifier_against_a_closed_form():
    # a length scale without end: every test probability is the same integral (Eq. 31)
    problem = small_problem()
    rows, arrays = compute(problem, [{"set": 1, "alpha": 1e7, "beta": 2.0}])
    positive = int(np.sum(problem.y_train > 0))
    truth = constant_kernel_truth(2.0, positive, 20 - positive)
    (row,) = rows
    assert row["verdict"] == CERTIFIED
    assert abs(row["log_evidence"] - truth.log_evidence) < 5 * row["log_evidence_se"]
    assert abs(row["certifier_log_evidence"] - truth.log_evidence) < 5 * row["certifier_se"]
    error = np.abs(arrays["problem1_set1"] - truth.probability)
    assert (error < 5 * arrays["problem1_set1_se"]).all()


def test_a_trivial_cell_is_marked():
    problem = small_problem()
    apart = dataclasses.replace(problem, X_train=1e3 * problem.X_train)
    (row,), arrays = compute(apart)
    assert row["trivial"] and row["verdict"] == CERTIFIED
    assert row["log_evidence"] == pytest.approx(-20 * np.log(2), abs=1e-9)
    np.testing.assert_allclose(arrays["problem1_set6"], 0.5, atol=1e-9)


def test_a_wrong_certifier_and_a_wrong_reference_are_caught(monkeypatch):
    smooth = {"settings": [SETS[2]]}
    original = module.model
    monkeypatch.setattr(module, "model", lambda problem, alpha, _: original(problem, alpha, 2.6))
    (row,), _ = compute(**smooth)
    assert row["verdict"] == UNCERTIFIED and "differs" in row["reason"]
    monkeypatch.undo()

    sampler = module.adapted

    def wrong(problem, gp, *args, **kwargs):
        longer = prior(rbf(3.0, 2.6), problem.X_train, problem.X_test)
        return sampler(problem, longer, *args, **kwargs)

    monkeypatch.setattr(module, "adapted", wrong)
    (row,), _ = compute(**smooth)
    assert row["verdict"] == UNCERTIFIED and "differs" in row["reason"]
    assert abs(row["z"]) < MAX_Z < abs(row["sampler_z"])
    monkeypatch.undo()

    best = reference_module.best

    def biased(*args):
        found = best(*args)
        return dataclasses.replace(found, log_evidence=found.log_evidence + 0.025)

    monkeypatch.setattr(reference_module, "best", biased)  # five of the certifier's errors
    (row,), _ = compute()
    assert row["verdict"] == UNCERTIFIED and row["reason"] == "log evidence differs"


def test_a_certifier_that_differs_by_chance_gets_a_second_look(monkeypatch):
    latent = reference_module.latent

    def unlucky(*args):
        found = latent(*args)
        return dataclasses.replace(found, log_evidence=found.log_evidence + 0.05)

    monkeypatch.setattr(reference_module, "latent", unlucky)  # the first look alone
    (row,), _ = compute()
    assert row["certifier_looks"] == 2 and row["verdict"] == CERTIFIED
    assert row["certifier_samples"] >= 20_000


def test_an_orthant_matrix_that_is_wrong_for_all_who_share_it_is_caught(monkeypatch):
    signed = Dense.signed

    def broken(K, y):
        return orthant_covariance(K, y) + 0.2 * np.eye(len(K))  # a probit of too much noise

    monkeypatch.setattr("gpcmc.orthant.method.orthant_covariance", broken)
    monkeypatch.setattr(Dense, "signed", lambda K, y, noise=1.0: signed(K, y, noise + 0.2))
    (row,), _ = compute()
    assert abs(row["sampler_z"]) < MAX_Z, "they agree with one another"
    assert row["verdict"] == UNCERTIFIED and "log evidence differs" in row["reason"]


def test_where_the_sampler_is_dear_it_is_left_out():
    (row,), _ = compute(settings=[SETS[2]], plan=Plan(chains=2000, max_draws=0))
    assert row["certifier"] == "latent annealing" and row["verdict"] == CERTIFIED
    assert row["sampler_samples"] == 0 and np.isnan(row["sampler_z"])


def test_one_certifier_is_enough_and_none_may_differ():
    loose, tight = certifier(se=6e-3), certifier()
    assert verdict(made(), loose)["reason"] == "certifier: standard error"
    assert verdict(made(), loose, tight)["verdict"] == CERTIFIED
    assert verdict(made(), tight, None)["verdict"] == CERTIFIED
    apart = certifier(log_evidence=-50.03)
    assert verdict(made(), tight, apart)["reason"] == "log evidence differs"
    for changes in ({"status": NOT_CONVERGED}, {"diagnostics": {"k_hat": 0.8}}):
        unsure = dataclasses.replace(tight, **changes)
        assert verdict(made(), unsure)["reason"] == "certifier: standard error"


def test_points_are_doubled_until_the_errors_are_small(monkeypatch):
    asked = []

    def fake(method, gp, y, *, rng):
        asked.append((method.points, method.randomizations, rng.random()))
        found = made(se=7e-4 * 64 / method.points, probability_se=7e-4 * 64 / method.points)
        return found

    monkeypatch.setattr(module, "infer", fake)
    found = module.best(None, None, "7/x", Plan(points=64, randomizations=4))
    assert [a[:2] for a in asked] == [(64, 4), (128, 4), (256, 4)], "by the probabilities' errors"
    assert found.probability_se[0] < REFERENCE.probability
    assert len({a[2] for a in asked}) == 3, "new random numbers each time"
    found = module.best(None, None, "7/x", Plan(points=64, max_points=128))
    assert asked[-1][0] == 128 and verdict(found, certifier())["verdict"] == UNCERTIFIED


def test_certifier_draws_as_many_samples_as_its_errors_ask_for():
    asked = []

    def run(samples, *, rng):
        asked.append((samples, rng.random()))
        return made(se=1.0 / np.sqrt(samples), probability_se=0.02 / np.sqrt(samples))

    pilot = run(1000, rng=generator("7/x"))
    found = module.sized(run, pilot, "7/x", 1000, 10**6)
    assert [a for a, _ in asked] == [1000, pytest.approx(44_000, abs=1)]
    assert len({random for _, random in asked}) == 2 and found.log_evidence_se < CERTIFIER.evidence
    asked.clear()
    capped = module.sized(run, pilot, "7/x", 1000, 20_000)
    assert [a for a, _ in asked] == [20_000]
    assert verdict(made(), capped)["reason"] == "certifier: standard error"
    asked.clear()
    module.sized(run, run(10**9, rng=generator("7/x")), "7/x", 1000, 10**6)
    assert asked[1][0] == 1000, "the pilot is not the estimate, however good it is"


def stored(folder, lines, arrays):
    """What the workflow gathers of a reference, in files."""
    names = [f"problem1/set{line['set']}" for line in lines]
    stacks = {}
    for last in ("probability", "probability_se"):
        end = last.removeprefix("probability")
        keys = [name.replace("/", "_") + end for name in names]
        stacks[f"problem1/{last}"] = np.stack([arrays[key] for key in keys])
        stacks[f"problem1/{last}/rows"] = np.array(names)
    rows = pd.DataFrame(lines)
    rows.insert(0, "row", names)
    write_table(folder / "cells", Table(rows, rows[["row"]], stacks))
    write_csv(folder / "truths.csv", pd.DataFrame({"row": ["a"], "verdict": [CERTIFIED]}))
    return folder / "cells.csv", folder / "cells.npz", folder / "truths.csv"


def test_a_reference_is_kept_whole(tiny, tmp_path):
    known, _ = tiny
    lines = known.evidence.to_dict("records")
    made = stored(tmp_path / "results", lines, known.arrays)
    store(tmp_path / "kept", *made)
    loaded = load_reference(tmp_path / "kept")
    pd.testing.assert_frame_equal(loaded.evidence, known.evidence, check_exact=True)
    for name, array in known.arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], array)
    assert list(read_csv(tmp_path / "kept/truths.csv")) == ["verdict"]
    less = stored(tmp_path / "less", lines[:1], known.arrays)
    with pytest.raises(ValueError, match=r"would lose them: \[\(1, 6\)\]"):
        store(tmp_path / "kept", *less)
    lost = [line | {"status": "data not available"} for line in lines]
    with pytest.raises(ValueError, match=r"problems \[1\] must have data"):
        store(tmp_path / "kept", *stored(tmp_path / "lost", lost, known.arrays))


# --- the check of every run


def check(reference, problem, setting, points=256, samples=20_000):
    counts = {"points": points, "samples": samples}
    path = f"7/reference_check/problem1/set{setting['set']}"
    return checked(reference, problem, CellKey(1, **setting), counts, path)


def test_check_agrees_with_a_right_reference(tiny):
    known, problem = tiny
    for setting in (SETS[2], SETS[5]):
        rows = check(known, problem, setting)
        verdicts = {row["method"]: row["verdict"] for row in rows}
        assert verdicts == {"best": AGREES, "adapted orthant": AGREES}
    assert check(known, problem, SETS[0]) == [{"verdict": NO_REFERENCE}]


def test_check_finds_a_planted_shift(tiny):
    known, problem = tiny
    for shift in (0.05, -0.05):
        evidence = known.evidence.assign(log_evidence=known.evidence["log_evidence"] + shift)
        rows = check(Reference(evidence, known.arrays), problem, SETS[5])
        assert rows[0]["method"] == "best" and rows[0]["verdict"] == DIFFERS
        assert rows[0]["z"] * shift < 0
    arrays = dict(known.arrays)
    arrays["problem1_set6"] = arrays["problem1_set6"] + np.array([0, 0, 0.02, 0, 0])
    rows = check(Reference(known.evidence, arrays), problem, SETS[5])
    assert rows[0]["verdict"] == DIFFERS


def test_check_draws_cells_by_the_root():
    scale = read_config("published", ROOT / "config")
    plans = [
        reference_check.plan(check_configuration(scale | {"scale": "published", "seed": root}))
        for root in (7, 7, 8)
    ]
    drawn, again, other = ([(row["problem"], row["set"]) for row in plan] for plan in plans)
    assert len(set(drawn)) == 6 and drawn == sorted(drawn) == again != other


def test_check_refuses_other_data(tiny):
    known, _ = tiny
    with pytest.raises(ValueError, match="problem 1, set 6 was computed on other data"):
        check(known, small_problem(seed=1), SETS[5])


# --- truths


def test_truths_are_certified_and_a_wrong_one_is_not(monkeypatch):
    def both():
        rows = certified_orthant(50, "7/experiment1/N50/instance0", 2)
        return rows, certified_classes(1, "7/experiment2/problem1/dataset0", 2)

    rows = both()
    assert [row["verdict"] for row in rows] == [CERTIFIED] * 2
    assert [row["test_patterns"] for row in rows] == [0, 50]
    assert rows[0]["z_threshold"] == pytest.approx(largest_of(2, LEVEL))
    assert rows[1]["max_z_threshold"] == pytest.approx(largest_of(100, LEVEL))

    exact = truths_module.one_factor_log_probability
    monkeypatch.setattr(truths_module, "one_factor_log_probability", lambda d: exact(d) + 0.03)
    linear = truths_module.linear_kernel_truth

    def one_wrong(x, y, x_star):
        truth = linear(x, y, x_star)
        truth.probability[3] += 0.01
        return truth

    monkeypatch.setattr(truths_module, "linear_kernel_truth", one_wrong)
    assert [row["verdict"] for row in both()] == [UNCERTIFIED] * 2


def test_truths_are_those_of_experiments_1_to_3():
    tiny = read_config("tiny", ROOT / "config")
    plan = reference_truths.plan(check_configuration(tiny))
    assert len(plan) == 80 == plan[0]["together"]
    seeds = [row["seed"] for row in plan]
    one, two = "20210308/experiment1/N50/instance0", "20210308/experiment2/problem4/dataset4"
    assert (seeds[0], seeds[-1]) == (one, two)
    assert read_csv(KEPT / "truths.csv")["seed"].tolist() == seeds


def test_best_estimator_on_the_stored_case():
    X, y, X_star, log_evidence, probability = stored_case("R", "R_alpha3_beta2_truth")
    blocks = prior(rbf(3, 2), X, X_star)
    found = infer(Twisted(4096, 32), blocks, y, rng=np.random.default_rng(1))
    # the stored truth is an average of 60 runs of a sampler, with a standard error of 0.0012
    assert abs(found.log_evidence - log_evidence) < 5 * np.hypot(found.log_evidence_se, 1.2e-3)
    assert found.log_evidence_se < 2e-4
    assert np.max(np.abs(found.probability - probability)) < 1e-3


# --- the reference that is kept


def problem_of(number):
    rng = generator(data_set_seed(number, 0, 20210308))
    if number in SYNTHETIC:
        return synthetic_problem(number, rng)
    if not MIRROR.is_dir():
        pytest.skip("the raw data are not here")
    registry = datasets.read_registry(ROOT / "data" / "registry.csv")
    name = REAL[number]
    return real_problem(name, MIRROR, registry, standardise=name != "usps", rng=rng)


def test_kept_reference_is_complete():
    known = load_reference(KEPT)
    rows = known.evidence
    assert [*zip(rows["problem"], rows["set"], strict=True)] == [
        (problem, number) for problem in range(1, 10) for number in range(1, 7)
    ]
    certified = rows["verdict"] == CERTIFIED
    assert (rows["reason"][certified] == AGREES).all()
    assert (rows["certifier"] == "latent annealing").all(), "what shares nothing with the reference"
    # where the certifier needs more moves than it may have
    refused = rows[~certified]
    assert {*zip(refused["problem"], refused["set"], strict=True)} == {(9, 2)}
    assert (refused["reason"] == "certifier: standard error").all()
    for row in rows.to_dict("records"):
        name = f"problem{row['problem']}_set{row['set']}"
        errors = known.arrays[f"{name}_se"]
        assert row["log_evidence_se"] < REFERENCE.evidence
        assert np.max(errors) == row["max_probability_se"] < REFERENCE.probability
        assert row["k_hat"] <= 0.7
        assert abs(row["z"]) < MAX_Z and row["max_z"] < row["max_z_threshold"]
        if row["verdict"] == CERTIFIED:
            assert row["certifier_se"] < CERTIFIER.evidence
            assert row["certifier_max_probability_se"] < CERTIFIER.probability
        assert row["max_z_threshold"] == pytest.approx(largest_of(len(errors), LEVEL))
        probability = known.arrays[name]
        assert ((probability >= 0) & (probability <= 1)).all()
    trivial = rows[rows["trivial"]]
    assert [*zip(trivial["problem"], trivial["set"], strict=True)] == [(9, 4), (9, 6)]
    np.testing.assert_allclose(trivial["log_evidence"], -750 * np.log(2), atol=1e-9)
    # the differences are what the errors say: a sum of 54 squares, 1e-6 on either side
    assert 15 < np.sum(rows["z"][~rows["trivial"]] ** 2) < 118
    assert sum(path.stat().st_size for path in KEPT.iterdir()) < 3e6


def test_kept_truths_are_certified():
    rows = read_csv(KEPT / "truths.csv")
    counts = rows.groupby(["experiment", "problem"]).size().to_dict()
    assert counts == {
        (1, 50): 20, (1, 200): 20, (1, 500): 20, (2, 1): 5, (2, 2): 5, (2, 3): 5, (2, 4): 5,
    }  # fmt: skip
    assert (rows["verdict"] == CERTIFIED).all()
    assert (rows["certifier_se"] < CERTIFIER.evidence).all()
    np.testing.assert_allclose(rows["z_threshold"], largest_of(len(rows), LEVEL))
    assert 30 < np.sum(rows["z"] ** 2) < 160  # 80 squares, 1e-6 on either side


def test_kept_provenance_names_software():
    record = json.loads((KEPT / "provenance.json").read_text())
    assert {"commit", "packages", "cpu", "blas", "python", "raw_data"} <= record.keys()
    assert record["seed"] == 20210308


@pytest.mark.parametrize("number", range(1, 10))
def test_kept_reference_is_of_the_data_as_drawn_now(number):
    known, problem = load_reference(KEPT), problem_of(number)
    for hyper in SETS:
        key = digest(problem, hyper["alpha"], hyper["beta"])
        cell = known.cell(number, hyper["set"], key)
        assert len(cell.probability) == len(problem.X_test)
