"""Run the problems and keep their values: ``PYTHONPATH=src:tests/gpcmc python -m before.record [file] [--seed N]``.

Without `--seed` the random numbers are those of the kept values; with another, the laws are the same and the numbers
are not. ``--against file`` compares instead of writing, and ``--only word`` takes problems whose names have the word.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

from before import rows
from before.problems import PROBLEMS

VALUES = Path(__file__).with_name("values.json")


def run(seed=0, only="", seconds=None):
    """The table of all problems; `seconds` takes the CPU seconds of each."""
    table = {}
    for name, problem in PROBLEMS.items():
        if only not in name:
            continue
        start = time.process_time()
        found = rows.Rows(name, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a fit warns of is in its status
            problem(found)
        table[name] = found.found
        if seconds is not None:
            seconds[name] = time.process_time() - start
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", default=VALUES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--against", type=Path, help="compare with this file, and write nothing")
    given = parser.parse_args()
    seconds = {}
    table = run(given.seed, given.only, seconds)
    for name, took in sorted(seconds.items(), key=lambda item: -item[1])[:15]:
        print(f"{took:6.2f} CPU s  {name}", file=sys.stderr)
    print(f"{sum(seconds.values()):6.2f} CPU s in all, {len(table)} problems", file=sys.stderr)
    if given.against is None:
        kept = rows.read(given.file) if given.only and given.file.exists() else {}
        table = kept | table
        rows.write({name: table[name] for name in PROBLEMS if name in table}, given.file)
        return
    kept = {name: found for name, found in rows.read(given.against).items() if given.only in name}
    found = rows.compare(kept, table)
    print(rows.report(found))
    sys.exit(any(one.failed for one in found))


if __name__ == "__main__":
    main()
