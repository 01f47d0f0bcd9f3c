"""What an OTLP/HTTP receiver answers with, in the encoding that it was asked in.

The messages are so small that they are encoded here: an answer needs no protobuf package.
"""

from __future__ import annotations

from agentunit.core.results import encode_json

PROTOBUF = "application/x-protobuf"
JSON = "application/json"

_REJECTED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords", "metrics": "rejectedDataPoints"}


def success(media_type: str, signal: str, n_rejected: int = 0, message: str = "") -> bytes:
    """The answer to an accepted request; what was not accepted of it is counted, and ``message`` says why.

    >>> success(JSON, "traces", 2, "two spans have no trace id")
    b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"two spans have no trace id"}}'
    >>> success(PROTOBUF, "traces", 2, "no id")
    b'\\n\\t\\x08\\x02\\x12\\x05no id'
    """
    partial = bool(n_rejected or message)
    if media_type == PROTOBUF:
        rejected = b"\x08" + _varint(n_rejected) if n_rejected else b""
        return _bytes_field(1, rejected + _bytes_field(2, message.encode())) if partial else b""
    # Whole numbers of 64 bits are texts in the JSON form of protobuf.
    told = {_REJECTED[signal]: str(n_rejected), "errorMessage": message}
    return encode_json({"partialSuccess": told} if partial else {})


def failure(media_type: str, message: str) -> bytes:
    """The answer to a request that was not accepted: a ``google.rpc.Status`` with a message.

    >>> failure(JSON, "no"), failure(PROTOBUF, "no")
    (b'{"message":"no"}', b'\\x12\\x02no')
    """
    return _bytes_field(2, message.encode()) if media_type == PROTOBUF else encode_json({"message": message})


def _bytes_field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
