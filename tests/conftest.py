"""The order of the test files."""

#: They take minutes. Begun last, one worker would be at them long after the other.
FIRST = ["test_workflow.py", "test_interruption.py", "test_studies.py"]


def pytest_collection_modifyitems(items):
    """Files of `FIRST` first; the order within each file stays."""
    order = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(FIRST)))
