"""A run beside the kept results: what differs is named, and chance alone seldom makes a difference."""

import numpy as np
from made_study import measures, rows

from recheck.record.remeasured import counts, remeasured

# data sets differ, but are the same in each run
UNITS = np.exp(0.2 * np.random.default_rng(1).normal(size=(30, 8)))


def study(seed):
    """Thirty estimates of three runs on each of eight data sets."""
    noise = np.exp(0.2 * np.random.default_rng(seed).normal(size=(30, 8, 3)))
    return measures(*[rows(f"t/{n:02}", UNITS[n, :, None] * noise[n]) for n in range(30)])


KEPT = study(0)


def outcomes(run, **options):
    return remeasured(run, KEPT, **options).set_index("id")["outcome"]


def test_the_one_that_was_altered_differs_and_no_other():
    run = study(5)
    run.loc[run["id"] == "t/07", "value"] *= 2.5
    found = remeasured(run, KEPT)
    assert found.loc[found["outcome"] == "differs", "id"].tolist() == ["t/07"]
    numbers = {"remeasured/identical": 0, "remeasured/agree": 29, "remeasured/differ": 1}
    assert counts(found) == {"kept": 30, "remeasured": 30, **numbers}


def test_false_alarms_are_no_more_than_the_error_rate():
    """Runs with another seed in which nothing was altered: one in twenty may have a difference, and fewer do."""
    alarms = [(outcomes(study(seed)) == "differs").any() for seed in range(1, 41)]
    assert sum(alarms) <= 2


def test_the_same_bytes_are_identical_and_rounding_agrees():
    assert set(outcomes(KEPT)) == {"identical"}
    assert set(outcomes(KEPT.assign(value=KEPT["value"] * (1 + 1e-12)))) == {"agrees"}
    exact = measures([{"id": "t", "unit": "u", "run": 0, "value": 2.0, "scale": "log", "se": 0.0}])
    other = exact.assign(value=2.001)
    assert remeasured(other, exact)["outcome"].tolist() == ["differs"]


def test_only_shared_runs_are_compared_and_seconds_are_left_out():
    few = KEPT[KEPT["unit"].isin(["data1", "data2"]) & (KEPT["id"] != "t/03")]
    found = outcomes(few)
    assert found["t/03"] == "not run" and set(found.drop("t/03")) == {"identical"}
    assert set(outcomes(KEPT.assign(unit="another"))) == {"not run"}
    assert "t/11" not in outcomes(KEPT, timing=["*/11"]).index
    assert counts(remeasured(KEPT, KEPT.iloc[:0])).keys() >= {"kept", "remeasured/differ"}


def test_other_settings_share_seeded_runs_alone():
    """With other settings a count, a bare value and one with its own error are other numbers; means of runs are not."""
    made = {"unit": "u", "run": 0, "scale": "log", "seed": "1/u"}
    own = [
        {**made, "id": "count", "value": 7.0, "seed": "", "source": "b.csv:2"},
        {**made, "id": "bare", "value": 2.0, "source": "b.csv:3"},
        {**made, "id": "own", "value": 2.0, "se": 0.1, "source": "b.csv:4"},
        {**made, "id": "same", "value": 3.0, "source": "b.csv:5"},
        {**made, "id": "exact", "value": 5.0, "seed": "", "source": "a.csv:2; c.csv"},
        *(
            {
                **made,
                "id": "mean",
                "run": k,
                "seed": f"1/u/{k}",
                "value": 2 + 0.1 * k,
                "source": "b.csv",
            }
            for k in range(4)
        ),
    ]
    kept = measures(own)
    run = measures([one | {"value": one["value"] * (one["id"] == "same" or 1.02)} for one in own])
    found = remeasured(run, kept, changed={"b.csv": range(1, 10)}).set_index("id")["outcome"]
    expected = dict.fromkeys(["count", "bare", "own"], "not run")
    expected |= {"same": "identical", "exact": "differs", "mean": "agrees"}
    assert found.to_dict() == expected
    sized = remeasured(run, kept, changed={"b.csv": range(1, 10)}, sized=["mean"])
    assert sized.set_index("id")["outcome"].to_dict() == {**expected, "mean": "not run"}
    # another row of the same file has other settings; arrays belong to the table beside them
    whole = remeasured(run, kept, changed={"b.csv": [99]}, sized=["same"])
    assert whole.set_index("id")["outcome"]["same"] == "not run"
    arrays = KEPT.assign(source="rows.npz", seed="")
    altered = arrays.assign(value=2 * arrays["value"])
    assert "differs" in set(remeasured(altered, arrays)["outcome"])
    of_rows = {"changed": {"rows.csv": [7]}, "sized": ["t/*"]}
    assert set(remeasured(altered, arrays, **of_rows)["outcome"]) == {"not run"}
    assert outcomes(KEPT, sized=["t/*"]).eq("identical").all(), "with the same settings"
    assert outcomes(KEPT, changed={"another.csv": range(1, 10)}).eq("identical").all()
