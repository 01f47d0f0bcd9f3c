"""Where a run comes from: the commit of the suite's folder, and the version of the agent.

The version of an agent is a hash of its source: the file that defines it and the files of the same project that this
file imports, directly or through others. It does not cover what is not Python source below that folder (prompts and
settings in other files, installed packages, modules imported by a computed name) nor a model behind an API: a suite
states ``agent_version`` where that matters. Of a command it covers the files that the command names; an agent behind
an address has no version that can be seen from here.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import agentunit
from agentunit.adapters.base import agent_module

_GIT_TAKES_S = 2.0
_MOST_FILES, _MOST_BYTES = 200, 4 << 20
_SHOWN_DIGITS = 12
_LIBRARIES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_SETTINGS_FILES = (".yaml", ".yml", ".toml", ".json", ".cfg", ".ini", ".env")
_MOST_SETTINGS_BYTES = 1 << 18
_PACKAGE = os.path.dirname(os.path.abspath(agentunit.__file__)) + os.sep


def git_state(folder: str) -> dict[str, Any] | None:
    """The commit of a folder, and whether tracked files differ from it (``None``: unknown); ``None`` outside of git."""
    marker = _git_folder(folder)
    if marker is None:
        return None
    git = shutil.which("git")
    if git is not None:
        # No program that the repository's settings name is started, and no lock is taken.
        command = [git, "-C", folder, "-c", "core.fsmonitor=false", "--no-optional-locks", "status"]
        command += ["--porcelain=v2", "--branch", "--untracked-files=no"]
        with suppress(OSError, subprocess.SubprocessError):
            said = subprocess.run(command, capture_output=True, timeout=_GIT_TAKES_S, stdin=subprocess.DEVNULL)
            lines = said.stdout.decode("utf-8", "replace").splitlines() if said.returncode == 0 else []
            commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "")
            if _is_commit(commit):
                return {"commit": commit, "dirty": any(not line.startswith("#") for line in lines)}
    commit = _head_of(marker)
    return {"commit": commit, "dirty": None} if _is_commit(commit) else None


def _git_folder(folder: str) -> str | None:
    """The nearest ``.git`` of a folder or one above it."""
    here = os.path.abspath(folder)
    while True:
        marker = os.path.join(here, ".git")
        if os.path.exists(marker):
            return marker
        if (above := os.path.dirname(here)) == here:
            return None
        here = above


def _head_of(marker: str) -> str:
    """The commit that a ``.git`` says is checked out; empty when that cannot be read."""
    with suppress(OSError, UnicodeDecodeError):
        if os.path.isfile(marker):
            named = _text(marker).strip().removeprefix("gitdir:").strip()
            marker = os.path.join(os.path.dirname(marker), named)
        head = _text(os.path.join(marker, "HEAD")).strip()
        if not head.startswith("ref:"):
            return head
        reference = head.removeprefix("ref:").strip()
        shared = marker
        with suppress(OSError):
            shared = os.path.join(marker, _text(os.path.join(marker, "commondir")).strip())
        with suppress(OSError):
            return _text(os.path.join(shared, reference)).strip()
        packed = _text(os.path.join(shared, "packed-refs")).splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {reference}")), "")
    return ""


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read(_MOST_BYTES)


def _is_commit(text: str) -> bool:
    return len(text) in (40, 64) and all(sign in "0123456789abcdef" for sign in text)


def agent_version(agent: Any, folder: str = ".") -> str | None:
    """A hash of an agent's source; ``None`` where there is no source to read.

    >>> agent_version("https://desk.example/ask") is None
    True
    """
    from agentunit.adapters.command import CommandAgent

    try:
        if isinstance(agent, str) and agent.lower().startswith(("http://", "https://")):
            return None
        if isinstance(agent, str) and agent.startswith("command:"):
            agent = CommandAgent(agent.removeprefix("command:").strip())
        files = sorted(set(agent.files(folder))) if isinstance(agent, CommandAgent) else _sources_of(agent, folder)
    except (ImportError, OSError, TypeError, ValueError, RecursionError):
        return None
    if not files:
        return None
    digest = hashlib.sha256()
    for file in files:
        with suppress(OSError):
            content = _without_suites(_content(file))
            digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:_SHOWN_DIGITS]


def names_read(agent: Any, folder: str, prefix: str) -> set[str]:
    """How the environment variables of a prefix go on that a suite, its agent, or a settings file beside it names.

    Empty stands for a name that is put together while it runs.
    """
    files: dict[str, None] = {}
    with suppress(ImportError, OSError, TypeError, ValueError, RecursionError):
        files.update(dict.fromkeys(_sources_of(agent, folder)))
    below = os.path.abspath(folder) + os.sep
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    own = (os.path.abspath(file) for file in loaded if isinstance(file, str) and file.endswith(".py"))
    files.update(dict.fromkeys(file for file in own if file.startswith(below) and not _is_library(file)))
    with suppress(OSError):
        beside = [each for each in os.scandir(folder) if each.name.lower().endswith(_SETTINGS_FILES)]
        small = sorted(each.path for each in beside if each.is_file() and each.stat().st_size <= _MOST_SETTINGS_BYTES)
        files.update(dict.fromkeys(small[:_MOST_FILES]))
    found: set[str] = set()
    for file in files:
        with suppress(OSError):
            text = _content(file).decode("utf-8", "replace")
            found.update(re.findall(rf"{re.escape(prefix)}([A-Za-z0-9_]*)", text))
    return found


def _is_library(file: str) -> bool:
    return any(part in file for part in _LIBRARIES)


def _content(file: str) -> bytes:
    with open(file, "rb") as opened:
        return opened.read(_MOST_BYTES)


def _sources_of(agent: Any, folder: str) -> list[str]:
    """The file that defines an agent and those of its project that it imports, by name."""
    if isinstance(agent, str):
        # Before the agent is called for the first time nothing may have imported it: its source counts all the same.
        module = agent_module(agent.partition(":")[0])
        file, name = getattr(module, "__file__", None), getattr(module, "__name__", "")
    else:
        found = inspect.unwrap(agent) if callable(agent) else agent
        found = getattr(found, "func", found)
        found = found if inspect.isroutine(found) or inspect.isclass(found) else type(found)
        file, name = inspect.getsourcefile(found), str(getattr(found, "__module__", ""))
    if not isinstance(file, str) or not file.endswith(".py") or not os.path.isfile(file):
        return []
    file = os.path.abspath(file)
    if file.startswith(_PACKAGE):  # an adapter of ours says nothing about what is behind it
        return []
    root = os.path.dirname(file)
    for _ in range(name.count(".") + (os.path.basename(file) == "__init__.py")):
        root = os.path.dirname(root)
    roots = [root] if _is_library(file) else list(dict.fromkeys([root, os.path.abspath(folder)]))
    own = name.partition(".")[0] if _is_library(file) else None
    seen: list[str] = [file]
    for each in seen:
        for imported in _imports_of(each, roots, own):
            if imported not in seen and len(seen) < _MOST_FILES:
                seen.append(imported)
    return [file, *sorted(seen[1:])]


def _imports_of(file: str, roots: Sequence[str], own: str | None) -> Iterator[str]:
    """The files below the roots that a file imports; with ``own`` only those of this package."""
    try:
        tree = ast.parse(_content(file))
    except (SyntaxError, ValueError, OSError):
        return
    for node in ast.walk(tree):
        names: list[str] = []
        below = roots
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" if node.module else alias.name for alias in node.names]
            if node.level:
                package = file
                for _ in range(node.level):
                    package = os.path.dirname(package)
                below = [package]
        for name in names:
            parts = name.split(".")
            if own is not None and below is roots and parts[0] != own:
                continue
            for length in range(1, len(parts) + 1):
                stems = [os.path.join(root, *parts[:length]) for root in below]
                paths = [path for stem in stems for path in (f"{stem}.py", os.path.join(stem, "__init__.py"))]
                yield from [path for path in paths if os.path.isfile(path)][:1]


def _without_suites(content: bytes) -> bytes:
    """Source without its ``Suite(…)`` statements: another gate does not make another agent.

    >>> _without_suites(b"x = 1\\nsuite = Suite(cases, agent)\\n")
    b'x = 1\\n'
    """
    if b"Suite(" not in content:
        return content
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError):
        return content
    lines = content.splitlines(keepends=True)
    for node in reversed(body):
        called = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)) else None
        if not isinstance(called, ast.Call) or any(isinstance(each, ast.Lambda) for each in ast.walk(called)):
            continue
        name = getattr(called.func, "id", None) or getattr(called.func, "attr", None)
        if name == "Suite" and node.end_lineno is not None:
            del lines[node.lineno - 1 : node.end_lineno]
    return b"".join(lines)
