"""The shapes of the JSON that commands print and files hold: each place that occurs."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from agentunit.cli.main import cli
from agentunit.metrics.registry import MetricRegistry

# Under these keys stand names of metrics, cases, fields or places, which are data and no part of a shape.
_OPEN = {
    "by_kind",
    "detail",
    "metadata",
    "metadata_inputs",
    "parameters",
    "payload",
    "reasons",
    "settings",
    "slices",
    "trust",
    "usage",
    "versions",
}
_COMMANDS = {
    "run": ["run", "suite.py", "--json", "--yes"],
    "score": ["score", "demo.jsonl", "--metrics", "contains,tool_success,cost", "--json"],
    "show": ["show", "last", "--json"],
    "compare": ["compare", "last", "last", "--json"],
    "gate": ["show", "last", "--gate", "contains >= 0.5", "--json"],
    "runs": ["runs", "--json"],
    "metrics": ["metrics", "--json"],
    "metrics NAME": ["metrics", "cost", "--json"],
    "demo": ["show", "demo", "--json"],
    "doctor": ["doctor", "--json"],
    "doctor FILE": ["doctor", "demo.jsonl", "--json"],
}
_FILES = {
    "scores of score --out": ["score", "demo.jsonl", "--metrics", "contains,cost", "--out", "scores.jsonl"],
    "export run.json": ["export", "last", "--to", "run.json"],
}


def json_shapes() -> Iterator[str]:
    """One line for each place of each document, in no order."""
    metrics = set(MetricRegistry(entry_point_group=None).names())
    runner = CliRunner()
    with _folder():
        runner.invoke(cli, ["init"])
        for name, arguments in _COMMANDS.items():
            done = runner.invoke(cli, arguments)
            document = _first_document(done.stdout)
            if document is None:
                raise RuntimeError(f"agentunit {' '.join(arguments)}: {done.exit_code}, no JSON: {done.output[-400:]}")
            yield from _shape(f"json {name}", document, metrics)
        for name, arguments in _FILES.items():
            done = runner.invoke(cli, arguments)
            if not Path(arguments[-1]).exists():
                raise RuntimeError(f"agentunit {' '.join(arguments)}: {done.exit_code}: {done.output[-400:]}")
            for line in Path(arguments[-1]).read_text(encoding="utf-8").splitlines():
                yield from _shape(f"json {name}", json.loads(line), metrics)


@contextmanager
def _folder() -> Iterator[None]:
    """An empty folder with a small recording, and nothing that another machine would not have."""
    kept = dict(os.environ), Path.cwd()
    for name in [name for name in os.environ if name.startswith("AGENTUNIT_")]:
        del os.environ[name]
    os.environ["AGENTUNIT_BACKEND"] = "lexical"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            CliRunner().invoke(cli, ["convert", "demo", "--out", "demo.jsonl"])
            yield
        finally:
            os.chdir(kept[1])
            os.environ.clear()
            os.environ.update(kept[0])


def _first_document(text: str) -> Any:
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return None
    return json.JSONDecoder().raw_decode(text[start:])[0]


def _shape(path: str, value: Any, metrics: set[str]) -> Iterator[str]:
    # Only places: what a value is may depend on the machine (no git, no prices), where it stands does not.
    yield path
    if isinstance(value, list):
        for each in value:
            yield from _shape(f"{path}[]", each, metrics)
    elif isinstance(value, dict):
        # A kept decision has the shape of one that is printed.
        is_kept = path.endswith("decisions[].decision")
        if is_kept or re.split(r"[.\[]", path.removesuffix("[]"))[-1] in _OPEN:
            return
        are_cases = path.endswith("comparison.cases")
        for key, each in value.items():
            yield from _shape(f"{path}.{'*' if are_cases or key in metrics else key}", each, metrics)
