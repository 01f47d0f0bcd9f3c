"""Records with personal data replaced by pseudonyms, everywhere in them and the same way everywhere."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.core.results import encode_json
from agentunit.privacy._text_places import Phrases, Placeholders, TextPlace, apart, at_start, outside_placeholders
from agentunit.privacy.detection.secret_forms import account_spans
from agentunit.privacy.findings import Detector, Finding
from agentunit.privacy.personal_fields import (
    FIELD_TYPES,
    KnownField,
    Leaf,
    field_type,
    full_names,
    known_fields,
    plain_field,
    says_something,
)
from agentunit.privacy.pseudonyms import Mentions, People, Pseudonyms, is_distinctive, is_worth_repeating
from agentunit.privacy.record_texts import (
    OWN_NAME,
    STRUCTURE,
    STRUCTURE_TYPES,
    RecordTexts,
    joined,
    mask_across_pieces,
    places_of,
    streams_of,
)
from agentunit.privacy.spellings import KnownValues, decoded_text

# A name that a developer gave a field. It tells the detector what the field holds; any other may be data itself. A
# ``name`` tells nothing: tools, products and classes have one too.
_PLAIN_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}(?: [A-Za-z0-9]{1,12}){0,3}")
_SHORTEST_REPEATED = {"address": 4, "account": 4, "credit_card": 4}
_SHORTEST_OF_OTHERS = 6
_SHORTEST_CARD = 8
# The last digits of a card are any four digits, unless something says what they are.
_BEFORE_LAST_DIGITS = re.compile(
    r"(?:\b(?:ending|ends|ended|last|final)\b[^\d\n]{0,24}|[*•xX.]{2,}[ -]?)$", re.IGNORECASE
)
_LAST_DIGITS = re.compile(r"(?i)\bcard\b[^\d\n.]{0,20}\bend(?:ing|s)\b[^\d\n]{0,8}\b([0-9]{4})\b")
_LONGEST_OWN_NAME = 80
_SHORTEST_NUMBER = 7
# In JSON a number stands without quotes, and what stands for it must not.
_BARE_IN_JSON = re.compile(r"""(\\{0,3}["'])\s{0,3}:\s{0,3}\Z""")
_ENDS_JSON_VALUE = ("", ",", "}", "]", " ", "\n", "\r")
_STRUCTURE_FIELDS = (STRUCTURE, OWN_NAME)
# The name of a field tells what begins its text. A text is cut off far behind that, so that no finding ends at the cut.
_AFTER_FIELD = ": "
_REACH_OF_FIELD, _MOST_WITH_FIELD = 120, 240
# No escape, tag or code that one text leaves open goes on behind it.
_BETWEEN_TEXTS = " ;>; "
_MOST_ROUNDS = 10
_LONGEST_CLEAN, _MOST_CLEAN = 60, 50_000
# Of so few values it is counted first how often they are there: mostly they are nowhere else.
_FEW_VALUES = 24


_Spans = dict[Leaf, list[TextPlace]]
_Fields = dict[Leaf, tuple[KnownField, ...]]
_Values = dict[tuple[str, str], int]


class Survivor(NamedTuple):
    """A known value that is still there: its type, the record's id, and its place in the record."""

    type: str
    record: str
    place: str


class Redactor:
    """Replaces what a detector finds of these types in records.

    Every text counts, fields that AgentUnit does not know and names of fields as well. Numbers stay, so that counts,
    costs and times are what they were, unless their field or another place says that they are personal; and so does
    what holds the record together, such as names of tools and agents. A value that was found once is replaced wherever
    the record repeats it, however it is spelled or encoded there, and a first name or surname alone gets the pseudonym
    of the full name that the record holds. With ``audits``, ``survivors`` tells what of it could not be replaced.
    """

    def __init__(
        self, detector: Detector, types: Collection[str], pseudonyms: Pseudonyms, *, audits: bool = True
    ) -> None:
        self._detector = self._detector_here = detector
        self._types = frozenset(types)
        self.pseudonyms = pseudonyms
        self._allows: Callable[[str], bool] = getattr(detector, "allows", None) or (lambda value: False)
        self._audits = audits
        self.survivors: list[Survivor] = []
        # Short texts come again and again: of these nothing is personal, whatever record they are in.
        self._clean: set[Leaf] = set()

    def redact(self, records: Sequence[Record]) -> list[Any]:
        """The records as plain data, in the shape they are written in; many at once is faster than one by one."""
        plain = [msgspec.json.decode(encode_record(record)) for record in records]
        self.redact_data(plain)
        return plain

    def redact_data(self, plain: Sequence[Any]) -> int:
        """Replace in plain data in the shape of records, in place; returns how many texts changed."""
        records = [RecordTexts(each) for each in plain]
        leaves_of = [each.leaves for each in records]
        for_record = getattr(self._detector, "for_record", None)
        if for_record is not None:
            if len(plain) > 1:
                return sum(self.redact_data([each]) for each in plain)
            self._detector_here = for_record(leaf for leaves in leaves_of for leaf in leaves)
        distinct = {leaf: None for leaves in leaves_of for leaf in leaves if leaf not in self._clean}
        fields = {leaf: tuple(known_fields(leaf)) for leaf in distinct if leaf.field not in _STRUCTURE_FIELDS}
        hidden = {leaf: text for leaf in distinct if (text := decoded_text(leaf.text)) is not None}
        inside = {Leaf(leaf.field, text): None for leaf, text in hidden.items()}
        found = self._find(distinct, fields)
        if for_record is None:
            self._remember_clean(leaf for leaf in distinct if not (found[leaf] or fields.get(leaf) or leaf in hidden))
        found_inside = self._find(inside, {leaf: tuple(known_fields(leaf)) for leaf in inside})
        n_replaced = 0
        telling = {leaf for leaf in distinct if found[leaf] or leaf in hidden}
        for data, record in zip(plain, records, strict=True):
            if telling.isdisjoint(record.leaves) and not self._personal_numbers(record) and not any(streams_of(data)):
                continue
            here = [Leaf(leaf.field, hidden[leaf]) for leaf in record.leaves if leaf in hidden]
            n_replaced += self._redact_one(data, record, here, fields, {**found_inside, **found} if here else found)
        return n_replaced

    def _remember_clean(self, leaves: Iterable[Leaf]) -> None:
        if len(self._clean) > _MOST_CLEAN:
            self._clean.clear()
        self._clean.update(leaf for leaf in leaves if len(leaf.text) <= _LONGEST_CLEAN)

    def _redact_one(self, data: Any, record: RecordTexts, hidden: list[Leaf], fields: _Fields, found: _Spans) -> int:
        """Replace in one record; ``hidden`` are texts that stand in it escaped or encoded."""
        leaves = list(dict.fromkeys(record.leaves))
        own = _OwnNames(leaf.text for leaf in leaves if leaf.field == OWN_NAME)
        values: _Values = {}
        for leaf in leaves:
            for span in own.without(leaf, found.get(leaf, [])):
                value = (span.type, leaf.text[span.start : span.end])
                values[value] = values.get(value, 0) + 1
        encoded: _Values = {}
        for leaf in hidden:
            for span in own.without(leaf, found.get(leaf, [])):
                encoded[span.type, leaf.text[span.start : span.end]] = 0
        numbers = self._personal_numbers(record)
        personal = [(str(type), leaf.text) for leaf, type in numbers.items()]
        everything = "\0".join(leaf.text for leaf in leaves) if values or encoded else ""
        names = self._names(record.leaves, fields, encoded | values, everything)
        others = (value for value in (*values, *encoded, *personal) if value[0] != "name")
        known = KnownValues(dict.fromkeys([*others, *(("name", name) for name in names)]))
        people = People(names)
        replaced: dict[Leaf, str] = {}
        if values or known:
            replaced = self._replaced(leaves, found, _Repeated(values, everything), known, people, own)
        new_numbers = {leaf: self.pseudonyms.of(str(type), leaf.text) for leaf, type in numbers.items()}
        # One look at all texts together, which are mostly clean by now, before each is looked at.
        is_left = bool(known) and known.stand_in(_at_once(leaves, record.numbers, replaced))
        if is_left:
            replaced |= self._respelled(leaves, replaced, known, people)
            new_numbers |= self._repeated_numbers(record, known, new_numbers)
        if replaced or new_numbers:
            record.replace(replaced, new_numbers)
        streams = list(streams_of(data))
        n_across = mask_across_pieces(streams, lambda text: self._spans_across(text, known, people))
        if is_left or known.stand_in(_BETWEEN_TEXTS.join(map(joined, streams))):
            self.audit(data, known)
        return len(replaced) + len(new_numbers) + n_across

    def _personal_numbers(self, record: RecordTexts) -> dict[Leaf, str]:
        """The numbers that are personal by the names of their fields, each with its type."""
        return {
            leaf: type
            for leaf in record.numbers
            if (type := field_type(leaf.field)) in self._types
            and len(leaf.text) > 2
            and leaf.text.isdigit()
            and says_something(plain_field(leaf.field), leaf.text)
        }

    def known_by_now(self) -> KnownValues:
        """The values replaced so far that mean the same in every record, as a first name or a date does not."""
        found = ((type, value) for _, type, value in self.pseudonyms.found() if type in self._types)
        known = ((type, value) for type, value in found if is_distinctive(type, value))
        # "Mia" by herself was masked before "Mia Lindqvist" was known.
        parts = {
            mark: value
            for mark, type, value in self.pseudonyms.found()
            if type == "name" and not is_distinctive(type, value)
        }
        return KnownValues(known, parts)

    def redact_known(self, data: Any, known: KnownValues, written: bytes | None = None) -> int:
        """Replace values that other records told, in plain data in the shape of a record; returns how many changed.

        ``written`` is the data as JSON, where it is at hand.
        """
        written = encode_json(data) if written is None else written
        streams = list(streams_of(data))
        at_once = [written.decode("utf-8", "replace"), *map(joined, streams)]
        if not known.stand_in(_BETWEEN_TEXTS.join(at_once)):
            return 0
        record = RecordTexts(data)
        leaves, people = list(dict.fromkeys(record.leaves)), People(())
        replaced = self._respelled(leaves, {}, known, people)
        numbers = self._repeated_numbers(record, known, ())
        if replaced or numbers:
            record.replace(replaced, numbers)
            streams = list(streams_of(data))
        n_across = mask_across_pieces(streams, lambda text: self._known_across(text, known, people))
        self.audit(data, known)
        return len(replaced) + len(numbers) + n_across

    def audit(self, data: Any, known: KnownValues) -> None:
        """Note the known values that plain data still holds, in whatever place: nothing is left out here."""
        if not known or not self._audits:
            return
        case = data.get("case") if isinstance(data, dict) else None
        record = str(case.get("id")) if isinstance(case, dict) else ""
        streams = map(joined, streams_of(data))
        for place, text in chain(places_of(data), (("(streamed in pieces)", text) for text in streams)):
            places = known.places(text)
            pseudonyms = Placeholders(text) if places else None
            for type, _, start, end in places:
                if type in self._types and pseudonyms is not None and not pseudonyms.touched_by(start, end):
                    self.survivors.append(Survivor(type, record, place))

    def _replaced(
        self,
        leaves: list[Leaf],
        found: _Spans,
        repeated: _Repeated,
        known: KnownValues,
        people: People,
        own: _OwnNames,
    ) -> dict[Leaf, str]:
        """The new text of each text of one record that changes."""
        replaced = {}
        for leaf in leaves:
            more: list[TextPlace] = []
            if leaf.field not in _STRUCTURE_FIELDS:
                more += (TextPlace("name", *mention) for mention in people.mentions(leaf.text))
                more += repeated.spans(leaf.text)
            spans = own.without(leaf, apart(found.get(leaf, []), more))
            if spans and leaf.field not in _STRUCTURE_FIELDS:
                spans = self._widened(leaf.text, spans, known)
            if spans:
                replaced[leaf] = self._masked(leaf.text, spans, people)
        return self._until_nothing_is_found(replaced, people, own)

    def _widened(self, text: str, spans: list[TextPlace], known: KnownValues) -> list[TextPlace]:
        """The spans without those that are only part of a known value in another spelling: the rest would be left."""
        starts, ends = [span.start for span in spans], [span.end for span in spans]
        wider = []
        for type, value, start, end in known.places(text):
            touched = spans[bisect_right(ends, start) : bisect_left(starts, end)]
            is_wider = bool(touched) and start <= touched[0].start and touched[-1].end <= end
            if type in self._types and is_wider and (touched[0].start, touched[-1].end) != (start, end):
                wider.append(TextPlace(type, start, end, value))
        return apart(wider, spans) if wider else spans

    def _respelled(
        self, leaves: list[Leaf], replaced: dict[Leaf, str], known: KnownValues, people: People
    ) -> dict[Leaf, str]:
        """The new text of each text that holds a known value in another spelling, or encoded."""
        new = {}
        for leaf in leaves:
            text = replaced.get(leaf, leaf.text)
            types = self._types & STRUCTURE_TYPES if leaf.field in _STRUCTURE_FIELDS else self._types
            spans = [
                TextPlace(type, start, end, value) for type, value, start, end in known.places(text) if type in types
            ]
            spans = list(outside_placeholders(text, spans))
            if spans:
                new[leaf] = self._masked(text, spans, people)
        return new

    def _repeated_numbers(self, record: RecordTexts, known: KnownValues, already: Collection[Leaf]) -> dict[Leaf, str]:
        """Numbers that are a known value written without its separators."""
        new = {}
        for leaf in record.numbers if known else ():
            if leaf not in already and len(leaf.text) >= _SHORTEST_NUMBER:
                for type, value, start, end in known.places(leaf.text):
                    if (start, end) == (0, len(leaf.text)) and type in self._types:
                        new[leaf] = self.pseudonyms.of(type, value)
        return new

    def _spans_across(self, text: str, known: KnownValues, people: People) -> list[tuple[int, int, str]]:
        """What a text that was recorded in pieces holds, with what stands for each."""
        found = [TextPlace(*each[:3]) for each in self._detector_here.find([text])[0] if each.type in self._types]
        return self._known_across(text, known, people, found)

    def _known_across(
        self, text: str, known: KnownValues, people: People, found: Sequence[TextPlace] = ()
    ) -> list[tuple[int, int, str]]:
        more = [
            TextPlace(type, start, end, value) for type, value, start, end in known.places(text) if type in self._types
        ]
        spans = outside_placeholders(text, apart(list(found), more))
        return [
            (span.start, span.end, self._masked(text[span.start : span.end], [at_start(span)], people))
            for span in spans
        ]

    def _names(
        self, leaves: list[Leaf], fields: _Fields, values: dict[tuple[str, str], int], everything: str
    ) -> list[str]:
        """The names whose other mentions in the record mean the same person."""
        named = {value: n_found for (type, value), n_found in values.items() if type == "name"}
        if not named:
            return []
        known = [(leaf, fields[leaf]) for leaf in leaves if fields.get(leaf)]
        stated = {
            leaf.text[start:end] for leaf, held in known for field, start, end in held if FIELD_TYPES[field] == "name"
        }
        mentions = Mentions(everything)
        found = [
            value for value, n_found in named.items() if value in stated or is_worth_repeating(value, n_found, mentions)
        ]
        return [*full_names(known), *found]

    def _masked(self, text: str, spans: list[TextPlace], people: People) -> str:
        parts, position = [], 0
        for type, start, end, known_as in spans:
            value = known_as or text[start:end]
            mark = self.pseudonyms.of(type, people.named(value) if type == "name" else value)
            quote = _BARE_IN_JSON.search(text, max(0, start - 8), start)
            is_bare = quote is not None and text[start:end].isdigit() and text[end : end + 1] in _ENDS_JSON_VALUE
            parts += [text[position:start], f"{quote[1]}{mark}{quote[1]}" if quote and is_bare else mark]
            position = end
        return "".join(parts) + text[position:]

    def _until_nothing_is_found(self, replaced: dict[Leaf, str], people: People, own: _OwnNames) -> dict[Leaf, str]:
        """What was hidden may have kept something else from being found: look again until there is nothing left."""
        pending = dict(replaced)
        for _ in range(_MOST_ROUNDS):
            again = {Leaf(leaf.field, text): None for leaf, text in pending.items()}
            found = self._find(
                again, {leaf: tuple(known_fields(leaf)) for leaf in again if leaf.field not in _STRUCTURE_FIELDS}
            )
            pending = {
                leaf: self._masked(text, spans, people)
                for leaf, text in pending.items()
                if (spans := own.without(new := Leaf(leaf.field, text), found[new]))
            }
            if not pending:
                break
            replaced |= pending
        return replaced

    def _find(self, leaves: dict[Leaf, None], fields: _Fields) -> _Spans:
        """What is personal in each text: by itself, and with the name of its field before it, which tells much."""
        texts = dict.fromkeys(leaf.text for leaf in leaves)
        named = dict.fromkeys(_with_field(leaf) for leaf in leaves if _tells(leaf.field))
        both = list(dict.fromkeys([*texts, *named]))
        findings = dict(zip(both, self._detector_here.find(both), strict=True))
        spans = {}
        for leaf in leaves:
            plain = [TextPlace(each.type, each.start, each.end) for each in findings[leaf.text]]
            more = [TextPlace(FIELD_TYPES[field], start, end) for field, start, end in fields.get(leaf, ())]
            if "ard" in leaf.text or "ARD" in leaf.text:
                more += [TextPlace("credit_card", *last.span(1)) for last in _LAST_DIGITS.finditer(leaf.text)]
            if "account" in self._types:
                more += [TextPlace("account", *place) for place in account_spans(leaf.text)]
            if _tells(leaf.field):
                more += _told_by_field(leaf, findings[_with_field(leaf)])
            spans[leaf] = self._wanted(leaf, plain, more) if plain or more else []
        return spans

    def _wanted(self, leaf: Leaf, plain: list[TextPlace], more: list[TextPlace]) -> list[TextPlace]:
        """What of both kinds is to be masked in a text."""
        types = self._types & STRUCTURE_TYPES if leaf.field in _STRUCTURE_FIELDS else self._types
        wanted = [[span for span in group if span.type in types] for group in (plain, more)]
        outside = outside_placeholders(leaf.text, apart(*wanted))
        return [span for span in outside if not self._allows(leaf.text[span.start : span.end])]


def _told_by_field(leaf: Leaf, findings: Sequence[Finding]) -> Iterator[TextPlace]:
    """What was found in a text with the name of its field before it, as places in the text alone."""
    before = len(plain_field(leaf.field)) + len(_AFTER_FIELD)
    past = _REACH_OF_FIELD if len(leaf.text) > _MOST_WITH_FIELD else len(leaf.text)
    for each in findings:
        if 0 < each.end - before <= past:
            yield TextPlace(each.type, max(each.start - before, 0), each.end - before)


def _at_once(leaves: Iterable[Leaf], numbers: Iterable[Leaf], replaced: Mapping[Leaf, str]) -> str:
    """All texts of a record as one, which holds every known value that one of them holds."""
    texts = [replaced.get(leaf, leaf.text) for leaf in leaves]
    texts += [leaf.text for leaf in numbers if len(leaf.text) >= _SHORTEST_NUMBER]
    return _BETWEEN_TEXTS.join(texts)


@lru_cache(maxsize=16_384)
def _tells(field: str) -> bool:
    """Whether a field has a name that tells the detector what it holds."""
    return bool(_PLAIN_FIELD.fullmatch(field)) and plain_field(field) != "name"


def _with_field(leaf: Leaf) -> str:
    """The field's name and its text, or the beginning of it: further on, the name tells nothing."""
    return f"{plain_field(leaf.field)}{_AFTER_FIELD}{leaf.text[:_MOST_WITH_FIELD]}"


class _Repeated:
    """The values of a record, names aside, where its texts repeat them."""

    def __init__(self, values: _Values, everything: str) -> None:
        kept = [
            (type, value)
            for type, value in values
            if type != "name" and len(value) >= _SHORTEST_REPEATED.get(type, _SHORTEST_OF_OTHERS)
        ]
        if len(kept) <= _FEW_VALUES:
            kept = [value for value in kept if everything.count(value[1]) > values[value]]
        self._types: dict[str, list[str]] = {}
        for type, value in kept:
            self._types.setdefault(value, []).append(type)
        self._phrases = Phrases(self._types)

    def spans(self, text: str) -> Iterator[TextPlace]:
        """Where a text repeats a value that is not part of a longer word or number."""
        for value, start, end in self._phrases.found(text):
            if text[start - 1 : start].isalnum() or text[end : end + 1].isalnum():
                continue
            for type in self._types[value]:
                is_short_card = type == "credit_card" and len(value) < _SHORTEST_CARD
                if not is_short_card or _BEFORE_LAST_DIGITS.search(text[max(0, start - 40) : start]):
                    yield TextPlace(type, start, end)


class _OwnNames:
    """The names of a record's own agents and tools: they stay in its structure, so hiding them in texts is no use."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name.casefold() for name in names if len(name) <= _LONGEST_OWN_NAME}
        self._words = {word for name in self._names if " " in name for word in name.split()}

    def without(self, leaf: Leaf, spans: list[TextPlace]) -> list[TextPlace]:
        """The spans of a text that are not one of these names, nor a word of one that has several."""
        if field_type(leaf.field) or not any(span.type == "name" for span in spans):
            return spans
        return [span for span in spans if span.type != "name" or not self._holds(leaf.text[span.start : span.end])]

    def _holds(self, name: str) -> bool:
        folded = name.casefold()
        return folded in self._names or folded in self._words
