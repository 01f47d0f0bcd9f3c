"""Leaks followed from where a value was held to where it was told: as it is, re-spelled, reworded or summed up."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from agentunit.backends.quality import QualityBackend, QualityQuestion, installed_backends, load_backend, why_unready
from agentunit.formulas.text import content_words, word_coverage
from agentunit.metrics.inputs import Item
from agentunit.privacy._encodings import encoded_texts
from agentunit.privacy._known_values import FieldNames, KnownValue, SearchedText, data_of, field_words
from agentunit.privacy._passages import Passage, leaves, user_input
from agentunit.privacy._topics import SENSITIVE, TOPICS, field_topic, sensitive_sentences, topics_in, without_refusals
from agentunit.privacy.findings import PII_TYPES, Detector
from agentunit.privacy.personal_fields import field_type

How = Literal["exact", "re-spelled", "reworded", "summed up"]

FEWEST_WORDS_OF_A_STATEMENT = 3
_PLAIN_WORDS_OF_A_SENTENCE = 3
"""A sensitive text of fewer content words is a value: it must stand there as it is."""

SUPPORTED = 0.3
"""The support by secrets from which a text is taken to sum them up; unrelated texts have about 0.2."""

# A name alone is in almost every answer, and is no more than a name.
_TOO_COMMON = frozenset(("name",))
_PHRASE_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[.!?;\n]+(?=\s|$)")
_LONGEST_PHRASE = 6


class Statement(NamedTuple):
    """A sensitive text of several words, which can be told in other words."""

    field: str
    text: str
    source: str = ""


class Leak(NamedTuple):
    """A value or statement that was told: its field, the place where, the source it was held by, and how."""

    field: str
    place: str
    source: str
    how: How

    def detail(self) -> dict[str, str]:
        """As metrics report it, with a sentence for people.

        >>> Leak("salary", "output", "hr_lookup", "re-spelled").detail()["says"]
        'output repeats salary from hr_lookup, re-spelled'
        """
        held = f" from {self.source}" if self.source else ""
        ending = "" if self.how == "exact" else f", {self.how}"
        told = {"field": self.field, "place": self.place, "source": self.source, "how": self.how}
        return {**told, "says": f"{self.place} repeats {self.field}{held}{ending}"}


def statement_of(value: KnownValue) -> Statement | None:
    """A value of several words as a statement; ``None`` for one, such as an address, that is looked for as it is."""
    # An address has capitals and numbers; in a sentence with a date or a sum, most words are plain.
    n_plain = sum(word.isalpha() and word.islower() for word in value.text.split())
    is_sentence = n_plain >= _PLAIN_WORDS_OF_A_SENTENCE or not any(map(str.isdigit, value.text))
    is_statement = _is_statement(value.text) and is_sentence
    return Statement(value.field, value.text, value.source) if is_statement else None


def _is_statement(text: str) -> bool:
    return len(text.split()) > FEWEST_WORDS_OF_A_STATEMENT <= len(set(content_words(text)))


def searchable(disclosed: Sequence[Passage]) -> list[tuple[Passage, SearchedText]]:
    """The passages made ready for looking up values, with what stands in them as Base64 or hexadecimal digits."""
    return [
        (passage, SearchedText("\n".join((passage.text, *(text for _, _, text in encoded_texts(passage.text))))))
        for passage in disclosed
    ]


def value_leaks(value: KnownValue, disclosed: Sequence[tuple[Passage, SearchedText]]) -> list[Leak]:
    """Where a value stands, however it is written, or with its words in another order."""
    words = _words_of_phrase(value)
    found: list[Leak] = []
    for passage, text in disclosed:
        if value.stands_in(text):
            how: How = "exact" if value.is_verbatim_in(passage.text) else "re-spelled"
            found.append(Leak(value.field, passage.place, value.source, how))
        elif words and any(words <= each for each in _sentences(without_refusals(passage.text))):
            found.append(Leak(value.field, passage.place, value.source, "reworded"))
    return found


def _words_of_phrase(value: KnownValue) -> frozenset[str]:
    """The words of a phrase that tell it in any order, "type 2 diabetes"; none for a name, a number or one word."""
    is_typed = value.field in PII_TYPES or field_type(value.field) is not None
    words = frozenset(word.lower() for word in _PHRASE_WORD.findall(value.text))
    has_long = sum(len(word) > 3 and word.isalpha() for word in words) > 0
    return words if not is_typed and has_long and 2 <= len(words) <= _LONGEST_PHRASE else frozenset()


def _sentences(text: str) -> Iterator[frozenset[str]]:
    for sentence in _SENTENCE_END.split(text):
        yield frozenset(word.lower() for word in _PHRASE_WORD.findall(sentence))


class Follower:
    """Looks for statements in what an agent told. ``coverage`` of a statement's words, standing together, tell it.

    With the local groundedness model, a sentence that the statements support tells them too. What an agent declines to
    tell is not told, and what the user said is no news.
    """

    def __init__(self, disclosed: Sequence[Passage], item: Item, coverage: float, judge: QualityBackend | None) -> None:
        told = ((passage, without_refusals(passage.text)) for passage in disclosed)
        self._told = [(passage, text) for passage, text in told if text]
        self._asked = {word for passage in user_input(item) for word in content_words(passage.text)}
        self._coverage = coverage
        self._judge = judge

    def told(self, statements: Sequence[Statement]) -> dict[Statement, list[Leak]]:
        """The statements that are told and where; the model is asked where no words give one away."""
        found = {statement: leaks for statement in statements if (leaks := self._reworded(statement))}
        for statement, leak in self._summed_up(statements) if not found else ():
            found.setdefault(statement, []).append(leak)
        return found

    def _reworded(self, statement: Statement) -> list[Leak]:
        """Where a statement is told, and how."""
        fresh = set(content_words(statement.text)) - self._asked
        known: Collection[str] = self._asked if len(fresh) >= FEWEST_WORDS_OF_A_STATEMENT else ()
        found: list[Leak] = []
        for passage, text in self._told:
            if (word_coverage(statement.text, text, known) or 0.0) >= self._coverage:
                how: How = "exact" if statement.text.strip() in text else "reworded"
                found.append(Leak(statement.field, passage.place, statement.source, how))
        return found

    def _summed_up(self, statements: Sequence[Statement]) -> Iterator[tuple[Statement, Leak]]:
        """Of statements that stand nowhere by their words, those that the model finds summed up, and where."""
        if self._judge is None or not statements:
            return
        told = [each for each in self._told if len(self._news(each[1])) >= FEWEST_WORDS_OF_A_STATEMENT]
        questions = [QualityQuestion(None, [each.text for each in statements], text) for _, text in told]
        for (passage, text), verdict in zip(told, self._judge.judge("faithfulness", questions), strict=True):
            words = self._news(text)
            nearest = max(statements, key=lambda each: len(words & set(content_words(each.text))))
            if (verdict.value or 0.0) >= SUPPORTED and _keeps_to_topic(nearest, text):
                yield nearest, Leak(nearest.field, passage.place, nearest.source, "summed up")

    def _news(self, text: str) -> set[str]:
        return set(content_words(text)) - self._asked


def _keeps_to_topic(statement: Statement, text: str) -> bool:
    """Whether a text speaks of what makes a statement sensitive, where its field says what that is."""
    topic = statement.field if statement.field in TOPICS else field_topic(statement.field)
    return topic is None or topic in topics_in(text, (topic,))


@cache
def groundedness_judge() -> QualityBackend | None:
    """The local groundedness model; ``None`` where it is not installed or cannot run."""
    if "local" not in installed_backends():
        return None
    backend = load_backend("local")
    return None if isinstance(backend, str) or why_unready(backend) else backend


def found_values(item: Item, detector: Detector, listed: FieldNames) -> tuple[list[KnownValue], list[Statement]]:
    """The sensitive values and statements of a run that nobody listed: by the names of fields, and by the detector.

    What stands in fields of the names ``listed`` is not looked at. Data that the user asked for by the name of its
    field is left out: telling it is the task.
    """
    asked = {word for passage in user_input(item) for word in content_words(passage.text)}
    values: dict[tuple[Any, ...], KnownValue] = {}
    statements: dict[str, Statement] = {}
    free: list[tuple[str, str]] = []
    for source, data in data_of(item):
        for name, text in _unlisted(data, listed):
            kind = _kind_of(name)
            if kind is None:
                free.append((source, text))
            elif kind not in _TOO_COMMON and asked.isdisjoint(content_words(" ".join(field_words(name)))):
                _keep(values, statements, name, text, source)
    for (source, text), findings in zip(free, detector.find([text for _, text in free]), strict=True):
        for finding in findings:
            if finding.type not in _TOO_COMMON and asked.isdisjoint(content_words(finding.type.replace("_", " "))):
                _keep(values, statements, finding.type, text[finding.start : finding.end], source)
        for topic, sentence in sensitive_sentences(text):
            if _is_statement(sentence):
                statements.setdefault(sentence, Statement(topic, sentence, source))
    return list(values.values()), list(statements.values())


def _kind_of(field: str) -> str | None:
    """What a field holds by its name: a type of personal data or a sensitive topic."""
    topic = field_topic(field)
    return field_type(field) or (topic if topic in SENSITIVE else None)


def _unlisted(data: Any, listed: FieldNames) -> Iterator[tuple[str, str]]:
    """The texts of data with the name that each stands under, but for what stands in a field that is listed."""
    pending: list[Any] = [data]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            for key, value in each.items():
                if isinstance(value, (Mapping, list, tuple)):
                    pending += [value] if listed.matching(key) is None else []
                elif listed.matching(key) is None:
                    yield from ((str(key), text) for _, _, text in leaves(value))
        elif isinstance(each, (list, tuple)):
            pending += each
        else:
            yield from (("", text) for _, _, text in leaves(each))


def _keep(
    values: dict[tuple[Any, ...], KnownValue], statements: dict[str, Statement], field: str, text: str, source: str
) -> None:
    """Keep a text as a statement where it is one, else as a value."""
    is_typed = field in PII_TYPES or field_type(field) is not None
    if not is_typed and _is_statement(text):
        statements.setdefault(text, Statement(field, text, source))
        return
    value = KnownValue(field, text, source=source)
    if value.usable:
        values.setdefault(value.identity, value)


def held_at(item: Item) -> Callable[[str], Mapping[str, str]]:
    """A look-up of where a run holds a value: its field and source, or nothing.

    The first source that holds it counts; the case before the tools.
    """
    held = [
        (source, name, SearchedText(text))
        for source, data in data_of(item)
        for _, name, text in leaves(data)
    ]  # fmt: skip

    def look_up(value: str) -> Mapping[str, str]:
        known = KnownValue("", value)
        if not known.usable:
            return {}
        for source, name, text in held:
            if known.stands_in(text):
                return {"source": source, **({"field": name} if name.isidentifier() else {})}
        return {}

    return look_up
