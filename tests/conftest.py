"""The order of the test files, and one thread of linear algebra for each worker.

The workers share the cores. Where each has as many threads as there are cores, they wait for each other: a chain on
small matrices then takes up to fourteen times as much processor time.
"""

import os

# before NumPy is loaded; the workers and the processes that tests start inherit it
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

#: They take minutes. Begun last, one worker would be at them long after the other. The first makes the tiny run, which
#: the third needs too: the second keeps the other worker busy meanwhile.
FIRST = ["test_workflow.py", "test_studies.py", "test_interruption.py"]


def pytest_collection_modifyitems(items):
    """Files of `FIRST` first; the order within each file stays."""
    order = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(FIRST)))
