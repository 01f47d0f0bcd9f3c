"""A backend of the quality metrics: the share of words that two texts have in common."""

from __future__ import annotations

from collections.abc import Sequence

from agentunit.backends.quality import QualityQuestion, Verdict


class SharedWords:
    """Scores an answer by the words it shares with the expected answers or with the context."""

    name = "shared_words"
    measures = frozenset({"answer_correctness", "faithfulness"})

    def unready(self) -> str | None:
        """It needs nothing, so it is always ready."""
        return None

    def judge(self, measure: str, questions: Sequence[QualityQuestion]) -> list[Verdict]:
        """A verdict per question."""
        return [
            self._verdict(each, each.expected if measure == "answer_correctness" else each.context)
            for each in questions
        ]

    def _verdict(self, question: QualityQuestion, texts: Sequence[str]) -> Verdict:
        words = set(question.answer.lower().split())
        if not words:
            return Verdict(None, {"reason": "the answer has no words"})
        shared = [len(words & set(text.lower().split())) / len(words) for text in texts]
        return Verdict(max(shared, default=0.0), {"n_words": len(words)})
