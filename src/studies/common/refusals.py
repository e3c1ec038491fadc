"""Refusals of a configuration in words: key, value given, what is allowed.

`problems_of` turns whatever pydantic finds wrong into lines, and `refuse` raises them all at once. What is allowed is
what the leaf of a model says of itself (`studies.common.configuration.leaf`).
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeGuard

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo


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


def shortly(value: Any) -> str:
    """Return a value as text of a line; of a block, its size."""
    if isinstance(value, Mapping) and len(repr(value)) > 80:
        return f"a block of {len(value)} keys"
    if isinstance(value, Sequence) and not isinstance(value, str) and len(repr(value)) > 120:
        return f"a list of {len(value)} entries"
    return repr(value)


def _line(model: type[BaseModel], error: Any, key: str) -> str:
    where = [*error["loc"]]
    if where and where[-1] == "[key]":  # a name of a row
        where.pop()
    path = ".".join([key, *map(str, where)]).strip(".")
    if error["type"] == "extra_forbidden":
        block, _ = _at(model, where[:-1])
        known = sorted(_fields(block)) if _is_block(block) else []
        return f"{path}: unknown key (given {shortly(error['input'])}); known are {known}"
    given = "missing" if error["type"] == "missing" else f"given {shortly(error['input'])}"
    said_by_leaf = error["type"] == "value_error"
    allowed = error["ctx"]["error"] if said_by_leaf else _allowed_at(model, where)
    return f"{path}: {given}; allowed is {allowed}"


def _is_block(found: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(found, type) and issubclass(found, BaseModel)


def _fields(block: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a block by the keys that a configuration has."""
    return {field.alias or name: field for name, field in block.model_fields.items()}


def _at(model: type[BaseModel], where: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """The type at a place in a model, and its leaves; None where there is no such place."""
    found: Any = model
    leaves: Sequence[Any] = ()
    for step in where:
        if _is_block(found):
            field = _fields(found).get(step)
            found, leaves = (field.annotation, field.metadata) if field else (None, ())
        else:
            found, leaves = (typing.get_args(found) or (None,))[-1], ()
        if typing.get_origin(found) is Annotated:
            found, *leaves = typing.get_args(found)
    return found, leaves


def _allowed_at(model: type[BaseModel], where: Sequence[Any]) -> str:
    """In words, what a place in a model allows: a block's keys, or what its leaf says of itself."""
    found, leaves = _at(model, where)
    if _is_block(found):
        return f"a block with the keys {sorted(_fields(found))}"
    for leaf in leaves:
        if isinstance(leaf, BeforeValidator):
            try:
                leaf.func(object())  # type: ignore[call-arg]
            except ValueError as error:
                return str(error)
    return "a block" if found is not None else "nothing"
