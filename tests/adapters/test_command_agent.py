"""A program as an agent: real processes that answer, fail, hang, flood and leave children behind."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from pathlib import Path

import pytest

from agentunit.adapters.base import as_agent
from agentunit.adapters.command import CommandAgent
from agentunit.core.case import DatasetCase


@pytest.fixture
def program(tmp_path):
    """An agent that runs this Python code as a program, with ``q`` the question."""

    def program(code: str, **options) -> CommandAgent:
        script = tmp_path / "program.py"
        script.write_text("import json, os, subprocess, sys, time\n" + textwrap.dedent(code))
        return CommandAgent([sys.executable, "-S", str(script)], **options)

    return program


READ = "q = json.load(sys.stdin)\n"


def test_the_question_comes_as_json_without_the_expected_output(program, ask):
    agent = program(READ + "print(json.dumps({'output': q}))")
    case = DatasetCase("q1", "Größe?", "secret", [{"name": "t"}], ["c"], {"level": 1})
    result = ask(agent, case=case, seed=7)
    assert result.failure is None
    assert result.outcome.output == {
        "id": "q1",
        "query": "Größe?",
        "context": ["c"],
        "tools": [{"name": "t"}],
        "metadata": {"level": 1},
        "seed": 7,
    }


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("print('Paris')", "Paris"),
        ("print('two\\nlines')", "two\nlines"),
        ("print('42')", "42"),
        ("print('[1, 2]')", "[1, 2]"),
        ("print('\"Paris\"')", "Paris"),
        ('print(\'{"city": "Paris"}\')', {"city": "Paris"}),
        ("sys.stdout.buffer.write(b'caf\\xe9')", "caf\ufffd"),
    ],
)
def test_answers(program, ask, code, output):
    result = ask(program(code))
    assert (result.failure, result.outcome.output) == (None, output)


def test_an_outcome_with_a_trace(program, ask):
    answer = {
        "success": True,
        "output": "Paris",
        "cost": 0.5,
        "mood": "good",
        "trace": {"events": [{"type": "tool_call", "payload": {"name": "search"}}], "metadata": {"model": "m"}},
    }
    result = ask(program(f"sys.stderr.write('warning'); print(json.dumps({answer!r}))"))
    assert (result.outcome.success, result.outcome.cost, result.outcome.extra) == (True, 0.5, {"mood": "good"})
    assert result.trace.events[0].payload == {"name": "search"}
    assert result.trace.metadata == {"model": "m", "stderr": "warning"}


def test_a_trace_may_be_a_list_and_a_broken_one_does_not_cost_the_answer(program, ask):
    result = ask(program("print(json.dumps({'output': 'x', 'trace': [{'type': 'step'}]}))"))
    assert [event.type for event in result.trace.events] == ["step"]
    result = ask(program("print(json.dumps({'output': 'x', 'trace': {'events': 3}}))"))
    assert (result.failure, result.outcome.output) == (None, "x")
    assert "the trace of the answer was left out" in result.trace.metadata["trace_error"]


@pytest.mark.parametrize(
    ("code", "failure", "said"),
    [
        ("", "wrong_type", "the answer is empty"),
        ("print('{broken')", "wrong_type", "not valid JSON"),
        ("print('a log line'); print('{\"output\": \"x\"}')", "wrong_type", "logs belong on stderr"),
        ("print(json.dumps({'output': 'x', 'cost': 'much'}))", "wrong_type", "cost"),
        ("sys.exit(3)", "raised", "the command ended with exit code 3"),
        ("sys.exit('no key')", "raised", "the command ended with exit code 1: no key"),
        ("1 / 0", "raised", "ZeroDivisionError: division by zero"),
        ("os.abort()", "died", "the command ended with signal SIGABRT"),
        ("os.kill(os.getpid(), 9)", "died", "the command ended with signal SIGKILL"),
    ],
)
def test_failures(program, ask, code, failure, said):
    result = ask(program(code))
    assert result.failure == result.trace.metadata["failure"] == failure
    assert said in result.outcome.error
    assert "\n" not in result.outcome.error


def test_a_failed_program_keeps_what_it_said(program, ask):
    result = ask(program("print(json.dumps({'output': 'half', 'trace': [{'type': 'step'}]})); sys.exit(2)"))
    assert (result.failure, result.outcome.output, result.outcome.success) == ("raised", "half", False)
    assert [event.type for event in result.trace.events] == ["step"]


def test_a_program_need_not_read_its_question(program, ask):
    case = DatasetCase("q1", "x" * 3_000_000)
    assert ask(program("os.close(0); print('unasked')"), case=case).outcome.output == "unasked"


def test_long_questions_and_answers_pass(program, ask):
    case = DatasetCase("q1", "x" * 3_000_000)
    result = ask(program("sys.stdout.write('y' * 1000000)\n" + READ + "print(q['query'])"), case=case)
    assert len(result.outcome.output) == 4_000_000


@pytest.mark.parametrize(
    "code", ["time.sleep(60)", "while True: pass", "sys.stdin.read(); sys.stdout.close(); time.sleep(60)"]
)
def test_a_hanging_program_is_killed(program, ask, code):
    result = ask(program("sys.stderr.write('hm'); sys.stderr.flush()\n" + code), timeout_s=2)
    assert result.failure == "timeout"
    assert result.outcome.error == "timeout: no answer within 2 s"
    assert result.trace.metadata["stderr"] == "hm"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_is_bounded(program, ask, monkeypatch, stream):
    monkeypatch.setattr("agentunit.adapters.command.MAX_ANSWER_BYTES", 2**20)
    result = ask(program(f"while True: sys.{stream}.write('x' * 65536)"), timeout_s=30 if stream == "stdout" else 0.4)
    if stream == "stdout":
        assert (result.failure, result.outcome.error) == (
            "raised",
            "the command wrote more than 1 MiB to its standard output",
        )
    else:
        assert result.failure == "timeout"
        assert len(result.trace.metadata["stderr"]) < 70_000


LEAVES_CHILDREN = """
    for own_session in (False, {own_session}):
        child = subprocess.Popen(["sleep", "60"], start_new_session=own_session)
        open(os.path.join({folder!r}, str(child.pid)), "w").close()
    print("answered", flush=True)
    {end}
"""


@pytest.mark.parametrize(
    ("end", "own_session", "failure"),
    [("time.sleep(60)", True, "timeout"), ("sys.exit(0)", False, None), ("sys.exit(1)", False, "raised")],
)
def test_children_are_gone_however_the_program_ends(program, ask, is_gone, tmp_path, end, own_session, failure):
    folder = tmp_path / "pids"
    folder.mkdir()
    result = ask(program(LEAVES_CHILDREN.format(folder=str(folder), end=end, own_session=own_session)), timeout_s=1)
    # The children hold the program's output open; its own end counts.
    assert (result.failure, result.outcome.output) == (failure, None if failure == "timeout" else "answered")
    pids = [int(file.name) for file in folder.iterdir()]
    assert len(pids) == 2
    assert all(is_gone(pid) for pid in pids)


def test_a_cancelled_case_kills_the_program(program, is_gone, tmp_path):
    note = tmp_path / "pid"
    agent = program(f"open({str(note)!r}, 'w').write(str(os.getpid()) + '.'); time.sleep(60)")

    async def go():
        running = asyncio.ensure_future(agent.run(DatasetCase("q")))
        while not note.exists() or not note.read_text().endswith("."):
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(go())
    assert is_gone(int(note.read_text()[:-1]))


def test_eight_at_once(program):
    agent = program(READ + "sys.stderr.write(q['query']); print(q['query'])")

    async def go():
        return await asyncio.gather(*[agent.run(DatasetCase(str(n), f"case {n}"), timeout_s=20) for n in range(8)])

    for n, result in enumerate(asyncio.run(go())):
        assert (result.outcome.output, result.trace.metadata["stderr"]) == (f"case {n}", f"case {n}")


def test_folder_and_environment(program, ask, tmp_path):
    result = ask(
        program("print(os.getcwd(), os.environ['MOOD'], 'PATH' in os.environ)", cwd=tmp_path, env={"MOOD": "x"})
    )
    assert result.outcome.output == f"{tmp_path} x True"


def test_a_string_is_split_but_no_shell_is_started(ask, tmp_path):
    marker = tmp_path / "marker"
    result = ask(f"command: echo 'one  two' ; touch {marker} $HOME")
    assert result.outcome.output == f"one  two ; touch {marker} $HOME"
    assert not marker.exists()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CommandAgent(""), "command must name a program; received ''"),
        (lambda: as_agent("command:"), "command must name a program"),
        (lambda: CommandAgent([]), "command must name a program"),
        (lambda: CommandAgent("no-such-program-here x"), "that exists; received 'no-such-program-here'"),
        (lambda: CommandAgent(["./no/such/program"]), "that exists; received './no/such/program'"),
        (lambda: CommandAgent("echo 'unclosed"), "No closing quotation"),
        (lambda: CommandAgent(["echo", 3]), "command must be a list"),
        (lambda: CommandAgent("echo", cwd="/no/such/folder"), "cwd must be a folder"),
    ],
)
def test_a_command_that_cannot_work_is_refused_at_once(make, said):
    with pytest.raises(ValueError, match=said):
        make()


class Unwritable:
    def __str__(self):
        raise RuntimeError("no words for it")


def test_a_case_that_cannot_be_written_is_a_failure_of_the_case(ask):
    case = DatasetCase("q", "x", metadata={"odd": Unwritable()})
    for agent in ("command: cat", "http://127.0.0.1:1/"):
        result = ask(agent, case=case)
        assert result.failure == "raised"
        assert "no words for it" in result.outcome.error


def test_a_program_that_vanishes_is_a_failure_of_the_case(ask, tmp_path):
    script = tmp_path / "agent.sh"
    script.write_text("#!/bin/sh\necho hi\n")
    script.chmod(0o755)
    agent = CommandAgent([str(script)])
    script.unlink()
    result = ask(agent)
    assert result.failure == "raised"
    assert result.outcome.error.startswith("the command cannot be started: FileNotFoundError: ")


def test_a_relative_program_is_looked_up_in_its_folder(ask, tmp_path):
    script = Path(tmp_path) / "agent.sh"
    script.write_text("#!/bin/sh\necho hi\n")
    script.chmod(0o755)
    assert ask(CommandAgent(["./agent.sh"], cwd=tmp_path)).outcome.output == "hi"
