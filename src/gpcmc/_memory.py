"""How much memory this process may have: of the machine, of its control group, of its address space.

A container or a job of a batch system often may use less than the machine has, and the kernel kills without a message.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

_ROOT = Path("/")


class Limit(NamedTuple):
    """A number of bytes, and who sets it."""

    bytes: float
    source: str


def available_memory() -> Limit:
    """Return the least of all limits; infinity where the system states none."""
    return min([_machine(), *_control_groups(_ROOT), _address_space()])


def _machine() -> Limit:
    """Return the memory that is built in."""
    try:
        there = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # no sysconf, or not these names
        there = math.inf
    return Limit(there, "this machine has")


def _control_groups(root: Path) -> list[Limit]:
    """Return the limits of the process's control group and of those above it, of versions 1 and 2."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            top, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = Path(path.lstrip("/"))
        for place in (
            group,
            *group.parents,
        ):  # inside a container only the last of them may be there
            try:
                found.append(float((top / place / name).read_text()))
            except (OSError, ValueError):  # not there, or "max"
                continue
    return [Limit(limit, "the control group of this process allows") for limit in found]


def _address_space() -> Limit:
    """Return what RLIMIT_AS leaves beside what is mapped already."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return Limit(math.inf, "")
        pages = int((_ROOT / "proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError):
        return Limit(math.inf, "")
    left = float(limit - pages * os.sysconf("SC_PAGE_SIZE"))
    return Limit(max(left, 0.0), "the limit of its address space (ulimit -v) leaves this process")


def check_predictions(n: int, t: int, matrices: float) -> None:
    """Refuse t test inputs at once where so many arrays (n, t) of their covariances with n patterns would not fit.

    The MemoryError says how many fit.
    """
    needed, there = 8.0 * matrices * n * t, available_memory()
    if needed > there.bytes:
        GiB = 2.0**30
        raise MemoryError(
            f"X: probabilities of {t} test inputs at once need about {needed / GiB:.1f} GiB beside {n} training "
            f"patterns; {there.source} {there.bytes / GiB:.1f} GiB. Predict at most "
            f"{math.floor(there.bytes / (8.0 * matrices * n))} at a time"
        )
