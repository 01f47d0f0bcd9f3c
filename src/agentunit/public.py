"""What users import: names that load on first use, and classes that say where users find them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, get_type_hints


def lazy_names(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package whose names load on first use.

    A type checker must not see them: it would take any name for one that exists.

    ``names`` has the names of each module, separated by spaces; those of the module ``"."`` are modules themselves.
    """
    homes = {name: module for module, own in names.items() for name in own.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f".{name}", package) if home == "." else getattr(import_module(home, package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(homes)


def publish(module: str, *classes: type) -> None:
    """Let classes name the module that users import them from; they must be found there, too, for pickle."""
    from inspect import get_annotations

    for each in classes:
        # Whoever reads annotations looks for their names in the module that the class names, and they are not there.
        # The mark of dataclasses for fields that follow is no type, which Python 3.10 refuses.
        hints = get_type_hints(each, localns={"KW_ONLY": object}, include_extras=True)
        each.__annotations__ = {name: hints[name] for name in get_annotations(each)}
        each.__module__ = module
