"""Imports run one way: studies to the library and the engine, which do not know each other."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
FORBIDDEN = {
    "recheck": {"gpcmc", "studies", "snakemake"},
    "gpcmc": {"recheck", "studies", "snakemake"},
    "studies": {"snakemake"},
}


def imported(path):
    """Names that a file imports, and lines of relative imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield ("." if node.level else str(node.module).split(".")[0], node.lineno)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant):
                yield (str(first.value).split(".")[0], node.lineno)


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_run_one_way(package):
    paths = sorted((SRC / package).rglob("*.py"))
    assert paths
    wrong = [
        f"{path.relative_to(SRC)}:{line} imports {name}"
        for path in paths
        for name, line in imported(path)
        if name in FORBIDDEN[package] | {"."}
    ]
    assert not wrong
