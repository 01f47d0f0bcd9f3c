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
from pathlib import Path

import pytest
from tests.support.stopped_jobs import agentunit, seen

pytestmark = pytest.mark.optional
pytest.importorskip("ray")

CORPUS = Path(__file__).parents[2] / "corpus"
N_RECORDS = 400

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

CLUSTER = """
import sys
from ray.cluster_utils import Cluster

# Tasks run on the two other nodes, so that either may be killed.
head = {"num_cpus": 0, "ray_client_server_port": int(sys.argv[1]), "temp_dir": sys.argv[2], "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args={**head, "object_store_memory": 80 << 20})
for _ in range(2):
    cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
cluster.wait_for_nodes()
print("ready", flush=True)
sys.stdin.read()
cluster.shutdown()
"""
RAY = ("--engine", "ray", "--jobs", "2")


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


def test_on_several_nodes_of_which_one_is_killed_nothing_is_lost(lines):
    """Its workers begin in another folder, without our settings; one of them dies, and one whole node."""
    write([*lines[:100], record(1000, "die"), *lines[100:300], record(1001, "die with all"), *lines[300:]])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Else the process that serves a client dies now and then as it is started (Ray's issue 63202). Ray gives it
        # 30 s, and a client 5 s to be heard: on a machine that has much else to do, both take longer.
        "GRPC_ENABLE_FORK_SUPPORT": "false",
        "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "240",
        "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "30",
    }
    score = ("score", "runs.jsonl", "-m", "own.py:deadly,own.py:surroundings", "--json", "--out", "scores.jsonl")
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        # Ray notes where its last cluster is in a folder that it does not make.
        own["RAY_TMPDIR"] = folder
        (Path(folder) / "ray").mkdir()
        cluster = subprocess.Popen(
            [sys.executable, "-c", CLUSTER, str(port), folder],
            env={**os.environ, **own},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        # It says so when it is there, and ends when we close what it reads.
        with cluster:
            assert cluster.stdout is not None
            assert cluster.stdout.readline() == b"ready\n"
            there = seen(agentunit(*score, "--engine", f"ray://127.0.0.1:{port}", AGENTUNIT_MAX_NODES="4000000", **own))
            cluster.communicate()
    scores = Path("scores.jsonl").read_bytes()
    assert Path("died-computing").exists()
    assert Path("died-with-all").exists()
    assert there == seen(agentunit(*score, AGENTUNIT_MAX_NODES="4000000"))
    assert scores == Path("scores.jsonl").read_bytes()


def test_records_in_python_are_scored_by_ray_as_here(lines):
    code = """
import json, sys, agentunit
from agentunit.core.results import append_scores
records = [json.loads(line) for line in open("runs.jsonl")]
for engine in (None, "ray"):
    run = agentunit.score(records, ["own.py:counted", "exact_match", "privacy_budget"], engine=engine, jobs=2)
    lines = bytearray()
    for case in run:
        append_scores(case, lines)
    print(json.dumps([lines.decode(), [row.mean for row in run.summary().metrics]]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    here, there = done.stdout.splitlines() or [done.stderr, ""]
    assert here == there


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
