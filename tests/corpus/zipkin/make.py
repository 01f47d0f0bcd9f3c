"""Record the scenario (``../scenario.py``, ``../spans.py``) as Zipkin's JSON, version 2.

Versions: opentelemetry-sdk 1.45.2, opentelemetry-exporter-zipkin-json 1.45.1, whose encoder cuts tags after 128
characters unless told otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from opentelemetry.exporter.zipkin.json.v2 import JsonV2Encoder
    from opentelemetry.exporter.zipkin.node_endpoint import NodeEndpoint
    from spans import recorded_spans, without_paths

    encoded = JsonV2Encoder(max_tag_value_length=100_000).serialize(recorded_spans(), NodeEndpoint())
    Path(__file__).with_name("support.json").write_text(without_paths(encoded), encoding="utf-8")


if __name__ == "__main__":
    main()
