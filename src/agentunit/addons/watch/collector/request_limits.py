"""How much a collector takes on at once, for all of its ports together, and how a request beyond that is refused."""

from __future__ import annotations

import threading
from math import isinf

from msgspec import Struct, structs

from agentunit.traces.limits import limit_of, raised_by

_MIB = 1 << 20
_VARIABLES = {
    "request_bytes": "AGENTUNIT_MAX_REQUEST_MB",
    "under_way_bytes": "AGENTUNIT_MAX_UNDER_WAY_MB",
    "spool_bytes": "AGENTUNIT_MAX_SPOOL_MB",
}


class ReceiverLimits(Struct, frozen=True):
    """Sizes hold for requests as they are read, compressed or not. ``calls`` are connections (gRPC: calls) at once."""

    # The largest request that the OpenTelemetry SDK for Python sends.
    request_bytes: float = 64 * _MIB
    under_way_bytes: float = 128 * _MIB
    spool_bytes: float = 4096 * _MIB
    calls: int = 200
    idle_s: float = 60.0
    stall_s: float = 5.0
    request_s: float = 30.0


def receiver_limits() -> ReceiverLimits:
    """The limits, as the environment sets them; ``LimitExceeded`` for a value that is not a number.

    >>> receiver_limits().request_bytes
    67108864.0
    """
    limits = ReceiverLimits()
    sizes = {name: limit_of(variable, getattr(limits, name) / _MIB) * _MIB for name, variable in _VARIABLES.items()}
    return structs.replace(limits, **sizes)


class RefusedRequest(Exception):
    """A request that is answered with an error. With ``retry_after_s`` the sender is asked to try again."""

    def __init__(self, status: int, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s


def too_large(request_bytes: float) -> RefusedRequest:
    """The refusal of a request that is too large, as it came or decompressed."""
    return RefusedRequest(
        413,
        f"a request may have {request_bytes:,.0f} bytes, also when decompressed: send fewer spans at once "
        f"(OTEL_BSP_MAX_EXPORT_BATCH_SIZE, OTEL_BLRP_MAX_EXPORT_BATCH_SIZE); {raised_by(_VARIABLES['request_bytes'])}",
    )


def spool_full(spool_bytes: float) -> str:
    """Why nothing more is kept."""
    return f"the spool holds {spool_bytes / _MIB:,.0f} MiB, which is its limit; {raised_by(_VARIABLES['spool_bytes'])}"


class MemoryBudget:
    """How many bytes of requests may be in memory at once, counted over all connections."""

    def __init__(self, n_bytes: float) -> None:
        self.n_bytes = n_bytes
        self._n_taken = 0.0
        self._lock = threading.Lock()

    def change(self, n_bytes: float) -> bool:
        """Take so many bytes more, or give them back; ``False`` when there is no room."""
        if isinf(self.n_bytes):
            return True
        with self._lock:
            if n_bytes > 0 and self._n_taken + n_bytes > self.n_bytes:
                return False
            self._n_taken += n_bytes
            return True


class Reservation:
    """One request's part of the budget, empty at first; leaving it as a context gives it back."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.n_bytes = 0.0
        self._budget = budget

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *exception: object) -> None:
        self.shrink_to(0)

    def grow_to(self, n_bytes: float) -> None:
        """Have room for at least so many bytes, or be refused for the moment."""
        if n_bytes > self.n_bytes:
            if not self._budget.change(n_bytes - self.n_bytes):
                way_out = raised_by(_VARIABLES["under_way_bytes"])
                raise RefusedRequest(503, f"too much is under way at once: try again; {way_out}", retry_after_s=1)
            self.n_bytes = n_bytes

    def shrink_to(self, n_bytes: float) -> None:
        """Give back what is not needed."""
        if n_bytes < self.n_bytes:
            self._budget.change(n_bytes - self.n_bytes)
            self.n_bytes = n_bytes
