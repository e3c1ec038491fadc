"""Typed parts of configurations, and refusals in words: key, value given, what is allowed.

A study describes its block by models of pydantic, whose leaves are the types of this module. Each leaf says what it
allows in words. `problems_of` turns whatever is wrong into lines.
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

#: Sobol' points end here, and no count of a run of hours is larger.
LARGEST = 2**30
#: Values of an option that has one a problem.
NINE = 9


class Block(BaseModel):
    """A mapping with known keys, all of which must be given unless they have a default."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def leaf(allows: Callable[[Any], bool], allowed: str) -> BeforeValidator:
    """Return the leaf of values that a function allows; `allowed` says in words what they are."""

    def check(value: Any) -> Any:
        if not allows(value):
            raise ValueError(allowed)
        return value

    return BeforeValidator(check)


def is_whole(value: Any, least: int = 1, most: int = LARGEST) -> bool:
    """Return whether a value is a whole number in a range, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def whole(least: int = 1, most: int = LARGEST) -> BeforeValidator:
    """Return the leaf of whole numbers in a range."""
    return leaf(
        lambda value: is_whole(value, least, most), f"a whole number from {least} to {most}"
    )


def whole_each(least: int = 1, most: int = LARGEST) -> BeforeValidator:
    """Return the leaf of whole numbers in a range, one or a list of nine."""

    def allows(value: Any) -> bool:
        values = value if isinstance(value, list) else [value] * NINE
        return len(values) == NINE and all(is_whole(one, least, most) for one in values)

    return leaf(allows, f"a whole number from {least} to {most}, or a list of nine, one a problem")


def number(low: float, high: float) -> BeforeValidator:
    """Return the leaf of finite numbers between two bounds, bounds included."""

    def allows(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return math.isfinite(value) and low <= value <= high

    return leaf(allows, f"a number from {low:g} to {high:g}")


def one_of(*values: Any) -> BeforeValidator:
    """Return the leaf of a few values."""
    # 1 == True, but neither stands for the other in a configuration
    return leaf(
        lambda value: any(value == v and type(value) is type(v) for v in values),
        f"one of {list(values)}",
    )


def some_of(*values: Any) -> BeforeValidator:
    """Return the leaf of lists of one or more of a few values, each once."""
    return leaf(
        lambda value: (
            isinstance(value, list)
            and bool(value)
            and all(v in values and not isinstance(v, bool) for v in value)
            and len(set(value)) == len(value)
        ),
        f"a list of one or more of {list(values)}, each once",
    )


def text(pattern: str, allowed: str) -> BeforeValidator:
    """Return the leaf of texts that match a regular expression from end to end."""
    return leaf(
        lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value)), allowed
    )


def listed(least: int) -> BeforeValidator:
    """Return the leaf of lists of a least length; pydantic then looks at the entries."""
    words = "entries" if least == 0 else f"{least} or more entries"
    return leaf(lambda value: isinstance(value, list) and len(value) >= least, f"a list of {words}")


#: Names of rows: they are parts of file names and of seeds.
ROW_NAME = text("[a-z0-9-]+", "a name of small letters, digits and hyphens")
Boolean = Annotated[bool, one_of(True, False)]


def problems_of(model: type[BaseModel], given: Any, key: str = "") -> list[str]:
    """Return what is wrong with a part of a configuration, a line each; none if it is as the model wants it.

    Parameters
    ----------
    model : type
        A `Block`.
    given : object
        What the configuration has.
    key : str
        Where, as in ``atiya2021.experiment1``.

    Returns
    -------
    list of str
        ``key: given <value>; allowed is <what>``.
    """
    try:
        model.model_validate(given)
    except ValidationError as error:
        return [_line(model, found, key) for found in error.errors()]
    return []


def refuse(problems: Sequence[str]) -> None:
    """Raise a ValueError with a line for each problem, if there is any."""
    if problems:
        raise ValueError("\n  ".join(["The configuration is refused:", *dict.fromkeys(problems)]))


def _line(model: type[BaseModel], error: Any, key: str) -> str:
    where = [*error["loc"]]
    if where and where[-1] == "[key]":  # a name of a row
        where.pop()
    path = ".".join([key, *map(str, where)]).strip(".")
    if error["type"] == "extra_forbidden":
        block = _block_at(model, where[:-1])
        known = sorted(block.model_fields) if block else []
        return f"{path}: unknown key (given {shortly(error['input'])}); known are {known}"
    if error["type"] == "missing":
        return f"{path}: missing; allowed is {_allowed_at(model, where)}"
    if error["type"] == "value_error":
        return f"{path}: given {shortly(error['input'])}; allowed is {error['ctx']['error']}"
    return f"{path}: given {shortly(error['input'])}; allowed is {_allowed_at(model, where)}"


def shortly(value: Any) -> str:
    """Return a value as text of a line; of a block, its size."""
    if isinstance(value, Mapping) and len(repr(value)) > 80:
        return f"a block of {len(value)} keys"
    if isinstance(value, Sequence) and not isinstance(value, str) and len(repr(value)) > 120:
        return f"a list of {len(value)} entries"
    return repr(value)


def _annotation_at(model: type[BaseModel], where: Sequence[Any]) -> Any:
    """The annotation of a place in a model; None where the place is no field."""
    found: Any = model
    metadata: list[Any] = []
    for step in where:
        while typing.get_origin(found) is Annotated:
            found = typing.get_args(found)[0]
        if isinstance(found, type) and issubclass(found, BaseModel):
            if step not in found.model_fields:
                return None
            field = found.model_fields[step]
            found, metadata = field.annotation, field.metadata
        else:
            arguments = typing.get_args(found)
            if not arguments:
                return None
            found, metadata = arguments[-1], []
    return Annotated[found, *metadata] if metadata else found


def _block_at(model: type[BaseModel], where: Sequence[Any]) -> type[BaseModel] | None:
    found = _annotation_at(model, where)
    while typing.get_origin(found) is Annotated:
        found = typing.get_args(found)[0]
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _allowed_at(model: type[BaseModel], where: Sequence[Any]) -> str:
    """In words, what a place in a model allows: a block's keys, or what its leaf says of itself."""
    block = _block_at(model, where)
    if block is not None:
        return f"a block with the keys {sorted(block.model_fields)}"
    found = _annotation_at(model, where)
    for leaf in typing.get_args(found)[1:] if typing.get_origin(found) is Annotated else ():
        if isinstance(leaf, BeforeValidator):
            try:
                leaf.func(object())  # type: ignore[call-arg]
            except ValueError as error:
                return str(error)
    return "a block" if found is not None else "nothing"
