"""The order of the test files, which tests are slow, and one thread of linear algebra for each worker.

The workers share the cores. Where each has as many threads as there are cores, they wait for each other: a chain on
small matrices then takes up to fourteen times as much processor time.
"""

import os
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

# before NumPy is loaded; the workers and the processes that tests start inherit it
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

#: They take minutes. Begun last, one worker would be at them long after the other. The first makes the tiny run, which
#: the third needs too: the second keeps the other worker busy meanwhile.
FIRST = ["test_workflow.py", "test_studies.py", "test_interruption.py"]

#: Test functions of which some case took longer than `LIMIT` seconds, and files in which a fixture, which the next test
#: would make if the first one is left out, took ten times that; ``make test PYTEST=--record-slow`` writes it.
SLOW = Path(__file__).with_name("slow.txt")
LIMIT = 0.1
_seconds = defaultdict(float)


def _function(case):
    """The test function of a case: ``gpcmc/test_gp.py::test_rbf`` of ``tests/gpcmc/test_gp.py::test_rbf[2]``."""
    return "/".join(case.partition("[")[0].split("/")[-2:])


@pytest.fixture(scope="module")
def script():
    """A function that imports a script below benchmarks, which is in no package."""
    with pytest.MonkeyPatch.context() as patch:

        def load(path):
            place = Path(__file__).resolve().parents[1] / "benchmarks" / path
            patch.syspath_prepend(place.parent)
            return import_module(place.stem)

        yield load


def pytest_addoption(parser):
    parser.addoption("--record-slow", action="store_true", help=f"write {SLOW.name} from this run")


def pytest_collection_modifyitems(items):
    """Files of `FIRST` first; the order within each file stays. Slow tests are marked so."""
    order = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(FIRST)))
    slow = set(SLOW.read_text().splitlines())
    for item in items:
        function = _function(item.nodeid)
        if function in slow or function.partition("::")[0] in slow:
            item.add_marker("slow")


def pytest_runtest_logreport(report):
    _seconds[report.nodeid] += report.duration
    if report.when == "setup" and report.duration > 10 * LIMIT:
        _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish(session):
    if session.config.option.record_slow and not hasattr(session.config, "workerinput"):
        slow = {_function(case) for case, took in _seconds.items() if took > LIMIT}
        SLOW.write_text("".join(f"{name}\n" for name in sorted(slow)))
