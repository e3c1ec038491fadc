"""One thread for linear algebra: on matrices of this size more of them cost time, and change the last bits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

_here = threading.local()


def _controller() -> ThreadpoolController:
    """Return what limits the libraries that are loaded.

    To look for them takes milliseconds, longer than many a fit. They come with modules, so that the search
    is made again only after an import.
    """
    if getattr(_here, "modules", None) != len(sys.modules):
        _here.controller, _here.modules = ThreadpoolController(), len(sys.modules)
    return _here.controller


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread, as a context or as a decorator.

    Inside another such context of the same Python thread it does nothing.
    """
    if getattr(_here, "limited", False):
        yield
        return
    with _controller().limit(limits=1):
        _here.limited = True
        try:
            yield
        finally:
            _here.limited = False
