"""Record the scenario (``../scenario.py``, ``../spans.py``) as the body that OTLP exporters send.

Versions: opentelemetry-sdk 1.45.2, opentelemetry-exporter-otlp-proto-common 1.45.2.
Paths in stack traces are shortened.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from spans import recorded_spans, without_paths

    request = encode_spans(recorded_spans())
    for scope in request.resource_spans[0].scope_spans:
        for event in (event for span in scope.spans for event in span.events):
            for attribute in event.attributes:
                attribute.value.string_value = without_paths(attribute.value.string_value)
    Path(__file__).with_name("support.pb").write_bytes(request.SerializeToString())


if __name__ == "__main__":
    main()
