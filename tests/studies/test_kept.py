"""Kept rows: stored, put back, drawn, run again; altered ones are found."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recheck.record.files import (
    DamagedFileError,
    read_csv,
    read_json,
    write_arrays,
    write_csv,
    write_json,
)
from recheck.record.provenance import blas
from studies.common import blocks, rerun
from studies.common import kept as kept_module
from studies.common.code import digest_of_rows
from studies.common.configuration import read_config
from studies.common.kept import (
    DERIVED,
    DIFFERENT,
    IDENTICAL,
    LEAST,
    RESUMED,
    ROUNDED,
    SAME_LAW,
    UNJUDGED,
    Kept,
    changed,
    codes,
    differences,
    drawn,
    keep,
    resume,
)
from studies.common.plan import Plan
from studies.common.renew import _make, parts, renew, stale
from studies.common.rows import NO_DATA, Table, read_table, run_row, settings, table_of, write_table
from studies.neal1997 import config, priors

STUDY, NAME = "neal1997", "priors"
MADE = f"results/tiny/{STUDY}"
MODULE = import_module(f"studies.{STUDY}.experiments.{NAME}")
ROOT = Path(__file__).resolve().parents[2]


def configuration(**changes):
    return read_config("tiny", ROOT / "config") | changes


def rows_of(**changes):
    return MODULE.plan(config.check(configuration(**changes)))


class Plans(Plan):
    """The plan of this one experiment."""

    def __init__(self, **changes):
        super().__init__(configuration(pack={"seconds": 60, "across": "experiment"}, **changes))

    def plans(self, study):
        return {NAME: self.rows(study, NAME)}

    def blocks(self, study):
        return {name: one for name, one in super().blocks(study).items() if NAME in name}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The kept results of one experiment, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    rerun._kept.cache_clear()
    rows, made = rows_of(), Path("results/tiny", STUDY)
    write_table(made / NAME, table_of(run_row(MODULE.run, row, {}) for row in rows))
    for name in DERIVED:
        write_csv(made / f"{name}.csv", pd.DataFrame({"id": ["a"], "value": [0.1]}))
    record = {"config": configuration(), "commit": "abc", "cpu": "one", "blas": blas()}
    write_json("results/tiny/provenance.json", record)
    code = {NAME: codes(STUDY, NAME, rows)}
    assert keep(STUDY, "results/tiny", f"data/reference/{STUDY}", code) == len(rows)
    return Kept(f"data/reference/{STUDY}")


def again(rows, inputs=None):
    jobs = [
        {"study": STUDY, "experiment": NAME, "inputs": inputs or {}, "row": row} for row in rows
    ]
    return rerun.run_again(jobs, 2).set_index("row")


def test_kept_files_are_those_of_the_run_with_one_file_of_digests(kept):
    made = read_table(f"results/tiny/{STUDY}/{NAME}")
    pd.testing.assert_frame_equal(kept.table(NAME).rows, made.rows)
    assert kept.seconds.index.tolist() == [(NAME, row["row"]) for row in rows_of()]
    names = {path.name for path in kept.folder.iterdir()}
    assert f"{NAME}.csv" in names and f"{NAME}.npz" not in names, "it has no arrays"
    assert not [name for name in names if name.endswith(".digest")]


def test_that_nothing_is_kept_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="make keep"):
        Kept(tmp_path / "data/reference/none")


def test_rows_run_again_are_identical(kept):
    found = again(rows_of())
    assert set(found["outcome"]) == {IDENTICAL}
    assert all("value" in text and "nan" not in text for text in found["beside"])


def test_a_changed_constant_turns_its_rows_red(kept, monkeypatch):
    monkeypatch.setattr(priors, "_JITTER", 1e-3)
    found = again(rows_of())
    assert set(found["outcome"]) == {DIFFERENT}
    assert found.loc["long", "difference"].startswith("line 1, value: ")


def test_where_kept_rows_were_made_with_other_kernels_it_is_said(kept):
    assert rerun.other_kernels([STUDY], "data/reference") == ""
    there = [one | {"architecture": "Abacus"} for one in blas()]
    record = json.loads((kept.folder / "provenance.json").read_text()) | {"blas": there}
    write_json(kept.folder / "provenance.json", record)
    assert "kernels Abacus" in rerun.other_kernels([STUDY], "data/reference")


def test_an_altered_file_is_refused_by_name(kept):
    path = kept.folder / f"{NAME}.csv"
    path.write_text(path.read_text().replace("1", "2", 1))
    with pytest.raises(DamagedFileError, match=f"{NAME}.csv"):
        kept.table(NAME)


def test_an_altered_row_is_found_though_its_digest_was_altered_too(kept):
    path = kept.folder / f"{NAME}.csv"
    frame = read_csv(path, dtype=str, keep_default_na=False)
    last = frame.index[frame["row"] == "short"][-1]
    frame.loc[last, "value"] = "0.25"
    write_csv(path, frame)
    digest = json.loads(Path(f"{path}.digest").read_text())
    Path(f"{path}.digest").unlink()
    known = json.loads((kept.folder / "digests.json").read_text())
    write_json(kept.folder / "digests.json", known | {f"{NAME}.csv": digest})
    outcomes = again(rows_of())["outcome"]
    assert outcomes.pop("short") == DIFFERENT
    assert set(outcomes) == {IDENTICAL}


def test_a_row_that_reads_no_rows_of_another_experiment_has_all_its_data(kept):
    found = again(rows_of(), {"others": blocks.Input([], "others", [])})
    assert set(found["outcome"]) == {IDENTICAL}


def test_rows_are_put_back_where_their_job_writes_them(kept):
    rows, plan = rows_of(), Plans()
    (line,) = resume(kept, plan)
    assert line == f"{STUDY}, {NAME}: {len(rows)} put back"
    assert json.loads(Path(MADE, "resumed.json").read_text())["commit"] == "abc"
    back = blocks.table(plan.files(STUDY, [NAME]), NAME, [row["row"] for row in rows])
    assert not differences(kept.table(NAME), back)
    # a job that runs again takes them over
    (block,) = plan.blocks(STUDY).values()
    spares = blocks.Spares(Path(MADE, "rows"))
    made = [one.made for one in blocks.read_block(plan.path(block))[NAME].values()]
    assert all(spares.get(one) for one in made)


def test_of_a_block_that_is_not_complete_the_rows_wait_for_its_job(kept):
    path = kept.folder / f"{NAME}.csv"
    frame = read_csv(path, dtype=str, keep_default_na=False)
    write_csv(path, frame[frame["row"] != "short"])
    plan = Plans()
    (line,) = resume(Kept(kept.folder), plan)
    assert line == f"{STUDY}, {NAME}: 3 put back, 1 have other settings"
    (block,) = plan.blocks(STUDY).values()
    assert not Path(plan.path(block)).exists()
    spares = blocks.Spares(Path(MADE, "rows"))
    there = [
        spares.get(blocks.made_from(STUDY, NAME, row, digest_of_rows(STUDY, NAME, [row]), {}))
        for row in rows_of()
    ]
    assert [record.row for record in there if record] == ["long", "linear", "two"]
    blocks.forget(Path(MADE, "rows"))  # as at the end of the run that put them back
    (spare,) = Path(MADE, "rows", blocks.BEFORE).glob("*.npz")
    write_arrays(plan.path(block), {})
    blocks.forget(Path(MADE, "rows"))
    assert not spare.exists(), "the block is whole"


def test_rows_of_another_seed_are_not_put_back(kept):
    rows = rows_of(seed=7)
    (line,) = resume(kept, Plans(seed=7))
    assert line == f"{STUDY}, {NAME}: {len(rows)} have other settings"
    assert changed(kept, {NAME: rows})[f"{NAME}.csv"] == set(
        range(2, 2 + len(kept.table(NAME).rows))
    )
    assert not any(changed(kept, {NAME: rows_of()}).values())


def test_rows_of_other_code_are_put_back_once_they_were_run_again(kept):
    rows, path = rows_of(), kept.folder / "provenance.json"
    write_json(path, json.loads(path.read_text()) | {"code": {NAME: {"": "0" * 16}}})
    (line,) = resume(Kept(kept.folder), Plans())
    assert line == f"{STUDY}, {NAME}: {len(rows)} were made by other code"
    found = again(rows[:1]).reset_index()
    rerun.note(found, "data/reference")
    (line,) = resume(Kept(kept.folder), Plans())
    assert line == f"{STUDY}, {NAME}: {len(rows)} put back"
    for outcome, count, counts in [
        (ROUNDED, 1, True),
        (DIFFERENT, 1, False),
        (SAME_LAW, LEAST - 1, False),
        (SAME_LAW, LEAST, True),
        (UNJUDGED, LEAST, False),
        ([SAME_LAW, *[ROUNDED] * (LEAST - 1)], LEAST, True),
        ([SAME_LAW, *[UNJUDGED] * (LEAST - 1)], LEAST, False),
    ]:
        some = pd.concat([found] * count).assign(row=[f"row{k}" for k in range(count)])
        rerun.note(some.assign(outcome=outcome, study=STUDY), "data/reference")
        assert Kept(kept.folder).verified(NAME) == (set(found["code"]) if counts else set())
        (kept.folder / "verified.csv").unlink()


def test_what_was_run_again_before_is_still_told_but_for_former_code(kept):
    rows = rows_of()
    rerun.note(again(rows[:2]).reset_index(), "data/reference")
    rerun.note(again(rows[1:3]).reset_index().assign(outcome=ROUNDED), "data/reference")
    told = read_csv(kept.folder / "verified.csv").set_index("row")["outcome"]
    names = [row["row"] for row in rows[:3]]
    assert told.to_dict() == dict(zip(names, [IDENTICAL, ROUNDED, ROUNDED], strict=True))
    rerun.note(again(rows[:1]).reset_index().assign(code="another"), "data/reference")
    assert list(read_csv(kept.folder / "verified.csv")["row"]) == names[:1]


def test_what_was_told_of_a_method_stays_where_its_data_are_gone(kept):
    two = again(rows_of()[:2]).reset_index()
    rerun.note(two.assign(code=["one", "other"]), "data/reference")
    gone = two.assign(code=["one", "other"], outcome=[NO_DATA, IDENTICAL])
    rerun.note(gone, "data/reference")
    assert set(read_csv(kept.folder / "verified.csv")["code"]) == {"one", "other"}


def test_without_data_a_row_is_not_different_but_not_run(kept, tmp_path):
    """Whoever runs it again learns what is missing, and no row is noted as verified."""
    write_arrays(tmp_path / "none.npz", {})
    found = again(rows_of(), {"data": blocks.Input([str(tmp_path / "none.npz")])})
    assert set(found["outcome"]) == {NO_DATA}
    assert "none.npz" in found["difference"].iloc[0]
    rerun.note(found.reset_index(), "data/reference")
    assert not (kept.folder / "verified.csv").exists()


def test_a_share_is_drawn_by_seed(kept):
    plans = {NAME: rows_of()}
    every = drawn(kept, plans, 1.0, 1)[NAME]
    assert sorted(every) == sorted(row["row"] for row in plans[NAME])
    assert len(drawn(kept, plans, 1e-9, 1)[NAME]) == 1, "at least one"
    assert drawn(kept, plans, 0.5, 1) == drawn(kept, plans, 0.5, 1)
    assert len({tuple(drawn(kept, plans, 1e-9, seed)[NAME]) for seed in range(20)}) > 1
    assert drawn(kept, {NAME: rows_of(seed=7)}, 1.0, 1) == {}, "other settings are not drawn"


def test_where_rows_are_of_the_same_law_more_are_drawn(kept, monkeypatch):
    plans = {NAME: rows_of()}
    monkeypatch.setattr(kept_module, "LEAST", 3)
    rerun.note(again(plans[NAME][:2]).reset_index().assign(outcome=SAME_LAW), "data/reference")
    assert Kept(kept.folder).verified(NAME) == set()
    assert len(drawn(Kept(kept.folder), plans, 1e-9, 1)[NAME]) == 3
    rerun.note(again(plans[NAME][2:3]).reset_index().assign(outcome=SAME_LAW), "data/reference")
    assert len(Kept(kept.folder).verified(NAME)) == 1
    assert len(drawn(Kept(kept.folder), plans, 1e-9, 1)[NAME]) == 1


def table(value=0.5, **more):
    rows = pd.DataFrame([{"row": "a", "value": value, "count": 3, **more}], dtype=object)
    return Table(rows, pd.DataFrame(), {})


def texts(one):
    return one._replace(rows=one.rows.astype(str).replace("nan", ""))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (table(), ""),
        (table(0.5 + 1e-12), "rounding: line 1, value"),
        (table(0.6), "line 1, value: 0.5 kept, 0.6 here"),
        (table(name="x"), "line 1, name: nothing kept, x here"),
        (table(work_sweeps=9), "rounding: line 1, work_sweeps: nothing kept, 9 here"),
        (table()._replace(rows=pd.concat([table().rows] * 2)), "1 lines kept, 2 here"),
        (table()._replace(arrays={"p": np.zeros(2)}), "arrays [] kept, ['p'] here"),
    ],
)
def test_the_first_difference_is_named(other, said):
    found = differences(texts(table()), texts(other))
    assert found.startswith(said) and bool(found) == bool(said)


@pytest.mark.parametrize(
    ("array", "said"), [(np.ones(2), ""), (np.ones(2) + 1e-12, "rounding"), (np.zeros(2), "other")]
)
def test_arrays_are_compared_by_value(array, said):
    one, two = (table()._replace(arrays={"p": values}) for values in (np.ones(2), array))
    found = differences(texts(one), texts(two))
    assert said in found and bool(found) == bool(said)


def test_settings_leave_out_how_a_row_is_run():
    assert settings([{"row": "a", "seconds": 3.0, "modules": ["m"], "seed": "1/a"}]) == {
        "a": {"row": "a", "seed": "1/a"}
    }


# ----- made again in parts

HERE = {"commit": "def", "cpu": "two", "blas": [{"architecture": "Zen"}]}


def other_code(kept):
    """The same kept results, as if other code had made them, with one more column and another value."""
    table, record = kept.table(NAME), dict(kept.provenance)
    write_csv(kept.folder / f"{NAME}.csv", table.rows.assign(former="1", value="0.0"))
    record["code"] = {NAME: dict.fromkeys(record["code"][NAME], "other")}
    write_json(kept.folder / "provenance.json", record)
    return Kept(kept.folder)


def renewed(groups, processes=1):
    return list(renew(groups, Plans(), "data/reference", "parts", processes, HERE))


def test_rows_of_other_code_are_made_again_and_kept(kept):
    assert not stale(kept, Plans())
    right, other = kept.table(NAME), other_code(kept)
    rerun.note(again(rows_of()[:1]).reset_index().assign(outcome=DIFFERENT), "data/reference")
    (group,) = stale(other, Plans())
    assert [row["row"] for row in group.rows] == list(dict.fromkeys(right.rows["row"]))
    (said,) = renewed([group])
    assert said == f"{STUDY}, {NAME}: {len(group.rows)} rows made again"
    found = Kept(kept.folder)
    pd.testing.assert_frame_equal(found.table(NAME).rows, right.rows)
    assert not stale(found, Plans()) and found.renewed == {NAME: {"": HERE}}
    assert not len(read_csv(kept.folder / "verified.csv")), "it told of former rows"
    assert found.kernels(NAME) == {"Zen"} and kept.kernels(NAME) != {"Zen"}
    resume(found, Plans())
    assert read_json(f"results/tiny/{STUDY}/{RESUMED}")["renewed"] == found.renewed
    assert found.seconds.index.equals(kept.seconds.index)


def test_rows_that_are_planned_otherwise_take_a_whole_run(kept):
    class Others(Plans):
        def rows(self, study, experiment):
            return [{**row, "draws": 7} for row in super().rows(study, experiment)]

    assert not stale(other_code(kept), Others())


def test_what_was_interrupted_goes_on_where_it_was(kept, monkeypatch):
    monkeypatch.setattr("studies.common.renew._PART", 0.0)  # a part a row
    (group,) = stale(other_code(kept), Plans())
    made, run = [], MODULE.run

    def interrupted(row, inputs):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(row["row"])
        return run(row, inputs)

    each = parts(group, kept, Plans(), "parts")
    monkeypatch.setattr(MODULE, "run", interrupted)
    Path("parts").mkdir()
    with pytest.raises(KeyboardInterrupt):
        list(map(_make, each))
    assert [part.path.exists() for part in each] == [True, True, *[False] * (len(each) - 2)]
    assert Kept(kept.folder).provenance["code"][NAME] == {"": "other"}, "nothing is kept yet"
    before = [part.path.stat().st_mtime_ns for part in each[:2]]
    monkeypatch.setattr(MODULE, "run", run)
    renewed([group], processes=2)
    assert [part.path.stat().st_mtime_ns for part in each[:2]] == before
    assert not stale(Kept(kept.folder), Plans())


def test_a_group_without_its_raw_data_stays_as_it_was(kept, monkeypatch):
    (group,) = stale(other_code(kept), Plans())
    lost = blocks.Input(["patterns/none.npz"])
    monkeypatch.setattr(Plans, "job_of", lambda *given: job(*given[1:]) | {"inputs": {"x": lost}})
    monkeypatch.setattr(blocks.Reader, "arrays", lambda *_: {})
    (said,) = renewed([group])
    assert "patterns/none.npz has none of its raw data" in said
    assert len(stale(Kept(kept.folder), Plans())) == 1


def job(study, experiment, row):
    return {"study": study, "experiment": experiment, "row": row, "inputs": {}}
