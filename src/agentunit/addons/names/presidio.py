"""Personal data by Microsoft Presidio (extra ``presidio``) with its default recognizers, offline."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from agentunit.addons.names._name_evidence import LAST_OF_LATIN, PARTICLES, is_identifier
from agentunit.addons.names.spacy_model import model_path, spacy_unready
from agentunit.backends.quality import require_ready
from agentunit.installation import install_command
from agentunit.privacy.detection.gazetteer import PLAIN_WORDS, Kind, kinds_of
from agentunit.privacy.detection.readable import find_as_read
from agentunit.privacy.detectors import StructuredDetector
from agentunit.privacy.findings import NUMBER_TYPES, Detector, Finding

PRESIDIO_EXTRA = install_command("presidio")

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

TYPES = {
    "PERSON": "name",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "US_SSN": "ssn",
    "CREDIT_CARD": "credit_card",
    "IBAN_CODE": "iban",
    "IP_ADDRESS": "ip_address",
    "MAC_ADDRESS": "mac_address",
    "US_PASSPORT": "passport",
    "US_DRIVER_LICENSE": "driver_license",
    "CRYPTO": "crypto_address",
}
"""What Presidio calls its entities, and what we do. It has none for a postal address: a LOCATION is any city."""


class PresidioSpan(NamedTuple):
    """One result of Presidio under our name of the type."""

    type: str
    start: int
    end: int
    score: float


class PresidioAnalyzer:
    """Presidio's analyzer as it comes, with the spaCy model that is installed here; loaded with the first text."""

    def __init__(self, model: str | None = None) -> None:
        self._model = model
        self._engine: Any = None

    def unready(self) -> str | None:
        """Why it cannot run now, with the command that helps; ``None`` when it can."""
        if find_spec("presidio_analyzer") is None:
            return f"Presidio is not installed; {PRESIDIO_EXTRA} adds it"
        return None if self._model is not None else spacy_unready()

    def find(self, texts: Sequence[str]) -> list[list[PresidioSpan]]:
        """Presidio's results for each text, of the types we know, none overlapping: the higher score wins."""
        if self._engine is None:
            require_ready(self.unready())
            self._engine = _engine(model_path(self._model))
        known = set(self._engine.get_supported_entities(language="en"))
        wanted = [name for name in TYPES if name in known]
        found = []
        for text in texts:
            results = self._engine.analyze(text=text, language="en", entities=wanted) if text.strip() else []
            spans = [PresidioSpan(TYPES[each.entity_type], each.start, each.end, each.score) for each in results]
            found.append(_apart(spans))
        return found


def _engine(model: str) -> Any:
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    # It warns about each recognizer of a language that was not asked for.
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    configuration = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": model}]}
    provider = NlpEngineProvider(nlp_configuration=configuration)
    engine = AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=["en"])
    _keep_offline(engine)
    return engine


def _keep_offline(engine: Any) -> None:
    """The e-mail recognizer looks domains up in a list that it would fetch; the copy that is installed will do."""
    from tldextract import TLDExtract

    domains = TLDExtract(suffix_list_urls=(), cache_dir=None)
    for recognizer in engine.registry.recognizers:
        if "EMAIL_ADDRESS" in recognizer.supported_entities and hasattr(recognizer, "validate_result"):
            recognizer.validate_result = lambda text: domains(text).fqdn != ""


def _apart(spans: list[PresidioSpan]) -> list[PresidioSpan]:
    kept: list[PresidioSpan] = []
    for span in sorted(spans, key=lambda each: (-each.score, each.start - each.end, each.start, each.type)):
        if all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda each: each.start)


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
    if value[0] > LAST_OF_LATIN:
        return True
    known = [bool(kinds_of(word) & (Kind.FIRST | Kind.LAST)) and not _is_plain(word) for word in words]
    is_dotted = _DOTTED.search(_BEFORE_NAME.sub("", value)) is not None
    if any(is_identifier(word) for word in words) or (is_dotted and not all(known)):
        return False
    is_known = any(known)
    if len(words) == 1:
        return is_known and words[0].lower() not in PLAIN_WORDS
    return is_known or all(word[0].isupper() or word in PARTICLES for word in words)
