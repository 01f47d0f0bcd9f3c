"""Record the scenario (``../scenario.py``, ``../spans.py``) with the OTLP/JSON file exporter of OpenTelemetry's SDK.

Versions: opentelemetry-sdk 1.45.2, opentelemetry-exporter-otlp-json-file 0.66b1. Paths in stack traces are shortened.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from opentelemetry.exporter.otlp.json.file import FileSpanExporter
    from spans import recorded_spans, without_paths

    out = Path(__file__).with_name("support.jsonl")
    out.unlink(missing_ok=True)
    recorded_spans(FileSpanExporter(str(out)))
    out.write_text(without_paths(out.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
