"""One module a metric family; adding a module adds its chapter and its figures.

A module has one function::

    def measure(data: LabelledData) -> Family: ...

It reads the sets it needs (``data.rows("faithfulness")``), makes ``(Record, Label)`` pairs of them, label 1 (or a
higher grade) meaning good, scores them with ``score_sets`` (real metric classes, plain baselines beside them), turns
the rows into figures (``set_figure``, ``mean_figure``, those of ``at_threshold.py``) and says in plain words what the
scores can and cannot be trusted for. ``data_minimization.py`` is the pattern. A quality backend that is installed is
measured without further ado (``quality_backends.py``); what it was trained on stands in ``seen_in_training.py``.
Chapters appear in the order of the modules' names. A module without ``measure`` is a part of others.
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
