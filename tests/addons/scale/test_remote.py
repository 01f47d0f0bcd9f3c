"""Files by URL, on the storage that fsspec brings itself: memory and local files. S3: tests/optional/remote."""

from __future__ import annotations

import gzip
import json
import os
import sys
from contextlib import suppress

import fsspec
import pytest
from click.testing import CliRunner

import agentunit
from agentunit.addons.scale.parallel.folder import identity_of
from agentunit.addons.scale.parallel.work import ScoringJob
from agentunit.addons.scale.table_output import TableSink
from agentunit.cli.main import cli
from agentunit.core.case import origin_of
from agentunit.core.results import InputError
from agentunit.installation import install_command
from agentunit.traces.native import RecordFile
from agentunit.traces.reading import InputFile
from agentunit.urls import RemoteError, open_binary, open_output, remote_files, remote_state

CASES = [{"case": {"id": f"q{number}", "expected_output": "a"}, "outcome": "a"} for number in range(3)]
LINES = b"".join(json.dumps(case).encode() + b"\n" for case in CASES)


@pytest.fixture
def memory():
    """The file system of memory://, with a folder of traces."""
    system = fsspec.filesystem("memory")
    system.pipe("/traces/a.jsonl", LINES)
    system.pipe("/traces/sub/b.jsonl.gz", gzip.compress(LINES))
    system.pipe("/traces/.hidden/c.jsonl", b"nonsense")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def invoke(*arguments):
    return CliRunner().invoke(cli, list(map(str, arguments)))


def ids(*urls):
    return [each.case.id for each in agentunit.read_records(*urls)]


def test_files_folders_and_patterns(memory, tmp_path):
    assert ids("memory://traces/a.jsonl") == ["q0", "q1", "q2"]
    assert ids("memory://traces") == ids("memory://traces/") == ["q0", "q1", "q2"] * 2
    assert ids("memory://traces/**/*.gz") == ["q0", "q1", "q2"]
    assert len(ids("memory://traces/**")) == 6
    assert [each.url for each in remote_files("memory://traces/.hidden/*")] == ["memory:///traces/.hidden/c.jsonl"]
    (tmp_path / "a.jsonl").write_bytes(LINES)
    assert ids((tmp_path / "a.jsonl").as_uri()) == ["q0", "q1", "q2"]
    assert [(each.url, each.named) for each in remote_files("memory://traces")] == [
        ("memory:///traces/a.jsonl", False),
        ("memory:///traces/sub/b.jsonl.gz", False),
    ]


def test_a_file_whose_name_looks_like_a_pattern(memory):
    memory.pipe("/traces/[a].jsonl", LINES)
    assert ids("memory://traces/[a].jsonl") == ["q0", "q1", "q2"]


def test_paths_in_a_remote_case_lead_to_no_local_file(memory):
    record = next(iter(agentunit.read_records("memory://traces/a.jsonl")))
    assert origin_of(record.case) == "memory://traces"


def test_what_is_missing_is_told_in_its_place(memory):
    found = list(agentunit.read_records("memory://traces/none.jsonl", "memory://traces/a.jsonl"))
    assert found[0] == InputError("memory://traces/none.jsonl", None, "no such file")
    assert len(found) == 4


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://traces/none.jsonl", "no such file"),
        ("memory://traces/*.csv", "no file matches it"),
        ("nonsense://a/b", "no such kind of storage (Protocol not known: nonsense)"),
    ],
)
def test_what_cannot_be_opened_fails_in_one_line(memory, url, message):
    refused = invoke("score", url, "-m", "task_success")
    assert (refused.exit_code, refused.stderr) == (3, f"Error: {url}: {message}\n")


def test_without_fsspec_the_command_that_adds_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    refused = invoke("score", "s3://bucket/a.jsonl", "-m", "task_success")
    hint = install_command("remote")
    assert (refused.exit_code, refused.stderr) == (
        3,
        f"Error: s3://bucket/a.jsonl: a URL needs the extra remote: {hint}\n",
    )


def test_an_output_is_whole_or_not_there(memory):
    with open_output("memory://out/a.jsonl") as output:
        output.write(b"first")
        assert not memory.exists("/out/a.jsonl")
    with suppress(ZeroDivisionError), open_output("memory://out/a.jsonl") as output:
        output.write(b"second")
        raise ZeroDivisionError
    open_output("memory://out/b.jsonl").write(b"never closed")
    assert memory.cat("/out/a.jsonl") == b"first"
    assert memory.find("/out") == ["/out/a.jsonl"]


def test_an_error_while_reading_is_one_of_storage(memory, monkeypatch):
    class Broken:
        def read(self, size):
            raise KeyError("gone")

        def seekable(self):
            return False

        def close(self):
            pass

    monkeypatch.setattr(type(memory), "open", lambda *arguments, **options: Broken())
    with open_binary("memory://traces/a.jsonl") as stream, pytest.raises(RemoteError, match="KeyError: 'gone'"):
        stream.read()
    (error,) = agentunit.read_records("memory://traces/a.jsonl")
    assert error.reason == "KeyError: 'gone'"


def test_every_verb_that_reads_traces_reads_and_writes_urls(memory):
    for verb, out in (("convert", "records.jsonl"), ("redact", "masked.jsonl.gz")):
        done = invoke(verb, "memory://traces/a.jsonl", "--out", f"memory://out/{out}")
        assert done.exit_code == 0, done.output
        assert len(ids(f"memory://out/{out}")) == 3
    assert invoke("doctor", "memory://traces").exit_code == 0
    for name in ("scores.jsonl.gz", "scores.parquet"):
        done = invoke("score", "memory://traces/a.jsonl", "-m", "exact_match", "--out", f"memory://out/{name}")
        assert done.exit_code == 0, done.output
    assert gzip.decompress(memory.cat("/out/scores.jsonl.gz")).count(b"\n") == 3
    shown = invoke("show", "memory://out/scores.parquet", "--json")
    assert json.loads(shown.stdout)["summary"]["n_cases"] == 3
    assert invoke("show", "memory://traces/a.jsonl", "q1").exit_code == 0
    assert invoke("export", "memory://out/scores.parquet", "--to", "memory://out/run.html").exit_code == 0
    assert memory.exists("/out/run.html")


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.jsonl.gz", "scores.parquet"])
def test_what_was_there_stays_until_the_new_is_whole(memory, name):
    memory.pipe(f"/out/{name}", b"old")
    memory.pipe("/traces/bad.jsonl", LINES + b"{no\n")
    options = ("-m", "exact_match", "--out", f"memory://out/{name}")
    stopped = invoke("score", "memory://traces/bad.jsonl", "--strict", *options)
    assert stopped.exit_code == 3
    assert "holds the" not in stopped.stderr
    memory.pipe("/traces/empty.jsonl", b"")
    assert invoke("score", "memory://traces/empty.jsonl", *options).exit_code == 3
    assert memory.cat(f"/out/{name}") == b"old"


def test_an_output_must_not_be_an_input(memory):
    for out in ("memory://traces", "memory://traces/new.jsonl"):
        refused = invoke("convert", "memory://traces", "--out", out)
        assert refused.exit_code == 2
        assert "input" in refused.stderr


def test_what_cannot_be_read_is_listed_by_url(memory):
    memory.pipe("/traces/bad.jsonl", LINES + b"{no\n")
    url = "memory://out/errors.jsonl"
    assert invoke("score", "memory://traces/bad.jsonl", "-m", "exact_match", "--errors", url).exit_code == 3
    assert json.loads(memory.cat("/out/errors.jsonl"))["line"] == 4


def test_a_job_knows_a_file_that_changed_and_kept_its_size(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(LINES)
    os.utime(file, (1, 1))
    before = identity_of([InputFile(file.as_uri(), True, len(LINES))], ScoringJob(file.as_uri()), 100, None)
    assert remote_state(file.as_uri()) == remote_state(file.as_uri())
    file.write_bytes(LINES.replace(b"q1", b"q7"))
    os.utime(file, (2, 2))
    after = identity_of([InputFile(file.as_uri(), True, len(LINES))], ScoringJob(file.as_uri()), 100, None)
    assert before.differences(after) == [f"input {file.as_uri()} changed"]


def test_passwords_and_signatures_are_neither_told_nor_kept(tmp_path):
    refused = invoke("score", "ftp://ada:hunter2@127.0.0.1:1/a.jsonl", "-m", "cost")
    assert refused.exit_code == 3
    assert "ftp://ada@127.0.0.1:1/a.jsonl" in refused.output
    assert "hunter2" not in refused.output
    (error,) = RecordFile("ftp://ada:hunter2@127.0.0.1:1/a.jsonl")
    assert error.source == "ftp://ada@127.0.0.1:1/a.jsonl"
    sink = TableSink(str(tmp_path / "a.parquet"), [], ["https://ada:hunter2@host/a?sig=7f", "s3://b/a?.jsonl"], 0)
    assert sink._writer.header.settings["sources"] == ["https://ada@host/a", "s3://b/a?.jsonl"]
    with sink:
        pass
