"""Record the scenario (``../scenario.py``, ``../spans.py``) with the console exporter of OpenTelemetry's SDK 1.45.2."""

from __future__ import annotations

import io
import sys
from pathlib import Path


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter
    from spans import recorded_spans, without_paths

    printed = io.StringIO()
    recorded_spans(ConsoleSpanExporter(out=printed))
    Path(__file__).with_name("console.json").write_text(without_paths(printed.getvalue()), encoding="utf-8")


if __name__ == "__main__":
    main()
