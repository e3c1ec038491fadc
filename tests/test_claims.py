"""Statements of the paper: their registry, the two tests, and verdicts on results with known properties."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from made_results import everything
from scipy.stats import norm
from scipy.stats import t as student

from gpcmc.audit import ResultFiles, judge_claims, read_claims, read_registry
from gpcmc.audit.claims import CHECKS, Finding, check_claims_complete, probabilities
from gpcmc.audit.published import PUBLISHED_ITERATIONS
from gpcmc.experiments.ordering import ordering, orders
from gpcmc.experiments.pieces import Pieces

PUBLISHED = Path(__file__).parent.parent / "data" / "published"
CLAIMS = read_claims(PUBLISHED / "claims.yaml")
REGISTRY = read_registry(PUBLISHED)


def made_ordering(folder: Path, **factors: float) -> Path:
    """Eight data sets with errors of the given factors, such as ``sorted_hard=2.0``, and 10 % of noise."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "dataset": dataset,
            "order": order,
            "run": run,
            "count": count,
            "log_evidence_error": factor * (1 + 0.1 * rng.standard_normal()),
            "probability_mae": 0.01 * factor * (1 + 0.1 * rng.standard_normal()),
            "variance_eq44": 0.01 * (1 + 0.1 * rng.random()) * (0.5 if order == "sorted" else 1.0),
        }
        for dataset in range(8)
        for order in ("sorted", "shuffled", "interleaved")
        for run in range(3)
        for count in ("hard", "soft")
        for factor in [factors.get(f"{order}_{count}", 1.0)]
    ]
    pd.DataFrame(rows).to_csv(folder / "ordering.csv", index=False)
    return folder / "ordering.csv"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ResultFiles:
    folder = tmp_path_factory.mktemp("results")
    made = everything(
        folder / "run", methods=("orthant", "control-variables", "ess-gpml", "hmc-gpml")
    )
    path = made_ordering(folder, sorted_hard=3.0, shuffled_soft=0.5)
    return dataclasses.replace(made, ordering=(path,))


@pytest.fixture(scope="module")
def judged(files: ResultFiles) -> pd.DataFrame:
    return judge_claims(CLAIMS, REGISTRY, files).set_index("id")


def judge(files: ResultFiles, *ids: str) -> pd.DataFrame:
    some = [claim for claim in CLAIMS if claim.id in ids]
    return judge_claims(some, REGISTRY, files).set_index("id")


# ---------------------------------------------------------------------------- the registry


def test_every_statement_that_has_to_be_checked_is_there() -> None:
    ids = {claim.id for claim in CLAIMS}
    assert len(ids) == len(CLAIMS) >= 40
    assert ids >= {
        *(
            "slope/table1",
            "slope/table2",
            "slope/table3",
            "bias/experiment1",
            "variance/experiment2",
        ),
        *("soft-count/evidence", "order/sorted-evidence", "order/interleaved", "dimension"),
        *(
            "time/evidence-hmc/shipped",
            "time/probability-hmc/proper",
            "time/probability-tie/shipped",
        ),
        *(
            "time/probability-ess/shipped",
            "time/evidence-ten/shipped",
            "median/close",
            "median/hmc",
        ),
        *("mae-post/alike", "control-variables/slow", "control-variables/usps", "evidence/ess"),
        *("evidence/hmc", "evidence/hmc-usps", "works/no-failure", "works/right", "tuning/small"),
        *("limit/small", "limit/alpha", "limit/large", "recursion", "matlab-seconds"),
    }
    assert {claim.check for claim in CLAIMS} == set(CHECKS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"check": "magic"}, "'magic' is unknown"),
        ({"parameters": {"table": 1, "tabel": 1}}, "tabel"),
        ({"parameters": {}}, "table"),
        ({"reads": ["experiment9"]}, "experiment9"),
        ({"above": 1}, "one region"),
        *(({"between": wrong}, "low < high") for wrong in ([2, 1], [1], 1, [1, "two"], [1, 2, 3])),
        *(({"between": None, "above": wrong}, "finite number") for wrong in ("one", [1], math.inf)),
        ({"statment": "x"}, "statment"),
        ({"statement": None}, "statement.*missing"),
    ],
)
def test_a_wrong_row_is_refused_by_name(
    change: dict[str, object], said: str, tmp_path: Path
) -> None:
    rows = yaml.safe_load((PUBLISHED / "claims.yaml").read_text())
    rows[0] = {name: given for name, given in (rows[0] | change).items() if given is not None}
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump(rows))
    with pytest.raises(ValueError, match=said) as caught:
        read_claims(path)
    assert "slope/table1" in str(caught.value)
    path.write_text(yaml.safe_dump([*rows[1:], rows[1]]))
    with pytest.raises(ValueError, match=r"slope/table2.* more than once"):
        read_claims(path)


def test_nearer_to_the_median_than_the_paper_says_is_as_it_says() -> None:
    """A hundredth of a thousandth is within the order of a thousandth."""
    close = next(claim for claim in CLAIMS if claim.id == "median/close")
    found = Finding("", math.log(1e-5), 0.1, 8.0, log=True)
    low, high = (math.log(end) if end > 0 else -math.inf for end in (close.low, close.high))
    inside, outside = probabilities(found, low, high)
    assert inside == 1.0 and outside < 1e-6


def test_no_statement_can_vanish(judged: pd.DataFrame) -> None:
    frame = judged.reset_index()
    with pytest.raises(ValueError, match="absent \\['dimension'\\]"):
        check_claims_complete(frame[frame["id"] != "dimension"], CLAIMS)
    with pytest.raises(ValueError, match=f"given were {len(CLAIMS) + 1}"):
        check_claims_complete(pd.concat([frame, frame.tail(1)]), CLAIMS)


def test_without_results_every_statement_reads_not_run() -> None:
    frame = judge_claims(CLAIMS, REGISTRY, ResultFiles())
    assert frame["id"].tolist() == [claim.id for claim in CLAIMS]
    assert set(frame["verdict"]) == {"not run"}
    assert frame["note"].str.startswith("no results of").all()


# ---------------------------------------------------------------------------- the two tests


def test_the_tests_look_at_the_nearest_end() -> None:
    """By hand: 1.5 standard errors inside the low end, 2 outside the high end."""
    one = Finding("", 1.15, 0.1)
    inside, outside = probabilities(one, 1.0, math.inf)
    assert (inside, outside) == (1.0, pytest.approx(norm.sf(1.5)))
    inside, outside = probabilities(one, -math.inf, 0.95)
    assert (inside, outside) == (pytest.approx(norm.sf(2.0)), pytest.approx(norm.cdf(2.0)))
    # two ends: outside is as likely as at the nearer one
    assert probabilities(one, 1.0, 1.4)[1] == pytest.approx(norm.sf(1.5))
    assert probabilities(one, 0.0, 1.1)[0] == pytest.approx(norm.sf(0.5))
    few = dataclasses.replace(one, df=2.0)
    assert probabilities(few, 1.0, math.inf)[1] > norm.sf(1.5)
    exact = Finding("", 1e-16, 0.0)
    assert probabilities(exact, -math.inf, 1e-9) == (1.0, 0.0)
    assert probabilities(dataclasses.replace(exact, effect=1.0), -math.inf, 1e-9) == (0.0, 1.0)


def test_a_share_has_exact_tests() -> None:
    """8 of 9 against one half: (9 + 1)/512; 0 of 6 against one half: 1/64; none of 300 against one percent."""
    share = Finding("", 8 / 9, kind="share", successes=8, trials=9)
    assert probabilities(share, 0.5, math.inf) == (1.0, pytest.approx(10 / 512))
    assert probabilities(share, -math.inf, 0.5)[0] == pytest.approx(10 / 512)
    none = Finding("", 0.0, kind="share", successes=0, trials=6)
    assert probabilities(none, -math.inf, 0.5) == (1.0, pytest.approx(1 / 64))
    rare = Finding("", 0.0, kind="share", successes=0, trials=300)
    assert probabilities(rare, -math.inf, 0.01)[1] == pytest.approx(0.99**300)


def test_a_bound_says_nothing_about_what_lies_beyond_it() -> None:
    """At least 3, with 0.1: above one for sure, not below one, and perhaps or perhaps not 5 to 20."""
    least = Finding("", math.log(3.0), 0.1, log=True, kind="at least")
    assert probabilities(least, 0.0, math.inf)[1] < 1e-9
    assert probabilities(least, -math.inf, 0.0)[0] < 1e-9
    inside, outside = probabilities(least, math.log(5), math.log(20))
    assert inside == 1.0 and outside > 0.5
    # ten at least is not known to be within 5 to 20, as ten would be
    ten = dataclasses.replace(least, effect=math.log(10.0))
    for kind, support in (("at least", 1.0), ("at most", 1.0), ("measured", 0.0)):
        found = probabilities(dataclasses.replace(ten, kind=kind), math.log(5), math.log(20))
        assert found == (1.0, pytest.approx(support, abs=1e-9))
    most = dataclasses.replace(least, kind="at most")
    assert probabilities(most, 0.0, math.inf) == (1.0, 1.0)
    assert probabilities(most, math.log(5), math.log(20))[0] < 1e-6


def test_what_rests_on_a_bound_is_no_surer_than_the_bound() -> None:
    """At least 30, which is noise with p = 0.3: neither above one nor beyond twenty. With p = 0.01 both."""
    least = Finding("", math.log(30.0), 0.0, log=True, kind="at least", doubt=0.3)
    sure = dataclasses.replace(least, doubt=0.01)
    for finding in (least, sure):
        assert probabilities(finding, 0.0, math.inf) == (1.0, finding.doubt)
        assert probabilities(finding, math.log(5), math.log(20)) == (finding.doubt, 1.0)
    both = dataclasses.replace(sure, se=0.5, df=4.0)
    tail = float(student.sf(math.log(30.0) / 0.5, 4))
    assert probabilities(both, 0.0, math.inf)[1] == pytest.approx(0.01 + tail)


# ---------------------------------------------------------------------------- verdicts on made results


def test_verdicts_on_results_with_known_properties(judged: pd.DataFrame) -> None:
    """Variances made 2 and 3 times Eq. (44), errors falling as M^-1/2, control variables ten times slower, HMC off."""
    verdict = judged["verdict"]
    assert verdict["variance/experiment1"] == verdict["variance/experiment2"] == "discrepant"
    assert verdict["variance/dependence"] == "discrepant"
    assert judged.loc["variance/experiment1", "effect"] == pytest.approx(2.0, abs=0.3)
    assert verdict["slope/table2"] == "equivalent"
    assert judged.loc["slope/table2", "effect"] == pytest.approx(-0.5, abs=0.02)
    assert verdict["control-variables/slow"] == verdict["sampler/same-speed"] == "equivalent"
    assert judged.loc["control-variables/slow", "effect"] == pytest.approx(10.0)
    assert verdict["control-variables/usps"] == "not comparable"  # stopped before they sampled
    assert verdict["median/hmc"] == "consistent"
    assert verdict["median/close"] == "discrepant"  # made with errors of a hundredth
    assert verdict["order/sorted-evidence"] == verdict["soft-count/evidence"] == "consistent"
    assert judged.loc["order/sorted-evidence", "effect"] == pytest.approx(9.0, rel=0.1)
    assert verdict["order/extreme"] == "discrepant"
    assert verdict["order/interleaved"] == "equivalent"
    assert verdict["recursion"] == "consistent"
    assert verdict["works/no-failure"] == "inconclusive"
    assert verdict["works/right"] == "consistent"
    assert verdict["evidence/ess"] == "consistent"
    assert verdict["matlab-seconds"] == "not comparable"
    assert judged.loc["matlab-seconds", "effect"] > 0
    assert verdict["time/evidence-ten/shipped"] == "not run"
    assert verdict["tuning/small"] == "not run"
    assert judged["result_file"].str.len().min() > 0


def test_a_planted_opposite_turns_the_verdict(tmp_path: Path) -> None:
    worse = made_ordering(tmp_path, sorted_hard=0.3, shuffled_soft=2.0, interleaved_hard=3.0)
    verdict = judge(
        ResultFiles(ordering=(worse,)),
        *("order/sorted-evidence", "order/sorted-probability", "soft-count/evidence"),
        *("soft-count/probability", "order/interleaved"),
    )["verdict"]
    assert set(verdict) == {"discrepant"}


def test_a_check_that_fails_names_its_claim_and_a_file_its_lost_column(tmp_path: Path) -> None:
    (claim,) = (claim for claim in CLAIMS if claim.id == "order/interleaved")
    strange = dataclasses.replace(
        claim, parameters={**claim.parameters, "numerator": ["interleave", "hard"]}
    )
    files = ResultFiles(ordering=(made_ordering(tmp_path),))
    with pytest.raises(KeyError, match="interleave") as caught:
        judge_claims([strange], REGISTRY, files)
    (note,) = caught.value.__notes__
    assert "order/interleaved" in note and "['interleave', 'hard']" in note
    frame = pd.read_csv(files.ordering[0])
    frame.drop(columns="count").to_csv(files.ordering[0], index=False)
    with pytest.raises(ValueError, match=r"ordering\.csv: columns \['count'\] are missing"):
        judge_claims([claim], REGISTRY, files)


def test_a_wrong_recursion_is_discrepant(files: ResultFiles, tmp_path: Path) -> None:
    frame = pd.read_csv(files.equations[0])
    frame.loc[frame["equation"] == "48-51", "printed_error"] = 1e-3
    frame.to_csv(tmp_path / "equations.csv", index=False)
    wrong = ResultFiles(equations=(tmp_path / "equations.csv",))
    assert judge(wrong, "recursion")["verdict"].tolist() == ["discrepant"]


def test_runs_that_do_not_count_decide_nothing(tmp_path: Path) -> None:
    bad = {(p, "hmc-gpml", k): ("not converged", 3) for p in range(1, 10) for k in range(1, 7)}
    made = everything(tmp_path, methods=("orthant", "hmc-gpml"), bad=bad)
    frame = judge(made, "evidence/hmc", "evidence/hmc-usps", "median/hmc", "median/close")
    assert set(frame["verdict"]) == {"not comparable"}
    assert frame.loc["evidence/hmc", "note"].startswith("117 runs that did not converge")


@pytest.mark.parametrize("failed", [1, 3])
def test_with_the_papers_budget_every_run_is_judged(tmp_path: Path, failed: int) -> None:
    """As if the runs that did not converge had said that they did, on the problems that had it and on no other."""
    names = ("evidence/hmc", "evidence/hmc-usps", "median/hmc", "median/close", "mae-post/alike")
    bad = {(p, "hmc-gpml", k): ("not converged", failed) for p in range(1, 10) for k in range(1, 7)}
    methods = ("orthant", "control-variables", "ess-gpml", "hmc-gpml")
    made = everything(tmp_path, methods=methods, bad=bad)
    strict = judge(made, *names)

    def give_the_papers_budget(*problems: int) -> None:
        for path in made.experiment4:
            if path.stem == "control-variables":
                frame = pd.read_csv(path)
                length = np.where(frame["problem"].isin(problems), PUBLISHED_ITERATIONS, 100)
                frame.assign(iterations=length).to_csv(path, index=False)

    give_the_papers_budget(2)
    frame = judge(made, *names)
    if failed == 3:
        note = frame.loc["evidence/hmc", "note"]
        assert note.startswith("only one of the problems has a value that counts; every run counts")
    usps = [of.loc["evidence/hmc-usps", "effect"] for of in (frame, strict)]
    assert usps[0] == pytest.approx(usps[1], nan_ok=True)

    give_the_papers_budget(*range(1, 10))
    loose = judge(made, *names)
    assert loose["effect"].notna().all() and not loose["effect"].equals(strict["effect"])
    assert loose["note"].str.contains("every run counts, converged or not, as in the paper").all()
    assert not strict["note"].str.contains("every run counts").any()

    give_the_papers_budget()
    for path in made.experiment4:
        frame = pd.read_csv(path)
        if "mae_post" in frame:
            frame.assign(status="ok").to_csv(path, index=False)
    for path in made.probabilities:
        with np.load(path) as data:
            arrays = dict(data)
        if arrays:
            np.savez(path, **(arrays | {"ok": np.ones_like(arrays["ok"])}))
    same = ["effect", "se", "df", "verdict"]
    pd.testing.assert_frame_equal(judge(made, *names)[same], loose[same])


def test_statements_are_corrected_for_their_number(files: ResultFiles, tmp_path: Path) -> None:
    """Alone a statement may be discrepant that among many is not: p is corrected, and never smaller."""
    rows = judge_claims(CLAIMS, REGISTRY, files).set_index("id")
    tested = rows.dropna(subset="p_family")
    assert (tested["p_family"] >= tested["p"]).all() and (tested["p_family"] <= 1).all()
    assert (tested["verdict"] == "discrepant").equals(tested["p_family"] <= 0.05)
    alone = judge(files, "order/extreme")
    assert alone.loc["order/extreme", "p_family"] == alone.loc["order/extreme", "p"]
    assert rows.loc["order/extreme", "p_family"] > rows.loc["order/extreme", "p"]
    assert rows.loc["order/extreme", "detectable"] > alone.loc["order/extreme", "detectable"]


def test_families_are_the_paper_s_statements_and_their_variants(
    judged: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand, Holm: two statements with p = 0.02 and 0.03, beside a variant with 0.04, and an exact one."""
    found = {
        "slope/table1": Finding("", -0.45 + norm.isf(0.02), 1.0),
        "slope/table2": Finding("", -0.45 + norm.isf(0.03), 1.0),
        "time/evidence-hmc/proper": Finding("", -norm.isf(0.04), 1.0, log=True),
        "recursion": Finding("", 1e-15, 0.0),
    }
    claims = [
        dataclasses.replace(claim, check=claim.id, parameters={}, reads=())
        for claim in CLAIMS
        if claim.id in found
    ]
    monkeypatch.setattr(
        "gpcmc.audit.claims.CHECKS", {name: lambda _, f=f: f for name, f in found.items()}
    )
    frame = judge_claims(claims, REGISTRY, ResultFiles()).set_index("id")
    assert frame["p_family"].to_dict() == pytest.approx(
        {
            "slope/table1": 0.04,
            "slope/table2": 0.04,
            "time/evidence-hmc/proper": 0.04,
            "recursion": 1.0,
        }
    )
    assert frame["verdict"].tolist() == ["discrepant"] * 3 + ["consistent"]
    # what would be found belongs to the family, too
    levels = {"slope/table1": 0.025, "time/evidence-hmc/proper": 0.05}
    for name, level in levels.items():
        assert frame.loc[name, "detectable"] == pytest.approx(norm.isf(level) + norm.isf(0.2))
    assert judged.loc["recursion", "p_family"] == judged.loc["recursion", "p"]


@pytest.mark.parametrize("wrong", [[math.nan], [math.nan, 1e-15], [math.inf]])
def test_an_effect_that_is_no_number_is_refused_by_name(
    files: ResultFiles, tmp_path: Path, wrong: list[float]
) -> None:
    frame = pd.read_csv(files.equations[0]).query("equation == '48-51'")
    frame = pd.concat([frame] * len(wrong)).assign(printed_error=wrong)
    frame.to_csv(tmp_path / "equations.csv", index=False)
    with pytest.raises(ValueError, match=r"recursion: largest error: .*finite.*equations\.csv"):
        judge(ResultFiles(equations=(tmp_path / "equations.csv",)), "recursion")


def test_one_of_many_that_is_no_number_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = next(claim for claim in CLAIMS if claim.id == "works/right")
    claim = dataclasses.replace(claim, reads=())
    found = Finding("", df=9.0, each=((0.1, 0.1), (math.nan, 0.1), (0.2, 0.1)))
    monkeypatch.setitem(CHECKS, claim.check, lambda _: found)
    with pytest.raises(ValueError, match="works/right.*finite"):
        judge_claims([claim], REGISTRY, ResultFiles())
    # nor is one without a standard error
    found = dataclasses.replace(found, each=((0.1, 0.1), (0.3, math.nan), (0.2, 0.1)))
    assert judge_claims([claim], REGISTRY, ResultFiles())["verdict"].tolist() == ["not comparable"]


# ---------------------------------------------------------------------------- what is a unit, and what is in the family


def test_a_statement_without_region_or_error_is_shown_and_in_no_family(files: ResultFiles) -> None:
    shown = dataclasses.replace(
        next(claim for claim in CLAIMS if claim.id == "order/interleaved"),
        id="shown",
        low=math.nan,
        high=math.nan,
    )
    extreme = next(claim for claim in CLAIMS if claim.id == "order/extreme")
    frame = judge_claims([shown, extreme], REGISTRY, files).set_index("id")
    assert frame.loc["shown", "verdict"] == "not comparable"
    assert "no region" in frame.loc["shown", "note"] and frame.loc["shown", "effect"] > 0
    assert frame.loc["order/extreme", "p_family"] == frame.loc["order/extreme", "p"]


def test_rows_without_a_standard_error_are_not_comparable(
    files: ResultFiles, tmp_path: Path
) -> None:
    """One data set of Experiment 2, and one dimension of Experiment 1 with one problem."""
    paths = {}
    for kind, query in (("experiment1", "instance == 0"), ("experiment2", "dataset == 0")):
        path = next(path for path in getattr(files, kind))
        paths[kind] = (tmp_path / path.name,)
        pd.read_csv(path).query(query).to_csv(paths[kind][0], index=False)
    few = ResultFiles(**paths)
    ids = ("slope/table1", "slope/table2", "variance/experiment1", "variance/experiment2")
    frame = judge(few, *ids, "dimension")
    assert set(frame["verdict"]) == {"not comparable"}, frame["verdict"]
    assert frame["note"].str.len().min() > 0


def test_slopes_are_averaged_alike_and_carry_few_degrees_of_freedom(
    files: ResultFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: means of slopes -0.4 and -0.6 with errors 0.03 and 0.04 on 2 and 4 degrees of freedom."""
    rows = pd.DataFrame(
        {"table": 1, "problem": [1, 2], "published": -0.5, "ours": [-0.4, -0.6]}
    ).assign(ours_se=[0.03, 0.04], clusters=[3, 5])
    monkeypatch.setattr("gpcmc.audit.findings.slopes", lambda *_: rows)
    found = judge(files, "slope/table1").loc["slope/table1"]
    assert found["effect"] == pytest.approx(-0.5) and found["se"] == pytest.approx(0.025)
    df = (9 + 16) ** 2 / (81 / 2 + 256 / 4)
    assert found["df"] == pytest.approx(df)


def test_methods_that_are_not_the_papers_widen_no_range(tmp_path: Path) -> None:
    """A method of ours that is made to be far off leaves the paper's as much alike as they are."""
    made = everything(tmp_path, methods=("orthant", "control-variables", "ess-gpml", "hmc"))
    for path in made.experiment4:
        if path.stem == "hmc":
            frame = pd.read_csv(path)
            if "mae_post" in frame:
                frame.assign(mae_post=10 * frame["mae_post"]).to_csv(path, index=False)
    frame = judge(made, "mae-post/alike")
    # as many as judge it, and that HMC as shipped is not there
    note = ", ".join(f"Problem {problem} by 3 of 4 methods" for problem in range(1, 7))
    assert frame.loc["mae-post/alike", "note"] == f"6 of 6; {note}"


def test_a_problem_that_lacks_a_method_is_named(files: ResultFiles, tmp_path: Path) -> None:
    """Problem 9 has no control variables, in the paper neither; without those of problem 1 it has no median."""
    frame = judge(files, "median/hmc", "median/close")
    assert frame.loc["median/hmc", "note"] == "8 of 8; Problem 9 by 2 of 3 methods"
    assert frame.loc["median/close", "note"] == "8 problems; Problem 9 by 2 of 3 methods"
    bad = {(1, "control-variables", k): ("failed", 3) for k in range(1, 7)}
    made = everything(
        tmp_path, methods=("orthant", "control-variables", "ess-gpml", "hmc-gpml"), bad=bad
    )
    note = judge(made, "median/hmc").loc["median/hmc", "note"]
    assert note == "7 of 7; Problem 9 by 2 of 3 methods"


def test_sets_of_one_data_set_are_not_taken_for_problems(files: ResultFiles) -> None:
    frame = judge(files, "works/no-failure", "evidence/hmc-usps")
    assert frame.loc["evidence/hmc-usps", "note"] == "5 hyperparameter sets of one data set"
    # three replicates of six sets of eight problems: runs of Experiments 1 and 2 are no denominator
    assert frame.loc["works/no-failure", "note"] == "0 of 144; runs on 8 problems"


def test_runs_that_were_stopped_before_they_sampled_are_no_evidence(
    files: ResultFiles, tmp_path: Path
) -> None:
    """All sets of USPS stopped: nothing to judge. Two sampled, and one of these did not converge: one half."""
    found = judge(files, "control-variables/usps").loc["control-variables/usps"]
    assert found["verdict"] == "not comparable" and math.isnan(found["effect"])
    assert "18 stopped at its limit" in found["note"]
    assert "they need 601 to 606 control inputs or more, and our limit is 200" in found["note"]
    sampled = {(9, "control-variables", 5): ("not converged", 1)}
    sampled[9, "control-variables", 6] = ("ok", 0)
    made = everything(tmp_path, methods=("orthant", "control-variables"), bad=sampled)
    path = next(p for p in made.experiment4 if p.match("problem9/control-variables.csv"))
    frame = pd.read_csv(path).assign(max_controls=300)
    frame.to_csv(path, index=False)
    found = judge(made, "control-variables/usps").loc["control-variables/usps"]
    assert found["effect"] == 0.5 and found["verdict"] == "inconclusive"
    assert found["note"].startswith("1 of 2; ")
    assert "they need 601 to 604 control inputs or more, and our limit is 300" in found["note"]


def with_gap(files: ResultFiles, gap: float, own: float | None = None) -> pd.Series:
    """`works/right` where one run, of problem 2 with set 6 (without a certificate), is off, and says what of itself."""
    path = next(p for p in files.experiment4 if p.match("problem2/orthant.csv"))
    rows = pd.read_csv(path)
    one = (rows["set"] == 6) & (rows["replicate"] == 0)
    rows.loc[one, "log_evidence"] = -24.0 + gap
    rows.loc[one, "log_evidence_se"] = own or 0.02
    rows.to_csv(path, index=False)
    return judge(files, "works/right").loc["works/right"]


def test_one_run_that_is_wrong_beyond_errors_speaks_against_all(tmp_path: Path) -> None:
    """One of 120, either way; and each has to be within a nat for all to be."""
    files = everything(tmp_path, methods=("orthant",))
    joint = math.sqrt(0.02**2 + 0.0005**2 + 0.003**2)
    for gap in (-3.0, 3.0):
        found = with_gap(files, gap)
        assert found["verdict"] == "discrepant" and found["effect"] == pytest.approx(3.0)
        assert found["se"] == pytest.approx(joint)
        assert found["note"].endswith(f"problem 2, set 6, {gap:.2f} nats")
        # all replicates say the same of themselves: the errors of the reference have the fewest degrees
        assert found["df"] == 31
        assert found["p"] == pytest.approx(240 * student.sf(2.0 / joint, 31))
        seen = student.isf(0.05 / 240, 31) + student.ppf(0.8, 31)
        assert found["detectable"] == pytest.approx(seen * joint)
    for off in (1.05, 0.99):  # 2.5 and -0.5 joint standard errors beyond a nat: neither way is sure
        assert with_gap(files, -off)["verdict"] == "inconclusive"
    assert with_gap(files, -0.9)["verdict"] == "consistent"
    # right, but it does not know
    assert with_gap(files, 0.0, own=5.0)["verdict"] == "inconclusive"
    # without two methods that agree there is nothing to be wrong against
    evidence = next(path for path in files.reference if path.name == "evidence.csv")
    reference = pd.read_csv(evidence)
    pair = (reference["problem"] == 2) & (reference["set"] == 6)
    reference.assign(z=np.where(pair, -3.5, 1.0)).to_csv(evidence, index=False)
    found = with_gap(files, -3.0)
    assert found["verdict"] == "consistent" and found["note"].startswith("117 runs on 8 problems; ")


def test_a_run_is_as_sure_as_its_standard_error_is_known(tmp_path: Path) -> None:
    """Nine of its standard errors beyond a nat: not sure where those of replicates differ by a factor of 2.6."""
    files = everything(tmp_path, methods=("orthant",))
    for path in files.experiment4:
        rows = pd.read_csv(path)
        if "log_evidence_se" in rows:
            scale = np.sqrt(np.array([0.25, 1.0, 1.75]))[rows["replicate"]]
            rows.assign(log_evidence_se=0.02 * scale).to_csv(path, index=False)
    found = with_gap(files, -1.1, own=0.01)
    # squares of 0.25, 1 and 1.75 times the same have a relative variance of 0.75**2, and this is 2 / df
    df, joint = 2 / 0.75**2, math.sqrt(0.01**2 + 0.0005**2 + 0.003**2)
    assert found["df"] == pytest.approx(df)
    assert found["p"] == pytest.approx(240 * student.sf(0.1 / joint, df))
    assert found["verdict"] == "inconclusive" and 240 * student.sf(0.1 / joint, 31) < 1e-6


def test_runs_that_are_right_raise_no_alarm_too_often() -> None:
    """All are a nat off, standard errors have six degrees of freedom: one is called wrong in 5 % of audits at most."""
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(400):
        se = np.sqrt(rng.chisquare(6, 100) / 6)
        each = tuple(zip(1.0 + rng.standard_normal(100), se, strict=True))
        worst = max(each, key=lambda one: (one[0] - 1.0) / one[1])
        finding = Finding("", *worst, 6.0, each=each)
        alarms += probabilities(finding, -math.inf, 1.0)[0] <= 0.05
    assert alarms <= 0.05 * 400 + 2 * math.sqrt(0.05 * 0.95 * 400)
    assert alarms > 0  # nor is it deaf


# ---------------------------------------------------------------------------- the experiment on orders


def test_orders_are_permutations_with_the_stated_pattern() -> None:
    y = np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
    found = orders(y)
    assert all(sorted(order) == list(range(6)) for order in found.values())
    assert y[found["sorted"]].tolist() == [1, 1, 1, -1, -1, -1]
    assert y[found["interleaved"]].tolist() == [1, -1, 1, -1, 1, -1]


def test_orders_and_counts_on_a_known_truth(tmp_path: Path) -> None:
    """The two counts share their samples; sorting costs accuracy (a factor of 3 in mean square here, fixed seed)."""
    rows, _, _ = ordering(
        2, root=1, data_sets=3, runs=3, samples=2000, pieces=Pieces(tmp_path, [], 0)
    )
    frame = pd.DataFrame(rows)
    assert len(frame) == 3 * 3 * 3 * 2
    pairs = frame.groupby("seed")
    assert (pairs.size() == 2).all() and (pairs["count"].nunique() == 2).all()
    square = (frame["log_evidence_error"] ** 2).groupby([frame["order"], frame["count"]]).mean()
    assert square["sorted", "hard"] > 2 * square["shuffled", "hard"]
    assert square["shuffled", "soft"] < square["shuffled", "hard"]
    assert frame["probability_mae"].between(0, 0.1).all()
