"""Which of the traces that arrive are scored: chosen by a hash of their ids, so always the same ones."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from msgspec import Struct

from agentunit.addons.watch._growing import BY_LINE
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record

# So many cases of a slice are scored each day whatever the share; then ever fewer, down to the share.
FEWEST_OF_SLICE = 20
_DAY_S = 86_400.0
_WHOLE = float(1 << 64)


def parse_share(text: str) -> float:
    """A share of traces as it is written.

    >>> parse_share("5%"), parse_share("0.2")
    (0.05, 0.2)
    """
    try:
        share = float(text[:-1]) / 100.0 if text.strip().endswith("%") else float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise ValueError(f"a sample is a share of the traces, such as 5% or 0.05; received {text!r}")
    return share


def identity_of(record: Record, place: str) -> str:
    """What tells a record from all others: the id of its trace, else what it says and when, else where it stands.

    A session grows after it was read: what it is called and when it began tells it. A record without an id and without
    any time may be a repeat of another, word for word: each of them counts. What it says counts beside its place, as
    another file may take a place that is free again.
    """
    trace_id: Any = record.trace.metadata.get("trace_id")
    if isinstance(trace_id, list) and trace_id:
        trace_id = " ".join(map(str, trace_id))
    if isinstance(trace_id, str) and trace_id:
        return trace_id
    source_format = record.trace.metadata.get("source_format")
    if isinstance(source_format, str) and source_format not in BY_LINE and record.case.id:
        began = min((event.timestamp for event in record.trace.events if event.timestamp is not None), default=None)
        if began is not None:
            return f"session {source_format} {began!r} {record.case.id}"
    text = _digest(encode_record(record)).hex()
    return f"place {place} {text}" if ended_at(record) is None else f"text {text}"


def digest_of(identity: str) -> int:
    """A number of 64 bits for an identity, as a database keeps it."""
    return int.from_bytes(_digest(identity.encode("utf-8", "surrogatepass")), "big", signed=True)


def fraction_of(identity: str) -> float:
    """A number from 0 to 1 that depends on the identity alone; traces below the wanted share are taken.

    >>> 0.0 <= fraction_of("0af7651916cd43dd8448eb211c80319c") < 1.0
    True
    """
    return int.from_bytes(_digest(b"sample " + identity.encode("utf-8", "surrogatepass")), "big") / _WHOLE


def slice_share(share: float, n_before: int) -> float:
    """The share of a slice that is scored after so many of its cases today: a rare slice is scored as a whole.

    >>> slice_share(0.05, 19), slice_share(0.05, 39), slice_share(0.05, 1000)
    (1.0, 0.5, 0.05)
    """
    return max(share, min(1.0, FEWEST_OF_SLICE / (n_before + 1)))


def has_failed(record: Record) -> bool:
    """Whether the agent failed by its own account: it says so, or recorded an error."""
    outcome = record.outcome
    return isinstance(outcome, Outcome) and (outcome.success is False or bool(outcome.error))


def ended_at(record: Record) -> float | None:
    """When the last event of a trace happened, in seconds since 1970; ``None`` where no event tells."""
    times = [event.timestamp for event in record.trace.events if event.timestamp is not None]
    latest = max(times, default=None)
    return latest if latest is not None and 0.0 < latest < 1e11 else None


class ModelBudget(Struct):
    """How many more cases may have the metrics with a model behind them: a day's number comes in over a day.

    >>> budget = ModelBudget(2, left=2.0, filled_at=0.0)
    >>> [budget.take(now) for now in (0.0, 0.0, 0.0, 43_200.0, 43_200.0)]
    [True, True, False, True, False]
    """

    a_day: int | None
    left: float = 0.0
    filled_at: float = 0.0

    def take(self, now: float) -> bool:
        """Whether one more case may have them."""
        if self.a_day is None:
            return True
        came_in = max(0.0, now - self.filled_at) / _DAY_S * self.a_day
        self.left, self.filled_at = min(float(self.a_day), self.left + came_in), max(now, self.filled_at)
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=8).digest()
