"""Sphinx settings: `make docs` builds the pages, executes the gallery, and treats every warning as an error."""

import os
import sys
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path
from tempfile import TemporaryDirectory

from docutils.nodes import SkipNode

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs")]
from recheck.paper.pandoc import pandoc  # noqa: E402

# one thread: the library limits itself, scikit-learn in the examples does not
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "gpcmc"
author = copyright = "The gpcmc developers"
version = release = version_of("gpcmc")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = f"gpcmc {release}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["doors.css"]
html_math_renderer = "mathml"  # below; MathJax would come from the internet
# the README of the generated folders, if any, and what the gallery writes for its own use
exclude_patterns = ["gallery/*", "**/README*", "sg_execution_times.rst"]

# Single backticks in docstrings name a function where there is one of that name, and code elsewhere.
default_role = "py:obj"
add_module_names = False
toc_object_entries = False  # pages have sections; every name of the API would drown them
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings give shapes, which annotations cannot
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# else `classes_` is a reference to `classes`, and loses its underscore
strip_signature_backslash = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    # each example is a notebook, too: its page has a button
    "first_notebook_cell": "# This notebook needs the library and Matplotlib: `pip install . matplotlib` in a clone.",
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 1e9,  # seconds vary from build to build
    "write_computation_times": False,
}

# Documents of a finished run, the longest first, are published with the pages.
for scale in ("published", "standard", "smoke"):
    made = [ROOT / "results" / scale / name for name in ("paper.html", "audit.html")]
    if all(path.exists() for path in made):
        html_extra_path = [str(path) for path in made]
        tags.add("documents")  # noqa: F821 (Sphinx puts it here)
        break

#: Pages that are made of another text: what pandoc is to take it for.
MADE_OF = {
    "judge": ("gfm", "src/recheck/README.md"),
    "study": ("gfm", "src/recheck/STUDY.md"),
    "bibliography": ("bibtex", "paper/references.bib"),
}


def other_text(app, page, source):
    """Put the text that a page is made of below its head."""
    if page in ("judge_gallery", "judge_calibration"):
        import judged

        with TemporaryDirectory() as folder:
            source[0] += (
                judged.page(folder) if page == "judge_gallery" else judged.calibration(ROOT)
            )
    if page not in MADE_OF:
        return
    kind, path = MADE_OF[page]
    text = (ROOT / path).read_text(encoding="utf-8")
    # the page has a title of its own; no lexer knows csv; a page cannot have mathematics in italics
    body = text.partition("\n")[2].replace("```csv", "```text")
    body = body.replace("](verdicts.png)", f"](../{Path(path).parent}/verdicts.png)")
    text = body if kind == "gfm" else text.replace("$", "")
    made = pandoc([f"--from={kind}", "--to=rst", "--citeproc"], text)[0]
    source[0] += "\n" + made.replace("`STUDY.md <STUDY.md>`__", ":doc:`study`")


@cache
def mathml(latex, display):
    """A formula in the language that browsers have for it."""
    mark = "$$" if display else "$"
    html, _ = pandoc(["--from=latex", "--to=html", "--mathml"], f"{mark}{latex}{mark}")
    if "<math" not in html:
        raise ValueError(f"pandoc cannot make MathML of {latex!r}")
    return html.strip().removeprefix("<p>").removesuffix("</p>")


def math(display):
    def visit(translator, node):
        translator.body.append(mathml(node.astext(), display))
        raise SkipNode

    return visit, None


def setup(app):
    app.connect("source-read", other_text)
    app.add_html_math_renderer("mathml", math(False), math(True))
