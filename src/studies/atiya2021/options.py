"""Options of the methods in a configuration, held against the dataclasses that define them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from studies.atiya2021.methods import DETERMINISTIC, METHODS
from studies.atiya2021.settings import (
    NINE,
    Experiment3,
    Experiment4,
    GradientRow,
    MethodRow,
    Posterior,
    Scaling,
    ScalingRow,
    Study,
    Tuning,
)
from studies.common.configuration import LARGEST, is_whole
from studies.common.refusals import shortly

#: Of each method of the posterior of Experiment 5 that is no method of its own, its options.
_AUXILIARY = {
    "laplace": ("samples",),
    "ep": ("samples",),
    "orthant": ("samples",),
    "ancillary": ("latent_updates",),
    "surrogate": ("latent_updates",),
}
_PLAIN = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
#: What a method's burn-in is a part of.
_LENGTHS = {"control-variables": "iterations", "ess": "samples", "hmc": "samples"}


def problems_of_methods(study: Study) -> list[str]:
    """Return what is wrong with the options of all methods, a line each."""
    lines = [
        *_experiment3(study.experiment3),
        *_experiment4(study.experiment4),
        *_posterior(study.experiment5.posterior),
        *_tuning(study.experiment5.tuning),
        *_rows("experiment5.gradient", study.experiment5.gradient),
        *_rows("scaling.methods", study.scaling.methods),
        *_curve(study.scaling),
        *_rows("advice.methods", study.advice.methods),
        *_rows("variances.methods", study.variances.methods),
    ]
    return [f"atiya2021.{line}" for line in dict.fromkeys(lines)]


def _experiment3(given: Experiment3) -> Iterator[str]:
    for name, row in given.methods.items():
        key, cells = f"experiment3.methods.{name}", row.grid or [{}]
        for cell in cells:
            yield from problems_of_options(key, row.method, row.options | cell)
            if not cell and row.grid:
                yield f"{key}.grid: given {cells}; allowed are options that differ between sizes"
        if any(cells.count(cell) > 1 for cell in cells):
            yield f"{key}.grid: given {cells}; allowed is each size once"
        if not row.grid and row.method not in DETERMINISTIC:
            yield f"{key}.grid: missing; allowed is a list of sizes, for this method draws at random"


def _experiment4(given: Experiment4) -> Iterator[str]:
    for name, row in given.methods.items():
        key = f"experiment4.methods.{name}"
        yield from _replicates(key, row.method, row.replicates)
        short = {k: v for k, v in row.options.items() if isinstance(v, list) and len(v) != NINE}
        for option, value in short.items():
            yield f"{key}.{option}: given {value}; allowed is one value, or a list of nine, one a problem"
        if not short:
            for problem in given.problems:
                yield from problems_of_options(key, row.method, row.options_on(problem))


def _replicates(key: str, method: str, replicates: Any) -> Iterator[str]:
    if method in DETERMINISTIC and replicates is not None:
        yield (
            f"{key}.replicates: given {replicates}; allowed is nothing, for {method} draws nothing at random"
        )
    if method not in DETERMINISTIC and replicates is None:
        yield f"{key}.replicates: missing; allowed are 3 or more, for {method} draws at random"


def _posterior(given: Posterior) -> Iterator[str]:
    for name, row in given.methods.items():
        key, method = f"experiment5.posterior.methods.{name}", row.method
        for problem in given.problems:
            options = row.options_on(problem)
            if method not in _AUXILIARY:
                yield from problems_of_options(key, method, options)
                continue
            for option, value in options.items():
                if option not in _AUXILIARY[method]:
                    known = sorted({"method", "iterations", "burn_in", *_AUXILIARY[method]})
                    yield f"{key}.{option}: unknown key (given {value!r}); known are {known}"
                elif not is_whole(value):
                    yield f"{key}.{option}: given {value!r}; allowed is a whole number from 1 to {LARGEST}"


def _tuning(given: Tuning) -> Iterator[str]:
    yield from problems_of_options(
        "experiment5.tuning.judge", given.judge.method, given.judge.options
    )
    for name, row in given.methods.items():
        key = f"experiment5.tuning.methods.{name}"
        yield from _replicates(key, row.method, row.replicates)
        yield from problems_of_options(key, row.method, row.options)
        yield from problems_of_options(key, row.method, row.options | row.final)


def _rows(key: str, rows: Mapping[str, GradientRow | ScalingRow | MethodRow]) -> Iterator[str]:
    for name, row in rows.items():
        yield from problems_of_options(f"{key}.{name}", row.method, row.options)


def _curve(given: Scaling) -> Iterator[str]:
    counts = given.curve.counts if given.kernels else {}
    for name, options in counts.items():
        row, key = given.methods.get(name), f"scaling.curve.counts.{name}"
        if row is None:
            continue  # which is refused elsewhere
        for option, values in options.items():
            for value in values:
                yield from problems_of_options(key, row.method, row.options | {option: value})


def problems_of_options(key: str, method: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the options of one method, a line each: key, value given, what is allowed."""
    known = _types(method)
    wrong = False
    for option, value in options.items():
        where = f"{key}.{option}"
        if option not in known:
            wrong = True
            yield f"{where}: unknown key (given {shortly(value)}); known are {sorted(known)}"
        elif isinstance(value, int) and abs(value) > LARGEST:
            wrong = True
            yield f"{where}: given {value}; allowed is a number up to {LARGEST}"
        else:
            try:
                plain = tuple(value) if isinstance(value, list) else value
                known[option][0].validate_python(plain, strict=True)
            except ValidationError:
                wrong = True
                yield f"{where}: given {shortly(value)}; allowed is {known[option][1]}"
    if wrong:
        return
    try:
        made = METHODS[method](**options)
    except ValueError as error:
        yield f"{key}: given {dict(options)}; allowed is: {error}"
        return
    length = _LENGTHS.get(method, "")
    if length and made.burn_in > getattr(made, length):
        yield (
            f"{key}.burn_in: given {made.burn_in}; allowed are at most the {length}: {getattr(made, length)}"
        )


@cache
def _types(method: str) -> dict[str, tuple[TypeAdapter[Any], str]]:
    """Of each option of a method: what validates it, and what it allows in words."""
    hints = {name: _written(hint) for name, hint in typing.get_type_hints(METHODS[method]).items()}
    return {
        field.name: (TypeAdapter(hints[field.name]), _words(hints[field.name]))
        for field in dataclasses.fields(METHODS[method])
    }


def _written(hint: Any) -> Any:
    """Return what a file can hold of a union; an object, which some options take, has a name there."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    kept = [
        part
        for part in typing.get_args(hint)
        if not isinstance(part, type) or part in (*_PLAIN, type(None))
    ]
    return typing.Union[tuple(kept)]  # noqa: UP007


def _words(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return f"one of {list(typing.get_args(hint))}"
    if typing.get_origin(hint) is tuple:
        return f"a list, each {_words(typing.get_args(hint)[0])}"
    if hint in _PLAIN:
        return _PLAIN[hint]
    parts = [_words(part) for part in typing.get_args(hint) if part is not type(None)]
    return " or ".join(parts) or str(hint)
