"""Is an answer one of the expected ones? Matching that knows numbers, dates, names and negation, and a fitted score."""

from __future__ import annotations

from agentunit_local.answer_matching.features import match_features
from agentunit_local.answer_matching.score import correctness

__all__ = ["correctness", "match_features"]
