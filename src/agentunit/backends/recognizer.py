"""People, places and addresses by the learned model of agentunit-local, which reads texts of many scripts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

from agentunit.installation import install_command

Span = tuple[int, int]


class Entity(NamedTuple):
    """A ``person``, ``place`` or ``address`` by its position in a text, and how likely it is one, from 0 to 1."""

    kind: str
    start: int
    end: int
    share: float


class Reading(Protocol):
    """What the model says of one text."""

    entities: Sequence[Entity]

    def share(self, kind: str, start: int, end: int) -> float | None:
        """How likely a stretch is of a kind; ``None`` for one that the model did not read."""
        ...


class LearnedRecognizer:
    """The model that ships in agentunit-local, opened with the first text."""

    def unready(self) -> str | None:
        """Why it cannot run now, with the command that helps; ``None`` when it can."""
        missing = [name for name in ("agentunit_local", "onnxruntime", "numpy") if find_spec(name) is None]
        if missing:
            return f"{missing[0]} is not installed; {install_command('local')} adds it"
        return self._model().unready()  # type: ignore[no-any-return]

    def read(self, texts: Sequence[str], wanted: Sequence[Sequence[Span]]) -> Sequence[Reading]:
        """What the model says of each text. It reads where an entity may stand, and what is ``wanted`` of each text."""
        return self._model().read(texts, wanted)  # type: ignore[no-any-return]

    @staticmethod
    def _model() -> Any:
        from agentunit_local.recognizer.entities import shipped_recognizer

        return shipped_recognizer()
