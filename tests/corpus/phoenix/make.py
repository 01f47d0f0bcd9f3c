"""Send the scenario's spans (``../scenario.py``, ``../spans.py``) to a Phoenix server and write what its API returns.

Versions: arize-phoenix 20.26.1, opentelemetry-sdk 1.45.2. ``PHOENIX=http://127.0.0.1:6006 python make.py`` sends
OTLP to ``/v1/traces`` and reads ``/v1/projects/default/spans``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    import os
    import time
    from urllib.request import Request, urlopen

    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from spans import recorded_spans, without_paths

    server = os.environ["PHOENIX"]
    body = encode_spans(recorded_spans()).SerializeToString()
    urlopen(Request(f"{server}/v1/traces", body, {"Content-Type": "application/x-protobuf"})).read()
    found: dict[str, Any] = {"data": []}
    while len(found["data"]) < 6:
        time.sleep(1)
        found = json.load(urlopen(f"{server}/v1/projects/default/spans"))
    text = without_paths(json.dumps(found, indent=1))
    Path(__file__).with_name("spans.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
