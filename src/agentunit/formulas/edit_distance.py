"""How far one sequence is from another: edit distance, and the error rates of transcripts that follow from it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from itertools import takewhile

_RUN_OF_SPACE = re.compile(r"\s\s+")
_APOSTROPHES = dict.fromkeys(map(ord, "’‘ʼ`"), "'")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,]|\.\d+,)")
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Scripts that are written without spaces between words, for a regular expression: Thai, Lao, Myanmar, Khmer, Kana,
Han."""
_UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
_UNSPACED_GAP = re.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")


def edit_distance(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """The fewest insertions, deletions and substitutions that turn one sequence into the other.

    From 0 (equal) to the length of the longer one; symmetric. One column of the table is kept as the bits of whole
    numbers, so that a text of 10,000 words takes milliseconds in plain Python.
    Source: Levenshtein (1966); bits after Myers, J. ACM 46 (1999), and Hyyrö (2003).

    >>> edit_distance("kitten", "sitting")   # k → s, e → i, + g
    3
    >>> edit_distance("to be or not".split(), "to be not".split())
    1
    """
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    n_same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(longer, shorter, strict=False)))
    longer, shorter = longer[n_same:], shorter[n_same:]
    if not shorter:
        return len(longer)
    places: dict[Hashable, int] = {}
    for position, symbol in enumerate(longer):
        places[symbol] = places.get(symbol, 0) | 1 << position
    everywhere = (1 << len(longer)) - 1
    bottom = 1 << (len(longer) - 1)
    # Bit i of ``rises`` (``falls``): the distance grows (shrinks) by one from row i to row i + 1 of the column.
    rises, falls, distance = everywhere, 0, len(longer)
    for symbol in shorter:
        equal = places.get(symbol, 0) | falls
        diagonal = (((equal & rises) + rises) ^ rises) | equal
        grows = falls | (everywhere & ~(diagonal | rises))
        shrinks = diagonal & rises
        if grows & bottom:
            distance += 1
        elif shrinks & bottom:
            distance -= 1
        grows = grows << 1 | 1
        rises = everywhere & (shrinks << 1 | ~(diagonal | grows))
        falls = everywhere & grows & diagonal
    return distance


def error_rate(reference: Sequence[Hashable], hypothesis: Sequence[Hashable]) -> float:
    """Edits per element of the reference: edit distance / length of the reference.

    0 is perfect; above 1 when there are more edits than elements. An empty reference counts each inserted element as
    one error, as jiwer does: 0 when the hypothesis is empty too.

    >>> error_rate("the cat sat".split(), "the cat ran away".split())
    0.6666666666666666
    """
    return edit_distance(reference, hypothesis) / (len(reference) or 1)


def word_error_rate(reference: str, hypothesis: str) -> float:
    """The word error rate (WER): ``error_rate`` over words, which spaces part.

    >>> word_error_rate("he was not an ill disposed young man", "he was not until this blows young man")   # 3 of 8
    0.375
    """
    return error_rate(spoken_words(reference), spoken_words(hypothesis))


def character_error_rate(reference: str, hypothesis: str) -> float:
    """The character error rate (CER): ``error_rate`` over characters (code points), spaces included.

    >>> character_error_rate("four queen of clubs", "for queen of clubs")   # 1 of 19
    0.05263157894736842
    """
    return error_rate(reference.strip(), hypothesis.strip())


def spoken_words(text: str) -> list[str]:
    """The words of a transcript, as jiwer parts them: at spaces, runs of any white space being one space.

    >>> spoken_words("  ten of \\n clubs ")
    ['ten', 'of', 'clubs']
    """
    return [word for word in _RUN_OF_SPACE.sub(" ", text).strip().split(" ") if word]


def normalised_transcript(text: str) -> str:
    """A transcript without what cannot be heard: case, punctuation and spacing, in Unicode's compatibility form (NFKC).

    Punctuation parts words, but an apostrophe inside a word and a point inside a number stay, and commas between
    thousands go. Letters, marks, digits and symbols stay. A letter of a script that is written without spaces (Chinese,
    Japanese, Thai, Lao, Khmer, Burmese) is a word by itself: where such words end is a matter of taste, so error rates
    there count characters. Normalizing twice changes nothing.

    >>> normalised_transcript("“Don’t  stop,” she said — well-timed, at 5%!")
    "don't stop she said well timed at 5"
    >>> normalised_transcript("1,000 people, 3.5 km")
    '1000 people 3.5 km'
    >>> normalised_transcript("你好世界") == normalised_transcript("你好 世界。")
    True
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_APOSTROPHES)
    # Invisible format characters (a soft hyphen, a joiner) neither part words nor belong to them.
    visible = "".join(letter for letter in folded if unicodedata.category(letter) != "Cf")
    letters = _apart(_THOUSANDS.sub(lambda number: number[0].replace(",", ""), visible))
    kept = [letter if _is_heard(letter) else " " for letter in letters]
    for place in range(1, len(letters) - 1):
        before, letter, after = letters[place - 1 : place + 2]
        if (letter == "'" and _is_of_word(before) and _is_of_word(after)) or (
            letter == "." and before.isdecimal() and after.isdecimal()
        ):
            kept[place] = letter
    return " ".join("".join(kept).split())


def without_word_gaps(normalised: str) -> str:
    """A normalized transcript without the spaces that stand between letters of scripts that are written without any.

    >>> without_word_gaps("你 好 ok 世 界")
    '你好 ok 世界'
    """
    return _UNSPACED_GAP.sub("", normalised)


def _apart(letters: Iterable[str]) -> list[str]:
    """Letters of scripts without spaces, each with the marks that follow it, set apart by spaces."""
    found: list[str] = []
    was_unspaced = False
    for letter in letters:
        unspaced = _UNSPACED_LETTER.match(letter) is not None
        continues = unicodedata.category(letter)[0] == "M"
        if not continues and (unspaced or was_unspaced):
            found.append(" ")
        found.append(letter)
        was_unspaced = unspaced or (continues and was_unspaced)
    return found


def _is_heard(letter: str) -> bool:
    return unicodedata.category(letter)[0] not in "PZC"


def _is_of_word(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "LMN"
