"""Traces and scores on S3: a moto server on loopback, asked as any storage of one's own is, by AWS_ENDPOINT_URL."""

from __future__ import annotations

import gzip
import json
from uuid import uuid4

import pytest

pytestmark = pytest.mark.optional
pytest.importorskip("s3fs")
boto3 = pytest.importorskip("boto3")
server = pytest.importorskip("moto.server")
zstandard = pytest.importorskip("zstandard")

from click.testing import CliRunner  # noqa: E402

import agentunit  # noqa: E402
from agentunit.cli.main import cli  # noqa: E402
from agentunit.urls import RemoteError, open_binary, open_output  # noqa: E402

CASES = [{"case": {"id": f"q{number}", "expected_output": "a"}, "outcome": "a"} for number in range(3)]
LINES = b"".join(json.dumps(case).encode() + b"\n" for case in CASES)
METRIC = ("-m", "exact_match")


@pytest.fixture(scope="module")
def endpoint():
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(endpoint, monkeypatch, tmp_path):
    """A bucket of traces, and the environment that leads to it."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    found = boto3.resource("s3").Bucket(f"lab-{uuid4().hex}")
    found.create()
    found.put_object(Key="traces/a.jsonl", Body=LINES)
    found.put_object(Key="traces/day/b.jsonl.gz", Body=gzip.compress(LINES))
    found.put_object(Key="traces/day/c.jsonl.zst", Body=zstandard.compress(LINES))
    found.put_object(Key="traces/.hidden/d.jsonl", Body=b"nonsense")
    found.put_object(Key="traces/folder/", Body=b"")
    return found


def invoke(*arguments):
    return CliRunner().invoke(cli, list(map(str, arguments)))


def keys(bucket, prefix):
    return [each.key for each in bucket.objects.filter(Prefix=prefix)]


def test_files_folders_and_patterns(bucket):
    url = f"s3://{bucket.name}/traces"
    for place, n_records in (
        ("a.jsonl", 3),
        ("day/b.jsonl.gz", 3),
        ("", 9),
        ("day", 6),
        ("**/*.jsonl*", 9),
        ("*.jsonl", 3),
    ):
        found = list(agentunit.read_records(f"{url}/{place}"))
        assert [each.case.id for each in found] == ["q0", "q1", "q2"] * (n_records // 3), place


def test_scores_go_there_and_are_decided_on_from_there(bucket):
    url = f"s3://{bucket.name}"
    for name in ("scores.parquet", "scores.jsonl.gz"):
        done = invoke("score", f"{url}/traces/", *METRIC, "--out", f"{url}/out/{name}")
        assert done.exit_code == 0, done.output
    assert gzip.decompress(bucket.Object("out/scores.jsonl.gz").get()["Body"].read()).count(b"\n") == 9
    table = f"{url}/out/scores.parquet"
    assert invoke("show", table, "-g", "exact_match >= 1").exit_code == 0
    assert invoke("show", table, "-g", "exact_match <= 0.5").exit_code == 1
    assert invoke("compare", table, table).exit_code == 0
    assert json.loads(invoke("show", table, "--json").stdout)["summary"]["n_cases"] == 9
    assert invoke("export", table, "--to", f"{url}/out/run.html").exit_code == 0
    for verb in ("convert", "redact"):
        done = invoke(verb, f"{url}/traces/a.jsonl", "--out", f"{url}/out/{verb}.jsonl")
        assert done.exit_code == 0, done.output
    assert invoke("doctor", f"{url}/traces/a.jsonl").exit_code == 0
    assert len(keys(bucket, "out/")) == 5


def test_an_object_of_many_parts_is_read_and_written_whole(bucket):
    url = f"s3://{bucket.name}/out/large.jsonl"
    piece = LINES * 10_000
    with open_output(url) as output:
        for _ in range(20):
            output.write(piece)
        assert keys(bucket, "out/") == []
    assert bucket.Object("out/large.jsonl").content_length == 20 * len(piece) > 2 << 24
    with open_binary(url) as stream:
        assert sum(1 for _ in stream) == 600_000


def test_what_was_given_up_leaves_nothing(bucket):
    url = f"s3://{bucket.name}/out/scores.jsonl"
    bucket.put_object(Key="traces/bad.jsonl", Body=LINES + b"{no\n")
    assert invoke("score", f"s3://{bucket.name}/traces/bad.jsonl", *METRIC, "--strict", "--out", url).exit_code == 3
    output = open_output(url)
    output.write(b"x" * (40 << 20))
    output.discard()
    assert keys(bucket, "out/") == []
    uploads = bucket.meta.client.list_multipart_uploads(Bucket=bucket.name)
    assert not uploads.get("Uploads")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("traces/none.jsonl", "no such file"),
        ("none/", "no such file"),
        ("traces/*.csv", "no file matches it"),
    ],
)
def test_what_is_not_there(bucket, place, message):
    url = f"s3://{bucket.name}/{place}"
    assert invoke("score", url, *METRIC).stderr == f"Error: {url}: {message}\n"


def test_a_missing_bucket_is_told_before_anything_is_scored(bucket):
    done = invoke("score", f"s3://{bucket.name}/traces/a.jsonl", *METRIC, "--out", "s3://none-such/a.parquet")
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr == "Error: cannot write s3://none-such/a.parquet: there is no bucket none-such\n"


def test_no_credentials(bucket, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    refused = invoke("score", f"s3://{bucket.name}/traces/a.jsonl", *METRIC)
    assert refused.exit_code == 3
    assert "no credentials (Unable to locate credentials): set AWS_ACCESS_KEY_ID" in refused.stderr


def test_no_storage_at_the_endpoint(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(RemoteError, match="the storage cannot be reached"):
        open_binary(f"s3://{bucket.name}/traces/a.jsonl")
