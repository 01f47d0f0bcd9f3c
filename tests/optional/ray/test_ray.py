"""Files scored by tasks of a real Ray: what comes out is what one process gives, whoever is killed on the way."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.optional
pytest.importorskip("ray")

CORPUS = Path(__file__).parents[2] / "corpus"
N_RECORDS = 400
N_BLOCK_BYTES = 4096

METRICS = """
import os, pathlib, signal

def counted(case):
    with open("evaluated.txt", "ab") as log:
        log.write(b"x")
    return len(case.query) / 100

def once(name):
    try:
        pathlib.Path(name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def deadly(case):
    if case.query == "die" and once("died-computing") or case.query == "always die":
        die()
    if case.query == "die with all" and once("died-with-all"):
        os.kill(os.getppid(), signal.SIGKILL)  # the process of Ray that starts workers
        die()
    if case.query == "die writing" and once("died-writing"):
        replace = os.replace

        def replace_or_die(source, target):
            if str(target).endswith(".columns"):
                pathlib.Path("left.txt").write_text(str(target))
                die()
            replace(source, target)

        os.replace = replace_or_die
    return len(case.query)

def surroundings(case):
    kept = [name for name in sorted(os.environ) if name.startswith("AGENTUNIT_") and "THREADS" not in name]
    return {"AGENTUNIT_MAX_NODES": 1, "": 0}.get(",".join(kept), -1)
"""

COMMAND = """
import sys
from agentunit.cli import score_work
from agentunit.cli.main import cli
from agentunit.engine.parallel.ray_pool import RayPool
from agentunit.engine.parallel.results import UnitsInOrder

score_work.SeveralProcesses.__init__.__kwdefaults__["block_bytes"] = {block_bytes}
# So that blocks are left to do when this process ends, however fast the tasks are.
RayPool.in_order.__defaults__ = (2,)
accept, n_accepted = UnitsInOrder._accept, 0

def accept_some(self, *arguments):
    global n_accepted
    accept(self, *arguments)
    n_accepted += 1
    if n_accepted == {stop_after}:
        import os, signal
        os.kill(os.getpid(), signal.{signal_name})

UnitsInOrder._accept = accept_some
cli(sys.argv[1:])
"""
RAY = ("--engine", "ray", "--jobs", "2")


def agentunit(
    *arguments: str, stop_after: int = 0, signal_name: str = "SIGKILL", **environment: str
) -> subprocess.CompletedProcess[str]:
    code = COMMAND.format(block_bytes=N_BLOCK_BYTES, stop_after=stop_after, signal_name=signal_name)
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


def record(number: int, query: str | None = None) -> str:
    case = {"id": f"q{number}", "query": "x" * (number % 40) if query is None else query}
    if number % 7 == 0:
        del case["id"]
    trace = {"metadata": {"cost": number / 7}}
    return json.dumps({"v": 1, "case": {**case, "metadata": {"part": number % 3}}, "trace": trace, "outcome": "4"})


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of runs.jsonl, which is made of them."""
    monkeypatch.chdir(tmp_path)
    found = [record(number) for number in range(N_RECORDS)]
    write(found)
    Path("own.py").write_text(METRICS)
    return found


def write(lines: list[str]) -> None:
    Path("runs.jsonl").write_text("\n".join(lines) + "\n")


def write_spans(name: str, steps: range) -> None:
    """60 traces, of which other files hold other steps."""
    requests = []
    for number in range(60):
        for step in steps:
            attributes = {
                "openinference.span.kind": "LLM" if step else "AGENT",
                "input.value": f"question {number}",
                "output.value": f"answer {number * step}",
            }
            span = {
                "traceId": f"{number * 7 % 60 + 1:032x}",
                "spanId": f"{number * 10 + step + 1:016x}",
                "name": f"step {step}",
                "startTimeUnixNano": str(10**18 + step),
                "endTimeUnixNano": str(10**18 + step + 10**8 * number),
                "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in attributes.items()],
            }
            requests.append({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "s"}, "spans": [span]}]}]})
    Path(name).write_text("\n".join(map(json.dumps, requests)))


def seen(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.stdout, done.stderr
    data = json.loads(done.stdout)
    del data["created_at"], data["summary"]["elapsed_s"]
    for row in data["summary"]["metrics"]:
        del row["elapsed_s"]
    return done.returncode, data


def test_records_damage_and_spans_give_what_one_process_gives(lines):
    lines[20] = "{bad"
    lines[300:310] = ["{bad", "[]", "", '{"v": 1}'] * 2
    write(lines)
    write_spans("a.jsonl", range(2))
    write_spans("b.jsonl", range(2, 4))
    score: tuple[str, ...] = ("score", "runs.jsonl", "a.jsonl", "b.jsonl", str(CORPUS / "otlp-protobuf"), "--json")
    score += ("-m", "own.py:counted,cost,exact_match,response_time,own.py:surroundings", "--by", "metadata.part")
    found = []
    for name, engine in (("alone", ()), ("ray", RAY)):
        done = agentunit(
            *score, *engine, "--out", f"{name}.jsonl", "--errors", f"{name}.txt", AGENTUNIT_MAX_NODES="4000000"
        )
        assert done.returncode == 3, done.stderr
        found.append((seen(done), Path(f"{name}.jsonl").read_bytes(), Path(f"{name}.txt").read_bytes()))
    assert found[0][0][1]["summary"]["n_cases"] > N_RECORDS + 40
    assert found[1] == found[0]
    assert not Path("ray.jsonl.blocks").exists()


def test_tasks_killed_while_computing_and_while_writing_cost_nothing(lines):
    write([*lines[:100], record(1000, "die"), *lines[100:300], record(1001, "die writing"), *lines[300:]])
    score = ("score", "runs.jsonl", "-m", "own.py:deadly,cost", "--json", "--out", "scores.jsonl")
    there = seen(agentunit(*score, *RAY, AGENTUNIT_STORE="postgresql://me:secret@127.0.0.1/x"))
    assert Path("died-computing").exists()
    assert Path("left.txt").read_text().endswith(".columns")
    scores = Path("scores.jsonl").read_bytes()
    assert [json.loads(line)["index"] for line in scores.splitlines()] == list(range(N_RECORDS + 2))
    # Who was killed once is not again, so one process lives to tell the same.
    assert there == seen(agentunit(*score))
    assert scores == Path("scores.jsonl").read_bytes()


def test_what_always_kills_is_an_error_that_names_its_bytes(lines):
    write([*lines[:200], record(1000, "always die"), *lines[200:]])
    done = agentunit("score", "runs.jsonl", "-m", "own.py:deadly", "--json", *RAY)
    assert done.returncode == 3, done.stderr
    summary = json.loads(done.stdout)["summary"]
    (dead,) = summary["input_errors"]
    assert "killed two workers (WorkerCrashedError of Ray)" in dead["reason"]
    assert N_RECORDS - 60 < summary["n_cases"] < N_RECORDS


@pytest.mark.parametrize(("signal_name", "way"), [("SIGKILL", RAY), ("SIGINT", ("--jobs", "2"))])
def test_a_stopped_job_goes_on_where_it_stood(lines, signal_name, way):
    """With Ray, or without it."""
    score = ("score", "runs.jsonl", "-m", "own.py:counted,exact_match", "--json", "--out")
    alone = agentunit(*score, "alone.jsonl")
    Path("evaluated.txt").unlink()
    stopped = agentunit(*score, "scores.jsonl", *RAY, stop_after=3, signal_name=signal_name)
    assert stopped.returncode == (-9 if signal_name == "SIGKILL" else 130), stopped.stderr
    assert not Path("scores.jsonl").exists()
    assert sum(each.suffix == ".columns" for each in Path("scores.jsonl.blocks").iterdir()) >= 3
    # Of a killed process tasks may still be ending; what they write is what they would write again.
    Path("evaluated.txt").unlink()
    resumed = agentunit(*score, "scores.jsonl", *way, "--resume")
    assert seen(resumed) == seen(alone)
    assert Path("scores.jsonl").read_bytes() == Path("alone.jsonl").read_bytes()
    assert Path("evaluated.txt").stat().st_size < N_RECORDS
    assert not Path("scores.jsonl.blocks").exists()


def test_when_all_of_ray_dies_nothing_is_given_up(lines):
    write([*lines[:200], record(1000, "die with all"), *lines[200:]])
    score = ("score", "runs.jsonl", "-m", "own.py:deadly", "--json", "--out")
    stopped = agentunit(*score, "scores.jsonl", *RAY)
    # Ray may end our process before it can say why.
    assert stopped.returncode, stopped.stdout
    assert not stopped.stdout
    assert not Path("scores.jsonl").exists()
    resumed = agentunit(*score, "scores.jsonl", *RAY, "--resume")
    assert seen(resumed) == seen(agentunit(*score, "alone.jsonl"))
    assert Path("scores.jsonl").read_bytes() == Path("alone.jsonl").read_bytes()


def wait_until_heard(head: subprocess.Popen[bytes], port: int) -> None:
    """Come back when a cluster listens for clients: one that is started cannot be asked before."""
    for _ in range(600):
        assert head.poll() is None, Path("head.txt").read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        threading.Event().wait(0.2)
    raise AssertionError(Path("head.txt").read_text())


def test_a_cluster_that_was_there_before_gives_the_same(lines):
    """Its workers begin in another folder, without our settings, and one of them dies."""
    write([*lines[:100], record(1000, "die"), *lines[100:]])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray gives the process that serves a client 30 s to start, and a client 5 s to be heard: on a machine that has
        # much else to do, both take longer.
        "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "240",
        "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "30",
    }
    options = f"--head --block --num-cpus=2 --port=0 --include-dashboard=false --ray-client-server-port={port}"
    with tempfile.TemporaryDirectory(prefix="ray-") as folder, ExitStack() as stack:
        command = ["start", *options.split(), "--min-worker-port=0", "--max-worker-port=0", f"--temp-dir={folder}"]
        log = stack.enter_context(open("head.txt", "wb"))
        head = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", *command],
            env={**os.environ, **own},
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        stack.callback(head.wait)
        stack.callback(head.terminate)
        wait_until_heard(head, port)
        score = ("score", "runs.jsonl", "-m", "own.py:deadly,own.py:surroundings", "--json", "--out", "scores.jsonl")
        there = seen(agentunit(*score, "--engine", f"ray://127.0.0.1:{port}", AGENTUNIT_MAX_NODES="4000000", **own))
    scores = Path("scores.jsonl").read_bytes()
    assert Path("died-computing").exists()
    assert there == seen(agentunit(*score, AGENTUNIT_MAX_NODES="4000000"))
    assert scores == Path("scores.jsonl").read_bytes()


def test_a_job_on_s3_goes_on_from_its_blocks_there(lines, monkeypatch, tmp_path):
    boto3 = pytest.importorskip("boto3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)
    bucket = boto3.resource("s3").Bucket("lab")
    bucket.create()
    for number in range(6):
        some = "\n".join([*lines[number * 60 : number * 60 + 60], "{bad"])
        bucket.put_object(Key=f"traces/{number}.jsonl.gz", Body=gzip.compress(some.encode()))
    for name, steps in (("a", range(2)), ("b", range(2, 4))):
        write_spans("spans.jsonl", steps)
        bucket.put_object(Key=f"traces/{name}.jsonl", Body=Path("spans.jsonl").read_bytes())
    score = ("score", "s3://lab/traces/", "-m", "own.py:counted,response_time", "--json", "--out")
    alone = agentunit(*score, "alone.jsonl")
    assert alone.returncode == 3, alone.stderr
    Path("evaluated.txt").unlink()
    stopped = agentunit(*score, "s3://lab/scores.jsonl", *RAY, stop_after=4)
    assert stopped.returncode == -9, stopped.stderr
    keys = [each.key for each in bucket.objects.all() if "scores" in each.key]
    assert sum(key.endswith(".columns") for key in keys) >= 4
    assert "scores.jsonl" not in keys
    Path("evaluated.txt").unlink()
    resumed = agentunit(*score, "s3://lab/scores.jsonl", *RAY, "--resume")
    assert seen(resumed) == seen(alone)
    assert bucket.Object("scores.jsonl").get()["Body"].read() == Path("alone.jsonl").read_bytes()
    assert Path("evaluated.txt").stat().st_size < 420
    assert [each.key for each in bucket.objects.all() if "scores" in each.key] == ["scores.jsonl"]
    server.stop()
