"""Each promise of the workflow has a test that holds it: tests/promises.csv says which."""

import ast
import csv
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
with (ROOT / "tests/promises.csv").open(encoding="utf-8", newline="") as file:
    PROMISES = [(row["promise"], row["test"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("promise", "test"), PROMISES)
def test_what_is_promised_is_tested(promise, test):
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [one for one in functions if fnmatchcase(one, name)], f"{promise}: no {test}"


def test_each_promise_is_made_once():
    promises = [promise for promise, _ in PROMISES]
    assert len(set(promises)) == len(promises) > 50
