"""One thread for linear algebra, and NumPy's usual handling of floating-point errors, wherever the library computes.

On matrices of this size more threads cost time, and change the last bits. The limit on BLAS is the process's: it holds
from the first Python thread that enters to the last one that leaves, and only then is what was found put back. OpenMP
keeps a number for each Python thread, which each puts back itself.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

_here = threading.local()


class _Process:
    """The limit on BLAS, which all Python threads share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside, self.modules = 0, -1
        self.libraries: list[Any] = []
        self.found: list[tuple[Any, int]] = []

    def enter(self) -> list[tuple[Any, int]]:
        """Count one more Python thread and limit BLAS; limit OpenMP for this one, and return what it had."""
        with self.lock:
            # to look for libraries takes milliseconds; they come with modules
            new = self.modules != len(sys.modules)
            if new:
                self.libraries = ThreadpoolController().lib_controllers
                self.modules = len(sys.modules)
            if new or not self.inside:
                self.found += _limit(self.libraries, "blas")
            self.inside += 1
            return _limit(self.libraries, "openmp")

    def leave(self) -> None:
        """Count one Python thread less, and put back what was found if it was the last."""
        with self.lock:
            self.inside -= 1
            if not self.inside:
                _put_back(self.found)


def _limit(libraries: list[Any], api: str) -> list[tuple[Any, int]]:
    """Limit libraries to one thread; return those that had more, with their numbers."""
    own = [(one, one.get_num_threads()) for one in libraries if one.user_api == api]
    more = [(one, number) for one, number in own if number != 1]
    for one, _ in more:
        _set(one, 1)
    return more


def _put_back(found: list[tuple[Any, int]]) -> None:
    """Give libraries their numbers of threads again, the last one first."""
    while found:
        _set(*found.pop())


def _set(library: Any, number: int) -> None:
    """Set a library's number of threads, whichever Python thread asks.

    From 3.7 on threadpoolctl lets one Python thread alone set that of OpenBLAS, until it is told to forget which.
    """
    forget = getattr(library, "clear_controlling_thread", None)
    if forget is not None:
        forget(force=True)
    library.set_num_threads(number)
    if forget is not None:
        forget(force=True)


_process = _Process()


def _after_fork() -> None:
    """In a child process only the Python thread that forked goes on."""
    _process.lock = threading.Lock()
    _process.inside = int(getattr(_here, "limited", False))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread, as a context or as a decorator; underflow is no error in it.

    What a caller made an error with ``numpy.seterr`` is a warning inside, as NumPy has it by default. Inside another
    such context of the same Python thread it does nothing.
    """
    if getattr(_here, "limited", False):
        yield
        return
    own = _process.enter()
    _here.limited = True
    try:
        with np.errstate(**_usual(dict(np.geterr()))):
            yield
    finally:
        _here.limited = False
        _put_back(own)
        _process.leave()


def _usual(found: dict[str, Any]) -> dict[str, Any]:
    """Return what NumPy should do of floating-point errors: what the caller has, but for what would end in an error."""
    kept = {kind: "warn" if how in ("raise", "call") else how for kind, how in found.items()}
    return kept | {"under": "ignore"}
