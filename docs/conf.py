"""Sphinx settings: `make docs` builds the pages, executes the gallery, and treats every warning as an error."""

import os
from importlib.metadata import version as version_of

# one thread: the library limits itself, scikit-learn in the examples does not
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "gpcmc"
author = copyright = "The gpcmc developers"
version = release = version_of("gpcmc")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = f"gpcmc {release}"
html_copy_source = False
# the README of the generated folders, if any, and what the gallery writes for its own use
exclude_patterns = ["gallery/*", "**/README*", "sg_execution_times.rst"]

# Single backticks in docstrings name a function where there is one of that name, and code elsewhere.
default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings give shapes, which annotations cannot
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 1e9,  # seconds vary from build to build
    "write_computation_times": False,
}
