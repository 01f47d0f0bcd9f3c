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

from agentunit_local.grounding.segments import is_content

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|\w+(?:['’-]\w+)*|[^\w\s]")
_MONTH_NAMES = "January February March April May June July August September October November December"
_MONTHS = _MONTH_NAMES.split()
_DAY_NAMES = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_DAYS = _DAY_NAMES.split()
_COUNTED = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = _COUNTED.split()
_EXCHANGES = [
    ("before", "after"), ("more", "less"), ("most", "least"), ("all", "some"), ("all", "none of the"),
    ("always", "sometimes"), ("may", "will"), ("might", "will"), ("can", "cannot"), ("could", "will"),
    ("increased", "decreased"), ("rose", "fell"), ("higher", "lower"), ("first", "last"), ("first", "second"),
    ("many", "few"), ("several", "all"), ("only", "also"), ("with", "without"), ("above", "below"),
    ("over", "under"), ("up", "down"), ("won", "lost"), ("accepted", "rejected"), ("agreed", "refused"),
    ("agree", "disagree"), ("likes", "dislikes"), ("liked", "disliked"), ("buy", "sell"), ("bought", "sold"),
    ("morning", "evening"), ("today", "tomorrow"), ("yesterday", "today"), ("he", "she"), ("his", "her"),
    ("son", "daughter"), ("mother", "father"), ("brother", "sister"), ("husband", "wife"), ("man", "woman"),
    ("boy", "girl"), ("north", "south"), ("east", "west"), ("northern", "southern"), ("eastern", "western"),
    ("million", "billion"), ("daily", "weekly"), ("weekly", "monthly"), ("monthly", "yearly"), ("minutes", "hours"),
    ("hours", "days"), ("days", "weeks"), ("weeks", "months"), ("months", "years"), ("early", "late"),
    ("begin", "end"), ("began", "ended"), ("start", "stop"), ("started", "stopped"), ("open", "closed"),
    ("easy", "difficult"), ("good", "bad"), ("better", "worse"), ("best", "worst"), ("success", "failure"),
    ("supported", "opposed"), ("supports", "opposes"), ("possible", "impossible"), ("likely", "unlikely"),
    ("free", "expensive"), ("cheap", "expensive"), ("new", "old"), ("large", "small"), ("public", "private"),
    ("left", "right"), ("explicit", "implicit"), ("internal", "external"), ("maximum", "minimum"), ("inside", "outside"),
    ("positive", "negative"), ("upper", "lower"), ("earlier", "later"), ("previous", "next"), ("indoor", "outdoor"),
    ("kilometers", "miles"), ("meters", "feet"), ("grams", "kilograms"), ("dollars", "euros"), ("percent", "points"),
]  # fmt: skip
_SWAPS: dict[str, list[str]] = {}
for _left, _right in _EXCHANGES:
    _SWAPS.setdefault(_left, []).append(_right)
    _SWAPS.setdefault(_right, []).append(_left)
_HELPING = "is are was were will would can could should has have had does did do may might must"
_AUXILIARIES = frozenset(_HELPING.split())
_JOINING = "in on at to for with by from of that because after before when and but while"
_JOINTS = frozenset(_JOINING.split())
_OPENERS = re.compile(
    r"^(?:However|Moreover|In addition|Also|Then|Meanwhile|Additionally|Finally|But|And|So|Well|Yeah),? "
)
_DETAILS = [
    "in {year}", "on {day}", "in {month} {year}", "for the first time", "in front of {number} people",
    "for {number} years", "at the age of {number}", "according to officials", "with the help of {name}",
    "near {name}", "because of the weather", "despite strong opposition", "for about {number} dollars",
    "to celebrate the anniversary", "in order to save money", "with {name}", "every {day}", "after a long discussion",
    "and received an award for it", "as {name} had suggested", "which surprised everyone", "at no extra cost",
]  # fmt: skip


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

    @property
    def text(self) -> str:
        """The tokens as running text."""
        return joined(self.tokens)


def joined(tokens: list[str]) -> str:
    """Tokens as running text."""
    text = " ".join(tokens)
    text = re.sub(r" ([.,;:!?%)\]”’])", r"\1", text)
    return re.sub(r"([(\[“$£€#@‘]) ", r"\1", text)


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

    def swapped(self, source: Source, number: int) -> tuple[Made, Made] | None:
        """A supported sentence, and the same with one small thing changed; ``None`` when nothing could be changed."""
        made = self.supported(source, number)
        steps = [
            self._exchange, self._exchange_names, self._change_date, self._change_number, self._opposite,
            self._negate, self._change_name, self._sister,
        ]  # fmt: skip
        self._rng.shuffle(steps)
        for step in steps:
            wrong = Made(list(made.tokens), list(made.wrong), list(made.steps))
            if step(wrong, source) and any(wrong.wrong):
                return made, wrong
        return None

    def denied(self, source: Source, number: int) -> tuple[Made, Made, str] | None:
        """A claim with a negation, the same without it, and the source's sentence rewritten so that the first is true.

        Made falsehoods mostly insert a negation, so a model may take "not" itself for a sign of one.
        """
        made = self.supported(source, number)
        denied = Made(list(made.tokens), list(made.wrong), [*made.steps, "denied"])
        places = [i for i, token in enumerate(made.tokens) if token.lower() in _AUXILIARIES]
        if not places or {"not", "never", "no", "nor"} & {token.lower() for token in made.tokens}:
            return None
        place = self._rng.choice(places)
        denied.tokens.insert(place + 1, "not")
        denied.wrong.insert(place + 1, False)
        affirmed = Made(list(made.tokens), list(made.wrong), [*made.steps, "affirmed"])
        affirmed.wrong[place] = True
        said = _TOKEN.findall(source.sentences[number])
        same = [i for i, token in enumerate(said) if token.lower() == made.tokens[place].lower()]
        if len(same) != 1:
            return None
        return (
            denied,
            affirmed,
            joined([*said[: same[0] + 1], self._rng.choice(["not", "never"]), *said[same[0] + 1 :]]),
        )

    def bridged(self, source: Source) -> tuple[int, Made] | None:
        """A claim that joins two sentences through a name they share, and the number of the sentence that bridges.

        Without that sentence the rest of a text no longer supports the claim.
        """
        places: dict[str, list[int]] = {}
        for number, sentence in enumerate(source.sentences):
            # "Ann: yes" names who speaks, which bridges nothing.
            if 5 <= len(sentence.split()) <= 25 and ":" not in sentence[:40]:
                for name in Source.of([sentence]).names:
                    places.setdefault(name, []).append(number)
        joinable = [(name, numbers) for name, numbers in places.items() if len(numbers) == 2]
        if not joinable:
            return None
        _, (first, second) = self._rng.choice(joinable)
        text = f"{source.sentences[first].rstrip('.!? ')}, and {source.sentences[second]}"
        tokens = _TOKEN.findall(text)
        made = Made(tokens, [False] * len(tokens), ["bridged"])
        self._same(made, source)
        return self._rng.choice((first, second)), made

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
            shorter = re.sub(r", (?:who|which|where) [^,]{5,80},", "", shorter)
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
            if token in _NUMBERS:
                continue
            for part in self._rng.sample("nvar", 4):
                for lemma, ending in _lemmas(token, part):
                    others = self._lexicon[part].get(lemma, {}).get(relation)
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
        return token[:place] + new + token[place + 1 :]

    def _change_name(self, made: Made, source: Source) -> bool:
        spans = _name_spans(made.tokens)
        if not spans:
            return False
        start, end = self._rng.choice(spans)
        old = " ".join(made.tokens[start:end])
        pool = source.names if self._rng.random() < 0.7 else self._strange_names
        others = [name for name in pool if name != old and name not in old and old not in name]
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
            if token.lower() in ("not", "never") and place:
                del made.tokens[place], made.wrong[place]
                made.wrong[place - 1] = True
                made.steps.append("affirmed")
                return True
        places = [i for i, token in enumerate(made.tokens) if token.lower() in _AUXILIARIES]
        if not places:
            return False
        place = self._rng.choice(places)
        word = self._rng.choice(["not", "not", "never"])
        made.tokens.insert(place + 1, word)
        made.wrong.insert(place + 1, True)
        made.steps.append("negated")
        return True

    def _exchange(self, made: Made, source: Source) -> bool:
        places = [i for i, token in enumerate(made.tokens) if token.lower() in _SWAPS and not made.wrong[i]]
        if not places:
            return False
        place = self._rng.choice(places)
        new = self._rng.choice(_SWAPS[made.tokens[place].lower()])
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
        detail = rng.choice(_DETAILS).format(
            year=rng.randint(1950, 2025), day=rng.choice(_DAYS), month=rng.choice(_MONTHS), number=rng.randint(3, 90),
            name=rng.choice(source.names or self._strange_names),
        )  # fmt: skip
        tokens = detail.split()
        end = len(made.tokens) - (made.tokens[-1] in ".!?" if made.tokens else 0)
        made.tokens[end:end], made.wrong[end:end] = tokens, [True] * len(tokens)
        made.steps.append("detail")
        return True


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
