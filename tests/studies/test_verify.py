"""Kept pieces under changed code, with jobs of a toy package whose samplers take no time."""

import datetime
import functools
import json
import zipfile

import numpy as np
import pytest

from studies.common import code, kept, pieces, verify
from studies.common.comparison import BYTES, ROUNDED, difference
from studies.common.kept import read_archive, resume
from studies.common.machine import processor
from studies.common.pieces import Pieces
from studies.common.seeds import generator
from studies.common.verify import Verification, carry_over, plan, verify_job

SAMPLERS = {
    "slow": "import numpy as np\nSCALE = 2.0\n\ndef draw(rng, size):\n    return SCALE * rng.random(size)\n",
    "fast": "import numpy as np\nSHIFT = 1.0\n\ndef draw(rng, size):\n    return rng.random(size) + SHIFT\n",
}
#: Job to its sampler.
JOBS = {"toy/problem1_slow": "slow", "toy/problem2_slow": "slow", "toy/problem1_fast": "fast"}
COMMIT = "0" * 40


class Toy:
    """A package `gpcmc.<sampler>`, three jobs of six pieces, and a store of their pieces."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.store, self._monkeypatch = folder, folder / "store", monkeypatch
        (folder / "src/gpcmc").mkdir(parents=True)
        for name, text in SAMPLERS.items():
            self.edit(name, text)
        monkeypatch.setattr(code, "_SOURCE", folder / "src")
        self.forget()
        for job in JOBS:
            self.run(job)
        kept.keep(folder / "pieces", self.store)

    def edit(self, sampler, text):
        (self.folder / f"src/gpcmc/{sampler}.py").write_text(text)
        self.forget()

    def forget(self):
        for name in ("_module", "_path"):
            wrapped = getattr(code, name).__wrapped__
            self._monkeypatch.setattr(code, name, functools.cache(wrapped))

    def run(self, job, verify=None):
        """Run a job, with the sampler's source as it is now."""
        sampler = JOBS[job]
        namespace = {}
        exec((self.folder / f"src/gpcmc/{sampler}.py").read_text(), namespace)
        made = Pieces(
            self.folder / "pieces" / job, [f"gpcmc.{sampler}"], [job], job=job, check=verify
        )

        def compute(k):
            values = namespace["draw"](generator(f"1/{job}/{k}"), 4)
            rows = [{"piece": k, "mean": float(values.mean()), "none": float("nan")}]
            return rows, [{"cpu_seconds": 1.0 + k}], {"values": values}

        for k in range(6):
            made.get(f"piece{k}", functools.partial(compute, k))

    def verified(self, share=0.3, **given):
        """Plan, verify, carry over."""
        planned = plan(self.store, share=share, **given)
        reports = [
            json.loads(
                json.dumps(
                    verify_job(
                        job,
                        self.store,
                        of["drawn"],
                        functools.partial(self.run, job),
                    )
                )
            )
            for job, of in planned["jobs"].items()
        ]
        return carry_over(
            reports, self.store, self.store, share=share, seed_root=1, commit=COMMIT,
            date=datetime.date(2026, 1, 2),
        )  # fmt: skip

    def rewrite(self, job, change):
        """Change pieces by name, with digests as they should be."""
        archive = read_archive(self.store / f"{job}.zip", job)
        (record,) = archive.records.values()
        found = {name: pieces.unverified(c)[0] for (name, _), c in archive.pieces.items()}
        change(found)
        kept.write_archive(kept.carried(archive, record, found), self.store / f"{job}.zip")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return Toy(tmp_path, monkeypatch)


def test_where_nothing_has_changed_nothing_is_drawn(toy):
    assert plan(toy.store)["jobs"] == {}
    every = plan(toy.store, share=0.0, every=True)
    drawn = {job: len(of["drawn"]) for job, of in every["jobs"].items()}
    assert (
        drawn["toy/problem1_slow"] + drawn["toy/problem2_slow"] == drawn["toy/problem1_fast"] == 2
    )


def test_a_renamed_function_carries_over(toy):
    text = SAMPLERS["slow"].replace("SCALE", "WIDTH")
    toy.edit("slow", text)
    found = toy.verified()
    assert set(found["carried"]) == {"toy/problem1_slow", "toy/problem2_slow"} and not found["void"]
    assert found["unverified"] == ["toy/problem1_fast"]
    back = {job.job: job for job in resume(toy.store, toy.folder / "back")}
    assert {job: (of.pieces, of.outdated) for job, of in back.items()} == dict.fromkeys(
        JOBS, (6, ())
    )
    (record,) = read_archive(
        toy.store / "toy/problem1_slow.zip", "toy/problem1_slow"
    ).records.values()
    (step,) = record["carried"]
    assert step["commit"] == COMMIT and step["date"] == "2026-01-02" and step["seed"] == 1
    assert step["pieces"] == 6 and step["same_bytes"] == step["recomputed"] >= 2
    assert step["comparison"] == BYTES and record["processor"] == processor()
    # the jobs take the pieces as their own, and a second change is added to the history
    before = {path.name for path in (toy.folder / "back/toy/problem1_slow").iterdir()}
    made = Pieces(
        toy.folder / "back/toy/problem1_slow",
        ["gpcmc.slow"],
        ["toy/problem1_slow"],
        job="toy/problem1_slow",
    )
    for k in range(6):
        made.get(f"piece{k}", pytest.fail)
    assert {path.name for path in (toy.folder / "back/toy/problem1_slow").iterdir()} == before
    made.get("further", lambda: ([], [], {}))
    (path,) = (toy.folder / "back/toy/problem1_slow").glob("*.json")
    assert "carried" in json.loads(path.read_text()), "how they came here is not forgotten"
    toy.edit("slow", text + "\nunused = 1\n")
    toy.verified()
    (record,) = read_archive(
        toy.store / "toy/problem1_slow.zip", "toy/problem1_slow"
    ).records.values()
    assert len(record["carried"]) == 2


def test_a_changed_constant_voids_the_jobs_of_that_sampler_alone(toy):
    toy.edit("slow", SAMPLERS["slow"].replace("2.0", "2.000001"))
    toy.edit("fast", SAMPLERS["fast"].replace("SHIFT", "OFFSET"))
    found = toy.verified()
    assert set(found["void"]) == {"toy/problem1_slow", "toy/problem2_slow"} and set(
        found["carried"]
    ) == {"toy/problem1_fast"}
    assert not (toy.store / "toy/problem1_slow.zip").exists()
    (said, *_) = found["void"]["toy/problem1_slow"]["differences"].values()
    assert said.startswith("row 1, mean: ")
    text = verify.summary(found)
    assert "toy/problem1_slow: void, 6 pieces" in text and "6 pieces of 1 jobs carried over" in text


def test_an_edited_piece_with_a_right_digest_is_found_when_it_is_drawn(toy):
    toy.edit("fast", SAMPLERS["fast"] + "\nunused = 1\n")

    def edit(found):
        found["piece3"][0][0]["mean"] += 1e-9

    toy.rewrite("toy/problem1_fast", edit)
    found = toy.verified(share=1.0)
    assert set(found["void"]["toy/problem1_fast"]["differences"]) == {"piece3"}

    toy.rewrite("toy/problem2_slow", lambda found: found["piece5"][2]["values"].__setitem__(0, 9.0))
    toy.edit("slow", SAMPLERS["slow"] + "\nunused = 1\n")
    found = toy.verified(share=1.0)
    assert found["void"]["toy/problem2_slow"]["differences"] == {
        "piece5": "array values: other values"
    }
    # a job of the same family is void too: nobody can tell an edit from a change of the code that they share
    assert found["void"]["toy/problem1_slow"]["differences"] == {}


def test_exchanged_pieces_are_found(toy):
    def exchange(found):
        found["piece1"], found["piece2"] = found["piece2"], found["piece1"]

    toy.rewrite("toy/problem1_fast", exchange)
    toy.edit("fast", SAMPLERS["fast"] + "\nunused = 1\n")
    found = toy.verified(share=1.0)
    assert set(found["void"]["toy/problem1_fast"]["differences"]) == {"piece1", "piece2"}


def test_a_damaged_piece_is_named_and_left_behind(toy):
    archive = toy.store / "toy/problem1_fast.zip"
    with zipfile.ZipFile(archive) as stored:
        (name,) = (n for n in stored.namelist() if n.startswith("piece4-"))
        place = stored.getinfo(name).header_offset + len(name) + 60
    content = bytearray(archive.read_bytes())
    content[place] ^= 0xFF
    archive.write_bytes(bytes(content))
    toy.edit("fast", SAMPLERS["fast"] + "\nunused = 1\n")
    found = toy.verified()
    assert found["carried"]["toy/problem1_fast"]["pieces"] == 5
    assert len(found["refused"]) == 1 and "toy/problem1_fast, piece piece4" in found["refused"][0]
    # a damaged piece that had been drawn before cannot be compared: nothing is carried over
    report = verify_job(
        "toy/problem1_fast", toy.store, ["piece4"], functools.partial(toy.run, "toy/problem1_fast")
    )
    assert report["found"] == {"piece4": "the kept piece is damaged or missing"}


def test_pieces_of_the_first_edition_get_their_digests(toy):
    """They had a key and no digest of their content; their modules are gone."""
    archive = read_archive(toy.store / "toy/problem1_fast.zip", "toy/problem1_fast")
    (record,) = archive.records.values()
    record = record | {"modules": ["gpcmc.gone"], "code": {"gpcmc.gone": "0"}}
    old = kept.Archive("toy/problem1_fast", {pieces.key_of(record): record})
    for (name, _), content in archive.pieces.items():
        (rows, timing, arrays), _ = pieces.unverified(content)
        path = toy.folder / "old.npz"
        np.savez(path, rows=np.array(json.dumps([rows, timing])), **arrays)
        old.pieces[name, pieces.key_of(record)] = path.read_bytes()
    kept.write_archive(old, toy.store / "toy/problem1_fast.zip")
    assert {job.job: job.pieces for job in resume(toy.store, toy.folder / "a")}[
        "toy/problem1_fast"
    ] == 0
    assert plan(toy.store)["jobs"]["toy/problem1_fast"]["outdated"] == ["gpcmc.gone"]
    assert set(toy.verified()["carried"]) == {"toy/problem1_fast"}
    assert {job.job: job.pieces for job in resume(toy.store, toy.folder / "b")}[
        "toy/problem1_fast"
    ] == 6


def test_on_another_processor_rounding_is_allowed(toy, monkeypatch):
    monkeypatch.setattr(verify, "processor", lambda: "another")
    toy.edit(
        "slow",
        SAMPLERS["slow"].replace(
            "SCALE * rng.random(size)", "rng.random(size) * SCALE * (1 + 1e-12)"
        ),
    )
    found = toy.verified()
    assert set(found["carried"]) == {"toy/problem1_slow", "toy/problem2_slow"}
    (record,) = read_archive(
        toy.store / "toy/problem1_slow.zip", "toy/problem1_slow"
    ).records.values()
    (step,) = record["carried"]
    assert (step["comparison"], step["processor"]) == (ROUNDED, "another")
    assert record["processor"] == processor() and step["same_bytes"] == 0
    toy.edit("slow", SAMPLERS["slow"].replace("2.0", "2.0001"))
    assert set(toy.verified()["void"]) == {"toy/problem1_slow", "toy/problem2_slow"}


def test_only_drawn_pieces_are_computed_and_the_job_stops_after_the_last():
    stored = {f"p{k}": ([{"x": float(k)}], [], {}) for k in range(4)}
    check, computed = Verification(stored, {"p1"}, BYTES), []

    def compute(k):
        computed.append(k)
        return stored[f"p{k}"]

    for k in range(2):
        assert check.get(f"p{k}", functools.partial(compute, k)) == stored[f"p{k}"]
    assert computed == [1] and check.found == {"p1": ""}
    with pytest.raises(verify._Enough):
        check.get("p2", functools.partial(compute, 2))


def test_the_draw(toy):
    toy.edit("slow", SAMPLERS["slow"] + "\nunused = 1\n")
    one, same, other = (plan(toy.store, share=0.5, seed_root=k) for k in (1, 1, 2))
    assert one == same != other
    assert one["seconds"] == 2 * 21.0 and one["drawn_seconds"] >= 21.0
    few = plan(toy.store, share=0.0, least=1)
    assert sum(len(of["drawn"]) for of in few["jobs"].values()) == 1
    # the first of two is piece k with probability proportional to 1 / (1 + k)
    first = [verify._draw({"a": 1.0, "b": 9.0}, 1, f"{k}/x") for k in range(200)]
    assert 160 < first.count(["a"]) < 196  # 180 expected, 4.7 deviations
    for share, least in ((-0.1, 2), (1.1, 2), (0.1, 0)):
        with pytest.raises(ValueError, match="must be"):
            plan(toy.store, share=share, least=least)


def test_what_differs_is_said_and_rounding_is_allowed_elsewhere():
    one = (
        [{"x": 1.0, "n": 3, "s": "a", "w": {"k": [0.5]}}],
        [{"t": 1}],
        {"v": np.array([1.0, np.nan])},
    )

    def other(**changes):
        array = changes.pop("v", one[2]["v"])
        return [one[0][0] | changes], [{"t": 2}], {"v": array}

    assert difference(one, other(), BYTES) == ""
    near = other(x=1.0 + 1e-9, v=np.array([1.0 + 1e-9, np.nan]), w={"k": [0.5 + 1e-9]})
    assert difference(one, near, BYTES).startswith("row 1, x: 1.0 kept, 1.000000001 here")
    assert difference(one, near, ROUNDED) == ""
    for changes, said in (
        ({"x": 1.001}, "row 1, x"),
        ({"n": 4}, "row 1, n: 3 kept, 4 here"),
        ({"s": "b"}, "row 1, s"),
        ({"w": {"k": [0.6]}}, "row 1, w"),
        ({"y": 1}, "row 1: columns"),
        ({"v": np.array([1.0, 2.0])}, "array v: other values"),
        ({"v": np.ones(3)}, "array v: float64 (2,) kept, float64 (3,) here"),
    ):
        assert difference(one, other(**changes), ROUNDED).startswith(said)
    assert difference(one, ([], [], {}), BYTES) == "1 rows kept, 0 here"
    assert difference(one, (one[0], [], {}), BYTES) == "arrays ['v'] kept, [] here"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("experiment4/problem1/hmc", "experiment4/problem9/hmc", True),
        ("tenclass/n4649_l2.35_a2.6", "tenclass/n4649_l2.1_a2.85", True),
        ("outliers/1997-t_chain0", "outliers/2022-t_chain12", True),
        ("experiment1/N50/hard", "experiment2/N50/hard", False),
        ("chains/ard_n50_d2_set0_latent", "chains/isotropic_n50_d2_set0_latent", False),
        ("experiment4/problem1/hmc", "experiment4/problem1/ess", False),
    ],
)
def test_families_differ_in_more_than_numbers(one, other, same):
    assert (verify.family(one) == verify.family(other)) == same
