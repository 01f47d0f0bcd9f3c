"""The tool that tests the tests: what it changes, what it leaves, and which tests it runs first."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
from scripts import mutants
from scripts.mutants import ROOT, Mutant, mutants_of, nearest_tests, sample

SOURCE = '''"""é: bytes are not characters."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import nothing

LIMIT: int = 3


def f(x: int = 1) -> int | None:
    if x < LIMIT and not x == 7:
        return x * 2
    for each in range(3):
        continue
    if x is None:
        raise ValueError("no" + 5)
    return None
'''.encode()


def changed_lines(mutant: Mutant) -> str:
    before, after = SOURCE.decode().splitlines(), mutant.applied(SOURCE).decode().splitlines()
    (line,) = [new for old, new in zip(before, after, strict=True) if old != new]
    return line.strip()


def test_each_change_is_one_and_can_be_parsed() -> None:
    found = [changed_lines(each) for each in mutants_of("f.py", SOURCE)]
    for each in mutants_of("f.py", SOURCE):
        ast.parse(each.applied(SOURCE))
    assert sorted(found) == sorted(
        [
            "LIMIT: int = (4)",
            "def f(x: int = (2)) -> int | None:",
            "if (x < LIMIT or not x == 7):",
            "if (x <= LIMIT) and not x == 7:",
            "if x < LIMIT and (x == 7):",
            "if x < LIMIT and not (x != 7):",
            "if x < LIMIT and not x == (8):",
            "return None",
            "return (x / 2)",
            "return x * (3)",
            "for each in range((4)):",
            "break",
            "if (x is not None):",
        ]
    )


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    assert sample(["core"], 1)[:20] == sample(["core"], 1)[:20]
    assert sample(["core"], 1)[:20] != sample(["core"], 2)[:20]


def test_the_tests_named_like_a_file_run_first() -> None:
    first, *_ = nearest_tests("src/agentunit/engine/gates.py")
    assert first[0] == "tests/engine/test_gates.py"
    assert nearest_tests("src/agentunit/formulas/privacy.py")[0][0] == "src/agentunit/formulas/privacy.py"


def test_a_change_is_known_again_until_its_file_changes() -> None:
    one, *_ = mutants_of("f.py", SOURCE)
    assert one.identity(SOURCE) == one.identity(SOURCE)
    assert one.identity(SOURCE) != one.identity(SOURCE + b"\n")


def test_the_report_says_the_share_and_shows_the_survivors(capsys: pytest.CaptureFixture[str]) -> None:
    path = "src/agentunit/core/case.py"
    one, two, *_ = mutants_of(path, (ROOT / path).read_bytes())
    assert mutants.report({one: "survived", two: "noticed"}, 5) == 0
    shown = capsys.readouterr().out
    assert "5 possible changes, 2 tried, 1 noticed, 1 survived (50%)\n" in shown
    assert f"--- {path}" in shown
    mutants.report({one: "survived the nearest"}, 5)
    assert "1 survived (100%), 1 of them only tried on the nearest tests" in capsys.readouterr().out
    assert mutants.report({}, 5) == 1


def test_a_survivor_and_a_noticed_change_of_a_small_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real thing: a project with one function, and a test that does not look at zero."""
    # The plug-in of the installed AgentUnit is not in that project.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    package, tests = tmp_path / "src" / "agentunit" / "core", tmp_path / "tests" / "core"
    for folder in (package, tests):
        folder.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "small.py").write_text("def sign(x):\n    return x > 0\n")
    (tests / "test_small.py").write_text(
        "from agentunit.core.small import sign\n\n\n"
        "def test_sign():\n    assert sign(2) is True\n    assert not sign(-2)\n"
    )
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "HOME", tmp_path / ".mutants")
    (tmp_path / ".mutants").mkdir()
    laboratory = mutants.Laboratory()
    ends = {each.kind: laboratory.try_out(each, nearest_tests(each.path)) for each in sample(["core"], 1)}
    assert ends == {"return": "noticed", "comparison": "survived", "number": "survived"}
    assert (package / "small.py").read_text() == "def sign(x):\n    return x > 0\n"
