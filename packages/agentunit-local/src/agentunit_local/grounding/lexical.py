"""What can be said of a sentence's support by comparing words, numbers and names with the context."""

from __future__ import annotations

import itertools
from math import log1p

from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.segments import is_content, stem, words_of

FEATURES = (
    "content_precision",
    "bigram_precision",
    "trigram_precision",
    "number_precision",
    "name_precision",
    "best_sentence_coverage",
    "longest_copy",
    "negation_differs",
    "log_words",
)
_DENYING = "not no never none nobody nothing neither without cannot n't refuse deny fail unable"
_NEGATIONS = frozenset(_DENYING.split())
_COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_COUNTED.split())}


def lexical_features(claim: str, context: Context) -> tuple[float, ...]:
    """The features of ``FEATURES`` for one sentence of an answer, each 0 to 1 but the last.

    A sentence without numbers has a number precision of 1.0, likewise for names: nothing in it is unsupported.

    >>> features = dict(zip(FEATURES, lexical_features("Ann paid 30 euros.", Context(["Ann paid 20 euros."]))))
    >>> features["content_precision"], features["number_precision"], features["name_precision"]
    (0.75, 0.0, 1.0)
    """
    words = words_of(claim)
    if not words:
        return (0.0,) * len(FEATURES)
    stems = [stem(word) for word in words]
    content = [each for each, word in zip(stems, words, strict=True) if is_content(word)] or stems
    known = context.stems
    pairs = list(itertools.pairwise(stems))
    triples = list(zip(stems, stems[1:], stems[2:], strict=False))
    pairs_known = [pair in context.bigrams for pair in pairs]
    # A triple counts as known when both its pairs are: exact triples would need an index of their own.
    triples_known = [first and second for first, second in itertools.pairwise(pairs_known)]
    numbers = [each for each in stems if each[0].isdigit() or each in _NUMBER_WORDS]
    names = [
        each
        for position, (each, word) in enumerate(zip(stems, words, strict=True))
        if position and word[0].isupper() and is_content(word)
    ]
    wanted = frozenset(content)
    n_met, best_sentence = context.closest(wanted)
    negated = _is_negated(claim, stems)
    differs = best_sentence is not None and negated != _is_negated(best_sentence.sentence.text, best_sentence.stems)
    return (
        sum(each in known for each in content) / len(content),
        sum(pairs_known) / len(pairs) if pairs else float(stems[0] in known),
        sum(triples_known) / len(triples) if triples else (sum(pairs_known) / len(pairs) if pairs else 0.0),
        sum(_number_known(each, known) for each in numbers) / len(numbers) if numbers else 1.0,
        sum(each in known for each in names) / len(names) if names else 1.0,
        n_met / len(wanted),
        _longest_run(pairs_known) / len(pairs) if pairs else 0.0,
        float(differs),
        log1p(len(words)),
    )


def _number_known(number: str, known: frozenset[str]) -> bool:
    return number in known or _NUMBER_WORDS.get(number, "") in known


def _is_negated(text: str, stems: tuple[str, ...] | list[str]) -> bool:
    return any(each in _NEGATIONS or each.endswith("n't") for each in stems) or "n’t" in text


def _longest_run(flags: list[bool]) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest
