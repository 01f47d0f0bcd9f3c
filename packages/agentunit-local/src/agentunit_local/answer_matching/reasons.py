"""Why an answer was taken for right or wrong, as people would say it."""

from __future__ import annotations

from collections.abc import Mapping

_AGAINST = {
    "declines": "the answer declines",
    "left_open": "the answer leaves open whether it is the expected answer or another one",
    "negated": "the answer negates the expected answer",
    "twisted": "the answer has another number than the expected answer, or says the opposite",
    "namesake": "the answer names somebody else with a part of the expected name",
    "date_other": "the answer names another date than the expected answer",
    "date_near": "the answer names a date near the expected one, but not the same",
    "number_other": "the answer names another number than the expected answer",
    "only_asked_words": "the answer shares only words of the question with the expected answer",
}
_FOR = {
    "exact": "the answer is the expected one",
    "contained": "the expected answer stands in the answer",
    "date_same": "the answer names the expected date",
    "glued": "the expected answer stands in the answer, with spaces lost",
    "acronym": "one of the two abbreviates the other",
    "date_coarser": "the answer names the expected date, less exactly",
    "number_found": "the answer names the expected number",
    "inside_reference": "the answer is a part of the expected answer",
}
"""What a feature says where it holds, the one that says most first."""
_HOLDS = 0.5
_ALL = 0.95


def why_matched(features: Mapping[str, float], matched: float, score: float) -> str:
    """What decided: a feature that speaks for or against the answer, the words they share, or the model.

    ``matched`` is the probability by the features alone, ``score`` the one with what the model says.

    >>> from agentunit_local.answer_matching import match_features
    >>> why_matched(match_features("Capital of France?", ["Paris"], "It is not Paris."), 0.1, 0.1)
    'the answer negates the expected answer'
    """
    if score >= _HOLDS > matched:
        return "in other words, the answer says what the expected answer says, by the model"
    if matched >= _HOLDS > score:
        return "the words are alike, but the answer says something else than the expected answer, by the model"
    telling = _FOR if score >= _HOLDS else _AGAINST
    for name, words in telling.items():
        if features.get(name, 0.0) >= _HOLDS:
            return words
    recall = features.get("recall", 0.0)
    if recall >= _ALL:
        return "the answer has all words of the expected answer, and others"
    share = "none" if recall <= 1 - _ALL else f"about {recall:.0%}"
    return f"the answer has {share} of the words of the expected answer"
