"""From an agent's own objects to a result that can be stored: through the codec and back, whatever they hold.

The bytes are what a worker process sends; in one process the round trip is made all the same, so that a result is the
same wherever the agent ran, can be read again from disk, and shares nothing that an agent still running could change.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, get_args

import msgspec

from agentunit.adapters.base import AgentResult, FailureKind
from agentunit.adapters.failures import describe_error
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, as_outcome, as_trace, decode_record, encode_record
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import encode_json
from agentunit.core.trace import TraceLog

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""More than this from one case, and it is ended: what came in is held in memory."""
TOO_MUCH = f"{{}} passed {MAX_REPLY_BYTES // 2**20} MiB, the most that is kept of one case"

_HEAD = struct.Struct("<dB")
_FAILURES: tuple[FailureKind | None, ...] = (None, *get_args(FailureKind))
_NO_CASE = DatasetCase()
_LISTS = ("events", "interactions", "handoffs", "conflicts")
_MAPPINGS = ("agent_roles", "metadata")


def sealed(outcome: Outcome, trace: TraceLog, elapsed_s: float, failure: FailureKind | None) -> bytes:
    """A result as bytes. What cannot be written is left out, and the trace says so."""
    try:
        body = encode_record(Record(_NO_CASE, trace, outcome))
    except Exception as error:  # noqa: BLE001 - an agent's object may raise anything while it is written
        reason = describe_error(error)
        outcome_bytes = _attempt(encode_json, outcome)
        if outcome_bytes is None:
            outcome_bytes = encode_json(_unusable(reason))
            failure = failure or "wrong_type"
        trace_bytes = _attempt(encode_json, trace) or encode_json(_writable_parts(trace, reason))
        body = b'{"v":1,"case":{},"trace":' + trace_bytes + b',"outcome":' + outcome_bytes + b"}"
    return _HEAD.pack(elapsed_s, _FAILURES.index(failure)) + body


def opened(data: bytes | memoryview) -> AgentResult:
    """The result that ``sealed`` wrote."""
    elapsed_s, index = _HEAD.unpack_from(data)
    failure, body = _FAILURES[index], bytes(data[_HEAD.size :])
    try:
        record = decode_record(body)
        outcome, trace = record.outcome, record.trace
    except RecordError:
        outcome, trace = _readable_parts(body)
    if not isinstance(outcome, Outcome):
        outcome = _unusable("it is no outcome")
    if outcome.success is False and outcome.error and outcome.error.startswith(_UNUSABLE):
        failure = failure or "wrong_type"
    if failure is not None:
        trace.metadata["failure"] = failure
    return AgentResult(outcome, trace, elapsed_s, failure)


_UNUSABLE = "the agent's answer cannot be kept: "


def _unusable(reason: str) -> Outcome:
    return Outcome(success=False, error=_UNUSABLE + reason)


def _readable_parts(body: bytes) -> tuple[Any, TraceLog]:
    """What fits the data model of a record that does not: an agent may put anything into its trace."""
    try:
        plain = msgspec.json.decode(body)
    except Exception as error:  # noqa: BLE001 - numbers and nesting that may be written but not read
        return _unusable(describe_error(error)), TraceLog()
    try:
        outcome = as_outcome(plain["outcome"])
    except RecordError as error:
        outcome = _unusable(str(error))
    found, trace = plain["trace"], TraceLog()
    try:
        return outcome, as_trace(found)
    except RecordError as error:
        reason = str(error)
    for name in _LISTS:
        values = found.get(name)
        parts = [_attempt(as_trace, {name: [each]}) for each in (values if isinstance(values, list) else ())]
        setattr(trace, name, [getattr(part, name)[0] for part in parts if part is not None])
    for name in _MAPPINGS:
        values = found.get(name)
        mapped = _attempt(as_trace, {name: values}) if isinstance(values, dict) else None
        setattr(trace, name, getattr(mapped, name, {}))
    trace.metadata["trace_error"] = f"parts of the trace were left out: {reason}"
    return outcome, trace


def _writable_parts(trace: TraceLog, reason: str) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in _LISTS:
        values = getattr(trace, name)
        parts = [_attempt(encode_json, each) for each in (list(values) if isinstance(values, list) else ())]
        kept[name] = [msgspec.Raw(part) for part in parts if part is not None]
    for name in _MAPPINGS:
        values = getattr(trace, name)
        pairs = list(values.items()) if isinstance(values, dict) else []
        written = {str(key): _attempt(encode_json, value) for key, value in pairs}
        kept[name] = {key: msgspec.Raw(part) for key, part in written.items() if part is not None}
    kept["metadata"]["trace_error"] = f"parts of the trace were left out: {reason}"
    return kept


def _attempt(make: Callable[[Any], Any], value: Any) -> Any:
    try:
        return make(value)
    except Exception:  # noqa: BLE001 - the one part that cannot be kept must not cost the others
        return None
