"""``python -m recheck`` is the command ``recheck``."""

import sys

from recheck.judge.command import main

if __name__ == "__main__":
    sys.exit(main())
