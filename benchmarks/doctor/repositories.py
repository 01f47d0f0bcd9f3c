"""Files of fetched repositories at a given commit. Nothing of them is run, and nothing is written."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

VARIABLE = "AGENTUNIT_DOCTOR_DATA"
NEEDED = {
    "ShishirPatil/gorilla": "bfcl",
    "HuanzhiMao/BFCL-Result": "bfcl runs",
    "sierra-research/tau-bench": "tau-bench",
    "sierra-research/tau2-bench": "tau2",
    "amazon-agi/tau2-bench-verified": "tau2",
    "web-arena-x/webarena": "webarena",
    "aryopg/mmlu-redux": "mmlu",
}


def data_folder() -> Path | None:
    """The folder of git repositories, each as OWNER+NAME/repo, OWNER/NAME or NAME; ``None`` where none is named."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named and Path(named).is_dir() else None


@cache
def repository(name: str) -> Path | None:
    """The git directory of a repository, if it is there."""
    folder = data_folder()
    if folder is None:
        return None
    owner, _, short = name.partition("/")
    for place in (f"{owner}+{short}/repo", f"{owner}+{short}", name, short):
        if (folder / place).is_dir():
            return folder / place
    return None


def git(name: str, *arguments: str) -> str:
    """What a git command prints; an empty text where it fails."""
    done = subprocess.run(["git", "-C", str(repository(name)), *arguments], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def text_at(name: str, commit: str, path: str) -> str:
    """A file as it was at a commit."""
    return git(name, "show", f"{commit}:{path}")


def rows_at(name: str, commit: str, path: str) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file as it was at a commit."""
    return [json.loads(line) for line in text_at(name, commit, path).splitlines() if line.strip()]


def files_at(name: str, commit: str, folder: str) -> list[str]:
    """The names of the files below a folder at a commit."""
    return git(name, "ls-tree", "-r", "--name-only", commit, folder).splitlines()
