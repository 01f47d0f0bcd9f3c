"""Text cut into sentences and words, with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"\d+(?:[.,:]\d+)*|\w+(?:['’]\w+)*")
# A run of marks is tried from its first one only: tried from each, a line of dots would take quadratic time.
_BREAK = re.compile(
    r"(?<![.!?])[.!?]+[\"'”’)\]]*(?=\s)|[.!?][\"'”’)]*(?=[A-Z][a-z])|\n+|(?<=\s)[•▪]\s|[。！？]+[”’」』）]*"
)
# Han is written without spaces, and the model reads every character of it as a word.
_CUT_UNIT = re.compile(rf"[\u3400-\u9fff]{{1,2}}|{_WORD.pattern}")
_SHORTENED = (
    "mr mrs ms dr prof st jr sr vs etc no fig gen col lt sgt capt gov sen rep rev hon inc ltd co corp dept est jan feb "
    "mar apr jun jul aug sep sept oct nov dec approx vol e.g i.e u.s u.k a.m p.m"
)
_ABBREVIATIONS = frozenset(_SHORTENED.split())
_LONGEST_WORDS = 80
_WITHOUT_CONTENT = (
    "a an the this that these those it its he she they them his her their him i me my we us our you your who whom "
    "whose which what when where why how and or but nor so yet if then than as at by for from in into of off on "
    "onto out over to up with about after before between during through under above below again further once here "
    "there all any both each few more most other some such only own same too very can will just should now is am "
    "are was were be been being have has had having do does did doing would could may might must shall also while "
    "because until against among within without upon via per said says say"
)
_FUNCTION_WORDS = frozenset(_WITHOUT_CONTENT.split())


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and where it stands in its text."""

    text: str
    start: int
    end: int


def split_sentences(text: str) -> list[Sentence]:
    """The sentences of a text, in order; lines end sentences too, and very long ones are cut between words.

    >>> [sentence.text for sentence in split_sentences("Dr. Ho paid 3.5 euros. Did she?\\nYes")]
    ['Dr. Ho paid 3.5 euros.', 'Did she?', 'Yes']
    """
    found: list[Sentence] = []
    start = 0
    for match in _BREAK.finditer(text):
        if match.group()[0] in ".!?" and _ends_no_sentence(text, match):
            continue
        _append(found, text, start, match.end())
        start = match.end()
    _append(found, text, start, len(text))
    return found


def _ends_no_sentence(text: str, match: re.Match[str]) -> bool:
    if match.group()[0] != ".":
        return False
    before = text[max(0, match.start() - 12) : match.start()].split()
    last = before[-1].lower().lstrip("(\"'“‘[") if before else ""
    if last in _ABBREVIATIONS or (len(last) == 1 and last.isalpha()):
        return True
    following = text[match.end() : match.end() + 3].lstrip()
    return bool(following) and following[0].islower() and last.endswith(("inc", "co", "corp", "ltd", "no"))


def _append(found: list[Sentence], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    piece = text[start:end]
    if not any(character.isalnum() for character in piece):
        return
    if len(piece) < _LONGEST_WORDS * 4:
        found.append(Sentence(piece, start, end))
        return
    units = list(_CUT_UNIT.finditer(piece))
    for first in range(0, len(units), _LONGEST_WORDS):
        begin = units[first].start() if first else 0
        last = first + _LONGEST_WORDS
        stop = units[last].start() if last < len(units) else len(piece)
        cut = piece[begin:stop].rstrip()
        found.append(Sentence(cut, start + begin, start + begin + len(cut)))


def words_of(text: str) -> list[str]:
    """The words and numbers of a text, as written."""
    return _WORD.findall(text)


# A few thousand words are most of what is ever read.
@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A word without its commonest endings, so that "walked" meets "walks"; numbers lose their separators.

    >>> [stem(word) for word in ("Walked", "walks", "studies", "1,250", "Ann's")]
    ['walk', 'walk', 'study', '1250', 'ann']
    """
    if word[0].isdigit():
        return word.replace(",", "")
    short = word.lower().replace("’", "'")
    short = short.removesuffix("'s")
    if len(short) > 4:
        if short.endswith("ies"):
            return short[:-3] + "y"
        for ending in ("ing", "ed", "es", "ly", "s"):
            if short.endswith(ending) and len(short) - len(ending) >= 3 and not short.endswith("ss"):
                short = short[: -len(ending)]
                break
        if len(short) > 3 and short.endswith("e"):
            short = short[:-1]
    return short


@lru_cache(maxsize=1 << 16)
def is_content(word: str) -> bool:
    """Whether a word carries content: a number, or no function word.

    >>> [is_content(word) for word in ("the", "Paris", "7")]
    [False, True, True]
    """
    return word.lower() not in _FUNCTION_WORDS
