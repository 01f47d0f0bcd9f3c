"""Files that end a parser, a library or a reader: one sentence about the file, and everything beside it is read."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from agentunit.addons.imports.foreign_tests import read_document
from agentunit.addons.redact.rules import read_rules
from agentunit.addons.scale import parquet_process
from agentunit.addons.scale.parquet_process import parquet_rows
from agentunit.cli.main import cli
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.datasets.readers import DatasetError, fingerprint, load_dataset
from agentunit.engine.recording.suite import SuiteError, load_suite
from agentunit.traces.reading import TraceFiles

TOO_DEEP = "nested deeper than 200 levels"
DEEP = {
    "brackets": "[" * 25_000,
    "braces": "{a: " * 25_000,
    "dashes": "- " * 25_000,
    "lines": "".join(" " * level + "-\n" for level in range(400)),
    "aliases": "- &a0 [x]\n" + "".join(f"- &a{n + 1} [*a{n}]\n" for n in range(400)),
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_yaml_nested_without_end_is_refused_before_it_is_built(tmp_path: Path, text: str) -> None:
    file = tmp_path / "deep.yaml"
    file.write_text(text)
    # A process of its own: without the limit, the interpreter ends here.
    reads = "import sys; from agentunit.datasets.readers import load_dataset; load_dataset(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", reads, file], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert TOO_DEEP in done.stderr
    for error, read in ((DatasetError, read_document), (SuiteError, load_suite), (ValueError, read_rules)):
        if error is DatasetError or text is not DEEP["aliases"]:
            with pytest.raises(error, match=TOO_DEEP):
                read(file if read is not read_rules else str(file))


def test_yaml_of_many_levels_is_read(tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text("- {query: q, metadata: {a: " + "[" * 190 + "]" * 190 + "}}\n")
    (case,) = load_dataset(tmp_path / "cases.yaml")
    assert str(case.metadata["a"]).count("[") == 190


def table(n_rows: int) -> bytes:
    written = io.BytesIO()
    rows = [{"question": f"q{number}", "response": "a"} for number in range(n_rows)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), written)
    return written.getvalue()


def test_a_parquet_file_that_ends_arrow_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dies = "import os; os.abort() if os.pread(0, 1 << 20, 0).endswith(b'!') else serve()"
    monkeypatch.setattr(parquet_process, "_START", parquet_process._START.replace("serve()", dies))
    (tmp_path / "bad.parquet").write_bytes(table(3) + b"!")
    (tmp_path / "good.parquet").write_bytes(table(2))
    with pytest.raises(DatasetError, match=r"it ended the process that decoded it \(exit code -6\)"):
        load_dataset(tmp_path / "bad.parquet")
    files = TraceFiles([tmp_path / "bad.parquet", tmp_path / "good.parquet"], format="rows")
    found = list(files)
    assert [type(each) for each in found] == [InputError, Record, Record]


@pytest.mark.parametrize("packed", [False, True])
def test_rows_of_a_file_are_read_from_its_start_whatever_was_taken_of_it(tmp_path: Path, packed: bool) -> None:
    (tmp_path / "rows.parquet").write_bytes(gzip.compress(table(20_000)) if packed else table(20_000))
    found = list(TraceFiles([tmp_path / "rows.parquet"], format="rows"))
    assert len(found) == 20_000
    assert all(isinstance(each, Record) for each in found)


def test_a_file_longer_than_its_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.parquet").write_bytes(table(2_000))
    monkeypatch.setenv("AGENTUNIT_MAX_FILE_MB", "0.001")
    with pytest.raises(DatasetError, match=r"the file is longer than 0\.001 MiB"):
        load_dataset(tmp_path / "rows.parquet")


def test_a_reader_that_stops_early_leaves_no_process(tmp_path: Path) -> None:
    rows = parquet_rows(io.BufferedReader(io.BytesIO(table(40_000))))
    assert next(rows) == (0, ["question", "response"])
    rows.close()


def test_a_case_too_deep_to_be_written_is_named() -> None:
    deep: list[Any] = []
    for _ in range(3_000):
        deep = [deep]
    with pytest.raises(DatasetError, match="case 'q1': its values are nested too deeply"):
        fingerprint([DatasetCase("q1", "?", metadata={"a": deep})])


def test_doctor_says_of_a_case_with_levels_without_end_that_it_cannot_be_read(tmp_path: Path) -> None:
    levels = "[" * 5_000 + "]" * 5_000
    (tmp_path / "deep.jsonl").write_text(f'{{"id": "q", "query": "?", "metadata": {{"a": {levels}}}}}\n')
    result = CliRunner().invoke(cli, ["doctor", str(tmp_path / "deep.jsonl")])
    assert isinstance(result.exception, SystemExit)
    assert "nested too deeply" in " ".join(result.output.split())
