"""One name, one colour and one marker a method, in every figure and table of every study."""

import re
from collections import Counter

import pytest
import small

from recheck.report.layout import read_layout
from studies.common.figures import _METHODS, METHODS

LAYOUTS = sorted(small.ROOT.glob("src/studies/*/layout.yaml"))
#: Fields whose values are methods.
FIELDS = ("method", "timed", "paper")
#: Names that are another method's elsewhere, and short forms of headings that have no room.
ELSEWHERE = {("paper", "ess"): "ess-gpml", ("paper", "hmc"): "hmc-gpml"}
SHORT = {"control var."}


def test_no_two_methods_look_alike():
    for what in ("label", "color"):
        assert max(Counter(getattr(look, what) for look in _METHODS).values()) == 1, what
    names = [name for known in _METHODS.values() for name in known.split()]
    assert len({*names}) == len(names) == len(METHODS)
    beside = [look.marker for look in _METHODS][:14]
    assert METHODS["genz-bretz"].marker == beside[-1], "what the paper compares comes first"
    assert len({*beside}) == len(beside)


@pytest.mark.parametrize("path", LAYOUTS, ids=lambda path: path.parent.name)
def test_tables_call_a_method_by_its_name(path):
    labels = read_layout(path).labels
    for field in FIELDS:
        for name, label in labels.get(field, {}).items():
            look = METHODS.get(ELSEWHERE.get((field, name), name))
            if look and label not in SHORT:
                assert label.split(",")[0] == look.label, f"{field}: {name}"


def test_no_figure_has_colours_of_its_own_for_methods():
    for path in small.ROOT.glob("src/studies/*/figures/*.py"):
        text = path.read_text()
        assert not re.search(r"zip\(.*(COLOURS|MARKERS)", text), path
        named = re.findall(r'"(#[0-9a-f]{6})"', text)
        assert all(len({one[1:3], one[3:5], one[5:]}) == 1 for one in named), "greys alone"


def test_the_supplement_prints_a_figure_at_its_scale():
    """Text of the figures is made for it: 8 points in print."""
    from importlib import import_module

    text = (small.ROOT / "paper/supplement.tex").read_text()
    found = re.findall(r"\\figurehere(?:\[(\.\d+)\])?\{(?:(\w+)/)?(\w+)\}", text)
    assert len(found) > 15
    for scale, study, name in found:
        draw = import_module(f"studies.{study or 'atiya2021'}.figures").FIGURES[name]
        assert draw.scale == float(scale or 1), name
