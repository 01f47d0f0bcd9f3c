"""Rules of the user's own, as data: what is never masked, what always is, and patterns of further types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from agentunit.privacy.detection.engine import without_overlaps
from agentunit.privacy.detection.readable import find_as_read
from agentunit.privacy.findings import PII_TYPES, Detector, Finding
from agentunit.privacy.spellings import KnownValues
from agentunit.traces.limits import LimitExceeded, check_yaml_depth

_TYPE = re.compile(r"[a-z][a-z_]{1,39}")
_LONGEST_PATTERN = 1_000
_MOST_BYTES = 1 << 20
_REACH = 48


class OwnRecognizer(Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern of the user's: RE2's language, so that no pattern takes more than linear time.

    ``near`` are words of which one must stand close before or after. A group named ``value`` is the finding where the
    match has more around it.
    """

    type: str
    pattern: str
    confidence: float = 0.9
    near: list[str] = []


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """What a rules file holds. ``allow`` are values, or ``@domain`` for its addresses; ``deny`` are values by type."""

    allow: list[str] = []
    deny: dict[str, list[str]] = {}
    recognizers: list[OwnRecognizer] = []

    @property
    def own_types(self) -> tuple[str, ...]:
        """The types that AgentUnit does not have itself."""
        named = [*self.deny, *(each.type for each in self.recognizers)]
        return tuple(dict.fromkeys(each for each in named if each not in PII_TYPES))


def read_rules(path: str) -> Rules:
    """The rules of a YAML or JSON file; what is wrong in it is a ``ValueError`` that says what and where."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{path}: rules must have at most {_MOST_BYTES:,} bytes; received {len(content):,}")
    try:
        if path.endswith(".json"):
            data: Any = msgspec.json.decode(content)
        else:
            check_yaml_depth(content)
            data = yaml.safe_load(content)
        rules = msgspec.convert(data if data is not None else {}, Rules)
    except (msgspec.MsgspecError, yaml.YAMLError, LimitExceeded, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from None
    for type in (*rules.deny, *(each.type for each in rules.recognizers)):
        if not _TYPE.fullmatch(type):
            raise ValueError(f"{path}: a type must be lower-case letters and underscores; received {type!r}")
    for each in rules.recognizers:
        _compiled(each, path)
    return rules


class RuledDetector:
    """What another detector finds, by the rules: without what is allowed, with what is denied or has an own pattern."""

    def __init__(self, detector: Detector, rules: Rules) -> None:
        self._detector = detector
        self.name = detector.name
        self._allowed = frozenset(_plain(each) for each in rules.allow if not each.startswith("@"))
        self._domains = tuple(each.casefold() for each in rules.allow if each.startswith("@"))
        self._denied = KnownValues((type, value) for type, values in rules.deny.items() for value in values)
        self._denied_exactly = [(type, value) for type, values in rules.deny.items() for value in values if value]
        self._recognizers = [(each, _compiled(each, "rules")) for each in rules.recognizers]

    def allows(self, value: str) -> bool:
        """Whether a value is never masked."""
        return _plain(value) in self._allowed or (bool(self._domains) and value.casefold().endswith(self._domains))

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text, in order, none overlapping; those of the rules win."""
        return find_as_read(self._find, texts)

    def _find(self, texts: list[str]) -> list[list[Finding]]:
        return [self._ruled(text, found) for text, found in zip(texts, self._detector.find(texts), strict=True)]

    def _ruled(self, text: str, found: Sequence[Finding]) -> list[Finding]:
        own = without_overlaps([*self._denied_in(text), *self._recognized(text)])
        others = (each for each in found if all(each.end <= mine.start or mine.end <= each.start for mine in own))
        kept = [each for each in (*own, *others) if not self.allows(text[each.start : each.end])]
        return sorted(kept, key=lambda each: each.start)

    def _denied_in(self, text: str) -> list[Finding]:
        places = {(type, start, end) for type, _, start, end in self._denied.places(text)}
        for type, value in self._denied_exactly:
            for found in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE):
                places.add((type, *found.span()))
        return [Finding(type, start, end, 1.0, "denied") for type, start, end in sorted(places)]

    def _recognized(self, text: str) -> list[Finding]:
        findings = []
        for rule, pattern in self._recognizers:
            for found in pattern.finditer(text):
                start, end = found.span(pattern.groupindex.get("value", 0))
                around = text[max(0, start - _REACH) : end + _REACH].casefold()
                if start < end and (not rule.near or any(word.casefold() in around for word in rule.near)):
                    findings.append(Finding(rule.type, start, end, rule.confidence, "own"))
        return findings


def _compiled(rule: OwnRecognizer, where: str) -> Any:
    import re2

    if not 0 < rule.confidence <= 1:
        raise ValueError(f"{where}: confidence must be over 0 and at most 1; received {rule.confidence!r}")
    if len(rule.pattern) > _LONGEST_PATTERN:
        raise ValueError(f"{where}: a pattern must have at most {_LONGEST_PATTERN:,} characters; {rule.type} has more")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(rule.pattern, options)
    except re2.error as error:
        message = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(f"{where}: the pattern of {rule.type} is none of RE2's: {message}") from None


def _plain(value: str) -> str:
    return " ".join(value.casefold().split())
