"""Outputs that are written beside their place: by one command at a time, and with nothing left where nothing helps."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from agentunit.cli.options import InputFailure
from agentunit.cli.outputs import Output

HOLDING = """
import sys
from agentunit.cli.outputs import Output

with Output(sys.argv[1]) as output:
    output.stream.write(b"theirs")
    print("held", flush=True)
    sys.stdin.readline()
    output.finish(keep=True)
"""

WITHOUT_ROOM = """
import resource, sys
from agentunit.cli.outputs import Output

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with Output(sys.argv[1]) as output:
        output.stream.write(b"x" * 500)
        output.stream.write(b"x" * 600_000)
except OSError as error:
    print(error.filename)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks of this kind")
@pytest.mark.parametrize("name", ["scores.jsonl", "scores.jsonl.gz"])
def test_only_one_command_writes_an_output(tmp_path, name):
    out = tmp_path / name
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputFailure, match="is being written by another command"):
            Output(str(out))
        other.communicate(b"\n")
    theirs = out.read_bytes()
    assert theirs
    with Output(str(out)) as output:
        output.stream.write(b"ours")
        assert out.read_bytes() == theirs
        output.finish(keep=True)
    assert out.read_bytes() != theirs
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_where_there_is_no_room_the_error_names_the_file_and_nothing_stays(tmp_path):
    out = tmp_path / "scores.jsonl"
    done = subprocess.run([sys.executable, "-c", WITHOUT_ROOM, str(out)], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{out}.part\n", done.stderr
    assert not list(tmp_path.iterdir())


COMMAND_WITHOUT_ROOM = """
import resource, sys
from agentunit.cli.main import main

resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
sys.argv[0] = "agentunit"
main()
"""
LONG_SUITE = """
import random
from agentunit import Suite
draw = random.Random(7)
cases = [{"id": f"c{n}", "query": draw.randbytes(800).hex(), "metadata": {"contains": "a"}} for n in range(200)]
suite = Suite(cases, lambda query: "a", metrics=["contains"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
@pytest.mark.parametrize(
    "command",
    [
        "export last --to x.json",
        "export last --to x.json.gz",
        "view last --bundle x",
        "score records.jsonl --jobs 2 -m contains --out x.jsonl",
        "score records.jsonl --jobs 2 -m contains --out x.jsonl --errors e.jsonl",
    ],
)
def test_a_full_disk_is_told_in_a_sentence_that_names_the_file(tmp_path, monkeypatch, invoke, command):
    monkeypatch.chdir(tmp_path)
    if command.startswith("score"):
        draw = random.Random(7)
        record = {"case": {"id": "a", "query": "q", "metadata": {"contains": "b"}}}
        answers = [{**record, "outcome": {"output": draw.randbytes(20).hex()}} for _ in range(3000)]
        Path("records.jsonl").write_text("".join(json.dumps(each) + "\n" for each in answers))
    else:
        Path("suite.py").write_text(LONG_SUITE)
        assert invoke("run", "suite.py").exit_code == 0
    before = {each.name for each in tmp_path.iterdir()}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND_WITHOUT_ROOM, *command.split()], capture_output=True, text=True, timeout=120
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: cannot write x"), done.stderr
    assert last.endswith(": file too large")
    assert done.returncode == 3
    assert {each.name for each in tmp_path.iterdir()} - before <= {"e.jsonl", "__pycache__"}


FINISHED_WITHOUT_ROOM = """
import errno, sys
from agentunit.addons.redact import command as redact
from agentunit.cli import outputs

def without_room(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")

outputs.finish_output = redact.finish_output = without_room
try:
    if sys.argv[2] == "output":
        with outputs.Output(sys.argv[1]) as output:
            output.stream.write(b"x")
            output.finish(keep=True)
    else:
        redact._write_secret(sys.argv[1], b"pseudonyms")
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize("what", ["output", "secret"])
def test_where_the_last_of_it_finds_no_room_nothing_stays(tmp_path, what):
    out = tmp_path / "scores.jsonl"
    command = [sys.executable, "-c", FINISHED_WITHOUT_ROOM, str(out), what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"cannot write {out}: no space left on device\n", done.stderr
    assert not list(tmp_path.iterdir())


def test_what_was_kept_of_a_stopped_command_is_written_anew(tmp_path):
    out = tmp_path / "scores.jsonl"
    Path(f"{out}.part").write_bytes(b"of a command that was stopped before")
    with Output(str(out)) as output:
        output.stream.write(b"new")
        output.finish(keep=True)
    assert out.read_bytes() == b"new"
