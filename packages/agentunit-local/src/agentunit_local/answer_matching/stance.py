"""What an answer does with what it names: affirm, deny, leave open, or not answer at all."""

from __future__ import annotations

import re

from agentunit_local.answer_matching.aliases import word_set
from agentunit_local.answer_matching.words import Words

_NEGATORS = word_set(
    """
    not never neither nor without isnt wasnt arent werent doesnt didnt dont hasnt havent hadnt cannot cant wont
    wouldnt couldnt shouldnt unlike except excluding incorrect wrong false nobody nothing
    """
)
_NEGATING_PAIRS = frozenset(
    (("rather", "than"), ("instead", "of"), ("other", "than"), ("no", "longer"), ("apart", "from"))
)
_RESETS = frozenset(("but", "however", "instead", "actually"))
_STATES = word_set("is was are were does did do has had can could will would")
_REACH = 4
_YES = word_set(
    """
    yes yeah yep yup correct true indeed affirmative certainly absolutely definitely right
    """
)
_NO = word_set("no nope nay false incorrect negative wrong never")
_DECLINES = re.compile(
    r"\bi(?:'m| am) (?:sorry|not sure|unable|not aware|not certain)"
    r"|\bi (?:do not|don't|cannot|can't|could not|couldn't|did not|didn't)"
    r" (?:know|find|have|provide|answer|determine|say|recall|understand)"
    r"|\bno (?:definitive|specific|clear|reliable|exact|available|known|such|official|information|answer|record)\b"
    r"|\b(?:is|are|was|were|remains?) (?:unknown|unclear|uncertain|disputed)"
    r"|\b(?:is|are|was|were) not (?:known|clear|specified|available|possible|certain|mentioned|sure)"
    r"|\bnot (?:enough|sufficient) information|\bit(?:'s| is) (?:unclear|difficult|impossible|hard) to"
    r"|\bthere(?:'s| is| are|'re) no\b|\bdepends? on\b|\bdoes not (?:exist|appear|have)\b|\bhas not (?:been|yet)\b"
    r"|^\W*(?:unknown|unclear|n/a|none given)\W*$",
    re.MULTILINE,
)
# After an excuse, what follows may be an answer all the same.
_GOES_ON = re.compile(r"\b(?:however|but|nevertheless)\b")
_GUESSES = frozenset(["maybe", "perhaps", "possibly"])
_HEAD = 600


def declines(answer: str) -> bool:
    """Whether the first lines of an answer say that there is no answer ("I don't know", "it is unclear").

    >>> declines("I'm sorry, I could not find that."), declines("Paris.")
    (True, False)
    """
    opening = answer[:_HEAD].lower().replace("’", "'")
    refusal = _DECLINES.search(opening)
    return refusal is not None and not _GOES_ON.search(opening, refusal.end())


def polarity(text: Words, question: frozenset[str] = frozenset()) -> int:
    """1 for yes, -1 for no, 0 when a text says neither.

    The first word decides; failing that, a first sentence that repeats half of the question is a yes, or a no when it
    is negated.

    >>> from agentunit_local.answer_matching.words import read_words
    >>> polarity(read_words("No, it can't.")), polarity(read_words("Indeed")), polarity(read_words("Paris"))
    (-1, 1, 0)
    """
    if not text.forms:
        return 0
    first = text.forms[0]
    if first in _YES:
        return 1
    if first in _NO or (first == "not" and len(text) <= 3):
        return -1
    opening = [form for form, sentence in zip(text.forms, text.sentences, strict=True) if sentence == text.sentences[0]]
    if not question or 2 * len(question.intersection(opening)) < len(question):
        return 0
    return -1 if any(form in _NEGATORS or form == "no" for form in opening) else 1


def is_negated(text: Words, start: int, end: int, asked: frozenset[str] = frozenset()) -> bool:
    """Whether what stands from ``start`` to ``end`` (exclusive) is denied: "not X", "rather than X", "X is not …".

    A negation that is ``asked`` about ("which country did not …") denies nothing.

    >>> from agentunit_local.answer_matching.words import read_words
    >>> is_negated(read_words("It is not Paris"), 3, 4), is_negated(read_words("It is not Rome but Paris"), 5, 6)
    (True, False)
    """
    sentence = text.sentences[start]
    for place in range(start - 1, max(start - 1 - _REACH, -1), -1):
        form = text.forms[place]
        pair = (form, text.forms[place + 1])
        if text.sentences[place] == sentence and place + 1 < start and pair in _NEGATING_PAIRS:
            return True
        if text.sentences[place] != sentence or form in _RESETS:
            break
        if form in _NEGATORS and form not in asked and pair[1] != "only":
            return True
    following = text.forms[end : end + 2]
    if not following or text.sentences[end] != sentence or "not" in asked:
        return False
    return (following[0] in _STATES and following[1:2] in (["not"], ["never"], ["incorrect"], ["wrong"])) or (
        following[0] in _NEGATORS and following[0].endswith("nt")
    )


def has_negation(text: Words) -> bool:
    """Whether any word of a text denies something.

    >>> from agentunit_local.answer_matching.words import read_words
    >>> has_negation(read_words("It did not open.")), has_negation(read_words("It opened."))
    (True, False)
    """
    return not _NEGATORS.isdisjoint(text.forms)


def is_left_open(text: Words, start: int) -> bool:
    """Whether what stands at ``start`` is one guess of several: "either X or Y", "maybe X".

    A plain "X or Y" is none: most often the two are names of one thing.

    >>> from agentunit_local.answer_matching.words import read_words
    >>> is_left_open(read_words("either Paris or Rome"), 3), is_left_open(read_words("the uvea or uveal layer"), 0)
    (True, False)
    """
    nearest = max(start - _REACH, 0)
    return "either" in text.forms[nearest:start] or not _GUESSES.isdisjoint(text.forms[max(start - 2, 0) : start])
