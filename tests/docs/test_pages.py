"""What docs/conf.py makes of formulas and of texts that are no pages."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def conf():
    # Sphinx puts the tags there
    return SimpleNamespace(
        **runpy.run_path(str(ROOT / "docs/conf.py"), init_globals={"tags": set()})
    )


def test_a_formula_is_mathml_and_asks_no_server(conf):
    made = conf.mathml(r"p(y \mid X) = \hat k", False)
    assert made.startswith('<math display="inline"') and made.endswith("</math>")
    assert conf.mathml("x", True).startswith('<math display="block"')
    assert "mathjax" not in " ".join(conf.extensions)


def test_pages_that_are_made_of_another_text_have_it(conf):
    for page, (_, path) in conf.MADE_OF.items():
        head = (ROOT / f"docs/{page}.rst").read_text(encoding="utf-8")
        source = [head]
        conf.other_text(None, page, source)
        assert source[0].startswith(head) and len(source[0]) > 5 * len(head)
        assert (ROOT / path).exists() and ":math:" not in source[0]
        assert "<STUDY.md>" not in source[0] and (page != "judge" or ":doc:`study`" in source[0])
