"""One module a metric family; adding a module adds its chapter and its figures.

A module has one function::

    def measure(data: LabelledData) -> Family: ...

It reads the sets it needs (``data.rows("faithfulness")``), makes ``(Record, Label)`` pairs of them, label 1 (or a
higher grade) meaning good, scores them with ``score_sets`` (real metric classes, plain baselines beside them), turns
the rows into figures (``set_figure``, ``mean_figure``, ``agreement_figure``) and says in plain words what the scores
can and cannot be trusted for. ``faithfulness.py`` is the pattern. A new backend of a metric that is there already is
one more name in that module's ``BACKENDS``. Chapters appear in the order of the modules' names.
A module without ``measure`` is a part of others.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family

Producer = Callable[[LabelledData], Family]


def producers() -> dict[str, Producer]:
    """The families' functions by module name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = {name: import_module(f"{__name__}.{name}") for name in names}
    return {name: module.measure for name, module in modules.items() if hasattr(module, "measure")}
