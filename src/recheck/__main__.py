"""``python -m recheck`` is the command ``recheck``."""

import sys

from recheck.command import main

if __name__ == "__main__":
    sys.exit(main())
