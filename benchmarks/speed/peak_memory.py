"""How much memory this process has held at most."""

from __future__ import annotations

import sys


def peak_bytes() -> int:
    """The largest resident size of this process until now."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            # Not getrusage: on Linux its maximum also covers the process that started this one.
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    except FileNotFoundError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
