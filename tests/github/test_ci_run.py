"""What .ci/run makes of parts that fail: the others still run, and only what must pass decides."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the script is for Linux")
SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "run"


def run_with(folder: Path, failing: str) -> tuple[int, list[str]]:
    """Run it with a 'make' that only fails for some words; the exit code and the lines of the table."""
    for name in ("make", "npm"):
        fake = folder / "bin" / name
        fake.parent.mkdir(exist_ok=True)
        fake.write_text(f'#!/bin/sh\ncase "$*" in {failing}) exit 3;; esac\n')
        fake.chmod(0o755)
    (folder / ".ci").mkdir()
    script = shutil.copy(SCRIPT, folder / ".ci")
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", script], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.partition("\n\n")[2].splitlines()


def test_what_must_pass_decides_and_all_of_it_is_run(tmp_path: Path) -> None:
    code, table = run_with(tmp_path, "*oldest*")
    assert code == 1
    assert [line.split()[2] for line in table if "make oldest" in line] == ["FAILED"]
    assert [line.split("make ")[1].split()[0] for line in table[:-1]] == [
        "test", "viewer", "audit", "audit", "oldest", "optional", "frameworks", "--keep-going", "torture"
    ]  # fmt: skip


def test_what_an_index_or_chance_decides_is_only_told(tmp_path: Path) -> None:
    code, table = run_with(tmp_path, "*vulnerabilities*|torture")
    assert code == 0
    assert sum("reported (3)" in line for line in table) == 2


def test_every_folder_of_tests_that_it_names_exists() -> None:
    named = re.findall(r"tests/[\w/]+", SCRIPT.read_text(encoding="utf-8"))
    assert named
    assert [folder for folder in named if not (SCRIPT.parents[1] / folder).exists()] == []
