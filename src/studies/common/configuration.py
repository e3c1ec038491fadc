"""Configurations: their files, their typed parts, and refusals in words: key, value given, what is allowed.

`read_config` lays the file of a scale over ``config/default.yaml``. A study describes its block by models of pydantic,
whose leaves are the types of this module. Each leaf says what it allows in words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict

from recheck.judge.declared import Loader, read_yaml
from studies.common.refusals import problems_of, refuse, shortly

#: Sobol' points end here, and no count of a run of hours is larger.
LARGEST = 2**30
#: The file with every key, and the scale that it is without a file over it.
DEFAULT, STANDARD = "default", "standard"


def read_config(
    scale: Any = None,
    folder: Path | str = "config",
    *,
    files: Sequence[Path | str] = (),
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the whole configuration of a scale: its file over ``default.yaml``, which alone is ``standard``.

    Parameters
    ----------
    scale : str
        Name of a file in the folder without its ending, or ``standard``. By default ``default.yaml`` names it.
    folder : path
        Where the files are.
    files : sequence of path
        Of ``snakemake --configfile``: they go over these, in their order.
    given : mapping
        Of ``snakemake --config``: it goes over all files. Snakemake leaves numbers within its blocks as texts; here
        they become numbers.

    Returns
    -------
    dict
        With the scale under ``scale``. No study has checked its values.

    Raises
    ------
    ValueError
        There is no such scale, or a file is no text in UTF-8, no YAML or no mapping, gives a key twice, or drops a key
        that is not there.
    """
    default = Path(folder, f"{DEFAULT}.yaml")
    scale = _read(default).get("scale") if scale is None else scale
    scales = sorted({path.stem for path in Path(folder).glob("*.yaml")} - {DEFAULT} | {STANDARD})
    if scale not in scales:
        refuse([f"scale: given {scale!r}; allowed is one of {scales}"])
    config = _read(default)
    own = [] if scale == STANDARD else [Path(folder, f"{scale}.yaml")]
    for path in [*own, *map(Path, files)]:
        overlay = _read(path)
        try:
            config = merged(config, overlay)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    last = {k: v if isinstance(v, str) else _typed(v) for k, v in (given or {}).items()}
    return merged(config, last) | {"scale": scale}


def merged(
    default: Mapping[str, Any], overlay: Mapping[str, Any], where: str = ""
) -> dict[str, Any]:
    """Return a mapping with another one over it, at every depth; neither is changed.

    A mapping goes over a mapping key by key, anything else takes the place of what was there. None drops a key.
    `where` stands in front of keys in what an error says.

    Raises
    ------
    ValueError
        None stands where there is nothing to drop.
    """
    found = deepcopy(dict(default))
    for key, value in overlay.items():
        if value is None and key not in default:
            raise ValueError(f"{where}{key}: null drops a key, and there is none of this name")
        if value is None:
            del found[key]
        elif isinstance(value, Mapping):
            below = default.get(key)
            below = below if isinstance(below, Mapping) else {}
            found[key] = merged(below, value, f"{where}{key}.")
        else:
            found[key] = deepcopy(value)
    return found


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


def multiple(of: int, least: int, most: int) -> BeforeValidator:
    """Return the leaf of multiples of a number in a range."""
    name = "an even number" if of == 2 else f"a multiple of {of}"
    return leaf(
        lambda value: is_whole(value, least, most) and value % of == 0,
        f"{name} from {least} to {most}",
    )


def power_of_two(least: int, most: int) -> BeforeValidator:
    """Return the leaf of powers of two in a range."""
    return leaf(
        lambda value: is_whole(value, least, most) and value.bit_count() == 1,
        f"a power of two from {least} to {most}",
    )


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


class Data(Block):
    """Where raw data come from, and whether features of a data set are scaled by its training patterns."""

    mirrors: Annotated[list[Annotated[str, text(".+", "a path")]], listed(0)]
    retries: Annotated[int, whole(0, 100)]
    timeout_seconds: Annotated[float, number(1e-3, 1e5)]
    deadline_seconds: Annotated[float, number(1e-3, 1e5)]
    standardise: dict[str, Boolean]


class Pack(Block):
    """How rows are packed into jobs: by so many CPU seconds, each experiment by itself or all of a study together."""

    seconds: Annotated[float, number(1e-3, 1e5)] = 60.0
    across: Annotated[str, one_of("experiment", "study")] = "experiment"


class Paper(Block):
    """Which study the paper is about, who wrote it, and where its code is; without an address it does not name one."""

    # kept rows may be of a configuration that does not say
    study: Annotated[str, text("[a-z][a-z0-9]*", "the name of a study")] = "atiya2021"

    author: Annotated[str, text(".+", "a name")]
    repository: Annotated[str, text("(https?://.+)?", "an address on the web, or nothing")]


class General(Block):
    """What all studies share. A study's own model adds its block."""

    scale: Annotated[str, ROW_NAME]
    seed: Annotated[int, whole(0, 2**63 - 1)]
    missing_data: Annotated[str, one_of("continue", "fail")]
    numbers: Annotated[str, one_of("kept", "run")]
    data: Data
    paper: Paper
    pack: Pack = Pack()


AnyModel = TypeVar("AnyModel", bound=General)


def checked(model: type[AnyModel], config: Mapping[str, Any]) -> AnyModel:
    """Return a configuration as a study's model has it, without the blocks of other studies.

    The keys of every mapping are put in alphabetical order: options are columns of result files, and their order must
    not depend on which file or argument set a key first.

    Raises
    ------
    ValueError
        With a line for each problem: key, value given, what is allowed.
    """
    if not isinstance(config, Mapping):
        refuse([f"it must be a block; got {config!r}"])
    own = {
        key: value
        for key, value in config.items()
        if key in model.model_fields or not _is_study(key)
    }
    refuse(problems_of(model, own))
    return model.model_validate(_in_order(own))


def _is_study(key: Any) -> bool:
    folder = Path(__file__).resolve().parents[1] / str(key)
    return key != "common" and str(key).isidentifier() and (folder / "__init__.py").exists()


def _in_order(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {key: _in_order(part[key]) for key in sorted(part)}
    return [_in_order(item) for item in part] if isinstance(part, list) else part


def _typed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _typed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_typed(one) for one in value]
    if not isinstance(value, str):
        return value
    try:
        return yaml.load(value, Loader)
    except yaml.YAMLError as error:
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ValueError(f"a setting cannot be read: {shortly(value)}: {said}") from None


def _read(path: Path) -> dict[str, Any]:
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise ValueError(f"{path} must be a mapping; got {shortly(found)}")
    return found
