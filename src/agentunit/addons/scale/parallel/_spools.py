"""Spans of a file kept in a file of their own until their traces are put together, by this process or another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from agentunit.traces.grouping import (
    LARGEST_GROUP_BYTES,
    SpanGroup,
    SpanGroups,
    Unpack,
    framed_spans,
    group_too_large,
    unpack_json,
    unpack_msgpack,
    unpacked_group,
)
from agentunit.traces.otlp.json_requests import JSON_ENCODING, unpack_log
from agentunit.traces.otlp.otlp_values import Level
from agentunit.traces.otlp.otlp_values import Unpack as OtlpUnpack
from agentunit.traces.spans import ReadingNotes

if TYPE_CHECKING:
    from agentunit.core.results import InputError
    from agentunit.traces.otlp.protobuf_messages import MessageTypes

_PLAIN: dict[str, Unpack] = {"msgpack": unpack_msgpack, "json": unpack_json, "otlp-json-log": unpack_log}
_PROTOBUF_LOG = "otlp-protobuf-log"


class ForeignPacking(ValueError):
    """Spans that a format of another package packed in a way of its own, which no other process can unpack."""


class Packing(Struct, frozen=True, array_like=True):
    """What unpacks spans, as data: its kind, and the bytes of the resource and scope that they share."""

    kind: str
    resource: bytes | None = None
    scope: bytes | None = None


class SpooledTrace(Struct, frozen=True, array_like=True):
    """The spans of one trace: its id, their bytes, and where they lie: number of the spool, offset, length."""

    id: str
    n_bytes: int
    places: list[tuple[int, int, int]]


class Spool(Struct, frozen=True, array_like=True):
    """What a file of spans holds: each trace with its bytes and its offsets and lengths, and how they are packed."""

    traces: list[tuple[str, int, list[int]]]
    packings: list[Packing]


def finish_spool(groups: SpanGroups, notes: ReadingNotes) -> Spool:
    """Write all spans that were collected to the file of ``groups``, and say where they are."""
    traces = list(groups.spooled())
    return Spool(traces, [_packing(unpack, notes) for unpack in groups.unpacks])


def read_traces(
    traces: Iterable[SpooledTrace], spools: Mapping[int, tuple[IO[bytes], Spool]], notes: ReadingNotes
) -> Iterator[SpanGroup | InputError]:
    """The traces with their spans, from the files that hold them."""
    unpacks = {number: [_unpack(packing) for packing in spool.packings] for number, (_, spool) in spools.items()}
    for trace in traces:
        if trace.n_bytes > LARGEST_GROUP_BYTES:
            yield group_too_large(trace.id, trace.n_bytes)
            continue
        packed: list[tuple[str, bytes, Unpack]] = []
        for number, offset, length in trace.places:
            file = spools[number][0]
            file.seek(offset)
            packed.extend((trace.id, data, unpack) for data, unpack in framed_spans(file.read(length), unpacks[number]))
        yield from unpacked_group(trace.id, [trace.id], packed, notes)


def _packing(unpack: Any, notes: ReadingNotes) -> Packing:
    if isinstance(unpack, OtlpUnpack):
        # What is odd about a resource is noted here, once, and not by each process that unpacks spans of it.
        with suppress(Exception):
            unpack.shared(notes)
        return Packing(unpack.name, *unpack.said)
    for kind, known in _PLAIN.items():
        if unpack is known:
            return Packing(kind)
    if type(getattr(unpack, "__self__", None)).__module__ == "agentunit.traces.otlp.protobuf_messages":
        return Packing(_PROTOBUF_LOG)
    owner = getattr(unpack, "__module__", None) or "another package"
    raise ForeignPacking(f"{owner} packs spans in a way that no other process can read: leave --jobs out")


def _unpack(packing: Packing) -> Unpack:
    if packing.kind in _PLAIN:
        return _PLAIN[packing.kind]
    if packing.kind == _PROTOBUF_LOG:
        return _messages().unpack_log
    level = Level()
    level.resource, level.scope = packing.resource, packing.scope
    unpack = OtlpUnpack(level, JSON_ENCODING if packing.kind == JSON_ENCODING.name else _messages().encoding)
    with suppress(Exception):
        unpack.shared(ReadingNotes())
    return unpack


@cache
def _messages() -> MessageTypes:
    from agentunit.traces.otlp.protobuf_messages import MessageTypes

    return MessageTypes()
