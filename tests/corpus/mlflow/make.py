"""Record the scenario (``../scenario.py``) with MLflow's tracing of the OpenAI client: mlflow 3.17.2, openai 3.49.0.

The agent is a function decorated with ``mlflow.trace``, its tools are spans. The file is ``Trace.to_json()``. MLflow
keeps the reasoning tokens only in the raw reply of the model, not in its own counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LEFT_OUT = ("mlflow.source", "mlflow.user", "mlflow.artifactLocation")


def main() -> None:
    sys.path.append(str(HERE.parent))
    import mlflow
    import scenario
    from mlflow.entities import SpanType
    from openai import OpenAI
    from spans import without_paths

    mlflow.set_tracking_uri(f"sqlite:///{tempfile.mkdtemp()}/mlflow.db")
    os.chdir(tempfile.mkdtemp())
    mlflow.openai.autolog()

    @contextlib.contextmanager
    def tool_span(name: str, arguments: dict[str, Any], call_id: str) -> Iterator[Any]:
        with mlflow.start_span(name, span_type=SpanType.TOOL) as span:
            span.set_inputs(arguments)
            yield span.set_outputs

    @mlflow.trace(name=scenario.AGENT, span_type=SpanType.AGENT)
    def answer(question: str) -> str:
        return scenario.run_agent(client, tool_span)

    with scenario.scripted_model() as server:
        client = OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        assert answer(scenario.QUESTION) == scenario.ANSWER
    mlflow.flush_trace_async_logging()
    (trace,) = mlflow.search_traces(return_type="list")
    exported = json.loads(without_paths(trace.to_json()))
    # What tells of the machine that recorded it is left out.
    for part in ("trace_metadata", "tags"):
        for name in [name for name in exported["info"][part] if name.startswith(LEFT_OUT)]:
            del exported["info"][part][name]
    (HERE / "trace.json").write_text(json.dumps(exported) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
