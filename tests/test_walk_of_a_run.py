"""How much of the house `agentunit run` walks through: seven trivial cases with one check.

The bounds are a little above what was reached on 2026-11-19 (129 modules, 563 functions in 75 files): a few functions
depend on timing and on what is installed. Lower them when a change takes less; a change that needs more says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

MOST_MODULES = 135
MOST_FUNCTIONS = 600
MOST_FILES = 80

_SUITE = """
from agentunit import DatasetCase, Suite

cases = [DatasetCase(id=str(i), query=str(i), metadata={"contains": [str(i)]}) for i in range(7)]
suite = Suite(cases, lambda query: f"Answer {query}", name="seven", metrics=["contains"])
"""

# Left out are calls that are made while a module is imported, bodies of modules and classes, lambdas, comprehensions.
_COUNTED = """
import json
import sys
import threading

from agentunit.cli.main import cli

OPTIMIZED = 1  # the code of functions; that of modules and classes is not
functions = set()
importing = threading.local()


def note(frame, event, _):
    code = frame.f_code
    if event not in ("call", "return"):
        return
    depth = getattr(importing, "depth", 0)
    if not code.co_flags & OPTIMIZED:
        importing.depth = depth + (1 if event == "call" else -1)
    elif event == "call" and not depth and not code.co_name.startswith("<"):
        if "/agentunit/" in code.co_filename.replace("\\\\", "/"):
            functions.add((code.co_filename, code.co_name, code.co_firstlineno))


threading.setprofile(note)
sys.setprofile(note)
try:
    cli(["run", "suite.py"])
except SystemExit as left:
    exit_code = left.code
finally:
    sys.setprofile(None)
    threading.setprofile(None)
modules = sorted(name for name in sys.modules if name.partition(".")[0] == "agentunit")
found = {"exit_code": exit_code, "modules": modules, "functions": sorted(functions)}
print("\\n" + json.dumps(found))
"""


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk")
    (folder / "suite.py").write_text(_SUITE)
    (folder / "count.py").write_text(_COUNTED)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTUNIT_", "GITHUB_"))}
    command = [sys.executable, "count.py"]
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_run_passes(walk):
    assert walk["exit_code"] in (None, 0)


def test_few_modules_are_loaded(walk):
    assert len(walk["modules"]) <= MOST_MODULES, walk["modules"]


def test_few_functions_in_few_files_are_crossed(walk):
    files = {file for file, _, _ in walk["functions"]}
    assert len(walk["functions"]) <= MOST_FUNCTIONS
    assert len(files) <= MOST_FILES, sorted(files)


@pytest.mark.parametrize("room", ["addons", "privacy", "multiagent", "multimodal", "sustainability", "backends.judge"])
def test_what_nobody_asked_for_stays_out(walk, room):
    loaded = [name for name in walk["modules"] if name.startswith(f"agentunit.{room}")]
    assert loaded == []
