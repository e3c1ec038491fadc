"""The machine that results are made on."""

from __future__ import annotations

import platform


def processor() -> str:
    """Return the model of this machine's processor, or its architecture where nothing says more."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
