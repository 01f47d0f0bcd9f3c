"""What documents named before it moved is still found by its old path, as the same module."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from agentunit.moved import _MOVED

# Every module that the documents of an earlier version name (November 2026, the last one before the add-ons).
DOCUMENTED = (Path(__file__).parent / "data" / "documented_modules.txt").read_text(encoding="utf-8").split()


@pytest.mark.parametrize("path", DOCUMENTED)
def test_a_documented_path_is_still_imported(path: str) -> None:
    import_module(path)


@pytest.mark.parametrize(("old", "new"), _MOVED.items())
def test_an_old_path_gives_the_module_at_its_new_place(old: str, new: str) -> None:
    assert import_module(old) is import_module(new)
    assert import_module(new).__name__ == new


def test_a_program_that_moved_runs_by_its_old_path() -> None:
    command = [sys.executable, "-m", "agentunit.backends.clip.export", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0
    assert "checkpoint folder" in shown.stdout


def test_a_path_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("agentunit.engine.nothing")
