"""The shape of the library: layers, no circle of imports, one door to a covariance, private names that stay at home."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import gpcmc

FOLDER = Path(gpcmc.__file__).parent

#: Layers from below. A module is of the layer of the longest name here that it begins with, and imports from its own
#: layer and from those below.
LAYERS = [
    ["_validation", "_threads", "_memory", "_progress", "_sobol", "_normal_points", "likelihood"],
    ["covariance"],
    ["posterior", "methods", "weights"],
    ["gaussian"],
    ["rectangle", "orthant", "chains"],
    ["gp", "inference"],  # thin facades of what is below
    ["evidence"],
    ["_arguments", "_advice", "_fitting", "classifier", "comparison", "ordinal", ""],
]
#: Names of covariances: what no method may ask for.
COVARIANCES = {"Covariance", "Dense", "LowRank", "Sparse"}


def name_of(path: Path) -> str:
    """The name of a module below gpcmc."""
    parts = path.relative_to(FOLDER).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def trees() -> dict[str, ast.Module]:
    """All modules of the library; compiled ones by their Python imports, which are written the same way."""
    found = {name_of(path): ast.parse(path.read_text()) for path in FOLDER.rglob("*.py")}
    for path in FOLDER.rglob("*.pyx"):
        lines = path.read_text().splitlines()
        kept = [line for line in lines if line.startswith(("import gpcmc", "from gpcmc"))]
        found[name_of(path)] = ast.parse("\n".join(line for line in kept if "cimport" not in line))
    return found


def imports(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Each import of a module below gpcmc, wherever it stands, and the name that is taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("gpcmc."):
                    yield alias.name.removeprefix("gpcmc."), None
        elif isinstance(node, ast.ImportFrom) and node.module:
            root, _, rest = node.module.partition(".")
            if root == "gpcmc":
                for alias in node.names:
                    whole = f"{rest}.{alias.name}".lstrip(".")
                    if whole in trees():
                        yield whole, None
                    elif rest:
                        yield rest, alias.name


def layer(module: str) -> int | None:
    """The place of a module's layer; None if it has none."""
    places = {name: k for k, names in enumerate(LAYERS) for name in names if name}
    fitting = [name for name in places if module == name or module.startswith(f"{name}.")]
    if fitting:
        return places[max(fitting, key=len)]
    return len(LAYERS) - 1 if not module else None


def test_every_module_has_a_layer():
    assert {module for module in trees() if layer(module) is None} == set()


def test_no_module_imports_from_a_layer_above():
    upward = set()
    for module, tree in trees().items():
        for other, _ in imports(tree):
            here, there = layer(module), layer(other)
            if here is not None and there is not None and there > here:
                upward.add((module, other))
    assert upward == set()


def packages(module: str) -> set[str]:
    """The packages that a module is in."""
    parts = module.split(".")
    return {".".join(parts[:k]) for k in range(1, len(parts))}


def reached(graph: dict[str, set[str]], module: str) -> set[str]:
    """All that a module imports, and what that imports, and so on."""
    found: set[str] = set()
    ahead = [module]
    while ahead:
        new = graph.get(ahead.pop(), set()) - found
        found |= new
        ahead.extend(new)
    return found


def test_no_imports_go_in_a_circle():
    """Who imports a module imports the packages that it is in, too, but those he is in himself."""
    graph = {
        module: {
            one
            for other, _ in imports(tree)
            for one in {other} | packages(other)
            if one not in packages(module) | {module, ""}
        }
        for module, tree in trees().items()
    }
    ahead = {module: reached(graph, module) for module in graph}
    circles = {
        ", ".join(sorted(other for other in ahead[module] if module in ahead.get(other, ())))
        for module in graph
        if module in ahead[module]
    }
    assert circles == set()


def test_no_method_asks_which_form_a_covariance_has():
    """Within `covariance` a form may: it makes others."""
    found = set()
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                "isinstance",
                "issubclass",
            ):
                names = {
                    name
                    for one in ast.walk(node.args[1])
                    if (name := getattr(one, "id", getattr(one, "attr", ""))) in COVARIANCES
                }
                if names and layer(module) != layer("covariance"):
                    found.add((module, ", ".join(sorted(names))))
    assert found == set()


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_no_module_takes_a_private_name_of_another():
    """Neither by import nor as an attribute of an imported module; a private module of the same package is no name."""
    found = set()
    for module, tree in trees().items():
        local = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    whole = f"{getattr(node, 'module', '')}.{alias.name}".removeprefix("gpcmc.")
                    if whole in trees():
                        local[alias.asname or alias.name] = whole
        for other, name in imports(tree):
            package = module.rpartition(".")[0]
            last = other.rpartition(".")[2]
            inside = other.rpartition(".")[0] in ("", package) or layer(module) is None
            if (name and private(name)) or (private(last) and not inside):
                found.add((module, f"{other}.{name}" if name else other))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and private(node.attr)
                and isinstance(node.value, ast.Name)
                and node.value.id in local
            ):
                found.add((module, f"{local[node.value.id]}.{node.attr}"))
    assert found == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import gpcmc.posterior", {("posterior", None)}),
        ("from gpcmc import _validation as v", {("_validation", None)}),
        ("def f():\n    from gpcmc.posterior import OK", {("posterior", "OK")}),
        ("import numpy", set()),
    ],
)
def test_imports_are_seen_wherever_they_stand(source, expected, monkeypatch):
    known = dict.fromkeys(("posterior", "_validation"))
    monkeypatch.setattr("test_structure.trees", lambda: known)
    assert set(imports(ast.parse(source))) == expected


def test_layers_are_found_by_the_longest_name():
    assert layer("likelihood.probit") == 0 < layer("covariance.dense") < layer("posterior")
    assert layer("classifier") == layer("") == len(LAYERS) - 1
    assert layer("classifiers") is None
