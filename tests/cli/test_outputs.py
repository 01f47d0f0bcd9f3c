"""Outputs that are written beside their place: by one command at a time, and with nothing left where nothing helps."""

from __future__ import annotations

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
