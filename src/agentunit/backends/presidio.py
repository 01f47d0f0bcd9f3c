"""Personal data by Microsoft Presidio (extra ``presidio``) with its default recognizers, offline."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from agentunit.backends.quality import require_ready
from agentunit.backends.spacy_model import model_path, spacy_unready
from agentunit.installation import install_command

PRESIDIO_EXTRA = install_command("presidio")

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
