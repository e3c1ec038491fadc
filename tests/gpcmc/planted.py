"""Planted faults: a function in whose source one piece of text has another in its place."""

import __future__

import ast
import inspect
import textwrap
from typing import NamedTuple

import pytest

from gpcmc.inference import ConvergenceError


class Mutant(NamedTuple):
    """What is broken, and the test with its arguments; ``monkeypatch`` is given to a test that asks for it."""

    function: object
    text: str
    other: str
    test: object
    arguments: tuple = ()


def broken(function, text, other):
    """Return the code of a function with other text in one place."""
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(text) == 1, f"{function.__name__} must have {text!r} once"
    tree = ast.parse(source.replace(text, other))
    tree.body[0].decorator_list = []
    made = {}
    exec(compile(tree, "<mutant>", "exec", flags=__future__.annotations.compiler_flag), made)
    return made[function.__name__].__code__


def turns_red(mutant, monkeypatch):
    """Plant the fault, and see its test fail."""
    function = inspect.unwrap(mutant.function)
    monkeypatch.setattr(function, "__code__", broken(function, mutant.text, mutant.other))
    asked = {"monkeypatch"} & {*inspect.signature(mutant.test).parameters}
    with pytest.raises((AssertionError, ConvergenceError, pytest.fail.Exception)):
        mutant.test(*mutant.arguments, **dict.fromkeys(asked, monkeypatch))
