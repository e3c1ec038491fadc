"""Provenance and figures: what a run was made with, and bytes that do not depend on the day."""

import subprocess

import numpy as np
import pandas as pd
import pytest

from recheck.record.provenance import provenance, run_timing, web_address, write_manifest
from recheck.report import style


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://user:secret@x.org/a/b.git", "https://x.org/a/b"),
        ("git@x.org:a/b.git", "https://x.org/a/b"),
        ("ssh://git@x.org/a/b", "https://x.org/a/b"),
        ("/srv/git/b", None),
        (None, None),
    ],
)
def test_web_address(remote, address):
    assert web_address(remote) == address


def test_record(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a").write_text("a")
    (tmp_path / "registry.csv").write_text("file,sha256\na,0\nb,1\n")
    config = {"scale": "tiny", "seed": 7, "x": {"b": 1, "a": 2}}
    raw = {"registry": tmp_path / "registry.csv", "raw": tmp_path / "raw"}
    record = provenance(tmp_path, config, ["numpy", "not-there"], extra="e", **raw)
    assert record == provenance(tmp_path, config, ["numpy", "not-there"], extra="e", **raw)
    assert record["commit"] is None and record["dirty"] is None
    assert (record["scale"], record["seed"], record["extra"]) == ("tiny", 7, "e")
    assert record["packages"] == {"numpy": np.__version__}
    assert record["raw_data"]["a"]["as_registered"] is False
    assert record["raw_data"]["b"] == {"sha256": None, "as_registered": False}
    assert record["cpu"] and record["blas"]
    config = {"x": {"a": 2, "b": 1}, "seed": 7, "scale": "tiny"}
    swapped = provenance(tmp_path, config, [], **raw)
    assert swapped["config_sha256"] == record["config_sha256"]


def test_cpu_time(tmp_path):
    (tmp_path / "part").mkdir()
    frame = pd.DataFrame({"run": [1, 2], "cpu_seconds": [1800.0, 1800.0], "set_cpu_seconds": 0.0})
    frame.to_csv(tmp_path / "part" / "x_timing.csv", index=False)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").touch()
    timing = tmp_path / "part" / "x_timing.csv"
    found = run_timing({timing: "part"}, tmp_path / "logs")
    assert found["cpu_hours"] == 1 and found["cpu_seconds"] == {"part": 3600.0}
    assert found["start"] and found["end"]
    assert run_timing({}, tmp_path / "nothing")["start"] is None


def test_manifest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b", "a", "c"):
        (tmp_path / name).write_text(name)
    write_manifest(["b", "a", "c", "a"], "MANIFEST")
    lines = (tmp_path / "MANIFEST").read_text().splitlines()
    assert [line[64:] for line in lines] == ["  a", "  b", "  c"]
    check = ["sha256sum", "--check", "--quiet", "MANIFEST"]
    assert subprocess.run(check, check=False).returncode == 0
    (tmp_path / "a").write_text("changed")
    assert subprocess.run(check, check=False).returncode


def test_figures_are_the_same_bytes(tmp_path):
    def draw(name):
        with style.style():
            drawn = style.figure(2.0)
            panels = drawn.subplots(1, 2)
            for axes in panels:
                axes.plot([1, 2], [1, 2], label="same")
                axes.set_title("A")
            panels[1].plot([1, 2], [2, 1], label="other")
        style.save(drawn, tmp_path / f"{name}.pdf", tmp_path / f"{name}.png")
        return [(tmp_path / f"{name}.{end}").read_bytes() for end in ("pdf", "png")]

    assert draw("one") == draw("two")
