"""Modules that documents named before they moved: an import by the old path gives the module at its new place."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

_MOVED = {
    "agentunit.backends.clip": "agentunit.addons.media.clip",
    "agentunit.backends.clip.encoder": "agentunit.addons.media.clip.encoder",
    "agentunit.backends.clip.export": "agentunit.addons.media.clip.onnx_export",
    "agentunit.backends.judge": "agentunit.addons.judge",
    "agentunit.backends.judge.settings": "agentunit.addons.judge.settings",
    "agentunit.engine.rescoring": "agentunit.engine.scoring.rescoring",
    "agentunit.engine.runner": "agentunit.engine.recording.runner",
    "agentunit.engine.scored_run": "agentunit.engine.scoring.scored_run",
    "agentunit.formulas.sequential": "agentunit.formulas.bounded_mean",
    "agentunit.metrics.case_assertions": "agentunit.addons.review.case_assertions",
    "agentunit.metrics.language": "agentunit.addons.language.answer_language",
    "agentunit.metrics.rubric": "agentunit.addons.judge.rubric_metric",
    "agentunit.metrics.rubrics": "agentunit.addons.judge.rubrics",
    "agentunit.privacy.rules": "agentunit.addons.redact.rules",
}


class _Moved:
    """It has the shape of a finder and a loader: inheriting from ``importlib.abc`` would slow ``import agentunit``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Only what is in the table."""
        return ModuleSpec(fullname, self) if fullname in _MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Python's own will do: it is replaced at once."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module at its new place in the table of modules."""
        # One module under both names: its classes are the same, whichever path a suite imports them by.
        sys.modules[module.__name__] = import_module(_MOVED[module.__name__])

    def get_code(self, fullname: str) -> CodeType:
        """What ``python -m`` runs."""
        source = f"import runpy; runpy.run_module({_MOVED[fullname]!r}, run_name='__main__', alter_sys=True)"
        return compile(source, fullname, "exec")


def find_moved_modules() -> None:
    """Let imports by old paths find what moved."""
    # Before other finders: they would load the modules of a moved package a second time.
    sys.meta_path.insert(0, _Moved())
