"""Every example of README and of the documentation runs, and every file that these name is there."""

import ast
import doctest
import os
import re
import runpy
import textwrap
import warnings
from importlib import import_module
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest
import yaml
from sklearn.exceptions import ConvergenceWarning

from recheck.record.files import write_csv
from studies.common.configuration import read_config
from studies.common.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.rst"), *(ROOT / "docs/methods").glob("*.rst")])
DOCSTRINGS = [
    p for p in sorted((ROOT / "src").rglob("*.py")) if "\n    >>> " in p.read_text("utf-8")
]
SCALES = ["published", "standard", "smoke", "tiny"]
GALLERY = sorted((ROOT / "docs/gallery").glob("*.py"))
TEXTS = [
    ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "src/gpcmc/README.md")
]
README_CODE = [
    code
    for text in (TEXTS[0], TEXTS[-1])
    for code in re.findall(r"^```python\n(.*?)^```$", text.read_text(encoding="utf-8"), re.M | re.S)
] + [
    textwrap.dedent(code)
    for code in re.findall(
        r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)",
        (ROOT / "docs/workflow.rst").read_text(encoding="utf-8"),
        re.M,
    )
]


@pytest.mark.parametrize("code", README_CODE, ids=lambda code: code.splitlines()[-1][:40])
def test_code_of_readme_runs(code, monkeypatch, tmp_path):
    """Where it reads a table of a finished run, the table is the kept one."""
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r'"results/standard/atiya2021/(.*?)"', code):
        kept = ROOT / "data/reference/atiya2021" / name
        target = tmp_path / "results/standard/atiya2021" / name
        target.parent.mkdir(parents=True)
        write_csv(target, pd.read_csv(kept))
    exec(compile(code, "README.md", "exec"), {})


def test_readme_has_examples():
    assert len(README_CODE) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page_run(page):
    assert doctest.testfile(str(page), module_relative=False).failed == 0


@pytest.mark.parametrize("source", DOCSTRINGS, ids=lambda source: source.stem)
def test_examples_of_docstrings_run(source):
    name = ".".join(source.relative_to(ROOT / "src").with_suffix("").parts)
    done = doctest.testmod(import_module(name))
    assert done.attempted > 0 and done.failed == 0


@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_an_example_of_the_gallery_runs(script, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    with warnings.catch_warnings():
        # small examples end at bounds of their kernels now and then; the classifier says so, which is no fault
        warnings.simplefilter("ignore", ConvergenceWarning)
        runpy.run_path(str(script), run_name="__main__")
    assert plt.get_fignums(), "an example of the gallery shows a picture"
    plt.close("all")


def test_every_method_has_a_page():
    from gpcmc.inference import METHODS

    index = (ROOT / "docs/methods/index.rst").read_text(encoding="utf-8")
    for name in METHODS:
        page = (ROOT / f"docs/methods/{name}.rst").read_text(encoding="utf-8")
        assert f":doc:`{name}`" in index and f'``inference="{name}"``' in page
        assert all(
            f"\n{heading}\n---" in page
            for heading in ("What it is", "When to trust it", "What it costs")
        )


def test_every_status_and_exception_is_on_the_page():
    """A status is a public constant of a module; the other public text is the method of a closed form."""
    statuses, exceptions = set(), set()
    for path in (ROOT / "src/gpcmc").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and re.search("(Error|Warning)$", node.name):
                exceptions.add(node.name)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                name, value = ast.unparse(node.targets[0]), node.value.value
                if name.isupper() and name[0] != "_" and isinstance(value, str):
                    statuses.add(value)
    page = (ROOT / "docs/statuses.rst").read_text(encoding="utf-8")
    assert {"ok", "tolerance not met"} < statuses and "ConvergenceError" in exceptions
    assert set(re.findall(r'^   \* - ``"(.*)"``$', page, re.M)) == statuses - {"closed form"}
    assert exceptions <= set(re.findall(r"^`gpcmc\.\w+\.(\w+)`$", page, re.M))


def test_attributes_of_classes_on_the_pages_have_a_line_each():
    """Sphinx puts the second of two names into the type of the first."""
    named = set()
    for page in PAGES:
        named |= set(re.findall(r"autoclass:: (gpcmc\.[\w.]+)", page.read_text(encoding="utf-8")))
    assert len(named) > 20
    wrong = []
    for name in sorted(named):
        module, _, attribute = name.rpartition(".")
        text = getattr(import_module(module), attribute).__doc__
        _, _, attributes = text.partition("Attributes\n")
        found = re.findall(r"^ *(\w+, [\w, ]+) : ", attributes, re.M)
        wrong += [(name, line) for line in found]
    assert wrong == []


def is_there(name):
    """Whether a dotted name is that of a module, of something in it, or of a field of a class."""
    module, parts = name, []
    while module:
        try:
            found = import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            parts.insert(0, last)
    for part in parts:
        if part not in getattr(found, "__annotations__", {}) and not hasattr(found, part):
            return False
        found = getattr(found, part, None)
    return True


def test_names_of_modules_in_texts_and_docstrings_are_there():
    """Those of our packages, as ``package.module.name`` between back quotes. The change log names what has gone."""
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.pyx")]
    named = {}
    for path in [*PAGES, *(text for text in TEXTS if text.name != "CHANGELOG.md"), *sources]:
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"`[~!]?((?:gpcmc|recheck|studies)(?:\.\w+)+)(?:\(\))?`", text):
            named.setdefault(name, path.relative_to(ROOT))
    assert len(named) > 100
    assert {name: str(path) for name, path in named.items() if not is_there(name)} == {}


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.name)
def test_files_that_a_text_links_to_are_there(text):
    links = re.findall(r"\]\(([^)#:]+)\)", text.read_text(encoding="utf-8"))
    assert [link for link in links if not (text.parent / link).exists()] == []


def test_readme_is_short_and_has_one_picture():
    text = TEXTS[0].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert len(re.findall(r"!\[", text)) == 1


def test_the_change_log_begins_with_this_version():
    import tomllib

    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    first = re.search(r"^## (\S+)", TEXTS[1].read_text(encoding="utf-8"), re.M)
    assert first is not None and first[1] == version


@pytest.mark.parametrize("text", [*TEXTS, *PAGES], ids=lambda text: text.name)
def test_targets_that_a_text_names_are_there(text):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:`|^ +)make ([a-z-]+)", text.read_text(encoding="utf-8"), re.M))
    patterns = [rf"^({target}|{target.split('-')[0]}-%):" for target in targets]
    assert all(re.search(pattern, makefile, re.M) for pattern in patterns), targets


def test_rules_that_are_grouped_are_there():
    """In the command of the page on clusters, and in the profile."""
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    plans = [Plan(read_config(scale, ROOT / "config")) for scale in SCALES]
    there = {*re.findall(r"rule (\w+):", rules)}
    for form in re.findall(r'name:\s+f"(\w*{study}\w*)"', re.sub(r"{group}", "GROUP", rules)):
        for plan, study in ((one, study) for one in plans for study in one.studies):
            groups = plan.patterns(study) if "GROUP" in form else [""]
            there |= {form.replace("{study}", study).replace("GROUP", one) for one in groups}
    page = (ROOT / "docs/cluster.rst").read_text(encoding="utf-8")
    profile = yaml.safe_load((ROOT / "profiles/slurm/profile.yaml").read_text(encoding="utf-8"))
    named = {*re.findall(r"(\w+)=(?:patterns|short)\b", page), *profile["groups"]}
    assert len(named) > 10
    assert named - there == set()
    assert {name for name in there if name.endswith("_patterns")} == {
        name for name in named if name.endswith("_patterns")
    }


def test_files_that_contributing_names_are_there():
    text = TEXTS[2].read_text(encoding="utf-8")
    paths = [p for p in re.findall(r"`([\w./-]+/[\w./-]*)`", text) if not p.startswith("build/")]
    assert [path for path in paths if not os.path.exists(ROOT / path)] == []


def test_fitted_attributes_keep_their_underscores():
    """Without an escape reST takes `classes_` for a reference, and prints `classes`."""
    docstring = pytest.importorskip("sphinx.ext.napoleon").docstring
    settings = runpy.run_path(str(ROOT / "docs/conf.py"))
    names = ("napoleon_use_ivar", "strip_signature_backslash")
    config = pytest.importorskip("sphinx.ext.napoleon").Config(
        napoleon_use_ivar=settings["napoleon_use_ivar"]
    )
    config.strip_signature_backslash = settings[names[1]]
    lines = docstring.NumpyDocstring(
        "Attributes\n----------\nclasses_ : array\n    Labels.", config
    )
    assert ":ivar classes\\_: Labels." in str(lines)
