"""Change the code in small ways, one at a time, and see whether the tests notice: ``python -m scripts.mutants``.

A mutant is one change: a comparison turned, a number moved, an ``and`` for an ``or``, a condition negated, a ``min``
for a ``max``, a returned value dropped. First every test file of the package runs once, to learn which test calls which
function; after that, a mutant is tried only on the tests that call the changed function. A mutant that passes them all
survived, and is shown with its difference: either the change means nothing, or a test is missing. The sample is drawn
by ``--seed``. Results are kept in .mutants/, so a run that is stopped, or out of time, continues where it was.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import fcntl
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".mutants"
ROOMS = ("core", "formulas", "engine")
# A changed loop may never end: what takes this long, and 20 times the usual, counts as noticed if the same tests end
# without the change.
_LIMIT_S = 60
_LEARNING_LIMIT_S = 900
# A function that everything calls is tried on its quickest tests, of this many seconds together.
_TESTS_S = 60.0
_LARGE_BYTES = 1_000_000
_NEAR = " nearest tests"

_TURNED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
_OTHER_CALL = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    """One change: the bytes from ``start`` to ``end`` of a file become ``text``."""

    path: str
    line: int
    kind: str
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The source with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def identity(self, source: bytes) -> str:
        """Known again while its file and the change are the same."""
        content = f"{self.path} {self.start} {self.end} {self.text} {hashlib.sha256(source).hexdigest()}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def mutants_of(path: str, source: bytes) -> Iterator[Mutant]:
    """Every change of a file that is tried, in the order of its lines."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _code(ast.parse(source)):
        changes = [(node, kind, changed) for kind, changed in _changes(node)]
        if isinstance(node, ast.If | ast.While | ast.IfExp) and isinstance(
            node.test, ast.Name | ast.Attribute | ast.Call
        ):
            changes.append((node.test, "not", ast.UnaryOp(ast.Not(), node.test)))
        for node, kind, changed in changes:
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            text = ast.unparse(changed)
            # An expression that is written in place of a part of another one.
            yield Mutant(path, node.lineno, kind, start, end, f"({text})" if isinstance(changed, ast.expr) else text)


def _code(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """What runs: no annotations, decorators, messages of errors, imports for types, or constants of the interface."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("TypeVar", "field", "print"):
        return
    # A check of lengths that are equal by design.
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _code(child)


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[place] = _TURNED[type(operator)]()
            yield "comparison", changed
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OTHER_CALL:
        called = copy.deepcopy(node)
        called.func = ast.Name(_OTHER_CALL[node.func.id])
        yield "call", called
    elif isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        added = copy.deepcopy(node)
        added.op = _ARITHMETIC[type(node.op)]()
        yield "arithmetic", added
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_text(node):
        other = copy.deepcopy(node)
        other.op = _ARITHMETIC[type(node.op)]()
        yield "arithmetic", other
    elif isinstance(node, ast.BoolOp):
        either = copy.deepcopy(node)
        either.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", either
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "truth", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield "number", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield "number", ast.Constant(node.value * 1.5 if node.value else 1.0)
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "return", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Continue):
        yield "loop", ast.Break()
    elif isinstance(node, ast.IfExp):
        swapped = copy.deepcopy(node)
        swapped.body, swapped.orelse = node.orelse, node.body
        yield "if/else", swapped


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(each, ast.JoinedStr | ast.List | ast.Tuple) for each in sides) or any(
        isinstance(each, ast.Constant) and isinstance(each.value, str | bytes) for each in sides
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def sample(rooms: list[str], seed: int) -> list[Mutant]:
    """All mutants of the packages, folders or files, in the order of the seed."""
    found: list[Mutant] = []
    for room in rooms:
        place = ROOT / "src" / "agentunit" / room
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            found += mutants_of(path.relative_to(ROOT).as_posix(), path.read_bytes())
    random.Random(seed).shuffle(found)
    return found


def test_files(path: str) -> list[list[str]]:
    """Where the tests of a module are, nearest first: its doctests and the files of its package that are named like it
    or import it; the other files of its package; those of other packages that import it.
    """
    parts = Path(path).with_suffix("").parts[1:]
    room, package = parts[1], re.escape(".".join(parts[:-1]))
    imports = re.compile(rf"{re.escape('.'.join(parts))}\b|from {package} import [^\n]*\b{parts[-1]}\b")
    near: list[str] = []
    rest: list[str] = []
    elsewhere: list[str] = []
    for file in sorted((ROOT / "src" / "agentunit" / room).rglob("*.py")):
        if b">>>" in file.read_bytes():
            name = str(file.relative_to(ROOT))
            (near if name == path else rest).append(name)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        name = str(file.relative_to(ROOT))
        is_near = file.stem == f"test_{parts[-1]}" or imports.search(file.read_text(encoding="utf-8"))
        if name.startswith(f"tests/{room}/"):
            (near if is_near else rest).append(name)
        elif is_near and not {"optional", "frameworks"} & set(file.relative_to(ROOT).parts):
            elsewhere.append(name)
    return [near, rest, elsewhere]


def function_at(source: bytes, line: int) -> str:
    """The qualified name of the innermost function around a line; "" where the line runs at import."""
    found = ""

    def visit(node: ast.AST, prefix: str) -> None:
        nonlocal found
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}".lstrip(".")
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                if not isinstance(child, ast.ClassDef) and first <= line <= (child.end_lineno or 0):
                    found = name
            visit(child, name)

    visit(ast.parse(source), "")
    return found


class Calls:
    """Which test calls which functions, as seen in one run of each test file; kept until that file changes.

    A test that works in another process is known only by what it calls in its own.
    """

    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        self._file = HOME / "calls.json"
        self._seen: dict[str, Any] = {}
        if self._file.exists():
            self._seen = json.loads(self._file.read_text(encoding="utf-8"))

    def learn(self, files: list[str], until: float) -> bool:
        """Run the test files that are new or have changed, and note what each test calls; False when time is up."""
        contents = {file: _content(file) for file in files}
        new = [file for file in files if self._seen.get(file, {}).get("content") != contents[file]]
        # Several at once: each start of pytest takes seconds. Not all at once: what is known outlives a kill.
        for some in (new[start : start + 4] for start in range(0, len(new), 4)):
            print(f"learning what the tests call in {', '.join(some)}", flush=True)
            note = HOME / "called.json"
            note.unlink(missing_ok=True)
            limit_s = max(1.0, min(_LEARNING_LIMIT_S, until - time.monotonic()))
            if (
                self._laboratory.run(some, limit_s, {"MUTANTS_CALLS": str(note)}) is None
                and limit_s < _LEARNING_LIMIT_S
            ):
                return False
            tests = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
            self._seen |= {file: {"content": contents[file], "tests": {}} for file in some}
            for test, (duration_s, places) in tests.items():
                functions = {self._name(path, line) for path, line in places}
                self._seen[test.partition("::")[0]]["tests"][test] = {
                    "duration_s": duration_s,
                    "functions": sorted(filter(None, functions)),
                }
            _write(self._file, json.dumps(self._seen).encode())
        return True

    def _name(self, path: str, line: int) -> str:
        name = function_at((ROOT / path).read_bytes(), line)
        return f"{path} {name}" if name else ""

    def tests_for(self, mutant: Mutant, files: list[str]) -> dict[str, float]:
        """The tests in these files that call the changed function, with their seconds, the quickest first.

        Code that runs at import is tested by all tests that call anything in its file.
        """
        function = function_at((ROOT / mutant.path).read_bytes(), mutant.line)
        wanted = f"{mutant.path} {function}"
        found = {
            test: each["duration_s"]
            for file in files
            for test, each in self._seen.get(file, {}).get("tests", {}).items()
            if any(called == wanted if function else called.startswith(wanted) for called in each["functions"])
        }
        return dict(sorted(found.items(), key=lambda item: item[1]))


class Laboratory:
    """A copy of the project in which one file at a time is changed; the project itself is not touched."""

    def __init__(self) -> None:
        self.folder = HOME / "tree"
        (HOME / "mutants_plugin.py").write_text(_PLUGIN, encoding="utf-8")
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                self.restore(name)

    def restore(self, name: str) -> None:
        """Make a file that of the project again, with its time: so its compiled form stays valid."""
        source, target = ROOT / name, self.folder / name
        wanted = source.stat()
        if target.exists():
            there = target.stat()
            if (there.st_size, there.st_mtime_ns) == (wanted.st_size, wanted.st_mtime_ns):
                return
            target.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        # What is large is data, and no test writes it. A copy of the rest keeps tests from writing to the project.
        if wanted.st_size > _LARGE_BYTES:
            with suppress(OSError):
                os.link(source, target)
                return
        shutil.copy2(source, target)

    def try_out(self, mutant: Mutant, tests: dict[str, float]) -> str:
        """How a mutant ended: "noticed" by one of the tests, or "survived" them."""
        target = self.folder / mutant.path
        limit_s = _LIMIT_S + 20 * sum(tests.values())
        target.unlink()
        target.write_bytes(mutant.applied((ROOT / mutant.path).read_bytes()))
        # A time that no compiled file has.
        os.utime(target, (1, 1))
        try:
            end = self.run(["-x", *tests], limit_s, {"PYTHONDONTWRITEBYTECODE": "1"})
        finally:
            self.restore(mutant.path)
        # All passed; or exit code 5: nothing here is a test, and that notices nothing.
        if end in (0, 5):
            return "survived"
        # A test failed, and it passed while its calls were learned. Whatever else ended the tests (an error before the
        # first one, the time) counts only if they pass without the change.
        if end != 1 and self.run(["-x", *tests], limit_s, {}) != 0:
            raise RuntimeError(f"these tests do not pass without a change (exit code {end} with it): {list(tests)}")
        return "noticed"

    def run(self, arguments: list[str], limit_s: float, settings: dict[str, str]) -> int | None:
        """The exit code of pytest, None where it did not end in time."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        # Before the installed one.
        paths = os.pathsep.join([str(self.folder / "src"), str(HOME)])
        process = subprocess.Popen(
            [*command, "-p", "mutants_plugin", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": paths, **settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


# A plug-in of pytest that keeps the order of the named tests and, where asked, notes which functions each one calls.
_PLUGIN = """
import json, os, sys, threading
import pytest

NOTE = os.environ.pop("MUTANTS_CALLS", None)
HERE = os.path.join(os.getcwd(), "src", "agentunit") + os.sep
tests, called = {}, set()

def trace(frame, event, argument):
    called.add(frame.f_code)

if NOTE:

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item, nextitem):
        called.clear()
        threading.settrace(trace)
        sys.settrace(trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            places = {(each.co_filename, each.co_firstlineno) for each in list(called)}
            found = [(os.path.relpath(path), line) for path, line in places if path.startswith(HERE)]
            tests.setdefault(item.nodeid, [0.0, []])[1] = sorted(found)

    def pytest_runtest_logreport(report):
        # What fails or is skipped without a change notices nothing.
        if report.outcome == "passed":
            tests.setdefault(report.nodeid, [0.0, []])[0] += report.duration
        else:
            tests.setdefault(report.nodeid, [0.0, []]).append("no")

    def pytest_sessionfinish():
        with open(NOTE, "w", encoding="utf-8") as note:
            json.dump({name: each for name, each in tests.items() if len(each) == 2}, note)
"""


def _content(*files: str) -> str:
    return hashlib.sha256(b"".join((ROOT / file).read_bytes() for file in files)).hexdigest()[:16]


def _write(path: Path, content: bytes) -> None:
    """All of a file or, after a kill, its old form."""
    path.with_suffix(".new").write_bytes(content)
    path.with_suffix(".new").replace(path)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what a test left behind: its whole session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 9)
    process.wait()


def difference(mutant: Mutant) -> str:
    """A mutant as a unified difference."""
    source = (ROOT / mutant.path).read_bytes()
    before, after = (text.decode().splitlines(keepends=True) for text in (source, mutant.applied(source)))
    return "".join(difflib.unified_diff(before, after, mutant.path, f"{mutant.path} ({mutant.kind})", n=1))


def main() -> int:
    """Try mutants until the count is reached or the time is up; then say how many survived, and show them."""
    reader = argparse.ArgumentParser(prog="python -m scripts.mutants", description=__doc__)
    reader.add_argument("--minutes", type=float, default=20.0, help="how long to go on (default 20)")
    reader.add_argument("--count", type=int, default=100, help="how many mutants at most (default 100)")
    reader.add_argument("--seed", type=int, default=1, help="which sample (default 1)")
    reader.add_argument(
        "--rooms",
        default=",".join(ROOMS),
        help=f"packages, or folders and files in them: engine/deciding/gates.py,core (default {','.join(ROOMS)})",
    )
    reader.add_argument("--fresh", action="store_true", help="forget the results that are kept, and what tests call")
    options = reader.parse_args()
    every = sample(options.rooms.split(","), options.seed)
    HOME.mkdir(exist_ok=True)
    if options.fresh:
        for kept in ("results.jsonl", "calls.json"):
            (HOME / kept).unlink(missing_ok=True)
    # A kill that can be caught ends the running tests, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with open(HOME / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(f"mutants: another run works in {HOME}; wait until it ends")
        ends = try_all(every[: options.count], time.monotonic() + options.minutes * 60)
    return report(ends, len(every))


def try_all(chosen: list[Mutant], until: float) -> dict[Mutant, str]:
    """How each mutant ended, by new or kept results, as far as the time allows.

    First the nearest tests for all, then the others for what survived these: so there soon is an answer.
    """
    kept_file = HOME / "results.jsonl"
    kept = {}
    if kept_file.exists():
        lines = kept_file.read_text(encoding="utf-8").splitlines()
        kept = {each["id"]: (each["end"], each["tests"]) for each in map(json.loads, lines)}
    laboratory = Laboratory()
    calls = Calls(laboratory)
    ends: dict[Mutant, str] = {}
    for wide in (False, True):
        for number, mutant in enumerate(chosen, 1):
            identity = mutant.identity((ROOT / mutant.path).read_bytes())
            near, *wider = test_files(mutant.path)
            tests = _content(*near, *wider[0], *wider[1])
            end, tested = kept.get(identity, ("", ""))
            # What survived is tried again where tests have changed.
            if end != "noticed" and tested != tests:
                end = ""
            groups = wider if wide else [near]
            is_open = end.endswith(_NEAR) if wide else not end
            if is_open and time.monotonic() < until and all(calls.learn(files, until) for files in groups):
                n_tests = end_of(mutant, groups, laboratory, calls)
                survived = f"{end}, {n_tests} others" if wide else f"survived {n_tests}{_NEAR}"
                end = "noticed" if n_tests is None else survived
                kept[identity] = (end, tests)
                with open(kept_file, "a", encoding="utf-8") as results:
                    results.write(json.dumps({"id": identity, "end": end, "tests": tests, "path": mutant.path}) + "\n")
                print(f"{number}/{len(chosen)} {mutant.path}:{mutant.line} {mutant.kind}: {end}", flush=True)
            if end:
                ends[mutant] = end
    return ends


def end_of(mutant: Mutant, groups: list[list[str]], laboratory: Laboratory, calls: Calls) -> int | None:
    """How many tests of these files a mutant survived, one group of them after the other; None where one noticed it."""
    n_tests = 0
    for files in groups:
        for tests in _stages(mutant, calls.tests_for(mutant, files)):
            if laboratory.try_out(mutant, tests) == "noticed":
                return None
            n_tests += len(tests)
    return n_tests


def _stages(mutant: Mutant, tests: dict[str, float]) -> Iterator[dict[str, float]]:
    """First the two nearest test files, because each file takes time to be read; then the others."""
    by_file: dict[str, dict[str, float]] = {}
    total_s = 0.0
    for test, duration_s in tests.items():
        total_s += duration_s
        if total_s <= _TESTS_S:
            by_file.setdefault(test.partition("::")[0], {})[test] = duration_s
    stem = Path(mutant.path).stem
    ranked = sorted(by_file, key=lambda file: (stem not in Path(file).stem, -len(by_file[file])))
    for files in (ranked[:2], ranked[2:]):
        if files:
            yield {test: duration_s for file in files for test, duration_s in by_file[file].items()}


def report(ends: dict[Mutant, str], n_possible: int) -> int:
    """Print the survivors and their share; the exit code says only whether anything was tried."""
    survivors = [mutant for mutant, end in ends.items() if end.startswith("survived")]
    for mutant in survivors:
        print(f"\n{ends[mutant]}:\n{difference(mutant)}", end="")
    print()
    for room in sorted({Path(each.path).parts[2] for each in ends}):
        n_tried, n_left = (sum(Path(each.path).parts[2] == room for each in group) for group in (ends, survivors))
        print(f"{room}: {n_left} of {n_tried} survived ({n_left / n_tried:.0%})")
    n_open = sum(end.endswith(_NEAR) for end in ends.values())
    rest = f" ({n_open} of them tried only on the nearest tests)" if n_open else ""
    print(f"{n_possible:,} possible changes, {len(ends)} tried, {len(survivors)} survived{rest}")
    return 0 if ends else 1


if __name__ == "__main__":
    sys.exit(main())
