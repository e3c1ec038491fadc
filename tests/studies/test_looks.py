"""One name, one colour and one marker a method, in every figure and table of every study."""

import re
from collections import Counter
from importlib import import_module
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
import small
from matplotlib.colors import to_rgb

from recheck.report import style
from recheck.report.layout import read_layout
from studies.common.figures import _METHODS, METHODS, look_of, nothing, shown

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


def test_pictures_of_the_pages_have_the_same_looks():
    """A method of another package keeps its colour, and has no marker that the method has here."""
    for path in small.ROOT.glob("benchmarks/**/*.py"):
        text = path.read_text()
        assert not re.search(r'f?"C[\d{]|"[osD^v]{3}', text), path
    pairs = [
        *product(("scikit-learn", "GPy", "GPBoost"), ("laplace", "ep")),
        *product(("SciPy", "mvtnorm"), ("genz-bretz",)),
        ("TruncatedNormal", "minimax-tilting"),
    ]
    for package, method in pairs:
        look, ours = look_of(package, method), look_of("gpcmc", method)
        assert ours == METHODS[method]
        assert look.color == ours.color and look.marker != ours.marker
        assert look.label == f"{package}, {ours.label}"


def test_the_supplement_prints_a_figure_at_its_scale():
    """Text of the figures is made for it: 8 points in print."""
    text = (small.ROOT / "paper/supplement.tex").read_text()
    found = re.findall(r"\\figurehere(?:\[(\.\d+)\])?\{(?:(\w+)/)?(\w+)\}", text)
    assert len(found) > 15
    for scale, study, name in found:
        draw = import_module(f"studies.{study or 'atiya2021'}.figures").FIGURES[name]
        assert draw.scale == float(scale or 1), name


#: What deuteranopes and protanopes see of linear RGB (Machado, Oliveira and Fernandes 2009), and XYZ of linear RGB over
#: that of white.
SEEN = {
    "all": np.eye(3),
    "deuteranopes": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopes": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
}
XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2127, 0.7152, 0.0722], [0.0178, 0.1095, 0.8727]])


@pytest.mark.parametrize("who", SEEN)
def test_the_methods_of_the_first_figures_differ_for(who):
    """In CIELAB, where two is just noticeable side by side."""
    places = []
    for look in [*_METHODS][:7]:
        linear = ((np.array(to_rgb(look.color)) + 0.055) / 1.055) ** 2.4
        x, y, z = np.cbrt(XYZ @ np.clip(SEEN[who] @ linear, 0.0, 1.0))
        places.append(np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)]))
    assert min(np.linalg.norm(one - other) for one, other in combinations(places, 2)) > 20


@pytest.mark.parametrize("stamped", [True, False])
def test_a_figure_that_a_run_did_too_little_for_is_the_kept_one(stamped):
    def draw(book):
        figure = style.figure(2.0)
        axes = figure.add_subplot(title=book.name)
        if book.kept or not stamped:
            nothing(axes)
        return figure

    run = SimpleNamespace(name="run", kept=SimpleNamespace(name="kept", kept=None))
    figure = shown(draw)(run if stamped else run.kept)
    assert figure.axes[0].get_title(loc="left") == "kept"
    assert ("kept" in figure.get_suptitle()) == stamped
