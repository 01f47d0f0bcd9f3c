"""What AgentUnit can do, by name: its own parts and those of installed packages.

One table for each kind: metrics, backends, trace formats, reporters, commands, stores and detectors. It maps names to
``module:attribute``; other packages add theirs through an entry-point group. Names are listed without an import, and
what is loaded is loaded once. A package that does not load is reported by its name, on standard error and by
``agentunit doctor``, and everything else goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from operator import attrgetter
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_reported: set[str] = set()


class PluginError(ValueError):
    """Something that an installed package or an add-on brings and that cannot be used; the message names which."""


@dataclass(frozen=True)
class Plugin:
    """One line of a table. ``package`` is the distribution that brought it, ``None`` for AgentUnit itself."""

    kind: str
    name: str
    target: str
    package: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}" + (f" of {self.package}" if self.package else "")

    def load(self) -> Any:
        """Import what the target names."""
        return import_target(self.target.partition("[")[0].strip())


_ADDONS = "agentunit.addons."


def import_target(target: str) -> Any:
    """What ``module:attribute`` names. An add-on that is missing or broken is a ``PluginError`` that names it."""
    module_name, _, attribute = target.partition(":")
    try:
        module = import_module(module_name)
    except ImportError as error:
        if not module_name.startswith(_ADDONS):
            raise
        name = module_name.removeprefix(_ADDONS).partition(".")[0]
        is_missing = (error.name or "").startswith(f"{_ADDONS}{name}")
        state = "is not installed" if is_missing else f"cannot be loaded ({error})"
        from agentunit.installation import reinstall_command

        raise PluginError(f"the add-on {name!r} of AgentUnit {state}: {reinstall_command()}") from error
    return attrgetter(attribute)(module) if attribute else module


class PluginTable(Generic[T]):
    """The extensions of one kind, by name: AgentUnit's own first.

    ``adopt`` turns what an entry point names into what the table hands out, or raises with a sentence that says what is
    wrong with it. A package cannot take one of AgentUnit's names, nor one that is ``reserved``: the entry is refused,
    and AgentUnit's own stays. A name that two packages claim can be used by neither.
    """

    def __init__(
        self,
        kind: str,
        group: str | None,
        own: Mapping[str, str],
        *,
        adopt: Callable[[Any, Plugin], T],
        reserved: Iterable[str] = (),
    ) -> None:
        self.kind = kind
        self._group = group
        self.own = {name: Plugin(kind, name, target) for name, target in own.items()}
        """AgentUnit's own, which are known without a look at what is installed."""
        self._adopt = adopt
        self._reserved = frozenset(reserved)
        self._loaded: dict[str, T | PluginError] = {}
        self.refused: dict[str, str] = {}
        """Names that a package may not have, and why; known once the names were looked at."""

    @cached_property
    def entries(self) -> dict[str, Plugin]:
        """Every name with where it comes from; nothing is imported."""
        return {**self.own, **self.brought}

    @cached_property
    def brought(self) -> dict[str, Plugin]:
        """What installed packages add."""
        found: dict[str, Plugin] = {}
        for each in installed(self.kind, self._group) if self._group else ():
            twice = f"two {self.kind}s are called {each.name!r}: one of"
            if each.name in self.own or each.name in self._reserved:
                # The metadata of an older AgentUnit may still list its own.
                if each.name in self._reserved or each.target != self.own[each.name].target:
                    self.refused[each.name] = (
                        f"{twice} AgentUnit itself and one of {each.package}; AgentUnit's is used, and the package has "
                        "to rename its own"
                    )
            elif each.target != found.setdefault(each.name, each).target:
                self.refused[each.name] = (
                    f"{twice} {found[each.name].package} and one of {each.package}; uninstall one of these packages"
                )
        return found

    def load(self, name: str) -> T:
        """What a name stands for; a name that is not in the table is a ``KeyError``."""
        if name not in self._loaded:
            self._loaded[name] = self._load(self.entries[name])
        found = self._loaded[name]
        if isinstance(found, PluginError):
            raise found.with_traceback(None)
        if name in self.refused:
            report_once(self.refused[name])
        return found

    def usable(self) -> Iterator[tuple[str, T]]:
        """Everything that loads, AgentUnit's own first, one by one; what does not load is reported and left out."""
        for name in self.entries:
            try:
                yield name, self.load(name)
            except PluginError as error:
                report_once(str(error))

    def _load(self, plugin: Plugin) -> T | PluginError:
        if plugin.package is None:
            return self._adopt(plugin.load(), plugin)
        if plugin.name in self.refused:
            return PluginError(self.refused[plugin.name])
        try:
            return self._adopt(plugin.load(), plugin)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a package does, the rest must go on
            message = f"{plugin} does not load: {type(error).__name__}: {' '.join(str(error).split())}"
            problem = PluginError(message)
            problem.__cause__ = error
            return problem


def installed(kind: str, group: str) -> list[Plugin]:
    """What installed packages offer in a group of entry points."""
    points = installed_entry_points().select(group=group)
    return [Plugin(kind, point.name, point.value, _package_of(point)) for point in points]


def _package_of(point: Any) -> str:
    try:
        return f"{point.dist.name} {point.dist.version}"
    except Exception:  # noqa: BLE001  # metadata that pip did not write may lack either
        return str(point.value)


@cache
def installed_entry_points() -> Any:
    """All entry points, read once: every look at them opens the metadata of every installed package."""
    # Imported late: it would take most of the time of "import agentunit".
    from importlib.metadata import entry_points

    return entry_points()


def require(made: Any, what: str, *attributes: str) -> None:
    """Refuse what a package offers when it lacks part of the protocol."""
    lacking = [each for each in attributes if not hasattr(made, each)]
    if lacking:
        raise TypeError(f"what its package offers is no {what}: it has no {lacking[0]!r}; received {made!r:.80}")


def report_once(sentence: str) -> None:
    """Say on standard error what is wrong with an installed package, once in a process."""
    if sentence not in _reported:
        _reported.add(sentence)
        print(f"warning: {sentence} ('agentunit doctor' lists the plug-ins)", file=sys.stderr)
