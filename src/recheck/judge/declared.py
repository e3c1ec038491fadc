"""Files that somebody wrote: strict YAML, models that refuse unknown keys by name, and the alphabet of ids."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from recheck.judge.printed import shortly

#: Characters of an id: nothing that a shell, make, LaTeX, CSV or HTML would take for its own.
ALPHABET = "letters, digits and . _ / = @ : + , -"
_ID = re.compile(r"[\w./=@:+,-]{1,200}", re.ASCII)
#: Bytes of a file of YAML, and values in it when its aliases are written out.
_BYTES, _VALUES, _DEPTH = 4_000_000, 200_000, 50

Model = TypeVar("Model", bound="Declared")


def check_ids(ids: Iterable[str], where: str) -> None:
    """Refuse ids with other characters than `ALPHABET`; the message names the first."""
    for one in ids:
        if not _ID.fullmatch(one):
            raise ValueError(
                f"{where}: id {shortly(one)}: needed are {ALPHABET}, at most 200 of them"
            )


# in C where PyYAML was built with it, which is ten times as fast
class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Refuses what YAML would misread without a word, and what grows without an end.

    That is a key that is given twice, ``1:30`` (a number to the base of 60), and aliases that repeat one another.
    """

    def get_single_node(self) -> Any:
        """The document, checked."""
        node = super().get_single_node()
        if node is not None and _values(node, {}, 0) > _VALUES:
            raise yaml.MarkedYAMLError(
                None, None, f"needed are at most {_VALUES} values", node.start_mark
            )
        return node

    def flatten_mapping(self, node: Any) -> None:
        """Refuse keys that are given twice; those that ``<<`` brings in may be."""
        if hasattr(node, "flat"):
            return
        node.flat, known = True, set()
        for key, _ in node.value:
            if str(key.value) in known:
                raise yaml.MarkedYAMLError(
                    None, None, f"{key.value!r} is given twice", key.start_mark
                )
            known.add(str(key.value))
        super().flatten_mapping(node)


def _values(node: Any, known: dict[int, int], depth: int) -> int:
    """Values below a node, with aliases written out; a scalar that reads as a number to the base of 60 is refused."""
    if id(node) in known:
        size = known[id(node)]
        if not size or depth > _DEPTH:
            raise yaml.MarkedYAMLError(None, None, "it holds itself", node.start_mark)
        return size
    known[id(node)] = 0
    if depth > _DEPTH:
        raise yaml.MarkedYAMLError(
            None, None, f"needed are at most {_DEPTH} levels", node.start_mark
        )
    if isinstance(node, yaml.ScalarNode):
        if node.tag.endswith((":int", ":float")) and ":" in node.value:
            raise yaml.MarkedYAMLError(
                None,
                None,
                f"{node.value} would be a number to the base of 60: quote it",
                node.start_mark,
            )
        size = 1
    elif isinstance(node, yaml.MappingNode):
        size = sum(_values(one, known, depth + 1) for pair in node.value for one in pair)
    else:
        size = sum(_values(one, known, depth + 1) for one in node.value)
    known[id(node)] = size = min(max(size, 1), 10**9)
    return size


def read_yaml(path: str | Path, kind: type | None = None) -> Any:
    """Content of a YAML file, of one kind where it is given; empty without the file.

    ValueError names the file, the line and the remedy.
    """
    path = Path(path)
    if kind and not path.exists():
        return kind()
    if path.stat().st_size > _BYTES:
        raise ValueError(f"{path}: needed are at most {_BYTES} bytes")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f": line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ValueError(f"{path}{place}: not YAML: {problem}") from None
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ValueError(f"{path}: not YAML in UTF-8: {str(error).splitlines()[0][:200]}") from None
    if content is None and kind:
        return kind()
    if kind and not isinstance(content, kind):
        needed = f"needed is a {kind.__name__}, given was a {type(content).__name__}"
        raise ValueError(f"{path}: {needed}")
    return content


class Declared(BaseModel):
    """A mapping of a file that somebody wrote; unknown keys are refused by name."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        known = cls.model_fields.keys()
        if isinstance(given, Mapping) and (strange := sorted(map(str, given.keys() - known))):
            raise ValueError(f"{strange} are unknown; known are {sorted(known)}")
        return given


def checked(model: type[Model], content: Any, where: str) -> Model:
    """The content of a file as a model; ValueError has a line for each thing that is wrong, with its place."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = []
        for one in error.errors():
            place = [str(part + 1) if isinstance(part, int) else part for part in one["loc"]]
            message, given = one["msg"].removeprefix("Value error, "), one["input"]
            shown = "" if isinstance(given, Mapping) else f"; given was {shortly(given)}"
            lines.append(f"{': '.join([where, *place])}: {message}{shown}")
        raise ValueError("\n".join(lines)) from None
