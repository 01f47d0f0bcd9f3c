"""Chats and meetings: what somebody said told as a report, and the same with the speakers exchanged.

Each report is seen with both labels: the dialogue is shown as it is and with its speakers exchanged, so that who would
say such a thing is no sign.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.segments import split_sentences

from training.groundedness.edits import Editor, Made, Source, wrong_places
from training.groundedness.groups import MADE, Group, Pair, first_of_two
from training.groundedness.removed import content_of, evidence_of

WEIGHT = 0.7
SPOKEN = ("sgd_dialogue", "qmsum_span")
_LINE = re.compile(r"^(?P<who>[A-Z][\w .]{0,30}?): (?P<said>.+)$")
_FIRST_NAMES = (
    "Anna Ben Carla David Emma Felix Grace Henry Isla Jack Karen Leo Mia Noah Olivia Paul Ruth Sam Tina Victor Wendy "
    "Alice Bob Clara Daniel Eva Frank Gina Hugo Irene Jonas Kate Liam Maria Nick Oscar Petra Quinn Rosa Simon Tom Ursula"
)
_NAMES = _FIRST_NAMES.split()
_ROLES = [("the customer", "the agent"), ("the user", "the assistant")]
_FILLERS = re.compile(
    r"^(?:(?:okay|ok|oh|well|yes|yeah|no|sure|great|thanks|thank you|sorry|hi|hello|hey|so|and|but|perfect|alright|please|cool)\b[ ,.!]*)+",
    re.I,
)
_ADVERBS = "(?:usually|really|just|also|only|actually|currently|definitely|still)"
_PRESENT = "want|need|like|love|prefer|think|hope|know|wish|plan|live|work|feel|believe|suggest|see|enjoy|expect|require|recommend|agree"
_KEPT = "can|could|will|would|should|must|may|might|did|had|was|found|booked|reserved|made|got|went|sent|set|bought|wanted|needed"
_OPENINGS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"^i(?:'m| am)\b", re.I), "{who} is"),
    (re.compile(r"^i'd like\b", re.I), "{who} would like"),
    (re.compile(r"^i'll\b", re.I), "{who} will"),
    (re.compile(r"^i(?:'ve| have)\b", re.I), "{who} has"),
    (re.compile(r"^i (?:don't|do not)\b", re.I), "{who} does not"),
    (re.compile(rf"^i ({_KEPT})\b", re.I), r"{who} \1"),
    (re.compile(rf"^i ({_ADVERBS}) ({_PRESENT})\b", re.I), r"{who} \1 \2s"),
    (re.compile(rf"^i ({_PRESENT})\b", re.I), r"{who} \1s"),
]
_REQUEST = re.compile(
    r"^(?:can|could|would|will) you (?:please )?(?P<what>(?!like|mind|be |want|need|have|prefer|recommend me|say)[a-z].{6,})\?$",
    re.I,
)
_PLEADED = re.compile(
    r"^please (?P<what>(?:find|tell|give|show|book|reserve|play|help|look|search|get|make)\b.{6,})[.!]?$", re.I
)
_ASKED = re.compile(
    r"^(?P<word>what|where|when|who|how much|how far|how many \w+)(?P<is> is|'s| are| was) (?P<what>[^,?]{4,})\?$", re.I
)
# What only makes sense in the mouth of the one who says it.
_SELF = re.compile(r"\b(?:i|i'm|i'd|i'll|i've|you|your|yours|we|our|us|me|my|mine|let's|um|uh|mm)\b", re.I)
_TALK = re.compile(r"\b(?:um|uh|mm|hmm|yeah|okay|you know)\b", re.I)


_STARTS = frozenset("The A An It They There This That Their These Those In On At For Most All Some".split())
_NAMED = re.compile(r"(?:[A-Z][\w'&.]* ){1,6}(?:is|are|was|were|has|have|will|can|does|costs|offers|leaves|starts)\b")


def turns_of(text: str) -> list[tuple[str, str]]:
    """Who said what, line by line; empty where a text is no dialogue."""
    found = [_LINE.match(line.strip()) for line in text.splitlines() if line.strip()]
    if len(found) < 4 or sum(each is None for each in found) > len(found) // 4:
        return []
    return [(each["who"], each["said"]) for each in found if each is not None]


def written(turns: list[tuple[str, str]], names: dict[str, str]) -> str:
    """A dialogue with its speakers named so."""
    return "\n".join(f"{names.get(who, who)}: {said}" for who, said in turns)


def report(said: str, who: str, other: str) -> str | None:
    """What somebody said, told by somebody else; ``None`` where rules cannot do it."""
    text = _FILLERS.sub(
        "", said.strip().replace("’", "'").replace(" 's", "'s").replace(" 'm", "'m").replace(" n't", "n't")
    )
    text = re.sub(r" ([.,?!])", r"\1", text)
    if not 4 <= len(text.split()) <= 30 or _TALK.search(text):
        return None
    for pattern in (_REQUEST, _PLEADED):
        asked = pattern.match(text)
        if asked is not None:
            return _in_third_person(f"{{who}} asks {{other}} to {_small(asked['what'])}.", who, other)
    asked = _ASKED.match(text)
    if asked is not None:
        is_word = {"'s": " is"}.get(asked["is"], asked["is"])
        return _in_third_person(f"{{who}} asks {asked['word'].lower()} {asked['what']}{is_word}.", who, other)
    if text.endswith("?"):
        return None
    for pattern, opening in _OPENINGS:
        if pattern.match(text):
            return _in_third_person(pattern.sub(opening, text, count=1), who, other)
    starts = text.split()[0] in _STARTS
    if _SELF.search(text) or len(text.split()) < 6 or not (starts or _NAMED.match(text)):
        return None
    return f"{_large(who)} says that {_small(text) if starts else text}"


def _in_third_person(text: str, who: str, other: str) -> str | None:
    if re.search(r"\b(?:we|our|us|let's)\b", text, re.I):
        return None
    for pattern, new in (
        (r"\bI am\b|\bI'm\b", "they are"), (r"\bI've\b", "they have"), (r"\bI'd\b", "they would"), (r"\bI'll\b", "they will"),
        (r"\bI was\b", "they were"), (r"\b[Ii]\b", "they"), (r"\bmy\b", "their"), (r"\bme\b", "them"), (r"\bmyself\b", "themselves"),
        (r"\b(?:you are|you're)\b", "{other} is"), (r"\byou have\b", "{other} has"), (r"\byour\b", "{other}'s"), (r"\byou\b", "{other}"),
    ):  # fmt: skip
        text = re.sub(pattern, new, text)
    text = text.format(who=who, other=other) if text.count("{") == len(re.findall(r"\{(?:who|other)\}", text)) else ""
    return (_large(text).rstrip(",;: ") or None) if text else None


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]


def _large(text: str) -> str:
    return text[:1].upper() + text[1:]


def dialogue_groups(kind: str, text: str, editor: Editor, rng: random.Random, most: int) -> Iterator[Group]:
    """Reports of a dialogue with its speakers as they are and exchanged, and with one thing changed."""
    turns = turns_of(text)
    speakers = list(dict.fromkeys(who for who, _ in turns))
    if len(speakers) < 2:
        return
    names = {who: who for who in speakers}
    called = dict(names)
    if kind == "sgd_dialogue":
        chosen = rng.sample(_NAMES, 2) if rng.random() < 0.75 else list(rng.choice(_ROLES))
        names = {who: _large(name.removeprefix("the ")) for who, name in zip(("User", "System"), chosen, strict=True)}
        called = dict(zip(("User", "System"), chosen, strict=True))
    done = 0
    for number in rng.sample(range(len(turns)), len(turns)):
        who, said = turns[number]
        other = rng.choice([each for each in speakers if each != who])
        said_sentences = split_sentences(said)
        sentence = rng.choice(said_sentences).text if said_sentences else ""
        if who not in called or other not in called or len(content_of(sentence)) < 2:
            continue
        true, exchanged = (
            report(sentence, *pair) for pair in ((called[who], called[other]), (called[other], called[who]))
        )
        if true is None or exchanged is None or _also_said(sentence, other, turns):
            continue
        swapped = {**names, who: names[other], other: names[who]}
        document = first_of_two(f"{text[:200]}{number}")
        for place, naming in enumerate((names, swapped)):
            context = Context([written(turns, naming)])
            for claim, label in ((true, 1.0 - place), (exchanged, float(place))):
                wrong = [] if label else _places_of(claim, called[who], called[other])
                pair = Pair(evidence_of(context, claim), claim, wrong)
                yield Group(
                    [pair], label, WEIGHT, f"{MADE}{kind}", document=document + place, maker="speakers exchanged"
                )
        yield from _changed(kind, turns, number, sentence, true, names, editor)
        done += 1
        if done >= most:
            return


def _also_said(sentence: str, other: str, turns: list[tuple[str, str]]) -> bool:
    """Whether the other one says much the same: what the user asks for, a system repeats."""
    wanted = content_of(sentence)
    return any(who == other and len(wanted & content_of(said)) >= 0.6 * len(wanted) for who, said in turns)


def _places_of(claim: str, *names: str) -> list[tuple[int, int]]:
    lowered = claim.lower()
    return [(at.start(), at.end()) for name in names for at in re.finditer(rf"\b{re.escape(name.lower())}\b", lowered)]


def _changed(
    kind: str,
    turns: list[tuple[str, str]],
    number: int,
    sentence: str,
    true: str,
    names: dict[str, str],
    editor: Editor,
) -> Iterator[Group]:
    """A report with one thing changed, false of the dialogue and true where the same was changed there."""
    source = Source.of([said for _, said in turns])
    change = editor.changed(Source([sentence], source.names, source.numbers), 0)
    made = Made.of(true)
    wrong = None if change is None or change.step == "detail" else change.made_in(made)
    who, said = turns[number]
    if change is None or wrong is None or said.count(sentence) != 1:
        return
    others = [*turns[:number], (who, said.replace(sentence, change.sentence)), *turns[number + 1 :]]
    claims = (made.text, wrong.text)
    marked = (made.unlike(wrong), wrong.unlike(made))
    # A number or a place that comes again elsewhere in the dialogue is not undone by one change.
    if any(
        len(content_of(sentence) & content_of(each)) >= 0.6 * len(content_of(sentence))
        for n, (_, each) in enumerate(turns)
        if n != number
    ):
        return
    document = first_of_two(f"changed {true}{number}")
    for place, some in enumerate((turns, others)):
        context = Context([written(some, names)])
        for claim_number, claim in enumerate(claims):
            label = float(claim_number == place)
            wrong_words = [] if label else wrong_places(marked[claim_number])
            pair = Pair(evidence_of(context, claim), claim, wrong_words)
            yield Group([pair], label, WEIGHT, f"{MADE}{kind}", document=document + place, maker="chat edited")
