"""The detectors of personal data by name: patterns (base install), with a language model's names, and Presidio."""

from __future__ import annotations

import re
from bisect import bisect_left
from difflib import get_close_matches
from functools import lru_cache

from agentunit.backends.ner import PersonNames
from agentunit.backends.presidio import PresidioAnalyzer, PresidioSpan
from agentunit.backends.quality import BackendUnavailable
from agentunit.backends.recognizer import Entity, LearnedRecognizer, Reading
from agentunit.privacy.detection.addresses import find_addresses_in
from agentunit.privacy.detection.contexts import CONTEXTS
from agentunit.privacy.detection.credentials import ASSIGNMENTS, CREDENTIALS
from agentunit.privacy.detection.engine import Table, find_in_texts, without_overlaps
from agentunit.privacy.detection.gazetteer import Kind, kinds_of
from agentunit.privacy.detection.identifiers import ACCOUNTS, EMAILS, NETWORKS
from agentunit.privacy.detection.labeled import AWS_SECRETS, LABELED
from agentunit.privacy.detection.name_evidence import PARTICLES, PLAIN_WORDS, is_identifier
from agentunit.privacy.detection.names import find_names_in
from agentunit.privacy.detection.national_ids import NATIONAL_IDS
from agentunit.privacy.detection.numbers import NUMBERS
from agentunit.privacy.detection.readable import find_as_read
from agentunit.privacy.findings import CATALOG_CONFIDENCE, NUMBER_TYPES, Detector, Finding

DETECTORS = ("patterns", "ner", "presidio", "local")
# A table with one row needs no second look to tell which row it was, and of numbers a text can have very many.
TABLES = (
    EMAILS,
    *((each,) for each in (*NUMBERS, *ACCOUNTS)),
    NETWORKS,
    CREDENTIALS,
    ASSIGNMENTS,
    CONTEXTS,
    NATIONAL_IDS,
    LABELED,
    AWS_SECRETS,
)
_NAME_CONFIDENCE = CATALOG_CONFIDENCE["name"]
_WORD = re.compile(r"[^\W\d_]+")
_NO_NAME = re.compile(r"[\d\n\t_=<>{}\[\]|/\\@#$%^*+:;]")
_MOST_NAME_WORDS = 6
# A dot within what is no name, and initials and titles that stand before one without a space: "J.Smith", "Dr.Meyer".
_DOTTED = re.compile(r"\w[._]\w{2}")
_BEFORE_NAME = re.compile(r"\b(?:[A-Z]|Dr|Mr|Mrs|Ms|St|Sr|Sra|Prof|Mme)\.(?=[^\W\d_])")
_LEAST_DIGITS = 4
_LEAST_PHONE_DIGITS = 7
# How sure Presidio must be where our own checks do not find the same; what its numbering plans accept has 0.4.
_PRESIDIO_SURE = {"name": 0.5, "phone": 0.4}
_PRESIDIO_SURE_OF_OTHERS = 0.85
_GREETING = re.compile(r"(?i)(?:dear|hello|hi|hey|thanks|regards|sincerely)[,:]?\s+(?=\S)")
# Seconds since 1970 or since a machine started, which its numbering plans take for phone numbers.
_TIME = re.compile(r"1[0-9]{9}(?:[0-9]{3})?|[0-9]+\.[0-9]{3,}")


def detector_named(name: str, owner: str) -> Detector:
    """The detector of this name; one that does not exist or cannot run here is refused with the way out."""
    if name == "patterns":
        return PatternDetector()
    if name not in DETECTORS:
        nearest = get_close_matches(name, DETECTORS, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise BackendUnavailable(f"{owner}: backend must be one of {', '.join(DETECTORS)}; received {name!r}{hint}")
    made: dict[str, type[NerDetector | PresidioDetector | LearnedDetector]] = {
        "ner": NerDetector,
        "presidio": PresidioDetector,
        "local": LearnedDetector,
    }
    detector = made[name]()
    reason = detector.unready()
    if reason is not None:
        raise BackendUnavailable(f"{owner}: backend {name!r} cannot run: {reason}")
    return detector


class PatternDetector:
    """Finds every type of ``PII_TYPES`` but accounts without a model, in time linear in the texts."""

    name = "patterns"

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text, in order, none overlapping.

        >>> text = "Write to ada@example.org or call +44 20 7946 0958."
        >>> [(each.type, text[each.start : each.end]) for each in PatternDetector().find([text])[0]]
        [('email', 'ada@example.org'), ('phone', '+44 20 7946 0958')]
        """
        return find_as_read(self._find, texts)

    def _find(self, texts: list[str]) -> list[list[Finding]]:
        found = zip(texts, find_in_texts(_tables(), texts), find_addresses_in(texts), find_names_in(texts), strict=True)
        return [
            without_overlaps([*structured, *_ended_before(structured, addresses, text), *names])
            for text, structured, addresses, names in found
        ]


class StructuredDetector:
    """Finds what has a form of its own: numbers, addresses of machines, credentials. No names, no postal addresses."""

    name = "structured"

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text, in order, none overlapping."""
        return find_as_read(self._find, texts)

    def _find(self, texts: list[str]) -> list[list[Finding]]:
        return [without_overlaps(found) for found in find_in_texts(_tables(), texts)]


def _ended_before(structured: list[Finding], addresses: list[Finding], text: str) -> list[Finding]:
    """Addresses without the beginning of a number that stands after them, which looks like a postal code."""
    starts = sorted((each.start, each.end) for each in structured)
    ended: list[Finding] = []
    for address in addresses:
        last = bisect_left(starts, (address.end, 0)) - 1
        if last >= 0 and address.start < starts[last][0] and address.end < starts[last][1]:
            kept = text[address.start : starts[last][0]].rstrip(" \t\r\n,;")
            if not any(letter.isdigit() for letter in kept):
                continue
            address = address._replace(end=address.start + len(kept))
        ended.append(address)
    return ended


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
                    Finding("name", *span, _NAME_CONFIDENCE, "ner")
                    for span in names
                    if _is_full_name(text[slice(*span)])
                ],
            )
            for text, findings, names in zip(texts, self._patterns.find(texts), self._people.find(texts), strict=True)
        ]


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


def _learned(text: str, findings: list[Finding], reading: Reading) -> list[Finding]:
    """The findings of patterns without the names that the model doubts, and what it found itself."""
    kept = [each for each in findings if each.type != "name" or not _is_doubted(each, reading)]
    for entity in reading.entities:
        clashing = [each for each in kept if each.start < entity.end and entity.start < each.end]
        if entity.kind == "person" and not clashing and _is_person(text, entity):
            kept.append(Finding("name", entity.start, entity.end, _NAME_CONFIDENCE, "recognizer"))
        elif entity.kind == "address" and _is_address(text, entity) and all(each.type == "name" for each in clashing):
            kept = [each for each in kept if each not in clashing]
            kept.append(Finding("address", entity.start, entity.end, _NAME_CONFIDENCE, "recognizer"))
    return sorted(kept, key=lambda each: each.start)


# Chosen on the development rows and on names put into plain sentences: 99 in 100 of those have more than this share.
_DOUBTED = 0.01
_LIKELY, _LIKELY_ALONE, _CERTAIN = 0.9, 0.98, 0.9995
_LIKELY_IN_SCRIPT = 0.95
_LIKELY_ADDRESS = 0.8
_OF_CODE = frozenset("@_/\\{}<>\n")
_SHORTEST_ADDRESS = 8
_LAST_OF_LATIN = "\u0590"
_PLAIN = Kind.WORD | Kind.RARE_WORD | Kind.PLACE


def _is_doubted(finding: Finding, reading: Reading) -> bool:
    share = reading.share("person", finding.start, finding.end)
    return share is not None and share < _DOUBTED


def _is_person(text: str, entity: Entity) -> bool:
    name = text[entity.start : entity.end]
    around = text[max(0, entity.start - 1) : entity.start], text[entity.end : entity.end + 1]
    if _OF_CODE.intersection(name) or around[0] in ("@", "_", ".", "/") or around[1] in ("@", "_"):
        return False
    if any(letter.isdigit() for letter in name):
        return False
    if name[0] > _LAST_OF_LATIN:
        return entity.share >= _LIKELY_IN_SCRIPT and len(name) > 1
    words = _WORD.findall(name)
    if len(words) > 1:
        return entity.share >= _LIKELY and not all(kinds_of(word) & _PLAIN for word in words)
    return len(name) > 2 and entity.share >= (_CERTAIN if kinds_of(name) & _PLAIN else _LIKELY_ALONE)


def _is_address(text: str, entity: Entity) -> bool:
    address = text[entity.start : entity.end]
    return entity.share >= _LIKELY and len(address) >= _SHORTEST_ADDRESS and any(letter.isdigit() for letter in address)


class PresidioDetector:
    """Presidio with its default recognizers, under our names of the types. ``model`` names a spaCy model.

    Its recognizers give weak guesses too, a driver's license for any word with a digit. They count only where our own
    patterns find the same.
    """

    name = "presidio"

    def __init__(self, model: str | None = None) -> None:
        self._analyzer = PresidioAnalyzer(model)
        self._patterns: Detector = StructuredDetector()

    def unready(self) -> str | None:
        """Why it cannot run now; ``None`` when it can."""
        return self._analyzer.unready()

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text that Presidio is sure of or our own checks confirm, and that read as their type."""
        return find_as_read(self._find, texts)

    def _find(self, texts: list[str]) -> list[list[Finding]]:
        ours = self._patterns.find(texts)
        return [
            [
                Finding(each.type, each.start, each.end, each.score, "presidio")
                for each in (_without_greeting(text, span) for span in spans)
                if _is_sure(text, each, confirmed) and _reads_as_type(text, each)
            ]
            for text, spans, confirmed in zip(texts, self._analyzer.find(texts), ours, strict=True)
        ]


def _is_sure(text: str, span: PresidioSpan, ours: list[Finding]) -> bool:
    if any(each.type == span.type and each.start < span.end and span.start < each.end for each in ours):
        return True
    if span.type == "email":
        return False  # git@github.com: our own rules know every form of an address, and what only looks like one
    if span.type == "phone" and _TIME.fullmatch(text[span.start : span.end].strip("[]() ")):
        return False
    return span.score >= _PRESIDIO_SURE.get(span.type, _PRESIDIO_SURE_OF_OTHERS)


def _without_greeting(text: str, span: PresidioSpan) -> PresidioSpan:
    """A name without the greeting before it, with which it would be another person: "Dear Mia Li"."""
    greeting = _GREETING.match(text, span.start, span.end) if span.type == "name" else None
    return span._replace(start=greeting.end()) if greeting else span


def _is_plain(word: str) -> bool:
    kind = kinds_of(word)
    return bool(kind & (Kind.WORD | Kind.FOREIGN_WORD)) and not kind & (Kind.FIRST | Kind.LAST)


def _reads_as_type(text: str, span: PresidioSpan) -> bool:
    """Whether what Presidio found can be of its type: a name is words on one line, a number has digits."""
    value = text[span.start : span.end]
    if span.type == "name":
        words = _WORD.findall(value)
        # Sentences of other languages are names to it: a plain word or verb in lower case is in none.
        is_sentence = any(_is_plain(word) and word.islower() and len(word) > 3 for word in words)
        is_plain = all(map(_is_plain, words))
        is_words = bool(words) and not _NO_NAME.search(value) and len(words) <= _MOST_NAME_WORDS
        return is_words and not is_plain and not is_sentence and _is_written_as_name(value, words)
    if span.type == "phone":
        return sum(letter.isdigit() for letter in value) >= _LEAST_PHONE_DIGITS
    return span.type not in NUMBER_TYPES or sum(letter.isdigit() for letter in value) >= _LEAST_DIGITS


def _is_written_as_name(value: str, words: list[str]) -> bool:
    """Whether words are written as names are, which ``createdAt``, ``ai.telemetry`` and "qui dolorem" are not."""
    if value[0] > _LAST_OF_LATIN:
        return True
    known = [bool(kinds_of(word) & (Kind.FIRST | Kind.LAST)) and not _is_plain(word) for word in words]
    is_dotted = _DOTTED.search(_BEFORE_NAME.sub("", value)) is not None
    if any(is_identifier(word) for word in words) or (is_dotted and not all(known)):
        return False
    is_known = any(known)
    if len(words) == 1:
        return is_known and words[0].lower() not in PLAIN_WORDS
    return is_known or all(word[0].isupper() or word in PARTICLES for word in words)


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


@lru_cache(maxsize=1)
def _tables() -> tuple[Table, ...]:
    return tuple(Table(each) for each in TABLES)
