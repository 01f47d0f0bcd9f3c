"""Names of people by a small language model (spaCy, extra ``ner``), on the sentences that may hold one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from agentunit.addons.names.spacy_model import load_pipeline, spacy_unready
from agentunit.privacy.detection.gazetteer import Kind, kinds_of
from agentunit.privacy.detectors import PatternDetector
from agentunit.privacy.findings import CATALOG_CONFIDENCE, Detector, Finding

Span = tuple[int, int]

_BATCH = 128
_LONGEST = 1_500
# Everything of the pipeline but what finds entities.
_NOT_NEEDED = ["parser", "lemmatizer", "tagger", "attribute_ruler", "senter"]
_SENTENCE_END = re.compile(r"(?<![A-Z])(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)[.!?][\"'”’)\]]*\s+|\n\s*\n\s*")
_WORD = re.compile(r"[^\W\d_]+")
_EDGES = " \t\n\r.,:;!?\"'“”‘’()[]{}<>*_-–—|/\\#@=+&"
_POSSESSIVE = re.compile(r"['’]s$")
# Words that stand capitalised in any text without naming anybody.
_NOT_NAME_LINES = (
    "a an the this that these those i you he she it we they my your his her its our their there here who what when",
    "where why how which whose is are was were be been do does did have has had can could may might must shall should",
    "will would and or but nor not no if then than so because while as of to in on at by for from with about into over",
    "after before during through up down out off all any both each more most other some such only also just please",
    "thank thanks yes ok okay hi hello hey dear sorry sure great let once now however unfortunately would monday",
    "tuesday wednesday thursday friday saturday sunday january february march april june july august september",
    "october november december am pm ll ve re don t s usd id ai api url http https json html error",
)
_NOT_NAMES = frozenset(word for line in _NOT_NAME_LINES for word in line.split())


class PersonNames:
    """Finds people's names. The model is loaded with the first text; ``model`` names another spaCy model.

    Only sentences with a capitalised word that could be a name are given to the model, which takes seconds a megabyte
    where patterns take milliseconds.
    """

    def __init__(self, model: str | None = None) -> None:
        self._model = model
        self._pipeline: Any = None

    def unready(self) -> str | None:
        """Why it cannot run now, with the command that helps; ``None`` when it can."""
        return None if self._model is not None else spacy_unready()

    def find(self, texts: Sequence[str]) -> list[list[Span]]:
        """Where names stand in each text: start and end in characters, in order."""
        found: list[list[Span]] = [[] for _ in texts]
        pieces = [
            (text[start:end], (index, start)) for index, text in enumerate(texts) for start, end in promising(text)
        ]
        if not pieces:
            return found
        if self._pipeline is None:
            self._pipeline = load_pipeline(self._model, _NOT_NEEDED)
        for doc, (index, offset) in self._pipeline.pipe(pieces, as_tuples=True, batch_size=_BATCH):
            for entity in doc.ents:
                if entity.label_ in ("PERSON", "PER"):
                    found[index] += _tidy(texts[index], offset + entity.start_char, offset + entity.end_char)
        return found


def promising(text: str) -> Iterator[Span]:
    """The sentences of a text that may hold a name: those with a capitalised word that is not a common one.

    >>> text = "Please wait. We asked Mia Li. It is Monday."
    >>> [text[start:end] for start, end in promising(text)]
    ['We asked Mia Li. ']
    """
    for start, end in _sentences(text):
        for word in _WORD.finditer(text, start, end):
            token = word.group()
            if len(token) > 1 and token[0].isupper() and token.lower() not in _NOT_NAMES:
                yield start, end
                break


def _sentences(text: str) -> Iterator[Span]:
    start = 0
    for end in (*(found.end() for found in _SENTENCE_END.finditer(text)), len(text)):
        # Logs and tables have no sentences: a piece that goes on and on is cut where a line or a word ends.
        while end - start > _LONGEST:
            cut = max(text.rfind("\n", start, start + _LONGEST), 0) or text.rfind(" ", start, start + _LONGEST)
            cut = cut + 1 if cut > start else start + _LONGEST
            yield start, cut
            start = cut
        if end > start:
            yield start, end
        start = end


def _tidy(text: str, start: int, end: int) -> Iterator[Span]:
    """The name without what stands around it; what crosses a line end is one name a line."""
    for line in re.finditer(r"[^\n\r\t]+", text[start:end]):
        name = line.group()
        left = len(name) - len(name.lstrip(_EDGES))
        name = _POSSESSIVE.sub("", name.strip(_EDGES)).rstrip(_EDGES)
        if any(letter.isalpha() for letter in name) and not any(letter.isdigit() for letter in name):
            yield start + line.start() + left, start + line.start() + left + len(name)


class NerDetector:
    """Patterns, and the full names that only a language model takes for names. ``model`` names a spaCy model.

    The model knows people whom no list does, but also takes towns, streets and products for people. So it is believed
    only for names of two words or more, none of which is a plain word or a place.
    """

    name = "ner"

    def __init__(self, model: str | None = None) -> None:
        self._people = PersonNames(model)
        self._patterns: Detector = PatternDetector()

    def unready(self) -> str | None:
        """Why it cannot run now; ``None`` when it can."""
        return self._people.unready()

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text."""
        return [
            _with_names(
                findings,
                [
                    Finding("name", *span, CATALOG_CONFIDENCE["name"], "ner")
                    for span in names
                    if _is_full_name(text[slice(*span)])
                ],
            )
            for text, findings, names in zip(texts, self._patterns.find(texts), self._people.find(texts), strict=True)
        ]


def _is_full_name(name: str) -> bool:
    words = _WORD.findall(name)
    return len(words) > 1 and not any(
        kinds_of(word) & (Kind.WORD | Kind.RARE_WORD | Kind.PLACE) for word in words if len(word) > 2
    )


def _with_names(findings: list[Finding], names: list[Finding]) -> list[Finding]:
    """Names of the model beside what patterns found: a pattern's own type wins, and of two names the longer one."""
    kept = [finding for finding in findings if finding.type != "name"]
    candidates = [*names, *(finding for finding in findings if finding.type == "name")]
    for name in sorted(candidates, key=lambda each: (each.start - each.end, -each.confidence, each.start)):
        if all(name.end <= other.start or other.end <= name.start for other in kept):
            kept.append(name)
    return sorted(kept, key=lambda each: each.start)
