"""The check of a configuration: its values, their combinations, and the options of methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.atiya2021.combinations import combinations, methods
from studies.atiya2021.settings import Configuration, Standardise
from studies.common.configuration import checked
from studies.common.refusals import problems_of, refuse


def check(config: Mapping[str, Any]) -> Configuration:
    """Return the configuration of the study; ValueError with a line for each problem in it.

    The options of methods are looked at only if the extensions, which their modules import, have been built.
    """
    found = checked(Configuration, config)
    scaled = problems_of(Standardise, found.data.standardise, "data.standardise")
    refuse([*scaled, *combinations(found.atiya2021), *methods(found.atiya2021)])
    return found
