"""What the local comparison says of an answer, and what the metrics of the local backend make of it."""

import pytest
from agentunit_local.answer_matching import correctness, match_features, why_matched
from agentunit_local.quality import LocalBackend

from agentunit.backends.quality import QualityQuestion
from agentunit.metrics.verdict_sentences import why_of_verdict


@pytest.mark.parametrize(
    ("question", "expected", "answer", "why"),
    [
        ("Capital of France?", "Paris", "It is Paris.", "the expected answer stands in the answer"),
        ("Capital of France?", "Paris", "Paris", "the answer is the expected one"),
        ("Capital of France?", "Paris", "It is not Paris.", "the answer negates the expected answer"),
        ("Capital of France?", "Paris", "I do not know.", "the answer declines"),
        ("Is it open?", "yes", "no", "the answer negates the expected answer"),
        ("When?", "20 July 1969", "In July 1969.", "the answer names the expected date, less exactly"),
        ("When?", "20 July 1969", "On 4 May 1970.", "the answer names another date than the expected answer"),
        ("Who?", "Johann von Goethe", "Somebody else.", "the answer has none of the words of the expected answer"),
    ],
)
def test_the_feature_that_decides_is_named(question: str, expected: str, answer: str, why: str) -> None:
    features = match_features(question, [expected], answer)
    matched = correctness(features)
    assert why_matched(features, matched, matched) == why


def test_where_the_model_turns_the_comparison_it_is_named() -> None:
    features = match_features("Who?", ["Johann von Goethe"], "The author of Faust.")
    assert why_matched(features, 0.1, 0.9).startswith("in other words, the answer says what")
    assert why_matched(features, 0.9, 0.1).startswith("the words are alike, but the answer says something else")


def test_words_that_are_all_there_or_in_part() -> None:
    assert why_matched({"recall": 1.0}, 0.1, 0.1) == "the answer has all words of the expected answer, and others"
    assert why_matched({"recall": 0.4}, 0.1, 0.1) == "the answer has about 40% of the words of the expected answer"


@pytest.mark.parametrize(
    ("question", "expected", "answer", "why"),
    [
        ("How much?", "30.50 euros", "24.50 euros", "the answer names another amount than the expected answer"),
        (None, "30.50 euros", "24.50 euros", "the answer names another amount than the expected answer"),
        ("Capital of France?", "Paris", "Paris", "equals an expected answer"),
        ("Capital of France?", "Paris", "It is not Paris.", "the answer negates the expected answer"),
        (None, "Paris", "It is Paris.", "the expected answer stands in the answer"),
    ],
)
def test_the_backend_says_why(question: str | None, expected: str, answer: str, why: str) -> None:
    verdict = LocalBackend().judge("answer_correctness", [QualityQuestion(question, [], answer, [expected])])[0]
    assert why_of_verdict(verdict, [], "local") == why


def test_the_lowest_claim_and_the_least_relevant_context_are_quoted() -> None:
    context = ["Paris is the capital of France and has 2 million people.", "Bread is baked in ovens."]
    answer = "Paris is the capital of France. It has 9 million people."
    asked = QualityQuestion("What is the capital of France?", context, answer, ["Paris"])
    supported = why_of_verdict(LocalBackend().judge("faithfulness", [asked])[0], context, "local")
    assert supported.startswith("not supported (0.")
    assert supported.endswith('): "It has 9 million people."')
    relevant = why_of_verdict(LocalBackend().judge("retrieval_quality", [asked])[0], context, "local")
    assert relevant.startswith("least relevant of 2 contexts (0.")
    assert relevant.endswith('): "Bread is baked in ovens."')
