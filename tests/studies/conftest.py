"""The truths that the tests of the library use are used here too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpcmc"))
