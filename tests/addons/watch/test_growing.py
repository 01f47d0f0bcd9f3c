"""Files that grow: read once, whatever happens to them."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from agentunit.addons.watch._growing import LINES_AT_ONCE, FileProgress, GrowingFiles

OLD = 1_000_000.0
NOW = OLD + 3_600.0


def line(number: int) -> bytes:
    record = {"v": 1, "case": {"id": f"c{number}", "query": "q" * 40}, "outcome": {"output": "a" * 40}}
    return json.dumps(record).encode() + b"\n"


def lines(*numbers: int) -> bytes:
    return b"".join(line(number) for number in numbers)


def spans(*pairs: tuple[str, str]) -> bytes:
    found = [{"traceId": trace.zfill(32), "spanId": span.zfill(16), "name": "x"} for trace, span in pairs]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": found}]}]}).encode() + b"\n"


class Reader:
    """Reads a folder, and keeps the progress as a store would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[str, FileProgress] = {}
        self.begin()

    def begin(self) -> None:
        """As after a restart."""
        self.files = GrowingFiles([str(self.folder)], self.kept.values())

    def read(self, now: float = NOW) -> list[str]:
        ids = []
        for found in self.files.read(now):
            ids += [each.record.case.id for each in found.records]
            ids += [f"{span.trace_id[-1]}.{span.span_id[-1]}" for span in found.spans]
            ids += ["error"] * len(found.errors)
            if found.progress is not None:
                self.kept[found.progress.key] = found.progress
        return ids


@pytest.fixture
def reader(tmp_path):
    return Reader(tmp_path)


def test_each_line_once_as_a_file_grows(reader, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(1, 2))
    assert reader.read() == ["c1", "c2"]
    assert reader.read() == []
    with path.open("ab") as stream:
        stream.write(lines(3))
    assert reader.read() == ["c3"]
    reader.begin()
    assert reader.read() == []


def test_half_a_line_waits_for_its_end(reader, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line(1) + line(2)[:20])
    assert reader.read(path.stat().st_mtime) == ["c1"]
    with path.open("ab") as stream:
        stream.write(line(2)[20:])
    assert reader.read(path.stat().st_mtime) == ["c2"]


def test_a_last_line_without_an_end_counts_when_nobody_writes(reader, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line(1) + line(2)[:-1])
    os.utime(path, (OLD, OLD))
    assert reader.read(OLD) == ["c1"]
    assert reader.read(NOW) == ["c2"]


def test_a_renamed_file_is_the_same_file(reader, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(1, 2))
    reader.read()
    (tmp_path / "a.jsonl").rename(tmp_path / "a.1.jsonl")
    (tmp_path / "a.jsonl").write_bytes(lines(3))
    assert reader.read() == ["c3"]


def test_a_truncated_file_begins_anew_and_its_copy_does_not(reader, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*range(30)))
    assert len(reader.read()) == 30
    with path.open("ab") as stream:
        stream.write(lines(30))  # written, and rotated before anybody looked
    shutil.copyfile(path, tmp_path / "b.jsonl")
    path.write_bytes(lines(31, 32))
    assert sorted(reader.read()) == ["c30", "c31", "c32"]


def test_a_file_written_anew_with_as_much_is_read_again(reader, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(1, 2))
    reader.read()
    path.write_bytes(lines(3, 4, 5))
    assert reader.read() == ["c3", "c4", "c5"]


def test_progress_kept_in_the_middle_of_a_file_is_gone_on_from(reader, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*range(600)))
    found = next(iter(reader.files.read(path.stat().st_mtime)))
    reader.kept[found.progress.key] = found.progress
    reader.begin()
    assert reader.read(path.stat().st_mtime) == [f"c{number}" for number in range(LINES_AT_ONCE, 600)]


def test_bad_lines_cost_only_themselves(reader, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"oops\n" + line(1) + b'{"case": \n' + line(2) + b'{"v":1,"case":{"id":"x"}}{\n')
    assert reader.read() == ["c1", "c2", "error", "error", "error"]
    (tmp_path / "b.jsonl").write_bytes(spans(("1", "1")) + b'{"resourceSpans": [\n' + spans(("2", "2")))
    assert [each for each in reader.read() if each != "error"] == ["1.1", "2.2"]


def test_a_line_beyond_the_limit_is_passed_over(reader, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", "5")
    (tmp_path / "a.jsonl").write_bytes(line(1) + b"x" * (12 << 20) + b"\n" + line(2))
    assert sorted(reader.read()) == ["c1", "c2", "error"]


def test_spans_of_one_trace_in_two_files_come_out_as_spans(reader, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(spans(("1", "1"), ("2", "2")))
    (tmp_path / "b.jsonl").write_bytes(spans(("1", "3")))
    assert sorted(reader.read()) == ["1.1", "1.3", "2.2"]


def test_what_is_not_made_of_lines_is_read_when_it_is_quiet(reader, tmp_path):
    document = tmp_path / "spans.json"
    document.write_text(json.dumps(json.loads(spans(("1", "1"))), indent=1))
    packed = tmp_path / "old.jsonl.gz"
    packed.write_bytes(gzip.compress(lines(1, 2)))
    for path in (document, packed):
        os.utime(path, (OLD, OLD))
    assert reader.read(OLD + 1) == []
    assert reader.files.n_waiting == 2
    assert sorted(reader.read(NOW)) == ["1.1", "c1", "c2"]
    assert reader.read(NOW) == []
    reader.begin()
    assert reader.read(NOW) == []


def test_other_files_and_hidden_folders_are_left_alone(reader, tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n\nNothing.\n")
    (tmp_path / ".spool").mkdir()
    (tmp_path / ".spool" / "a.jsonl").write_bytes(lines(1))
    (tmp_path / "empty.jsonl").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    assert reader.read() == []


def test_a_file_that_is_gone_is_forgotten(reader, tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(lines(ord(name[0])))
    reader.read()
    (tmp_path / "b.jsonl").unlink()
    reader.read()
    assert [each.path for each in reader.files.gone] == [str(tmp_path / "b.jsonl")]


def test_files_are_read_in_the_order_in_which_they_were_written(tmp_path):
    for number, name in enumerate("cab"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(f'{{"v":1,"case":{{"id":"{name}"}},"outcome":"4"}}\n')
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    found = [each.record.case.id for piece in GrowingFiles([str(tmp_path)]).read(1.8e9) for each in piece.records]
    assert found == ["c", "a", "b"]
