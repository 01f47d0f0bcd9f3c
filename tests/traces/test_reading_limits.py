"""Files that expand: each is refused with the limit it meets and the variable that raises it, before it hurts."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import zstandard
from spans_of import TRACE, oi, otlp

from agentunit.addons.review.labeling.label_files import LabelsError, read_label_file
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.traces import limits
from agentunit.traces.reading import TraceFiles

GOOD = b'{"case": {"id": "good"}}\n'


def read(path: Path) -> tuple[list[str], list[str]]:
    found = list(TraceFiles([path]))
    ids = [each.case.id for each in found if isinstance(each, Record)]
    return ids, [each.reason for each in found if isinstance(each, InputError)]


def written(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def refusal(path: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        load_dataset(path)
    return str(caught.value)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can reach."""
    monkeypatch.setattr(limits, "FREE_BYTES", 10_000)
    monkeypatch.setenv("AGENTUNIT_MAX_NODES", "1000")
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", str(100_000 / 2**20))
    monkeypatch.setenv("AGENTUNIT_MAX_FILE_MB", str(300_000 / 2**20))
    monkeypatch.setenv("AGENTUNIT_MAX_CASES", "1000")
    monkeypatch.setenv("AGENTUNIT_MAX_BAD_ITEMS", "100")


EXPANDS = "the file expands to more than 100 times its size (the environment variable AGENTUNIT_MAX_EXPANSION"
NODES = "values (the environment variable AGENTUNIT_MAX_NODES raises this limit)"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize(
    "content", [GOOD + b"\n" * 9_000_000, GOOD + b" " * 9_000_000, otlp(oi("LLM", "a")) + b"\n" * 9_000_000]
)
def test_a_compressed_file_that_expands_too_far_keeps_what_came_before(
    small: None, tmp_path: Path, pack: object, content: bytes
) -> None:
    assert callable(pack)
    ids, errors = read(written(tmp_path, "bomb.jsonl.gz", pack(content)))
    assert ids in (["good"], [TRACE])
    assert len(errors) == 1
    assert EXPANDS in errors[0]


def test_a_raised_limit_lets_the_file_in(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "blank.jsonl.gz", gzip.compress(GOOD + b"\n" * 3_000_000 + GOOD))
    assert len(read(path)[1]) == 1
    monkeypatch.setenv("AGENTUNIT_MAX_EXPANSION", "none")
    assert read(path) == (["good", "good"], [])
    monkeypatch.setenv("AGENTUNIT_MAX_EXPANSION", "wide")
    assert read(path)[1] == ["AGENTUNIT_MAX_EXPANSION must be a number above 0, or none; received 'wide'"]


@pytest.mark.parametrize("name", ["cases.csv.gz", "cases.tsv.gz", "cases.json.gz", "cases.yaml.gz", "cases.jsonl.gz"])
def test_every_dataset_that_expands_too_far_is_refused(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", "none")
    monkeypatch.setenv("AGENTUNIT_MAX_FILE_MB", "none")
    assert EXPANDS in refusal(written(tmp_path, name, gzip.compress(b"query\n" + b" " * 5_000_000)))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("many.jsonl", b'{"query": "q"}\n' * 1001, "more than 1,000 cases"),
        ("many.csv", b"query\n" + b"q\n" * 1001, "more than 1,000 cases"),
        ("blank.csv", b"query\n" + b"\n" * 2001, "more than 2,000 blank rows"),
        ("bad.jsonl", b"1\n" * 101, "more than 100 lines cannot be used"),
        ("wide.csv", b"query\n" + b"," * 1001 + b"\n", NODES),
        ("long.csv", b"query\n" + b"x" * 200_000, "AGENTUNIT_MAX_ITEM_MB"),
        ("nodes.jsonl", b'{"query": "q", "metadata": {"x": [' + b"[]," * 600 + b"1]}}", NODES),
        ("nodes.json", b"[" + b"1," * 1001 + b"1]", NODES),
        ("whole.json", b"[" + b" " * 400_000 + b"]", "AGENTUNIT_MAX_FILE_MB"),
        ("nodes.yaml", b"- a\n" * 300_000, "AGENTUNIT_MAX"),
    ],
)
def test_a_dataset_beyond_a_limit_names_it(small: None, tmp_path: Path, name: str, content: bytes, told: str) -> None:
    assert told in refusal(written(tmp_path, name, content))


@pytest.mark.parametrize(
    "text",
    [
        # Ten levels, each nine times the one before; then one long text; then merged mappings.
        'a0: &a0 [x]\n' + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)) + "z: *a9",
        f"a0: &a0 {'x' * 1000}\nz: [{', '.join(['*a0'] * 200)}]",
        'a0: &a0 {k: v}\n' + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 30)) + "z: *a29",
    ],
)  # fmt: skip
def test_aliases_count_for_what_they_stand_for(small: None, tmp_path: Path, text: str) -> None:
    assert "raises this limit" in refusal(written(tmp_path, "a.yaml", f"{text}\ncases: [{{query: q}}]\n".encode()))


def test_an_alias_within_the_limits_is_read(small: None, tmp_path: Path) -> None:
    text = "shared: &s {k: v}\ncases: [{query: q, metadata: *s}, {query: r, metadata: *s}]\n"
    assert [case.metadata for case in load_dataset(written(tmp_path, "a.yaml", text.encode()))] == [{"k": "v"}] * 2


def test_reading_goes_on_after_an_item_with_too_many_values(small: None, tmp_path: Path) -> None:
    bomb = b'{"case": {"id": "x", "metadata": {"a": [' + b"[]," * 600 + b"1]}}}\n"
    ids, errors = read(written(tmp_path, "nodes.jsonl", GOOD + bomb + GOOD))
    assert ids == ["good", "good"]
    assert len(errors) == 1
    assert NODES in errors[0]
    span = otlp(oi("AGENT", "a", input__value="Why?", deep="DEEP"))
    wide = span.replace(b'{"stringValue": "DEEP"}', b'{"arrayValue": {"values": [' + b"{}," * 900 + b"{}]}}")
    ids, errors = read(written(tmp_path, "nodes.json", wide + otlp(oi("LLM", "b"))))
    assert ids == [TRACE]
    assert NODES in errors[0]


def test_the_files_of_an_archive_share_one_limit(small: None, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(9):
            archive.writestr(f"samples/{number}.json", b'{"x": "' + b"x" * 90_000 + b'"}')
        archive.writestr("samples/long.json", b'{"x": "' + b"x" * 110_000 + b'"}')
    _, errors = read(written(tmp_path, "bomb.eval", packed.getvalue()))
    assert any(EXPANDS in each for each in errors)


def test_a_file_of_nothing_but_damage_ends_early(small: None, tmp_path: Path) -> None:
    ids, errors = read(written(tmp_path, "bad.jsonl", GOOD + b"1\n" * 5000))
    assert ids == ["good"]
    assert len(errors) == 101
    assert errors[-1].startswith("more than 100 parts of the file cannot be read; the rest is left out")


def test_labels_have_the_same_limits(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", "none")
    path = written(tmp_path, "labels.csv.gz", gzip.compress(b"id,label\n" + b" " * 5_000_000))
    with pytest.raises(LabelsError, match="expands to more than 100 times"):
        read_label_file(str(path))
    path = written(tmp_path, "labels.jsonl", b'{"id": "a", "label": 1}\n' * 1002)
    with pytest.raises(LabelsError, match="more than 1,000 labels"):
        read_label_file(str(path))


PARQUET_BOMB = """
import pyarrow, pyarrow.parquet
one = pyarrow.array(["x" * (1 << 20)])
texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 50_000, pyarrow.int32()), one)
pyarrow.parquet.write_table(pyarrow.table({"query": texts}), path)
"""
YAML_BOMB = """
levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\\n" for n in range(1, 10))
import pathlib
pathlib.Path(path).write_text(f"a0: &a0 [x, x]\\n{levels}cases: [{{query: q, metadata: {{x: *a9}}}}]\\n")
"""
CSV_BOMB = """
import gzip
with gzip.open(path, "wb", 1) as file:
    file.write(b"query\\n")
    for _ in range(200):
        file.write(b"x" * (1 << 20))
"""
LOAD = """
import resource, sys
from agentunit.datasets.readers import DatasetError, load_dataset
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
try:
    load_dataset(sys.argv[1])
except DatasetError as error:
    print(error)
    sys.exit(7)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="bounds the memory of a process as Linux does")
@pytest.mark.parametrize(("name", "make"), [("b.parquet", PARQUET_BOMB), ("b.yaml", YAML_BOMB), ("b.csv.gz", CSV_BOMB)])
def test_a_bomb_is_refused_within_two_gigabytes(tmp_path: Path, name: str, make: str) -> None:
    path = tmp_path / name
    exec(make, {"path": str(path)})
    assert path.stat().st_size < 2_000_000
    done = subprocess.run([sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert "raises this limit" in done.stdout


def test_limits_are_asked_once_a_file_not_once_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    limits_of = limits._limits_of
    monkeypatch.setattr(limits, "_limits_of", lambda *values: (asked.append(1), limits_of(*values))[1])
    line = b'{"messages": [{"role": "user", "content": "Hi"}]}\n'
    counts = []
    for n_lines in (5, 50):
        asked.clear()
        assert len(read(written(tmp_path, f"{n_lines}.jsonl", line * n_lines))[0]) == n_lines
        counts.append(len(asked))
    assert counts[0] == counts[1]
