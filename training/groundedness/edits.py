"""Makes supported and unsupported sentences from the sentences of a text.

A supported sentence is a sentence of the text as it stands, or reworded without changing what it says. An unsupported one
is such a sentence with one thing changed that matters. Both kinds go through the same rewordings first, so that a
rewording is no sign of either.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from agentunit_local.grounding.segments import is_content

from training.groundedness.exchanges import DETAILS, EXCHANGES, REPORTED, both_ways

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*\w*|\w+(?:['’-]\w+)*|[^\w\s]")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_MONTH_NAMES = "January February March April May June July August September October November December"
_MONTHS = _MONTH_NAMES.split()
_DAY_NAMES = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_DAYS = _DAY_NAMES.split()
_COUNTED = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = _COUNTED.split()
_SWAPS = both_ways(EXCHANGES)
_REPORTED = both_ways(REPORTED)
_HELPING = "is are was were will would can could should has have had does did do may might must"
_AUXILIARIES = frozenset(_HELPING.split())
_PARTICIPLES = frozenset(
    "been had made done gone seen taken given known shown become begun come found held kept left lost".split()
)
_SUBJECTS = frozenset("i you he she it we they this that there who what the a an my your his her our their".split())
_DENYING = frozenset("not never no nor n't cannot nothing nobody none neither without hardly".split())
_STARTS = frozenset(
    "The A An It They There This That He She His Her Their These Those In On At For Most All Some".split()
)
_JOINING = "in on at to for with by from of that because after before when and but while"
_JOINTS = frozenset(_JOINING.split())
_OPENERS = re.compile(
    r"^(?:However|Moreover|In addition|Also|Then|Meanwhile|Additionally|Finally|But|And|So|Well|Yeah),? "
)


@dataclass
class Source:
    """A text as material: its sentences, and the names and numbers that stand in it."""

    sentences: list[str]
    names: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, sentences: list[str]) -> Source:
        """Collect the names and numbers of a text."""
        names: dict[str, None] = {}
        numbers: dict[str, None] = {}
        for sentence in sentences:
            tokens = _TOKEN.findall(sentence)
            for start, end in _name_spans(tokens):
                names[" ".join(tokens[start:end])] = None
            numbers.update(dict.fromkeys(token for token in tokens if token[0].isdigit()))
        return cls(sentences, list(names), list(numbers))


@dataclass
class Made:
    """A made sentence: its tokens, which of them are wrong, and what was done."""

    tokens: list[str]
    wrong: list[bool]
    steps: list[str]

    @classmethod
    def of(cls, text: str) -> Made:
        """A text as it stands."""
        tokens = _TOKEN.findall(text)
        return cls(tokens, [False] * len(tokens), ["kept"])

    @property
    def text(self) -> str:
        """The tokens as running text."""
        return joined(self.tokens)

    def right(self) -> Made:
        """The same where nothing of it is wrong."""
        return Made(self.tokens, [False] * len(self.tokens), self.steps)

    def unlike(self, true: Made) -> Made:
        """The same with the words marked wrong by which it differs from a true one; what is lacking marks the word before."""
        wrong = [False] * len(self.tokens)
        lowered = [[token.lower() for token in each.tokens] for each in (true, self)]
        for kind, _, _, start, end in SequenceMatcher(None, *lowered, autojunk=False).get_opcodes():
            if kind == "delete":
                wrong[max(0, start - 1)] = True
            elif kind != "equal":
                wrong[start:end] = [True] * (end - start)
        return Made(self.tokens, wrong, self.steps)


def joined(tokens: list[str]) -> str:
    """Tokens as running text."""
    text = " ".join(tokens)
    text = re.sub(r" ([.,;:!?%)\]”’])", r"\1", text)
    return re.sub(r"([(\[“$£€#@‘]) ", r"\1", text)


@dataclass(frozen=True)
class Change:
    """What was replaced by what in a sentence, the sentence as it then stands, and how it was done."""

    spans: list[tuple[list[str], list[str], list[bool]]]
    sentence: str
    step: str

    def made_in(self, made: Made) -> Made | None:
        """The same change in a reworded sentence; ``None`` where it cannot be made in just one way."""
        tokens, wrong = list(made.tokens), list(made.wrong)
        for old, new, marks in self.spans:
            lowered, sought = [token.lower() for token in tokens], [token.lower() for token in old]
            places = [i for i in range(len(tokens) - len(old) + 1) if lowered[i : i + len(old)] == sought]
            if len(places) != 1:
                return None
            at = places[0]
            small = "lowered" in made.steps
            tokens[at : at + len(old)] = [token.lower() for token in new] if small else new
            wrong[at : at + len(old)] = marks
        return Made(tokens, wrong, [*made.steps, self.step])


def _changes(before: list[str], after: list[str]) -> list[tuple[list[str], list[str], list[bool]]] | None:
    """What was replaced by what; what only comes in or goes takes the token before it along."""
    found = []
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        lead = 1 if kind in ("insert", "delete") else 0
        if a - lead < 0:
            return None
        marks = [False] * lead + [True] * (d - c) if d > c else [True]
        found.append((before[a - lead : b], after[c - lead : d], marks))
    # Two names that change places would each be sought where the other now stands.
    if len(found) > 1 and any(new == old for old, _, _ in found for _, new, _ in found):
        return _whole(before, after, found)
    return found or None


def _whole(
    before: list[str], after: list[str], found: list[tuple[list[str], list[str], list[bool]]]
) -> list[tuple[list[str], list[str], list[bool]]] | None:
    """Several replacements as one, from the first to the last."""
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    tail = 0
    while tail < min(len(before), len(after)) - same and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    old, new = before[same : len(before) - tail], after[same : len(after) - tail]
    if len(old) > 14 or len(old) != len(new):
        return None
    return [(old, new, [a != b for a, b in zip(old, new, strict=True)])]


def wrong_places(made: Made) -> list[tuple[int, int]]:
    """Where the wrong tokens of a made sentence stand in its text."""
    claim = made.text
    places: list[tuple[int, int]] = []
    at = 0
    for token, is_wrong in zip(made.tokens, made.wrong, strict=True):
        found = claim.find(token, at)
        if found >= 0:
            if is_wrong:
                places.append((found, found + len(token)))
            at = found + len(token)
    return places


class Editor:
    """Edits sentences with a lexicon and a random generator."""

    def __init__(
        self, lexicon: dict[str, dict[str, dict[str, list[str]]]], rng: random.Random, names: list[str]
    ) -> None:
        self._lexicon = lexicon
        self._rng = rng
        self._strange_names = names
        self._wrong: list[tuple[float, Callable[[Made, Source], bool]]] = [
            (1.6, self._change_number), (2.2, self._change_name), (0.8, self._exchange_names), (1.5, self._negate),
            (1.6, self._opposite), (1.8, self._sister), (1.6, self._exchange), (1.0, self._splice),
            (1.3, self._add_detail), (0.6, self._change_date),
        ]  # fmt: skip

    def supported(self, source: Source, number: int) -> Made:
        """A sentence of the source, perhaps reworded."""
        rng = self._rng
        text = source.sentences[number]
        if rng.random() < 0.15 and number + 1 < len(source.sentences):
            following = source.sentences[number + 1]
            if len(text) + len(following) < 260:
                text = text.rstrip(".") + rng.choice([", and ", "; ", " and "]) + following[:1].lower() + following[1:]
        made = Made(_TOKEN.findall(text), [], ["kept"])
        made.wrong = [False] * len(made.tokens)
        for chance, step in ((0.35, self._compress), (0.4, self._same), (0.15, self._same), (0.15, self._respell)):
            if rng.random() < chance:
                step(made, source)
        self._style(made)
        return made

    def unsupported(self, source: Source, number: int) -> Made | None:
        """A sentence of the source with something wrong in it; ``None`` when nothing could be changed."""
        made = self.supported(source, number)
        steps = list(self._wrong)
        wanted = 2 if self._rng.random() < 0.2 else 1
        while steps and wanted:
            weights = [weight for weight, _ in steps]
            step = self._rng.choices(steps, weights)[0]
            steps.remove(step)
            if step[1](made, source):
                wanted -= 1
        return made if any(made.wrong) else None

    def denied(self, source: Source, number: int) -> tuple[Made, Made, str] | None:
        """A claim with a negation, the same without it, and the source's sentence rewritten so that the first is true.

        Made falsehoods mostly insert a negation, so a model may take "not" itself for a sign of one.
        """
        made = self.supported(source, number)
        denied = Made(list(made.tokens), list(made.wrong), [*made.steps, "denied"])
        places = _deniable(made.tokens)
        if not places:
            return None
        place = self._rng.choice(places)
        denied.tokens.insert(place + 1, "not")
        denied.wrong.insert(place + 1, False)
        affirmed = made.right()
        said = _TOKEN.findall(source.sentences[number])
        same = [i for i, token in enumerate(said) if token.lower() == made.tokens[place].lower()]
        if len(same) != 1:
            return None
        word = self._rng.choice(["not", "not", "never"])
        return denied, affirmed, joined([*said[: same[0] + 1], word, *said[same[0] + 1 :]])

    def bridged(self, source: Source) -> tuple[int, Made] | None:
        """A claim that joins two sentences through a name they share, and the number of the sentence that bridges.

        Without that sentence the rest of a text no longer supports the claim.
        """
        places: dict[str, list[int]] = {}
        for number, sentence in enumerate(source.sentences):
            # "Ann: yes" names who speaks, which bridges nothing.
            if 5 <= len(sentence.split()) <= 25 and ":" not in sentence[:40] and not set('"“”?') & set(sentence):
                for name in Source.of([sentence]).names:
                    places.setdefault(name, []).append(number)
        joinable = [(name, numbers) for name, numbers in places.items() if len(numbers) == 2]
        if not joinable:
            return None
        _, (first, second) = self._rng.choice(joinable)
        following = source.sentences[second]
        if following.split()[0] in _STARTS:
            following = following[:1].lower() + following[1:]
        text = f"{source.sentences[first].rstrip('.!? ')}, and {following}"
        tokens = _TOKEN.findall(text)
        made = Made(tokens, [False] * len(tokens), ["bridged"])
        self._same(made, source)
        return self._rng.choice((first, second)), made

    def changed(self, source: Source, number: int) -> Change | None:
        """One thing of a sentence changed that matters, so that the same change can be made elsewhere."""
        plain = Made.of(source.sentences[number])
        steps: list[Callable[[Made, Source], bool]] = [
            self._exchange, self._exchange_names, self._change_date, self._change_number, self._opposite, self._negate,
            self._change_name, self._sister, self._add_detail,
        ]  # fmt: skip
        # What can seldom be changed comes first where it can be.
        weights = {self._sister: 0.3, self._add_detail: 0.12, self._opposite: 0.6}
        order = sorted(steps, key=lambda step: -(self._rng.random() ** (1 / weights.get(step, 1.0))))
        for step in order:
            other = Made(list(plain.tokens), list(plain.wrong), [])
            if step(other, source) and other.tokens != plain.tokens:
                changes = _changes(plain.tokens, other.tokens)
                if changes is not None:
                    return Change(changes, other.text, other.steps[-1])
        return None

    def mirrored(self, source: Source, number: int) -> tuple[Made, Made, Change] | None:
        """A sentence reworded, the same with one thing changed, and the source's sentence with that change.

        The first is true of the source as it is, the second where the changed sentence stands instead.
        """
        change = self.changed(source, number)
        if change is None:
            return None
        for made in (self.supported(source, number), Made.of(source.sentences[number])):
            other = change.made_in(made)
            # An added detail may fall on a word that rewording took away; a name must not come to stand twice.
            if other is not None:
                return made, other, change
        return None

    def retold(self, made: Made, source: Source) -> Made | None:
        """A sentence of somebody's summary with one thing changed, as an editor does it; ``None``: nothing could be."""
        steps = [self._retell, self._exchange, self._change_name, self._exchange_names, self._change_number,
                 self._opposite, self._change_date, self._negate, self._sister]  # fmt: skip
        order = (
            [self._retell, *self._rng.sample(steps[1:], 8)] if self._rng.random() < 0.5 else self._rng.sample(steps, 9)
        )
        for step in order:
            wrong = Made(list(made.tokens), list(made.wrong), list(made.steps))
            if step(wrong, source) and any(wrong.wrong) and wrong.tokens != made.tokens:
                changed = {token.lower() for token, is_wrong in zip(wrong.tokens, wrong.wrong, strict=True) if is_wrong}
                # Whether "Project Manager" is a he or a she, a meeting seldom says.
                if not changed <= {"he", "she", "his", "her"}:
                    return wrong
        return None

    def _style(self, made: Made) -> None:
        roll = self._rng.random()
        if roll < 0.12:
            made.tokens = [token.lower() for token in made.tokens]
            made.steps.append("lowered")

    def _replace(self, made: Made, start: int, end: int, new: list[str], *, wrong: bool) -> None:
        if start == 0 and new and made.tokens[0][:1].isupper():
            new = [new[0][:1].upper() + new[0][1:], *new[1:]]
        made.tokens[start:end] = new
        made.wrong[start:end] = [wrong] * len(new)

    def _compress(self, made: Made, source: Source) -> None:
        text = joined(made.tokens)
        shorter = _OPENERS.sub("", text)
        shorter = re.sub(r" \([^()]{1,80}\)", "", shorter)
        if self._rng.random() < 0.5:
            shorter = re.sub(r", (?:who|which|where) [^,]{5,80},(?= )", "", shorter)
        if self._rng.random() < 0.4:
            head, comma, tail = shorter.partition(", ")
            if comma and len(head.split()) >= 6:
                shorter = head + "."
            elif comma and len(head.split()) <= 5 and len(tail.split()) >= 6:
                shorter = tail[:1].upper() + tail[1:]
        tokens = _TOKEN.findall(shorter)
        if len(tokens) >= 4 and tokens != made.tokens:
            made.tokens, made.wrong = tokens, [False] * len(tokens)
            made.steps.append("compressed")

    def _same(self, made: Made, source: Source) -> None:
        self._by_lexicon(made, "same", wrong=False)

    def _opposite(self, made: Made, source: Source) -> bool:
        return self._by_lexicon(made, "opposite", wrong=True)

    def _sister(self, made: Made, source: Source) -> bool:
        return self._by_lexicon(made, "sister", wrong=True)

    def _by_lexicon(self, made: Made, relation: str, *, wrong: bool) -> bool:
        places = list(range(len(made.tokens)))
        self._rng.shuffle(places)
        for place in places:
            token = made.tokens[place]
            if not token.islower() or len(token) < 3 or not is_content(token) or made.wrong[place]:
                continue
            if token in _NUMBERS or token == "like":  # "would like" has no opposite
                continue
            # Sisters of a verb often mean much the same ("consolidate", "coalesce"); those of a noun are other things.
            for part in "n" if relation == "sister" else self._rng.sample("nvar", 4):
                for lemma, ending in _lemmas(token, part):
                    others = self._lexicon[part].get(lemma, {}).get(relation)
                    if others and relation == "same":
                        # Of two words that mean the same, each stands for the other; else one has a meaning of its own.
                        words = self._lexicon[part]
                        others = [each for each in others if lemma in words.get(each, {}).get("same", ())]
                        # "Ill" in "ill will" is no adverb: only words of one kind are exchanged without reading them.
                        if any(token in self._lexicon[other] for other in "nvar" if other != part):
                            others = []
                    if others:
                        other = _inflected(self._rng.choice(others[: 2 if relation == "same" else 5]), ending)
                        if other == token or other in made.tokens:
                            continue
                        self._replace(made, place, place + 1, [other], wrong=wrong)
                        made.steps.append(relation)
                        return True
        return False

    def _respell(self, made: Made, source: Source) -> None:
        for place, token in enumerate(made.tokens):
            if token.lower() in _NUMBERS:
                made.tokens[place] = str(_NUMBERS.index(token.lower()) + 1)
            elif token.isdigit() and 1 <= int(token) <= 12 and self._rng.random() < 0.5:
                made.tokens[place] = _NUMBERS[int(token) - 1]

    def _change_number(self, made: Made, source: Source) -> bool:
        places = [i for i, token in enumerate(made.tokens) if token[0].isdigit() or token.lower() in _NUMBERS]
        if not places:
            return False
        place = self._rng.choice(places)
        token = made.tokens[place]
        if not token[0].isdigit():
            new = self._rng.choice([word for word in _NUMBERS if word != token.lower()])
        else:
            others = [number for number in source.numbers if number != token and len(number) == len(token)]
            new = self._rng.choice(others) if others and self._rng.random() < 0.5 else self._near_number(token)
        if new == token:
            return False
        self._replace(made, place, place + 1, [new], wrong=True)
        made.steps.append("number")
        return True

    def _near_number(self, token: str) -> str:
        digits = [i for i, character in enumerate(token) if character.isdigit()]
        place = self._rng.choice(digits)
        new = self._rng.choice([d for d in "123456789" if d != token[place]])
        changed = token[:place] + new + token[place + 1 :]
        ordinal = _ORDINAL.fullmatch(changed)
        if ordinal is None:
            return changed
        last = "th" if ordinal[1][-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(ordinal[1][-1], "th")
        return ordinal[1] + last

    def _change_name(self, made: Made, source: Source) -> bool:
        spans = _name_spans(made.tokens)
        if not spans:
            return False
        start, end = self._rng.choice(spans)
        old = " ".join(made.tokens[start:end])
        pool = source.names if self._rng.random() < 0.7 else self._strange_names
        # "Pluto and Pluto" would show by itself that something is wrong.
        here = set(made.tokens)
        others = [name for name in pool if name not in old and old not in name and not here & set(name.split())]
        if not others:
            return False
        self._replace(made, start, end, self._rng.choice(others).split(), wrong=True)
        made.steps.append("name")
        return True

    def _exchange_names(self, made: Made, source: Source) -> bool:
        spans = _name_spans(made.tokens)
        if len(spans) < 2:
            return False
        (a, b), (c, d) = sorted(self._rng.sample(spans, 2))
        first, second = made.tokens[a:b], made.tokens[c:d]
        if first == second or set(made.tokens[b:c]) <= {"and", ",", "or"}:
            return False
        made.tokens[c:d], made.wrong[c:d] = first, [True] * len(first)
        made.tokens[a:b], made.wrong[a:b] = second, [True] * len(second)
        made.steps.append("exchanged names")
        return True

    def _negate(self, made: Made, source: Source) -> bool:
        for place, token in enumerate(made.tokens):
            # "can" may stand as "cannot" already, and "not only" denies nothing.
            following = made.tokens[place + 1].lower() if place + 1 < len(made.tokens) else ""
            denies = token.lower() in ("not", "never") and place > 0
            if (
                denies
                and made.tokens[place - 1].lower() in _AUXILIARIES
                and following not in ("only", "just", "until", "to", "yet")
            ):
                del made.tokens[place], made.wrong[place]
                made.wrong[place - 1] = True
                made.steps.append("affirmed")
                return True
        places = _deniable(made.tokens)
        if not places:
            return False
        place = self._rng.choice(places)
        word = self._rng.choice(["not", "not", "never"])
        made.tokens.insert(place + 1, word)
        made.wrong.insert(place + 1, True)
        made.steps.append("negated")
        return True

    def _exchange(self, made: Made, source: Source) -> bool:
        return self._by_table(made, _SWAPS)

    def _retell(self, made: Made, source: Source) -> bool:
        return self._by_table(made, _REPORTED)

    def _by_table(self, made: Made, table: dict[str, list[str]]) -> bool:
        places = [i for i, token in enumerate(made.tokens) if token.lower() in table and not made.wrong[i]]
        # "May" may be a month, "will" and "left" need no partner where they name something.
        places = [i for i in places if i == 0 or made.tokens[i].islower()]
        if not places:
            return False
        place = self._rng.choice(places)
        new = self._rng.choice(table[made.tokens[place].lower()])
        self._replace(made, place, place + 1, new.split(), wrong=True)
        made.steps.append("exchanged")
        return True

    def _change_date(self, made: Made, source: Source) -> bool:
        for place, token in enumerate(made.tokens):
            for kind in (_MONTHS, _DAYS):
                if token in kind and not (token == "May" and place == 0):
                    self._replace(
                        made, place, place + 1, [self._rng.choice([e for e in kind if e != token])], wrong=True
                    )
                    made.steps.append("date")
                    return True
        return False

    def _splice(self, made: Made, source: Source) -> bool:
        other = _TOKEN.findall(self._rng.choice(source.sentences))
        if len(other) < 8 or len(made.tokens) < 8:
            return False
        mine = [i for i, token in enumerate(made.tokens) if 3 <= i < len(made.tokens) - 3 and token in _JOINTS]
        if not mine:
            return False
        place = self._rng.choice(mine)
        theirs = [i for i, token in enumerate(other) if i >= 2 and token == made.tokens[place]]
        ending = other[self._rng.choice(theirs) + 1 :] if theirs else []
        if len(ending) < 2 or " ".join(ending) in " ".join(made.tokens):
            return False
        made.tokens[place + 1 :], made.wrong[place + 1 :] = ending, [True] * len(ending)
        made.steps.append("spliced")
        return True

    def _add_detail(self, made: Made, source: Source) -> bool:
        rng = self._rng
        detail = rng.choice(DETAILS).format(
            year=rng.randint(1950, 2025), day=rng.choice(_DAYS), month=rng.choice(_MONTHS), number=rng.randint(3, 90),
            name=rng.choice(source.names or self._strange_names),
        )  # fmt: skip
        tokens = detail.split()
        end = len(made.tokens) - (made.tokens[-1] in ".!?" if made.tokens else 0)
        made.tokens[end:end], made.wrong[end:end] = tokens, [True] * len(tokens)
        made.steps.append("detail")
        return True


def _deniable(tokens: list[str]) -> list[int]:
    """Where a "not" may follow: helping verbs of a statement that has no negation yet."""
    words = [token.lower() for token in tokens]
    if "?" in words or any(word in _DENYING or word.endswith(("n't", "n’t")) for word in words):
        return []
    found = []
    for place, word in enumerate(words[:-1]):
        following = words[place + 1]
        if word not in _AUXILIARIES or place == 0 or not following[:1].isalpha():
            continue
        if word in ("has", "have", "had") and not (following.endswith(("ed", "en")) or following in _PARTICIPLES):
            continue
        if word in ("do", "does", "did") and (following in _SUBJECTS or following.endswith(("ed", "ing"))):
            continue
        # "Is he" asks; but "is the capital" says something.
        if following in _SUBJECTS - {"the", "a", "an", "this", "that", "my", "your", "his", "her", "our", "their"}:
            continue
        found.append(place)
    return found


def _name_spans(tokens: list[str]) -> list[tuple[int, int]]:
    spans, start = [], None
    for place, token in enumerate([*tokens, "."]):
        named = token[:1].isupper() and token[:1].isalpha() and place > 0 and tokens[place - 1] not in '.!?:"“'
        named = named and (is_content(token) and token not in ("I", *_MONTHS, *_DAYS))
        if named and start is None:
            start = place
        elif not named and start is not None:
            spans.append((start, place))
            start = None
    return spans


def _lemmas(token: str, part: str) -> list[tuple[str, str]]:
    """Ways to read a word as lemma and ending."""
    found = [(token, "")]
    if part == "n" and token.endswith("s") and not token.endswith("ss"):
        found = [(token[:-1], "s")]
        if token.endswith("ies"):
            found = [(token[:-3] + "y", "s")]
    if part == "v":
        if token.endswith("ing"):
            found = [(token[:-3], "ing"), (token[:-3] + "e", "ing")]
        elif token.endswith("ed"):
            found = [(token[:-2], "ed"), (token[:-1], "ed")]
        elif token.endswith("s"):
            found = [(token[:-1], "s"), (token[:-2], "s")]
    return found


def _inflected(lemma: str, ending: str) -> str:
    if not ending:
        return lemma
    if ending == "s":
        if lemma.endswith(("s", "x", "ch", "sh")):
            return lemma + "es"
        return lemma[:-1] + "ies" if lemma.endswith("y") and lemma[-2:-1] not in "aeiou" else lemma + "s"
    if lemma.endswith("e"):
        return lemma[:-1] + ending
    return (
        lemma[:-1] + "ied" if ending == "ed" and lemma.endswith("y") and lemma[-2:-1] not in "aeiou" else lemma + ending
    )
