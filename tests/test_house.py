"""One name means one thing: which files and classes of AgentUnit share a name, and why they may.

A name that is new in two places fails here: find a better name for one of them. Where both mean the same, or one is
the verb and the other what it does, the name goes into the table with the reason. A name that is no longer shared
leaves the table.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "agentunit"

VERB = "the verb of the command line, and what it does"
FORMULA = "the formulas, and what uses them on records"
CATALOG = "the catalog gives these paths"

# How many files may have this name, and why.
FILES = {
    "base": (3, CATALOG),
    "metrics": (5, f"{CATALOG} to the families; the verb lists them"),
    "command": (2, "a program as an agent, and the verb of an add-on"),
    "compare": (2, VERB),
    "demo": (2, VERB),
    "doctor": (2, "the verb, and its questions to the judge"),
    "runs": (2, VERB),
    "until_decided": (2, VERB),
    "records": (2, "the data model, and records on their way through scoring"),
    "checks": (2, "the metric that runs a check, and what a decision makes of it"),
    "conversation": (2, FORMULA),
    "trajectory": (2, FORMULA),
    "sqlite": (2, "SQLite files, and the store that is one"),
    "timeline": (2, "drawn and in words"),
}

# How many classes may have this name, and why. One that begins with an underscore is known in its module only.
CLASSES = {
    "Asking": (2, "the protocol, and the judge that implements it"),
    "_Held": (2, "private"),
    "_Part": (3, "private"),
    "_Reader": (2, "private"),
    "_Reading": (2, "private: a file being read, as JSON and as protobuf"),
    "_Row": (2, "private"),
    "_Script": (2, "private"),
}


def _files_by_name() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        # Every package has an __init__; an underscore says that a module is private, and is no part of its name.
        if path.stem != "__init__":
            found[path.stem.lstrip("_")].append(str(path.relative_to(PACKAGE)))
    return found


def _classes_by_name() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        # Also classes within functions and classes.
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(PACKAGE)))
    return found


def _refuse(found: dict[str, list[str]], allowed: dict[str, tuple[int, str]]) -> None:
    problems = []
    for name, places in found.items():
        most = allowed[name][0] if name in allowed else 1
        if len(places) > most:
            problems.append(f"{name!r} is the name of {', '.join(places)}")
    for name, (most, _) in allowed.items():
        if len(found.get(name, ())) < most:
            problems.append(f"{name!r} is shared by fewer than {most}: correct the table")
    assert not problems, "\n".join(problems)


def test_no_two_files_have_one_name_in_different_meanings() -> None:
    _refuse(_files_by_name(), FILES)


def test_no_two_classes_have_one_name_in_different_meanings() -> None:
    _refuse(_classes_by_name(), CLASSES)


def _imported_by(path: Path) -> set[str]:
    """The modules that a file imports from, and those that it imports as modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    return found


def test_a_private_module_is_imported_in_its_own_folder_only() -> None:
    problems = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for module in _imported_by(path):
            *rooms, name = module.split(".")
            if not name.startswith("_") or name.startswith("__") or rooms[:1] != ["agentunit"]:
                continue
            folder = PACKAGE.joinpath(*rooms[1:])
            is_module = (folder / f"{name}.py").exists()
            if is_module and folder not in path.parents:
                problems.append(f"{path.relative_to(PACKAGE)} imports {module}, which is private")
    assert not problems, "\n".join(problems)
