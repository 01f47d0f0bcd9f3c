"""Words, facts and passages: overlap, coverage, shares and ranks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from math import floor, log10

_WORD = re.compile(r"\w+", re.UNICODE)


def words(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters, digits and underscores.

    >>> words("It's 4 o'clock, Zoë!")
    ['it', 's', '4', 'o', 'clock', 'zoë']
    """
    return _WORD.findall(text.casefold())


def share_true(flags: Sequence[bool]) -> float | None:
    """The share of flags that hold: ``true / all``, from 0 to 1; ``None`` without flags.

    >>> share_true([True, False, True, True])
    0.75
    """
    return sum(flags) / len(flags) if flags else None


def token_overlap(reference: str, candidate: str) -> tuple[float, float, float] | None:
    """Precision, recall and F1 of the candidate's words against the reference's, counting repetitions.

    With ``shared`` the size of the multiset intersection: precision = shared / words of the candidate, recall =
    shared / words of the reference, F1 = 2PR / (P + R), 0 when nothing is shared. ``None`` when either has no words.

    >>> token_overlap("the cat sat", "the cat ran away")   # shared: the, cat
    (0.5, 0.6666666666666666, 0.5714285714285715)
    """
    reference_words, candidate_words = words(reference), words(candidate)
    if not reference_words or not candidate_words:
        return None
    shared = sum((Counter(reference_words) & Counter(candidate_words)).values())
    precision, recall = shared / len(candidate_words), shared / len(reference_words)
    f1 = 2 * precision * recall / (precision + recall) if shared else 0.0
    return precision, recall, f1


COVERAGE_WEIGHT = 0.6
TRANSITION_WEIGHT = 0.4


def keywords_found(keywords: Iterable[str], text: str) -> list[str]:
    """The keywords, single words or phrases, that stand in a text as whole words, whatever their case.

    >>> keywords_found(["image", "in contrast", "art"], "In  Contrast, the IMAGE shows a party.")
    ['image', 'in contrast']
    """
    spaced = f" {' '.join(words(text))} "
    return [keyword for keyword in keywords if f" {' '.join(words(keyword))} " in spaced]


def modality_coherence(n_referenced: int, n_present: int, has_transition: bool) -> float | None:
    """How far a text draws on all kinds of input there are, and joins them.

    0.6 · referenced / present + 0.4 · (1 if a transition word is there, else 0): from 0 to 1. No input: None.

    >>> modality_coherence(1, 2, True)   # 0.6 · 1/2 + 0.4
    0.7
    """
    if not n_present:
        return None
    return COVERAGE_WEIGHT * n_referenced / n_present + TRANSITION_WEIGHT * has_transition


_CONTENT_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
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
    lower = (word.lower().removesuffix("'s").removesuffix("’s") for word in _CONTENT_WORD.findall(text))
    return [_stem(word) for word in lower if word not in _SAYS_NOTHING]


# Texts repeat their words.
@lru_cache(maxsize=20_000)
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
    stems = content_words(text)
    length = max(24, 3 * len(wanted))
    inside: Counter[str] = Counter()
    best = 0
    for position, word in enumerate(stems):
        if word in wanted:
            inside[word] += 1
            best = max(best, len(inside))
        if position >= length - 1:
            leaving = stems[position - length + 1]
            if leaving in wanted:
                inside[leaving] -= 1
                if not inside[leaving]:
                    del inside[leaving]
    return best / len(wanted)


def factual_overlap(tp: int, fp: int, fn: int) -> float | None:
    """The F1 of facts: tp / (tp + (fp + fn) / 2).

    ``tp`` facts of the answer are in the reference, ``fp`` are not, ``fn`` facts of the reference are missing from the
    answer. From 0 to 1; ``None`` without any fact.

    >>> factual_overlap(2, 1, 1)    # 2 / (2 + 1)
    0.6666666666666666

    Source: van Rijsbergen: Information Retrieval, 1979, chapter 7 (the harmonic mean of precision and recall).
    """
    if min(tp, fp, fn) < 0:
        raise ValueError(f"factual_overlap: counts must be 0 or more; received {tp}, {fp}, {fn}")
    return tp / (tp + (fp + fn) / 2) if tp + fp + fn else None


def average_precision(relevant: Sequence[bool]) -> float | None:
    """The mean precision at the places of the relevant entries of a ranking.

    With v_k = 1 where the entry at place k is relevant: Σ (precision at k · v_k) / Σ v_k, precision at k being the
    share of relevant entries among the first k. From 0 to 1; 1 when all relevant entries come first, 0 when there is
    none; ``None`` for an empty ranking. This is the context precision at k of RAGAS.

    >>> average_precision([True, False, True])    # (1/1 + 2/3) / 2
    0.8333333333333333

    Source: Manning, Raghavan, Schütze: Introduction to Information Retrieval, 8.4, over what was retrieved.
    """
    if not relevant:
        return None
    places = [place for place, hit in enumerate(relevant, 1) if hit]
    precisions = [hits / place for hits, place in enumerate(places, 1)]
    return sum(precisions) / len(precisions) if precisions else 0.0


_BETWEEN_WORDS = frozenset(" \t\n\r\v\f,;{}[]()<>\"'")
_WITHIN_NUMBERS = frozenset(" \t\n\r\v\f()")


def shown_share(share: float) -> str:
    """A share as whole percent. No rounding says all or none where that is not so.

    >>> [shown_share(each) for each in (0.0, 0.0001, 0.674, 0.996, 1.0)]
    ['0%', '<1%', '67%', '>99%', '100%']
    """
    shown = f"{share:.0%}"
    if shown == "0%" and share > 0.0:
        return "<1%"
    return ">99%" if shown == "100%" and share < 1.0 else shown


def number(value: float, unit: str) -> str:
    """The digits of a quantity, without its unit.

    >>> number(0.8567, "score"), number(0.0032, "USD"), number(15234.0, "tokens"), number(1.25, "s")
    ('0.86', '0.0032', '15,234', '1.25')
    """
    if unit == "score":
        return f"{value:.2f}"
    if unit == "USD":
        if abs(value) >= 10:
            return f"{value:,.2f}"
        # A call of a small model costs a fraction of a cent: two digits that say something, never all zeros.
        places = 4 if value == 0 or abs(value) >= 0.001 else min(12, 1 - floor(log10(abs(value))))
        return f"{value:.{places}f}"
    if unit == "tokens" or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def shortened(text: str, most: int) -> str:
    """The beginning of a text, of at most ``most`` characters, without half a word or half a row of numbers at its end.

    Half an address or card number is personal data that no detector finds: who cuts a text before it is masked cuts it
    with this.

    >>> shortened("write to bartholomew@example.org today", 25), shortened("paid by 4111 1111 1111 1111", 24)
    ('write to …', 'paid by …')
    >>> shortened("short enough", 12)
    'short enough'
    """
    if len(text) <= most:
        return text
    end = _word_start(text, max(0, most - 1))
    while True:
        last = end
        while last and text[last - 1] in _WITHIN_NUMBERS:
            last -= 1
        start = _word_start(text, last)
        if not any(sign.isdigit() for sign in text[start:last]):
            return f"{text[:end]}…"
        end = start


def _word_start(text: str, end: int) -> int:
    while end and text[end - 1] not in _BETWEEN_WORDS:
        end -= 1
    return end
