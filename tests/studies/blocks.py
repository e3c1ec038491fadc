"""Blocks of a study in the configurations of the scales, whole or with one value that is wrong."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def load(study: str, scale: str) -> dict[str, Any]:
    """The block of a study, and a seed."""
    config = yaml.safe_load((ROOT / f"config/{scale}.yaml").read_text())
    return {"seed": 1, study: config[study]}


def refusal(check: Callable[[Mapping[str, Any]], Any], study: str, path: str, value: Any) -> str:
    """What `check` says of the smoke scale with another value at a path, which it has to refuse."""
    config = load(study, "smoke")
    *where, last = path.split("/")
    block = config[study]
    for name in where:
        block = block[int(name) if name.isdigit() else name]
    block[last] = value
    with pytest.raises(ValueError, match="refused") as caught:
        check(config)
    return str(caught.value)
