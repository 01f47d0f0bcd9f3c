"""The tool that tests the tests: what it changes, what it leaves, and which tests it runs first."""

from __future__ import annotations

import ast
import subprocess
from math import inf
from pathlib import Path

import pytest
from scripts import mutants
from scripts.mutants import ROOT, Mutant, function_at, mutants_of, sample

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


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("0 < x <= 1", ["(0 <= x <= 1)", "(0 < x < 1)", "(1) < x <= 1", "0 < x <= (2)"]),
        ("low = min(a, b)", ["low = (max(a, b))"]),
        ("total += gain", ["total -= gain"]),
        ("-gain", ["(gain)"]),
        ("share = 0.5", ["share = (0.75)"]),
        ("zip(a, b, strict=True)", []),
        ("print(3)", []),
        ("if ready: pass", ["if (not ready): pass"]),
    ],
)
def test_what_decides_is_changed(code: str, changes: list[str]) -> None:
    found = [each.applied(code.encode()).decode() for each in mutants_of("f.py", code.encode())]
    assert sorted(found) == sorted(changes)


def test_a_file_of_a_package_can_be_chosen() -> None:
    assert {each.path for each in sample(["engine/deciding/gates.py"], 1)} == {"src/agentunit/engine/deciding/gates.py"}


def test_the_nearest_tests_come_first() -> None:
    near, rest, elsewhere = mutants.test_files("src/agentunit/engine/deciding/gates.py")
    assert "tests/engine/test_gates.py" in near
    assert {"tests/engine/test_provenance.py", "src/agentunit/engine/deciding/gate_expressions.py"} <= set(rest)
    assert elsewhere
    assert not any(each.startswith(("tests/engine", "tests/optional")) for each in elsewhere)
    assert mutants.test_files("src/agentunit/formulas/privacy.py")[0][0] == "src/agentunit/formulas/privacy.py"


def test_the_function_around_a_line() -> None:
    source = b"A = 1\n\nclass C:\n    b = 2\n\n    @p\n    def f(self):\n        def g(): return 3\n        return g\n"
    found = [function_at(source, line) for line in range(1, 10)]
    assert found == ["", "", "", "", "", "C.f", "C.f", "C.f.g", "C.f"]


def test_a_change_is_known_again_until_its_file_changes() -> None:
    one, *_ = mutants_of("f.py", SOURCE)
    assert one.identity(SOURCE) == one.identity(SOURCE)
    assert one.identity(SOURCE) != one.identity(SOURCE + b"\n")


def test_the_report_says_the_share_and_shows_the_survivors(capsys: pytest.CaptureFixture[str]) -> None:
    path = "src/agentunit/core/case.py"
    one, two, *_ = mutants_of(path, (ROOT / path).read_bytes())
    assert mutants.report({one: "survived 3 nearest tests, 2 others", two: "noticed"}, 5) == 0
    shown = capsys.readouterr().out
    assert "core: 1 of 2 survived (50%)\n5 possible changes, 2 tried, 1 survived\n" in shown
    assert f"survived 3 nearest tests, 2 others:\n--- {path}" in shown
    assert mutants.report({}, 5) == 1


def test_a_survivor_and_a_noticed_change_of_a_small_project(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real thing: a project with one function, and a test that does not look at zero."""
    # The plug-in of the installed AgentUnit is not in that project.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    package, tests = tmp_path / "src" / "agentunit" / "core", tmp_path / "tests" / "core"
    for folder in (package, tests):
        folder.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    code = "def sign(x):\n    return x > 0\n\n\ndef unused(x):\n    return -x\n"
    (package / "small.py").write_text(code)
    (tests / "test_small.py").write_text(
        "from agentunit.core.small import sign\n\n\n"
        "def test_sign():\n    assert sign(2) is True\n    assert not sign(-2)\n"
    )
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "HOME", tmp_path / ".mutants")
    (tmp_path / ".mutants").mkdir()
    every = sorted(sample(["core"], 1), key=lambda each: each.start)
    ends = mutants.try_all(every, inf)
    assert [(each.line, each.kind, ends[each]) for each in every] == [
        (2, "return", "noticed"),
        (2, "comparison", "survived 1 nearest tests, 0 others"),
        (2, "number", "survived 1 nearest tests, 0 others"),
        (6, "return", "survived 0 nearest tests, 0 others"),
        (6, "sign", "survived 0 nearest tests, 0 others"),
    ]
    assert (package / "small.py").read_text() == code
    # With a better test what survived is tried again, and what was noticed is not.
    (tests / "test_small.py").write_text(
        "from agentunit.core.small import sign\n\n\n"
        "def test_sign():\n    assert sign(1) is True\n    assert not sign(0)\n"
    )
    capsys.readouterr()
    ends = mutants.try_all(every[:3], inf)
    assert set(ends.values()) == {"noticed"}
    assert capsys.readouterr().out.count(": noticed") == 2
