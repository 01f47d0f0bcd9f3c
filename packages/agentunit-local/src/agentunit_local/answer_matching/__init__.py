"""Is an answer one of the expected ones? Matching that knows numbers, dates, names and negation, and a fitted score."""

from __future__ import annotations

from agentunit_local.answer_matching.contradictions import contradiction
from agentunit_local.answer_matching.features import match_features
from agentunit_local.answer_matching.reasons import why_matched
from agentunit_local.answer_matching.score import correctness

__all__ = ["contradiction", "correctness", "match_features", "why_matched"]
