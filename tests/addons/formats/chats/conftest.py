from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.traces.formats import opening_of as formats_opening_of
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes

ROOT = Path(__file__).resolve().parents[4]
RECORDED = ROOT / "tests" / "traces" / "recorded"

Read = Callable[..., list[Any]]


def _read(format_: TraceFormat, data: Any, notes: ReadingNotes | None = None, name: str = "file.json") -> list[Any]:
    """What a format makes of bytes, or of the JSON of a value."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    source = Source(name, io.BufferedReader(io.BytesIO(raw)))
    found = list(format_.read(source, ReadingNotes() if notes is None else notes))
    assert all(isinstance(each, (Record, InputError)) for each in found)
    return found


@pytest.fixture
def read() -> Read:
    return _read


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], bytes]:
    return lambda name: (RECORDED / name).read_bytes()


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], bytes]:
    """The bytes of a file of the shared data; the test is skipped where they are not."""
    folder = Path(os.environ.get("AGENTUNIT_DATA") or ROOT.parent / "shared" / "data")

    def load(name: str) -> bytes:
        path = folder / name
        if not path.is_file():
            pytest.skip(f"no {path}: set AGENTUNIT_DATA to the folder of the shared data")
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()

    return load


@pytest.fixture(scope="session")
def opening_of() -> Callable[..., Opening]:
    """A file's opening, as detection sees it."""

    def opening(data: Any, path: str = "file.json") -> Opening:
        return formats_opening_of(path, data if isinstance(data, bytes) else json.dumps(data).encode())

    return opening
