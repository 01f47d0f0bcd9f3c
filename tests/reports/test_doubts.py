"""Doubts of a model are whole words wherever they are shown, and 'show' says what its numbers are."""

from __future__ import annotations

import io

import pytest

from agentunit.addons.review._label_screen import marked_doubts
from agentunit.addons.viewer._case_detail import answer_marks
from agentunit.core.codec import as_record
from agentunit.core.results import MetricResult, Score
from agentunit.metrics.base import describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.case_console import print_case
from agentunit.reports.case_view import view_case
from agentunit.reports.detail_text import doubted_claims, words_doubted_in
from agentunit.reports.reported_run import ReportedCase
from agentunit.reports.terminal import Terminal

ANSWER = "Dr. Lee's tank is eventually emptying, he said. It's at 3.5 m."
INFOS = {
    metric.name: describe(metric)
    for metric in resolve_metrics(["faithfulness", "hallucination_rate", "answer_correctness", "retrieval_quality"])
}


def span(words: str, probability: float = 0.8) -> dict[str, object]:
    start = ANSWER.index(words)
    return {"start": start, "end": start + len(words), "probability": probability}


# As the tokens of a model give them: inside of words, a mark, a space before a word.
DOUBTFUL = [span(" eventually empt", 0.7), span("ying", 0.9), span("'s", 0.6), span(","), span("ee")]
CLAIMS = [
    {"text": ANSWER[:47], "start": 0, "end": 47, "probability": 0.32, "source": "context[0]", "doubtful": DOUBTFUL},
    {"text": ANSWER[48:], "start": 48, "end": 62, "probability": 0.2, "passage": 1, "doubtful": [span("5")]},
]
DETAIL = {"claims": CLAIMS, "threshold": 0.36, "kind": "claim"}
TURNED = {"claims": CLAIMS, "threshold": 0.64, "kind": "claim"}


def test_doubts_are_widened_to_words_and_marks_alone_are_none() -> None:
    assert words_doubted_in(CLAIMS[0]) == ["Lee's", "eventually emptying"]
    assert words_doubted_in(CLAIMS[1]) == ["3.5"]
    marked = [text for text, is_sure in marked_doubts(ANSWER, DETAIL) if not is_sure]
    assert marked == ["Lee's", "eventually emptying", "3.5"]
    scores = {"faithfulness": Score(MetricResult("faithfulness", 0.3, DETAIL), "ok", "local", "6")}
    marks = [each for each in answer_marks(ANSWER, scores, ["a", "b"], INFOS) if each["kind"] == "doubtful"]
    assert [ANSWER[each["start"] : each["end"]] for each in marks] == marked
    assert marks[1]["probability"] == 0.9


def test_words_of_scripts_without_spaces_are_not_widened() -> None:
    claim = {"text": "他在北京工作。", "start": 0, "end": 7, "doubtful": [{"start": 2, "end": 4}]}
    assert words_doubted_in(claim) == ["北京"]


@pytest.mark.parametrize("doubtful", [None, "x", [1], [{"start": -5, "end": 900}], [{"start": 9, "end": 3}], [{}]])
def test_places_that_cannot_be_are_no_reason_to_stop(doubtful: object) -> None:
    claim = {"text": "It is red.", "start": 0, "end": 10, "probability": 0.1, "doubtful": doubtful}
    assert words_doubted_in(claim) in ([], ["It is red."])
    assert len(list(doubted_claims("It is red.", {"claims": [claim, None]}))) == 1


def test_a_claim_is_doubted_below_the_threshold_of_its_answer() -> None:
    lenient = {"claims": CLAIMS, "threshold": 0.3}
    assert [each.start for each in doubted_claims(ANSWER, lenient)] == [48]
    assert [each.start for each in doubted_claims(ANSWER, {"claims": CLAIMS, "threshold": 0.7}, "lower")] == [48]
    assert [each.start for each in doubted_claims(ANSWER, {"claims": CLAIMS})] == [0, 48]


def shown(width: int = 200) -> str:
    record = as_record(
        {
            "case": {
                "id": "q1",
                "query": "How full?",
                "context": ["It holds 3 m.", "Lee said so."],
                "expected_output": "3 m",
            },
            "outcome": {"output": ANSWER},
        }
    )
    details = {
        "faithfulness": (0.22, DETAIL),
        "hallucination_rate": (0.78, TURNED),
        "answer_correctness": (0.96, {"matched": 0.97, "model_logit": 2.2, "features": {"f1": 0.9}}),
        "retrieval_quality": (0.4, {"passages": [{"passage": 0, "relevance": 0.6}]}),
    }
    scores = {
        name: Score(MetricResult(name, value, detail), "ok", "local", "6") for name, (value, detail) in details.items()
    }
    out = io.StringIO()
    case = ReportedCase(0, 0, "q1", False, 0.0123, record, scores)
    print_case(view_case(case), INFOS, Terminal(file=out, width=width), run_id="r")
    return out.getvalue()


def test_a_case_says_what_its_numbers_are() -> None:
    text = shown()
    assert "12 ms" in text
    assert "0  It holds 3 m." in text
    assert "passage 0, relevance 0.6" in text
    assert "local, below its threshold 0.36 (claim)" in text
    assert "local, above its threshold 0.64 (claim)" in text
    assert text.count('support 0.32 "Dr. Lee') == 1
    assert 'doubted: "Lee\'s", "eventually emptying"' in text
    assert "the same claims as faithfulness" in text
    assert "against the expected answer: words alike 0.97, same meaning 0.90 by the model" in text


def test_marks_of_differences_are_explained_where_there_are_some() -> None:
    record = as_record(
        {"case": {"id": "q1", "expected_output": "due on 20 May"}, "outcome": {"output": "due on 11 May"}}
    )
    out = io.StringIO()
    print_case(view_case(ReportedCase(0, 0, "q1", False, 0.0, record, {})), {}, Terminal(file=out, width=80))
    assert "[-11-]" in out.getvalue()
    assert "[-…-]: only in the answer; {+…+}: only in what was expected" in " ".join(out.getvalue().split())
    assert "only in the answer" not in shown()
