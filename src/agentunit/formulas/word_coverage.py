"""How much of what a sentence says stands in a text, in any order and close together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_PLAIN_WORDS = """
a an the this that these those there here i me my mine you your yours he him his she her hers it its we us our ours
they them their theirs who whom whose which what when where why how is am are was were be been being do does did
doing done have has had having can could may might must shall should will would and or but nor not no if then than
so because while as of to in on at by for from with about into onto over under after before during through between
against up down out off all any both each more most other some such only also just very too own same once get gets
got getting go goes went going make makes made making take takes took taking named called said says mr mrs ms dr
prof
"""
_SAYS_NOTHING = frozenset(_PLAIN_WORDS.split())
# Longer endings first, where one ends with another.
_PLAIN_ENDINGS = "ations ation ments ment ings ing ied ies ers ed es is er ly s e y"
_ENDINGS = tuple(_PLAIN_ENDINGS.split())
_SHORTEST_STEM = 4


def content_words(text: str) -> list[str]:
    """The words of a text that say something, reduced to stems; articles, pronouns and the like are left out.

    >>> content_words("She has been diagnosed with diabetes; her diagnosis is private.")
    ['diagno', 'diabet', 'diagno', 'privat']
    """
    words = (word.lower().removesuffix("'s").removesuffix("’s") for word in _WORD.findall(text))
    return [_stem(word) for word in words if word not in _SAYS_NOTHING]


def _stem(word: str) -> str:
    shorter = word
    while True:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
                shorter = word.removesuffix(ending)
                break
        if shorter == word:
            return word
        word = shorter


def word_coverage(sentence: str, text: str, known: Collection[str] = ()) -> float | None:
    """The largest share of a sentence's content words that stands within one stretch of a text.

    A stretch is as long as three times the sentence, and never shorter than 24 content words: words that a long text
    scatters do not add up. Words in ``known`` (stems that the reader has anyway) do not count. From 0 to 1; ``None``
    when the sentence says nothing beyond them.

    >>> word_coverage("Jane was diagnosed with diabetes.", "Sadly Jane got a diabetes diagnosis, diagnosed in May.")
    1.0
    >>> word_coverage("Jane was diagnosed with diabetes.", "Jane says hello.") == 1 / 3
    True
    """
    wanted = set(content_words(sentence)) - set(known)
    if not wanted:
        return None
    words = content_words(text)
    length = max(24, 3 * len(wanted))
    inside: Counter[str] = Counter()
    best = 0
    for position, word in enumerate(words):
        if word in wanted:
            inside[word] += 1
            best = max(best, len(inside))
        if position >= length - 1:
            leaving = words[position - length + 1]
            if leaving in wanted:
                inside[leaving] -= 1
                if not inside[leaving]:
                    del inside[leaving]
    return best / len(wanted)
