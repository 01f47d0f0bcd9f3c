"""Files and folders that were never meant for a reader: none of them costs what stands beside it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from spans_of import TRACE, oi, otlp, payloads, record_of

from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.traces import grouping
from agentunit.traces.reading import TraceFiles
from agentunit.traces.spans import ReadingNotes

OTHER = "f" * 32
RECORDED = Path(__file__).parent / "recorded"


def read(*paths: Path) -> tuple[list[str], list[str], TraceFiles]:
    files = TraceFiles(paths)
    found = list(files)
    ids = [each.case.id for each in found if isinstance(each, Record)]
    return ids, [each.reason for each in found if isinstance(each, InputError)], files


def good(folder: Path) -> Path:
    path = folder / "good.json"
    path.write_bytes(otlp(oi("AGENT", "a", input__value="Why?")))
    return path


def test_a_request_with_levels_without_end_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b'{"resourceSpans":' + b'[{"scopeSpans":' * 5_000)
    ids, errors, _ = read(tmp_path / "bad.json", good(tmp_path))
    assert ids == [TRACE]
    assert errors == ["no OTLP export request: it has more than 20 levels above its spans"]


def test_an_attribute_nested_beyond_what_python_can_follow_costs_only_itself(tmp_path: Path) -> None:
    deep = '{"arrayValue":{"values":[' * 300 + '{"stringValue":"x"}' + "]}}" * 300
    line = otlp(oi("AGENT", "a", input__value="Why?", deep="DEEP")).replace(b'{"stringValue": "DEEP"}', deep.encode())
    other = oi("AGENT", "b", input__value="Who?")
    other.trace_id = OTHER
    (tmp_path / "deep.jsonl").write_bytes(line + otlp(other))
    ids, errors, files = read(tmp_path / "deep.jsonl")
    assert (ids, errors) == ([TRACE, OTHER], [])
    assert list(files.notes.problems) == ["an attribute that is nested too deeply was cut there"]


def test_an_archive_of_an_unknown_version_of_zip_costs_only_itself(tmp_path: Path) -> None:
    data = bytearray((RECORDED / "inspect_support_desk.eval").read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 6] = 0xD6  # the version that is needed to extract it
    (tmp_path / "new.eval").write_bytes(data)
    ids, (error,), _ = read(tmp_path / "new.eval", good(tmp_path))
    assert ids == [TRACE]
    assert "damaged (zip file version 21.4)" in error


def test_pipes_and_linked_folders_in_a_folder_are_passed_over_and_counted(tmp_path: Path) -> None:
    folder, outside = tmp_path / "traces", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    good(folder)
    os.mkfifo(folder / "a-pipe")
    (folder / "linked").symlink_to(outside)
    ids, errors, files = read(folder)
    assert (ids, errors) == ([TRACE], [])
    example = folder / "a-pipe"
    assert files.notes.problems == {f"pipes, devices and links to folders were passed over, such as {example}": 2}


def test_a_page_that_shows_records_is_no_file_of_records(tmp_path: Path) -> None:
    good(tmp_path)
    (tmp_path / "README.md").write_text('# Traces\n\n```json\n{"case": {"id": "q1"}, "outcome": {}}\n```\n')
    ids, errors, files = read(tmp_path)
    assert (ids, errors) == ([TRACE], [])
    assert sum(files.notes.problems.values()) == 1


def test_spans_without_an_id_are_all_counted() -> None:
    notes = ReadingNotes()
    counted = {"llm__model_name": "m", "llm__token_count__prompt": 5}
    record = record_of(oi("LLM", "", **counted), oi("LLM", "", at=3.0, **counted), notes=notes)
    assert len(payloads(record, "llm_call")) == 2
    assert notes.problems == {"spans have no id; they count, but nothing can name them as its parent": 2}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, a device without room")
def test_a_full_disk_says_which_folder_needs_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "spans.jsonl"
    with file.open("wb") as stream:
        for number in range(50):
            stream.write(otlp(oi("AGENT", f"{number:x}", input__value="x" * 1000)))
    monkeypatch.setattr(grouping.SpanGroups.__init__, "__defaults__", ("trace", None, 1 << 12, 1 << 20))
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda prefix: open("/dev/full", "r+b", buffering=1 << 20))  # noqa: SIM115
    _, errors, _ = read(file)
    assert len(errors) == 1
    assert "TMPDIR" in errors[0]
