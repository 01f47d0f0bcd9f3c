"""The benchmark of reading traces runs and fills its tables; how fast anything is is not judged here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from benchmarks import traces_public

ROOT = Path(__file__).resolve().parents[1]


def test_every_step_of_every_file_is_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.traces", "--megabytes", "1", "--rounds", "1", "--memory-megabytes", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    timed = {(row[0], row[1]) for row in rows if len(row) == 7}
    steps = ("elements", "packed", "spans", "records")
    assert timed >= {(kind, step) for kind in ("openinference", "genai", "dense") for step in steps}
    read = {row[0]: int(row[2]) for row in rows if len(row) == 5 and row[0] in ("openinference", "genai")}
    assert min(read.values()) > 20


def test_public_files_are_skipped_with_a_sentence_where_there_are_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.traces_public"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "AGENTUNIT_DATA": str(tmp_path)},
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"skipped: no traces.tar.xz in {tmp_path}; AGENTUNIT_DATA names the folder")


def test_a_fact_left_unknown_is_not_a_wrong_one(tmp_path: Path) -> None:
    """Four files: one read as it is, one with a fact unknown, one read otherwise, one refused."""
    chat = {"messages": [{"role": "user", "content": "Capital?"}, {"role": "assistant", "content": "Oslo"}]}
    counts = [
        {"path": "a.json", "tool": "chat", "case": 0, "question": "Capital?", "answer": "Oslo", "tools": []},
        {"path": "b.json", "tool": "chat", "case": 0, "answer": "Oslo", "tokens_in": 5},
        {"path": "c.json", "tool": "chat", "case": 0, "answer": "Rome", "tokens_in": None},
        {"path": "d.json", "tool": "chat", "case": 0, "answer": "Oslo"},
        {"path": "e.json", "tool": "chat", "counted": False},
    ]
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    for name in "abce":
        (fresh / f"{name}.json").write_text(json.dumps(chat))
    (fresh / "d.json").write_text('{"unheard": "of"}')
    (tmp_path / "counts.jsonl").write_text("\n".join(map(json.dumps, counts)))
    with tarfile.open(tmp_path / "traces-2.tar.xz", "w:xz") as archive:
        archive.add(fresh, "fresh")
        archive.add(tmp_path / "counts.jsonl", "counts.jsonl")
    with tarfile.open(tmp_path / "traces.tar.xz", "w:xz") as archive:
        archive.add(fresh, "traces/nothing-that-is-counted")

    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.traces_public", "-v"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "AGENTUNIT_DATA": str(tmp_path)},
    )

    assert (done.returncode, done.stderr) == (0, "")
    last = [cell.strip() for cell in done.stdout.split("| all ")[1].splitlines()[0].split("|")]
    assert last[1:6] == ["4", "1", "1", "1", "1"]
    assert "c.json (chat) answer wrong: counted ['Rome'], read ['Oslo']" in done.stdout
    assert "b.json (chat) tokens.in unknown: counted [5], read [None]" in done.stdout
    assert "d.json refused (None)" in done.stdout


def test_the_page_has_whole_files_and_the_results_have_every_fact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, results = tmp_path / "traces.md", tmp_path / "RESULTS.md"
    for written in (page, results):
        written.write_text(f"above\n{traces_public.BEGIN}\n| old |\n{traces_public.END}\nbelow\n", "utf-8")
    monkeypatch.setattr(traces_public, "PAGE", page)
    monkeypatch.setattr(traces_public, "RESULTS", results)

    traces_public.write_tables(
        ["| tool | files | exact | partly | wrong | refused | cases |", "| chat | 2 | 1 | 1 | 0 | 0 | 2/2 |"], 2
    )

    assert "| chat | 2 | 1 | 1 | 0 | 0 | 2/2 |" in results.read_text("utf-8")
    assert page.read_text("utf-8").endswith(f"\n| chat | 2 | 1 | 1 | 0 | 0 |\n\n{traces_public.END}\nbelow\n")
    assert "old" not in page.read_text("utf-8") + results.read_text("utf-8")
