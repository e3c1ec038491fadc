"""Files of scales over config/default.yaml: they say what differs and nothing else, and what is wrong is refused."""

import re
import shutil
from functools import cache
from pathlib import Path

import pytest
import yaml

from studies.common.configuration import merged, read_config

FOLDER = Path(__file__).resolve().parents[2] / "config"
OVERLAYS = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "default")
#: Mappings whose keys are names: of methods and their options, of runs, of data sets.
NAMES = re.compile(
    r".*\.methods(\.[^.]+(\.(options|final))?)?|.*\.runs|.*\.crossvalidation\.\w+\.\w+"
)


@cache
def of(name):
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def compared(default, overlay, where=""):
    """Every key of an overlay that is no mapping in both: its mapping, path, value, and the default's if it has one."""
    for key, value in overlay.items():
        if isinstance(value, dict) and isinstance(default.get(key), dict):
            assert value, f"{where}.{key} changes nothing"
            yield from compared(default[key], value, f"{where}.{key}")
        else:
            yield where, f"{where}.{key}", value, default.get(key, KeyError)


def test_the_scales():
    assert OVERLAYS == ["published", "smoke", "tiny"]
    assert next(iter(of("default"))) == "scale"
    assert read_config("standard", FOLDER) == read_config(folder=FOLDER) == of("default")


@pytest.mark.parametrize("scale", OVERLAYS)
def test_an_overlay_says_only_what_differs(scale):
    for where, path, value, default in compared(of("default"), of(scale)):
        assert value != default, f"{path} repeats the default"
        if default is KeyError:
            assert value is not None, f"{path}: nothing to drop"
            assert NAMES.fullmatch(where), f"{path} is unknown in default.yaml"


@pytest.mark.parametrize("scale", OVERLAYS)
def test_an_overlay_goes_over_the_default(scale):
    found = read_config(scale, FOLDER)
    assert found["scale"] == scale
    default = of("default")
    for _, path, value, _ in compared(default, of(scale)):
        *folders, last = path.removeprefix(".").split(".")
        part = found
        for name in folders:
            part = part[name]
        assert (last not in part) if value is None else (part[last] == value)


def test_merging():
    default = {"a": {"b": 1, "c": [1, 2], "d": {"e": 1}}, "f": 2}
    overlay = {"a": {"b": None, "c": [3], "g": {"h": 1}}, "f": {"i": 1}}
    assert merged(default, overlay) == {
        "a": {"c": [3], "d": {"e": 1}, "g": {"h": 1}},
        "f": {"i": 1},
    }
    assert default == {"a": {"b": 1, "c": [1, 2], "d": {"e": 1}}, "f": 2}
    overlay["a"]["c"].append(4)
    assert merged(default, {"a": {"d": 5}})["a"] == {"b": 1, "c": [1, 2], "d": 5}
    for wrong, key in (
        ({"a": {"x": None}}, "a.x"),
        ({"f": {"x": None}}, "f.x"),
        ({"x": None}, "x"),
    ):
        with pytest.raises(ValueError, match=f"^{key}: null drops a key, and there is none"):
            merged(default, wrong)


def test_what_snakemake_is_given_goes_over_the_files(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text("seed: 1\natiya2021: {benchmark: {parts: [4]}, ordering: {runs: 9}}\n")
    given = {
        "seed": 7,
        "atiya2021": {"benchmark": {"parts": ["2", "8"]}, "ordering": {"runs": "3"}},
    }
    given["atiya2021"]["experiment4"] = {"methods": {"ess": "null"}}
    given["data"] = {"standardise": {"usps": "true"}}
    found = read_config("smoke", FOLDER, files=[file], given=given)
    assert (found["scale"], found["seed"]) == ("smoke", 7)
    study = found["atiya2021"]
    assert study["benchmark"]["parts"] == [2, 8] and study["ordering"]["runs"] == 3
    assert (
        "ess" not in study["experiment4"]["methods"]
        and found["data"]["standardise"]["usps"] is True
    )
    assert read_config("smoke", FOLDER, files=[file])["atiya2021"]["ordering"]["runs"] == 9


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "config")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x80\xff\x00a: b", "not YAML in UTF-8"),
        (b"- a", "must be a mapping; got ['a']"),
        (b"", "must be a mapping; got None"),
        (b"seed: 1\nseed: 2", "'seed' is given twice"),
        (b"data: {retries: 1, retries: 2}", "'retries' is given twice"),
        (b"seed: [", "not YAML"),
        (b"data: {retrys: null}", "data.retrys: null drops a key"),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_name(folder, content, said):
    (folder / "my.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=r"my\.yaml") as refusal:
        read_config("my", folder)
    assert said in str(refusal.value)


def test_scales_are_those_that_have_a_file(folder):
    for scale in ("huge", "default", 1, "../config/tiny"):
        with pytest.raises(ValueError, match="scale: given") as refusal:
            read_config(scale, folder)
        assert str(refusal.value).endswith(
            "allowed is one of ['published', 'smoke', 'standard', 'tiny']"
        )
    (folder / "my.yaml").write_text("seed: 5\n")
    assert read_config("my", folder) == of("default") | {"scale": "my", "seed": 5}
