"""What the scores of a job depend on, so that one that was stopped goes on only with the same."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
from collections.abc import Sequence
from typing import Any

import agentunit
from agentunit.backends.media.limits import configured_media_root
from agentunit.core.results import decode_json, encode_json
from agentunit.engine.parallel.folder import Identity
from agentunit.engine.parallel.work import ScoringJob
from agentunit.metrics.base import describe
from agentunit.metrics.functions import FunctionMetric
from agentunit.metrics.registry import parameters
from agentunit.traces.limits import read_limits
from agentunit.traces.reading import InputFile
from agentunit.traces.remote import is_remote, remote_state

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def identity_of(files: Sequence[InputFile], job: ScoringJob, block_bytes: int, expected_path: str | None) -> Identity:
    """The inputs by size and time of change, the metrics by version, parameters and code, and the settings."""
    inputs = {
        f"{each.path} ({number})" if number else each.path: [each.n_bytes, *_state(each.path)]
        for number, each in _counted(files)
    }
    settings = {
        "--from": job.format,
        "--strict": job.strict,
        "--by": job.by,
        "--expected": None if expected_path is None else [expected_path, *_state(expected_path)],
        "--media-root": None if (root := configured_media_root()) is None else os.path.abspath(root),
        "score lines": "numbered" if job.with_lines else None,
        "block size": block_bytes,
        "limits on reading": [str(limit) for limit in read_limits()],
        "version of AgentUnit": agentunit.__version__,
    }
    return Identity(inputs, {metric.name: _described(metric) for metric in job.metrics}, settings)


def _counted(files: Sequence[InputFile]) -> list[tuple[int, InputFile]]:
    """The files, each with how often it was there before: a file may be given twice."""
    times: dict[str, int] = {}
    counted = []
    for each in files:
        counted.append((times.get(each.path, 0), each))
        times[each.path] = times.get(each.path, 0) + 1
    return counted


def _state(path: str) -> list[int]:
    try:
        if is_remote(path):
            return [remote_state(path)]
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]


def _described(metric: Any) -> Any:
    text = encode_json(
        {
            "version": describe(metric).version,
            "parameters": parameters(metric),
            "backend": getattr(metric, "current_backend", None),
            "code": _digest_of_code(metric),
        }
    ).decode()
    # Objects that are no data are named by where they lie in memory, which says nothing.
    return decode_json(_ADDRESS.sub("", text))


def _digest_of_code(metric: Any) -> str | None:
    """A digest of the file that a user's own metric is defined in; AgentUnit's own have versions."""
    source = metric.function if isinstance(metric, FunctionMetric) else type(metric)
    if (getattr(source, "__module__", None) or "").split(".")[0] == "agentunit":
        return None
    try:
        path = inspect.getsourcefile(source)
        if path is None:
            return None
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:12]
    except (OSError, TypeError):
        return None
