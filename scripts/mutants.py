"""Change the code in small ways, one at a time, and see whether the tests notice: ``python -m scripts.mutants``.

A mutant is one change: a comparison turned, a number moved by one, an ``and`` for an ``or``, a condition negated, a
returned value dropped. The tests nearest to the changed file run first, then those of its room; a mutant that passes
them all survived, and is shown with its difference: either the change means nothing, or a test is missing. The sample
is drawn by ``--seed``. Results are kept in .mutants/, so a run that is stopped, or out of time, goes on where it was.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".mutants"
ROOMS = ("core", "formulas", "engine")
# A changed loop may never end: what takes this long counts as noticed if the same tests end without the change.
_LIMIT_S = 900

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
        for kind, changed in _changes(node):
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
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("TypeVar", "field"):
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
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        changed = copy.deepcopy(node)
        changed.ops = [_TURNED[type(node.ops[0])]()]
        yield "comparison", changed
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
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "number", ast.Constant(node.value + 1)
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
    """All mutants of the rooms, in the order of the seed."""
    found: list[Mutant] = []
    for room in rooms:
        for path in sorted((ROOT / "src" / "agentunit" / room).rglob("*.py")):
            found += mutants_of(path.relative_to(ROOT).as_posix(), path.read_bytes())
    random.Random(seed).shuffle(found)
    return found


def nearest_tests(path: str) -> list[list[str]]:
    """What to run for a file, nearest first: its doctests and the tests that import it, then those of its room."""
    file = Path(path)
    room = file.parts[2]
    module = ".".join(file.with_suffix("").parts[1:])
    doctests = [path] if b">>>" in (ROOT / file).read_bytes() else []
    named = [f"tests/{room}/test_{file.stem}.py"]
    own = sorted(str(each.relative_to(ROOT)) for each in (ROOT / "tests" / room).glob("test_*.py"))
    importing = [each for each in own if module in (ROOT / each).read_text(encoding="utf-8")]
    first = [*doctests, *dict.fromkeys(each for each in (*named, *importing) if (ROOT / each).exists())]
    rest = [each for each in own if each not in first]
    # What stands elsewhere and imports the module by its name knows it, too.
    elsewhere = [
        str(each.relative_to(ROOT))
        for each in sorted((ROOT / "tests").rglob("test_*.py"))
        if not {"optional", "frameworks", room} & set(each.relative_to(ROOT).parts)
        and module in each.read_text(encoding="utf-8")
    ]
    return [stage for stage in (first, elsewhere, rest) if stage]


class Laboratory:
    """A copy of the project in which one file at a time is changed; the project itself is not touched."""

    def __init__(self) -> None:
        self.folder = HOME / "tree"
        (HOME / "note_failure.py").write_text(_NOTE_FAILURE, encoding="utf-8")
        shutil.rmtree(self.folder, ignore_errors=True)
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            source, target = ROOT / name, self.folder / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                _link(source, target)

    def try_out(self, mutant: Mutant, stages: list[list[str]]) -> str:
        """How a mutant ended: "noticed" by one of the stages, or "survived" them."""
        target = self.folder / mutant.path
        source = (ROOT / mutant.path).read_bytes()
        for stage in stages:
            _replace(target, mutant.applied(source))
            try:
                failed = self._first_failure(stage)
            finally:
                _replace(target, source)
            # A failure counts only where the same test passes without the change.
            if failed is not None and self._first_failure([failed] if failed else stage) is None:
                return "noticed"
        return "survived"

    def _first_failure(self, tests: list[str]) -> str | None:
        """The id of the first test that fails ("" where none could be named), None where all pass."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        note = HOME / "failed.txt"
        note.unlink(missing_ok=True)
        # Before the installed one.
        paths = os.pathsep.join([str(self.folder / "src"), str(HOME)])
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "MUTANTS_NOTE": str(note)}
        process = subprocess.Popen(
            [*command, "-p", "note_failure", *tests],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            # Exit code 5: nothing in these files is a test; that notices nothing.
            if process.wait(_LIMIT_S) in (0, 5):
                return None
        except subprocess.TimeoutExpired:
            pass
        finally:
            _end(process)
        return note.read_text(encoding="utf-8") if note.exists() else ""


# A plug-in of pytest that writes down what failed first.
_NOTE_FAILURE = """
import os

def _note(report):
    if report.failed and not os.path.exists(os.environ["MUTANTS_NOTE"]):
        with open(os.environ["MUTANTS_NOTE"], "w", encoding="utf-8") as note:
            note.write(report.nodeid)

pytest_runtest_logreport = pytest_collectreport = _note
"""


def _replace(path: Path, content: bytes) -> None:
    """Give a file another content without writing through a link to the project's own."""
    path.unlink()
    path.write_bytes(content)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what a test left behind: its whole session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 9)
    process.wait()


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


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
    reader.add_argument("--rooms", default=",".join(ROOMS), help=f"packages, separated by commas (default {ROOMS})")
    reader.add_argument("--fresh", action="store_true", help="forget the results that are kept")
    options = reader.parse_args()
    HOME.mkdir(exist_ok=True)
    kept_file = HOME / "results.jsonl"
    if options.fresh:
        kept_file.unlink(missing_ok=True)
    kept = {}
    if kept_file.exists():
        kept = {each["id"]: each["end"] for each in map(json.loads, kept_file.read_text(encoding="utf-8").splitlines())}
    every = sample(options.rooms.split(","), options.seed)
    chosen = {each: each.identity((ROOT / each.path).read_bytes()) for each in every[: options.count]}
    until = time.monotonic() + options.minutes * 60
    laboratory: Laboratory | None = None
    # First the nearest tests for all, then the wider ones for what survived these: soon there is a first answer.
    for wanted, wide in ((None, False), ("survived the nearest", True)):
        for number, (mutant, identity) in enumerate(chosen.items(), 1):
            if kept.get(identity) != wanted or time.monotonic() > until:
                continue
            laboratory = laboratory or Laboratory()
            nearest, *wider = nearest_tests(mutant.path) or [[]]
            end = laboratory.try_out(mutant, wider if wide else [nearest] if nearest else [])
            kept[identity] = "survived the nearest" if end == "survived" and not wide else end
            with open(kept_file, "a", encoding="utf-8") as results:
                results.write(json.dumps({"id": identity, "end": kept[identity], "path": mutant.path}) + "\n")
            print(f"{number}/{len(chosen)} {mutant.path}:{mutant.line} {mutant.kind}: {kept[identity]}", flush=True)
    return report({each: kept[identity] for each, identity in chosen.items() if identity in kept}, len(every))


def report(ends: dict[Mutant, str], n_possible: int) -> int:
    """Print the survivors and their share; the exit code says only whether anything was tried."""
    survivors = [mutant for mutant, end in ends.items() if end.startswith("survived")]
    for mutant in survivors:
        print(f"\n{ends[mutant]}:\n{difference(mutant)}", end="")
    n_open = sum(end == "survived the nearest" for end in ends.values())
    share = f" ({len(survivors) / len(ends):.0%})" if ends else ""
    print(f"\n{n_possible:,} possible changes, {len(ends)} tried, {len(ends) - len(survivors)} noticed, ", end="")
    print(
        f"{len(survivors)} survived{share}" + (f", {n_open} of them only tried on the nearest tests" if n_open else "")
    )
    return 0 if ends else 1


if __name__ == "__main__":
    sys.exit(main())
