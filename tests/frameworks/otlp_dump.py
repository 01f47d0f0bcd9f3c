"""Write the spans of a framework scenario as one OTLP/JSON document.

``python otlp_dump.py SCENARIO OUT.json [VARIANT]`` runs ``scenarios/SCENARIO.py`` and also writes what the scenario is
known to have done, ``SCENARIO.expected.json``, beside it. A scenario can also end with these lines. They replace the
script's own folder on the import path, because a scenario is named after its framework and would hide it; for the same
reason a scenario imports its framework inside functions::

    if __name__ == "__main__":
        sys.path[0] = str(Path(__file__).resolve().parents[1])
        from otlp_dump import record_scenario

        record_scenario(sys.modules[__name__])

``python scenarios/<name>.py OUT.json [VARIANT]`` then writes OUT.json, compressed where the name ends in ``.gz``. The
module must have ``run(question)``, ``EXPECTED`` and ``instrument(tracer_provider)``, or
``instrument(tracer_provider, variant)`` where it knows several.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

# In text such as a stack trace: the part of a path that differs between machines, up to the package or the file name.
MACHINE_PATH = re.compile(r"(?<![\w:/.])/(?:[\w.@+-]+/)+?(?:python3\.\d+/(?:site-packages/)?|(?=[\w.-]+\.py\b))")
OBJECT_ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\b")
MACHINE_KEYS = re.compile(r"^(host|process|os)\.|^code\.(filepath|file\.path)$|^service\.instance\.id$")


def to_otlp_json(spans: Iterable[ReadableSpan]) -> dict[str, Any]:
    """Return finished SDK spans as an OTLP/JSON trace document: hex ids, 64-bit integers as text, enums as integers."""
    resources: dict[Any, tuple[Any, dict[Any, tuple[Any, list[dict[str, Any]]]]]] = {}
    for span in spans:
        _, scopes = resources.setdefault(span.resource, (span.resource, {}))
        _, encoded = scopes.setdefault(span.instrumentation_scope, (span.instrumentation_scope, []))
        encoded.append(_span(span))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource.attributes)},
                "scopeSpans": [{"scope": _scope(scope), "spans": encoded} for scope, encoded in scopes.values()],
            }
            for resource, scopes in resources.values()
        ]
    }


def without_machine_details(document: Any) -> Any:
    """Return the document without host attributes, absolute paths and memory addresses, so that it can be published."""
    if isinstance(document, str):
        return OBJECT_ADDRESS.sub("0x0", MACHINE_PATH.sub("", document))
    if isinstance(document, list):
        return [
            without_machine_details(item)
            for item in document
            if not (isinstance(item, dict) and MACHINE_KEYS.search(str(item.get("key", ""))))
        ]
    if isinstance(document, dict):
        return {key: without_machine_details(value) for key, value in document.items()}
    return document


def record_scenario(scenario: Any, arguments: Sequence[str] | None = None) -> None:
    """Run a scenario module under a fresh tracer provider and write its spans; arguments are OUT.json and a variant."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    out, *variant = sys.argv[1:] if arguments is None else arguments
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "support-desk"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    scenario.instrument(provider, *variant)
    answer = scenario.run(scenario.EXPECTED["question"])
    if answer != scenario.EXPECTED["answer"]:
        raise SystemExit(f"the scenario answered {answer!r}, expected {scenario.EXPECTED['answer']!r}")
    provider.force_flush()
    spans = exporter.get_finished_spans()
    text = json.dumps(without_machine_details(to_otlp_json(spans)), ensure_ascii=False, separators=(",", ":"))
    content = (text + "\n").encode()
    Path(out).write_bytes(gzip.compress(content, mtime=0) if out.endswith(".gz") else content)
    print(f"{out}: {len(spans)} spans, {len(text)} characters")


def _span(span: ReadableSpan) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "flags": _flags(span.parent),
        "name": span.name,
        "kind": span.kind.value + 1,  # the SDK counts kinds from 0, OTLP keeps 0 for "unspecified"
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": _attributes(span.attributes),
        "status": {"code": span.status.status_code.value},
    }
    if span.parent is not None:
        encoded["parentSpanId"] = f"{span.parent.span_id:016x}"
    if span.context.trace_state:
        encoded["traceState"] = span.context.trace_state.to_header()
    if span.status.description:
        encoded["status"]["message"] = span.status.description
    if span.events:
        encoded["events"] = [
            {"timeUnixNano": str(event.timestamp), "name": event.name, "attributes": _attributes(event.attributes)}
            for event in span.events
        ]
    if span.links:
        encoded["links"] = [
            {
                "traceId": f"{link.context.trace_id:032x}",
                "spanId": f"{link.context.span_id:016x}",
                "attributes": _attributes(link.attributes),
                "flags": _flags(link.context),
            }
            for link in span.links
        ]
    dropped = {
        "droppedAttributesCount": span.dropped_attributes,
        "droppedEventsCount": span.dropped_events,
        "droppedLinksCount": span.dropped_links,
    }
    return encoded | {field: count for field, count in dropped.items() if count}


def _flags(context: Any) -> int:
    return 0x300 if context is not None and context.is_remote else 0x100  # 0x100: whether it is remote is known


def _scope(scope: Any) -> dict[str, Any]:
    if scope is None:
        return {}
    encoded = {"name": scope.name}
    if scope.version:
        encoded["version"] = scope.version
    if scope.attributes:
        encoded["attributes"] = _attributes(scope.attributes)
    return encoded


def _attributes(attributes: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value)} for key, value in (attributes or {}).items()]


def _any_value(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else _not_finite(value)}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _attributes(value)}}
    if isinstance(value, Sequence):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    raise TypeError(f"OTLP has no value for {type(value).__name__}: {value!r}")


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


if __name__ == "__main__":
    from run_live import load_scenario

    module = load_scenario(sys.argv[1])
    record_scenario(module, sys.argv[2:])
    known = Path(sys.argv[2]).with_name(f"{sys.argv[1]}.expected.json")
    known.write_text(json.dumps(module.EXPECTED, indent=1) + "\n", encoding="utf-8")
