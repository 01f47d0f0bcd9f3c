"""How alike two vectors are and what that scores, and how far one text is from another: edit distance, error rates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from itertools import takewhile
from math import hypot, isfinite
from operator import mul

MEAN_WEIGHT, BEST_WEIGHT = 0.6, 0.4
_CLIPSCORE_SCALE = 2.5


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """The cosine of the angle between two vectors: ``a · b / (|a| |b|)``.

    From −1 (opposite) to 1 (same direction), whatever their lengths; rounding never leads outside. Vectors must have
    the same number of finite components, and not only zeros: a zero vector has no direction.

    >>> cosine([1.0, 0.0], [1.0, 1.0]), cosine([2.0, 0.0], [-1.0, 0.0])
    (0.7071067811865475, -1.0)
    """
    if len(left) != len(right):
        raise ValueError(f"cosine: vectors must be equally long; received {len(left)} and {len(right)} components")
    lengths = hypot(*left), hypot(*right)
    for length in lengths:
        if not (isfinite(length) and length > 0):
            raise ValueError(f"cosine: vectors must be finite and not only zeros; received one of length {length!r}")
    # Divided one after the other: the product of two tiny lengths would be zero.
    unit = (each / lengths[0] for each in left)
    return max(-1.0, min(1.0, float(sum(map(mul, unit, (each / lengths[1] for each in right))))))


def similarity_score(similarity: float, threshold: float) -> float:
    """1.0 from the threshold on, below it ``max(0, similarity) / threshold``.

    Never falls when the similarity grows; a similarity of 0 and less scores 0.0.

    >>> [similarity_score(each, 0.25) for each in (-0.1, 0.125, 0.25, 0.9)]
    [0.0, 0.5, 1.0, 1.0]
    """
    _check_similarity("similarity_score", similarity)
    if not 0 < threshold <= 1:
        raise ValueError(f"similarity_score: threshold must be above 0 and at most 1; received {threshold!r}")
    return 1.0 if similarity >= threshold else max(0.0, similarity) / threshold


def frames_score(similarities: Sequence[float]) -> float:
    """How well a text fits a series of frames: ``0.6 · mean + 0.4 · max`` of the similarities, and at least 0.

    From 0 to 1; one frame scores its own similarity, or 0 when that is negative. No frames have no score.

    >>> round(frames_score([0.1, 0.2, 0.3]), 6)
    0.24
    """
    if not similarities:
        raise ValueError("frames_score: similarities must hold at least one number; received none")
    for each in similarities:
        _check_similarity("frames_score", each)
    mean = sum(similarities) / len(similarities)
    return max(0.0, min(1.0, MEAN_WEIGHT * mean + BEST_WEIGHT * max(similarities)))


def clipscore(similarity: float) -> float:
    """CLIPScore of a caption without references: ``2.5 · max(similarity, 0)``, from 0 to 2.5.

    The published figures put "A photo depicts " before the caption. Source: Hessel et al., CLIPScore, EMNLP 2021.

    >>> clipscore(0.3), clipscore(-0.2)
    (0.75, 0.0)
    """
    _check_similarity("clipscore", similarity)
    return _CLIPSCORE_SCALE * max(similarity, 0.0)


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """``Σ wᵢ · vᵢ / Σ wᵢ``; weights must be 0 or more, and not all 0.

    >>> weighted_mean([0.2, 0.5], [2, 1])
    0.3
    """
    total = sum(weights)
    if len(values) != len(weights) or not total > 0 or min(weights) < 0:
        raise ValueError(f"weighted_mean: needs a weight of 0 or more for each value; received {weights!r:.80}")
    return float(sum(map(mul, values, weights))) / total


def _check_similarity(who: str, similarity: float) -> None:
    if not -1 <= similarity <= 1:
        raise ValueError(f"{who}: a similarity must be from -1 to 1; received {similarity!r}")


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
