"""The texts of OpenTelemetry spans masked by a redactor: in export requests, and in an SDK before it exports."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from agentunit.privacy.redaction import Redactor
from agentunit.privacy.spellings import KnownValues

MaskTexts = Callable[[Sequence[tuple[str, str | float]]], list[str | float]]

# Attributes that hold a trace together, by the field of a record that means the same.
_OWN_NAME = re.compile(r"(?:^|\.)(?:(?:agent|tool|service|function)[._]name|graph\.node\.(?:id|name|parent_id))$")
_MODEL = re.compile(r"(?:^|\.)(?:model|model[._]name|llm\.model_name)$")
_CONSTANT = re.compile(
    r"(?:^|\.)(?:system|provider|provider[._]name|operation[._]name|span\.kind|kind|role|mime_type|finish_reasons?"
    r"|(?:response|session|conversation|thread|run|request|call|tool_call|trace|span)[._]?id|schema_url)$|^(?:telemetry|otel|os"
    r"|process\.runtime)\."
)


def masked_texts(redactor: Redactor, known: KnownValues | None = None) -> MaskTexts:
    """What masks texts and numbers with the names of their attributes, all together; the pseudonyms are the redactor's.

    With ``known``, only those values are masked: what other requests of a file told.
    """

    def mask(texts: Sequence[tuple[str, str | float]]) -> list[str | float]:
        holders = [_holder(key, text) for key, text in texts]
        record = {
            "trace": {"events": [{"type": "span", "payload": holder} for is_own, holder in holders if is_own]},
            "texts": [holder for is_own, holder in holders if not is_own],
        }
        if known is None:
            redactor.redact_data([record])
        else:
            redactor.redact_known(record, known)
        return [next(iter(holder.values())) for _, holder in holders]

    return mask


def _holder(key: str, text: str | float) -> tuple[bool, dict[str, Any]]:
    """Whether an attribute holds the trace together, and its text in the field that it counts as."""
    if _OWN_NAME.search(key):
        return True, {"agent": text}
    if _MODEL.search(key):
        return True, {"model": text}
    if _CONSTANT.search(key):
        return True, {"id": text}
    return False, {key: text}
