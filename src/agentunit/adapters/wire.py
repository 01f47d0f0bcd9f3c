"""What is said to agents outside of Python, and what they may say: one JSON object each way, or plain text back."""

from __future__ import annotations

from typing import Any

import msgspec

from agentunit.adapters.call import Call, WrongType, outcome_of
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, as_trace
from agentunit.core.results import encode_json

MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""The longest answer that is read."""


def request_json(case: DatasetCase, seed: int | None) -> bytes:
    """The question as JSON: ``id``, ``query``, ``context``, ``tools``, ``metadata`` and ``seed``, always all of them.

    The expected output is not among them: it is what the answer is compared with.

    >>> request_json(DatasetCase("q1", "Capital of France?", expected_output="Paris"), seed=7)
    b'{"id":"q1","query":"Capital of France?","context":null,"tools":null,"metadata":{},"seed":7}'
    """
    return encode_json(
        {
            "id": case.id,
            "query": case.query,
            "context": case.context,
            "tools": case.tools,
            "metadata": case.metadata,
            "seed": seed,
        }
    )


def take_reply(call: Call, text: str, *, may_be_text: bool) -> None:
    """Finish a call with the text that came back.

    A JSON object is an outcome, with the trace under ``trace`` (an object, or a list of events); a JSON string is the
    output. Anything else is the answer itself where plain text is allowed.
    """
    try:
        value: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        # Half an object, or one with log lines before it, was meant as JSON: taken as text it could pass a check.
        if not may_be_text or text.lstrip().startswith("{") or text.rstrip().endswith("}"):
            raise WrongType(
                f"the answer is not valid JSON: {error} (one JSON object and nothing else; logs belong on stderr)"
            ) from None
        value = text.strip()
    if isinstance(value, dict):
        _take_object(call, value)
    elif isinstance(value, str):
        if not value:
            raise WrongType("the answer is empty")
        call.finish(value)
    elif may_be_text:
        call.finish(text.strip())
    else:
        raise WrongType(f"the answer is JSON, but {_JSON_NAMES[type(value)]}; it must be an object or a string")


_JSON_NAMES = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", list: "an array"}


def _take_object(call: Call, answer: dict[str, Any]) -> None:
    trace = answer.pop("trace", None)
    if trace is not None:
        metadata = call.metadata
        try:
            call.trace = as_trace(trace) if isinstance(trace, (dict, list)) else call.trace
        except RecordError as error:
            call.metadata["trace_error"] = f"the trace of the answer was left out: {error}"
        call.metadata.update(metadata)
    call.finish(outcome_of(answer))
