"""The public interface as text, one sorted line a fact: ``python -m scripts.public_api [--check]``.

Names, parameters, command-line options, metrics with their detail keys, JSON shapes, exit codes, environment variables.
docs/api.txt holds it; a change of that file needs a line in CHANGELOG.md that names what changed. On a merge conflict
take both sides, then ``make api``.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from agentunit.cli.main import _EXIT_CLOSED, EXIT_STOPPED, cli
from agentunit.engine.deciding.decision import _VERDICTS
from agentunit.metrics.base import describe
from agentunit.metrics.registry import MetricRegistry
from scripts.json_shapes import json_shapes

ROOT = Path(__file__).resolve().parents[1]
SNAPSHOT = ROOT / "docs" / "api.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
# What users import from; everything else may move.
MODULES = (
    "agentunit",
    "agentunit.adapters",
    "agentunit.backends.judge",
    "agentunit.datasets.base",
    "agentunit.metrics",
    "agentunit.metrics.base",
    "agentunit.multiagent",
    "agentunit.multimodal.metrics",
    "agentunit.privacy",
    "agentunit.privacy.metrics",
    "agentunit.probes",
    "agentunit.store",
    "agentunit.sustainability.metrics",
)
_ENTRY_POINTS = re.compile(r'"(agentunit\.(?:metrics|backends|trace_formats|formats|reporters))"')
_VARIABLE = re.compile(r"\bAGENTUNIT_[A-Z][A-Z_]*[A-Z]\b")
_NAME = re.compile(r"(?:--)?[A-Za-z_][A-Za-z0-9_]*(?:-[a-z0-9]+)*")
# Parts of facts that name nothing by themselves.
_COMMON = {part for module in MODULES for part in module.split(".")} - {"probes", "privacy", "store"} | {"file", "name"}
_PLAIN = (str, bytes, int, float, bool, type(None))


def facts() -> list[str]:
    """All of them, sorted."""
    found = {*_names(), *_commands(), *_metrics(), *_exit_codes(), *_settings(), *json_shapes()}
    return sorted(found)


def _names() -> Iterator[str]:
    for module in MODULES:
        loaded = import_module(module)
        for name in loaded.__all__:
            yield from _members(f"{module}.{name}", getattr(loaded, name))


def _members(path: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"name {path}"
        if callable(value):
            yield from _parameters(path, value)
        return
    yield f"name {path} (class)"
    if issubclass(value, Enum):
        yield from (f"value {path}.{each.name} = {each.value!r}" for each in value)
        return
    yield from _parameters(path, value)
    for name in _public_attributes(value):
        member = inspect.getattr_static(value, name)
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if inspect.isfunction(member):
            yield f"method {path}.{name}"
            yield from _parameters(f"{path}.{name}", member)
        else:
            yield f"attribute {path}.{name}"


def _public_attributes(kind: type) -> list[str]:
    own = [base for base in kind.__mro__ if base.__module__.startswith("agentunit")]
    names = {name for base in own for name in (*vars(base), *inspect.get_annotations(base)) if name[0] != "_"}
    return sorted(name for name in names if hasattr(kind, name))


def _parameters(path: str, value: Any) -> Iterator[str]:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return
    for number, each in enumerate(signature.parameters.values()):
        if each.name in ("self", "cls") or each.name.startswith("_"):
            continue
        default = "" if each.default is each.empty else f" = {_spelled(each.default)}"
        # The place counts where an argument may be passed without its name.
        place = {each.KEYWORD_ONLY: "by name", each.VAR_KEYWORD: "**", each.VAR_POSITIONAL: "*"}.get(each.kind)
        yield f"parameter {path}({each.name}{default}) {place or f'place {number}'}"


def _spelled(value: Any) -> str:
    """A default as text that is the same in every version of Python and on every machine."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple | list | set | frozenset) and len(value) < 20:
        inner = [_spelled(each) for each in value]
        return f"{type(value).__name__}({', '.join(inner if isinstance(value, tuple | list) else sorted(inner))})"
    if isinstance(value, _PLAIN):
        return repr(value)
    return f"<{getattr(value, '__name__', type(value).__name__)}>"


def _commands() -> Iterator[str]:
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    for name, command in {"": cli, **commands}.items():
        assert command is not None
        for each in command.params:
            if isinstance(each, click.Option):
                shape = "flag" if each.is_flag else _type_name(each.type)
                spelled = ", ".join(sorted((*each.opts, *each.secondary_opts)))
                more = " several" if each.multiple else ""
                yield f"option {f'agentunit {name}'.strip()} {spelled}: {shape}{more}"
            else:
                count = "any number" if each.nargs < 0 else str(each.nargs)
                yield f"argument agentunit {name} {each.name}: {count}{', required' if each.required else ''}"


def _type_name(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    return kind.name


def _metrics() -> Iterator[str]:
    registry = MetricRegistry(entry_point_group=None)
    for name in registry.names():
        info = describe(registry.create(name))
        yield f"metric {name} (direction {info.direction}, version {info.version})"
        yield from (f"detail {name} {key}" for key in info.detail_keys)


def _exit_codes() -> Iterator[str]:
    yield from (f"exit {code} {name}" for code, name in _VERDICTS.items())
    yield "exit 2 usage"
    yield f"exit {EXIT_STOPPED} stopped by the user"
    yield from (f"exit {code} {verb} with a closed output" for verb, code in _EXIT_CLOSED.items())


def _settings() -> Iterator[str]:
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield from (f"variable {name}" for name in _VARIABLE.findall(text))
        yield from (f"entry points {name}" for name in _ENTRY_POINTS.findall(text))


def undocumented_change(root: Path = ROOT) -> str | None:
    """What the changelog does not tell of the last change to the snapshot, as far as git knows; None where it tells."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)

    snapshot, changelog = SNAPSHOT.relative_to(ROOT).as_posix(), CHANGELOG.relative_to(ROOT).as_posix()
    if git("rev-parse", "--verify", "HEAD").returncode:
        return None
    committed = git("log", "-2", "--format=%H", "--", snapshot).stdout.split()
    is_changed = git("diff", "--quiet", "HEAD", "--", snapshot).returncode != 0
    before = committed[0:1] if is_changed else committed[1:2]
    if not before:
        return None

    def lines(sign: str, path: str) -> list[str]:
        shown = git("diff", "--unified=0", before[0], "--", path).stdout.splitlines()
        return [line[1:] for line in shown if line.startswith(sign) and not line.startswith(sign * 3)]

    # All that was added since the last version of the snapshot: branches that were merged bring their lines.
    told = "\n".join(lines("+", changelog))
    untold = [fact for sign in "-+" for fact in lines(sign, snapshot) if not is_told(fact, told)]
    if not untold:
        return None
    more = f" and {len(untold) - 1} more" if len(untold) > 1 else ""
    return (
        f"{snapshot} differs from what it was in {before[0][:10]} in {untold[0]!r}{more}, which no line that was "
        f"added to {changelog} since then names: say there, under Unreleased, what changed for users"
    )


def is_told(fact: str, text: str) -> bool:
    """Whether a text names what a fact is about, or names in code what that belongs to.

    >>> is_told("option agentunit run --sample: text", "Take some cases only: `--sample`.")
    True
    >>> is_told("option agentunit run --sample: text", "`agentunit run` takes a part of the cases.")
    True
    >>> is_told("option agentunit run --sample: text", "A run takes less memory.")
    False
    """
    kind, _, rest = fact.partition(" ")
    if kind == "exit":
        return "exit code" in text.lower()
    # Without types, values and places: what is left is an owner and a name.
    named = _NAME.findall(re.split(r": | = | \((?:class|direction)|\) ", rest)[0])
    own = [name for name in named if len(name) > 1 and name.lower() not in _COMMON]
    in_code = {name for span in re.findall(r"`([^`]+)`", text) for name in _NAME.findall(span)}
    return not own or own[-1] in _NAME.findall(text) or not in_code.isdisjoint(own)


def main() -> int:
    """Write the snapshot; with ``--check`` say what differs, and whether the changelog says why."""
    now = facts()
    kept = SNAPSHOT.read_text(encoding="utf-8").splitlines() if SNAPSHOT.exists() else []
    differences = [f"- {line}" for line in sorted({*kept} - {*now})] + [
        f"+ {line}" for line in sorted({*now} - {*kept})
    ]
    if "--check" not in sys.argv:
        if kept != now:
            SNAPSHOT.write_text("".join(f"{line}\n" for line in now), encoding="utf-8")
            print("\n".join([*differences, f"wrote {SNAPSHOT.relative_to(ROOT)}; CHANGELOG.md says what changed"]))
        return 0
    if kept != now:
        print(
            "\n".join([*differences, "the public interface changed; if that is meant: make api, and a changelog line"])
        )
        return 1
    reason = undocumented_change()
    if reason is not None:
        print(reason)
    return int(reason is not None)


if __name__ == "__main__":
    sys.exit(main())
