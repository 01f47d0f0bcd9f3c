"""People, places and addresses by the learned model of agentunit-local, which reads texts of many scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

from agentunit.addons.names._name_evidence import LAST_OF_LATIN
from agentunit.installation import install_command
from agentunit.privacy.detection.gazetteer import Kind, kinds_of
from agentunit.privacy.detectors import PatternDetector
from agentunit.privacy.findings import CATALOG_CONFIDENCE, Detector, Finding

Span = tuple[int, int]

_WORD = re.compile(r"[^\W\d_]+")


class Entity(NamedTuple):
    """A ``person``, ``place`` or ``address`` by its position in a text, and how likely it is one, from 0 to 1."""

    kind: str
    start: int
    end: int
    share: float


class RecognizedText(Protocol):
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

    def read(self, texts: Sequence[str], wanted: Sequence[Sequence[Span]]) -> Sequence[RecognizedText]:
        """What the model says of each text. It reads where an entity may stand, and what is ``wanted`` of each text."""
        return self._model().read(texts, wanted)  # type: ignore[no-any-return]

    @staticmethod
    def _model() -> Any:
        from agentunit_local.recognizer.entities import shipped_recognizer

        return shipped_recognizer()


class LearnedDetector:
    """Patterns, and beside them the people and addresses of the model in agentunit-local, in many scripts.

    The model also doubts: a name that patterns found in words of which it is all but certain that they name nobody is
    none. Of single words it is believed only where it is nearly certain and the word is no plain one.
    """

    name = "local"

    def __init__(self) -> None:
        self._model = LearnedRecognizer()
        self._patterns: Detector = PatternDetector()

    def unready(self) -> str | None:
        """Why it cannot run now; ``None`` when it can."""
        return self._model.unready()

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text."""
        found = self._patterns.find(texts)
        names = [[(each.start, each.end) for each in findings if each.type == "name"] for findings in found]
        readings = self._model.read(texts, names)
        return [_learned(*each) for each in zip(texts, found, readings, strict=True)]


def _learned(text: str, findings: list[Finding], reading: RecognizedText) -> list[Finding]:
    """The findings of patterns without the names that the model doubts, and what it found itself."""
    kept = [each for each in findings if each.type != "name" or not _is_doubted(each, reading)]
    for entity in reading.entities:
        clashing = [each for each in kept if each.start < entity.end and entity.start < each.end]
        if entity.kind == "person" and not clashing and _is_person(text, entity):
            kept.append(Finding("name", entity.start, entity.end, CATALOG_CONFIDENCE["name"], "recognizer"))
        elif entity.kind == "address" and _is_address(text, entity) and all(each.type == "name" for each in clashing):
            kept = [each for each in kept if each not in clashing]
            kept.append(Finding("address", entity.start, entity.end, CATALOG_CONFIDENCE["name"], "recognizer"))
    return sorted(kept, key=lambda each: each.start)


# Chosen on the development rows and on names put into plain sentences: 99 in 100 of those have more than this share.
_DOUBTED = 0.01
_LIKELY, _LIKELY_ALONE, _CERTAIN = 0.9, 0.98, 0.9995
_LIKELY_IN_SCRIPT = 0.95
_OF_CODE = frozenset("@_/\\{}<>\n")
_SHORTEST_ADDRESS = 8
_PLAIN = Kind.WORD | Kind.RARE_WORD | Kind.PLACE


def _is_doubted(finding: Finding, reading: RecognizedText) -> bool:
    share = reading.share("person", finding.start, finding.end)
    return share is not None and share < _DOUBTED


def _is_person(text: str, entity: Entity) -> bool:
    name = text[entity.start : entity.end]
    around = text[max(0, entity.start - 1) : entity.start], text[entity.end : entity.end + 1]
    if _OF_CODE.intersection(name) or around[0] in ("@", "_", ".", "/") or around[1] in ("@", "_"):
        return False
    if any(letter.isdigit() for letter in name):
        return False
    if name[0] > LAST_OF_LATIN:
        return entity.share >= _LIKELY_IN_SCRIPT and len(name) > 1
    words = _WORD.findall(name)
    if len(words) > 1:
        return entity.share >= _LIKELY and not all(kinds_of(word) & _PLAIN for word in words)
    return len(name) > 2 and entity.share >= (_CERTAIN if kinds_of(name) & _PLAIN else _LIKELY_ALONE)


def _is_address(text: str, entity: Entity) -> bool:
    address = text[entity.start : entity.end]
    return entity.share >= _LIKELY and len(address) >= _SHORTEST_ADDRESS and any(letter.isdigit() for letter in address)
