"""The backend ``local`` as users meet it: real weights, through the metrics."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import agentunit_local.quality
import pytest
from agentunit_local.grounding import cross_encoder
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.figures import figures_of
from agentunit_local.grounding.pairs import PairTokens
from agentunit_local.grounding.relevance import Answer
from agentunit_local.quality import MODEL_VARIABLE, LocalBackend
from agentunit_local.text_model import ModelFilesError

import agentunit
from agentunit.backends import quality
from agentunit.backends.quality import QualityQuestion
from agentunit.metrics.builtin import (
    AnswerCorrectnessMetric,
    FaithfulnessMetric,
    HallucinationRateMetric,
    RetrievalQualityMetric,
)

MUSEUM = ["The museum opens at nine every day but Monday. It is free for children.", "Tickets are 12 euros."]
BAKERY = ["Anna Berg opened the bakery in 1987 and sold it to her cousin in 2004.", "It is known for rye bread."]
WEIGHTS = Path(agentunit_local.quality.__file__).with_name("weights") / "groundedness"


@pytest.fixture(autouse=True)
def _found_anew(monkeypatch):
    """Each test finds the backends anew, with what it put into the environment."""
    monkeypatch.delenv("AGENTUNIT_BACKEND", raising=False)
    for cached in (quality.installed_backends, quality.load_backend, cross_encoder.opened):
        cached.cache_clear()
    yield
    for cached in (quality.installed_backends, quality.load_backend, cross_encoder.opened):
        cached.cache_clear()


def asked(answer: str, context: list[str] = MUSEUM, question: str | None = None, expected: tuple[str, ...] = ()):
    return QualityQuestion(question, context, answer, expected)


@pytest.mark.parametrize(
    ("context", "supported", "unsupported"),
    [
        (MUSEUM, "The museum opens at nine, but not on Mondays.", "The museum belongs to a bank."),
        (MUSEUM, "A ticket costs 12 euros.", "A ticket costs 45 euros."),
        (BAKERY, "The bakery was opened in 1987 by Anna Berg.", "The bakery was opened in 1997 by Anna Berg."),
        (BAKERY, "Her cousin bought it in 2004.", "A large hotel chain bought it for three million dollars."),
    ],
)
def test_what_the_context_says_scores_higher_than_what_it_does_not(context, supported, unsupported):
    good, bad = LocalBackend().judge("faithfulness", [asked(supported, context), asked(unsupported, context)])
    assert good.value > bad.value


def test_swapped_contexts_change_the_verdict():
    answers = ["A ticket costs 12 euros.", "Anna Berg opened the bakery."]
    right = LocalBackend().judge("faithfulness", [asked(answers[0], MUSEUM), asked(answers[1], BAKERY)])
    swapped = LocalBackend().judge("faithfulness", [asked(answers[0], BAKERY), asked(answers[1], MUSEUM)])
    assert min(each.value for each in right) > 0.5 > max(each.value for each in swapped)


def test_a_score_depends_on_nothing_beside_it():
    questions = [asked(text) for text in ("It is free for children.", "Tickets are 30 euros.", "It opens at " * 30)]
    together = LocalBackend().judge("faithfulness", questions)
    alone = [LocalBackend().judge("faithfulness", [each])[0] for each in reversed(questions)][::-1]
    assert [each.value for each in together] == [each.value for each in alone]
    assert [each.detail for each in together] == [each.detail for each in alone]


def test_claims_have_places_passages_and_probabilities():
    answer = "Tickets are 12 euros. It was built on the moon by 40 robots."
    detail = LocalBackend().judge("faithfulness", [asked(answer)])[0].detail
    first, second = detail["claims"]
    assert answer[first["start"] : first["end"]] == first["text"] == "Tickets are 12 euros."
    assert (first["passage"], first["copied"]) == (1, True)
    assert second["probability"] < 0.5 < first["probability"]
    assert all(second["start"] <= part["start"] < part["end"] <= second["end"] for part in second["doubtful"])
    json.dumps(detail)


def test_a_verbatim_answer_has_no_hallucination():
    context = ["The museum opens at nine. It is closed on Mondays."]
    case = {"id": "q1", "query": "When does it open?", "context": context}
    assert FaithfulnessMetric(backend="local").evaluate(case, None, context[0]).value == 1.0
    assert HallucinationRateMetric(backend="local").evaluate(case, None, context[0]).value == 0.0


def test_long_contexts_and_answers_are_read_whole():
    filler = " ".join(f"Room {number} holds paintings of the valley and the river." for number in range(400))
    context = [filler, "The oldest piece is a clay horse from Crete."]
    good, bad = LocalBackend().judge(
        "faithfulness",
        [asked("The oldest piece comes from Crete.", context), asked("The oldest piece is a gold mask.", context)],
    )
    assert good.detail["n_context_sentences"] > 400
    assert good.value > bad.value
    answer = " ".join(f"Room {number} holds paintings." for number in range(40)) + " The owner is a dragon."
    assert len(LocalBackend().judge("faithfulness", [asked(answer, context)])[0].detail["claims"]) == 41


@pytest.mark.parametrize(
    ("question", "expected", "right", "wrong"),
    [
        ("Who wrote it?", "John F. Kennedy", "It was written by JFK.", "It was written by Lyndon Johnson."),
        ("When?", "20 July 1969", "On July 20th, 1969", "On July 20th, 1968"),
        ("How many?", "1,250", "There were twelve hundred fifty: 1250.", "There were 1,520."),
    ],
)
def test_right_answers_score_higher_than_wrong_ones(question, expected, right, wrong):
    good, bad = LocalBackend().judge(
        "answer_correctness",
        [asked(each, [], question, (expected,)) for each in (right, wrong)],
    )
    assert good.value > 0.5 > bad.value


def test_equal_answers_need_no_model():
    verdict = LocalBackend().judge("answer_correctness", [asked(" Paris ", [], "Where?", ("Rome", "Paris"))])[0]
    assert verdict.value == 1.0


@pytest.mark.parametrize(
    ("question", "expected", "answer", "most"),
    [
        ("Is Paris or Rome the capital of France?", "Paris", "Paris or Rome.", 0.0),
        ("Is the valve made of brass or steel?", "It is made of brass.", "It is made of steel.", 0.2),
        (None, "Every 20 minutes", "Every 12 minutes.", 0.2),
    ],
)
def test_an_answer_that_contradicts_the_expected_one_is_wrong_and_says_why(question, expected, answer, most):
    verdict = LocalBackend().judge("answer_correctness", [asked(answer, [], question, (expected,))])[0]
    assert 0.0 <= verdict.value <= most
    assert verdict.detail["rule"].startswith("the answer ")


def test_relevance_is_a_matter_of_the_question():
    question = "How much is a ticket to the museum?"
    passages = ["Tickets for the museum are 12 euros.", "Rye bread needs a sour dough and a day of rest."]
    verdict = LocalBackend().judge("retrieval_quality", [asked("12 euros.", passages, question)])[0]
    first, second = (each["relevance"] for each in verdict.detail["passages"])
    assert first > 0.5 > second
    assert verdict.value == pytest.approx((first + second) / 2, abs=1e-4)
    assert LocalBackend().judge("retrieval_quality", [asked("12 euros.", passages)])[0].value is None


def relevances(answer, expected=()):
    """Of two passages about the same thing, of which one holds the answer to the question: Mira Sol."""
    question = "Who won the harbor race in 2021?"
    passages = [
        "The harbor race in 2021 was won by Mira Sol, two minutes ahead of her sister.",
        "The harbor race in 2021 was held in rain. Who won the race in 2021 is told on the next page.",
    ]
    verdict = LocalBackend().judge("retrieval_quality", [asked(answer, passages, question, expected)])[0]
    return verdict.detail["judged_against"], [each["relevance"] for each in verdict.detail["passages"]]


def test_a_passage_that_holds_the_answer_is_more_relevant_than_one_on_the_topic():
    judged_against, (holds, on_topic) = relevances("Mira Sol won it.")
    assert judged_against == "answer"
    assert holds > on_topic + 0.1
    # By the question alone the other passage, which repeats it, was as good.
    judged_against, (holds, on_topic) = relevances("I'm sorry, but I cannot answer that.")
    assert judged_against == "question"
    assert holds < on_topic + 0.1
    # Words of the question that the answer repeats tell no passage from another.
    _, (holds, on_topic) = relevances("The harbor race in 2021 was won by Mira Sol.")
    assert holds > on_topic + 0.1


def test_what_the_case_expects_decides_about_passages_not_what_the_agent_said():
    aliases = (*(f"Alias {name}" for name in "BCDEFGH"), "Mira Sol")
    wrong = relevances("It was held in rain.", aliases)
    assert wrong == relevances("Mira Sol", aliases)
    judged_against, (holds, on_topic) = wrong
    assert judged_against == "expected_output"
    assert holds > on_topic + 0.1


@pytest.mark.parametrize("expected", ["Yes", "no", "B", "True", "I don't know.", "In 2021."])
def test_an_expected_answer_that_no_passage_can_hold_leaves_it_to_the_question(expected):
    by_question = relevances("")[1]
    assert relevances("Mira Sol won it.", (expected,)) == ("question", by_question)


def test_a_passage_holds_a_number_in_any_spelling():
    passages = ["Oslo has a population of 3,500,000 people.", "Oslo is the capital, and many people live there."]
    for expected in ("3.5 million", "3,500,000"):
        given = asked("", passages, "How many people live in Oslo?", (expected,))
        first, second = LocalBackend().judge("retrieval_quality", [given])[0].detail["passages"]
        assert first["relevance"] > second["relevance"] + 0.1, expected


@pytest.mark.parametrize(
    ("question", "answer", "held", "other"),
    [
        ("How many million people live there?", "3.5 million", "It has 3,500,000 people.", "It has 3.5 people."),
        ("When did the bridge open?", "2021-05-03", "It opened on May 3, 2021.", "It opened on June 3, 2021."),
        ("How many miles is the trail?", "5 miles", "It is 8.05 km long.", "It is 5 km long."),
        ("How many minutes does it take?", "90 minutes", "It takes 1.5 hours.", "It takes 90 seconds."),
        ("What was the lowest?", "-27 °C", "It fell to -27 °C.", "It rose to 27 °C."),
        ("How many ships came?", "two", "There were 2 ships.", "There were 3 ships."),
        ("When does it leave?", "At 2 pm", "It leaves at 14:00.", "It leaves at 15:00."),
        ("What is the code?", "A-1012 [1]", "The code is A-1012.", "The code is A-1013."),
    ],
)
def test_figures_of_an_answer_are_held_in_another_spelling_and_only_with_their_unit(question, answer, held, other):
    said = Answer.of(answer, question)

    def share(passage):
        context = Context([passage])
        return said.held_by(context.sentences, [figures_of(each.sentence.text) for each in context.sentences])

    assert share(held) == 1.0
    assert share(other) <= 0.5


def test_names_in_an_answer_that_is_data_are_looked_for_in_no_passage():
    assert relevances("", ('{"winner": "Mira Sol"}',)) == relevances("", ("Mira Sol",))


def test_the_language_of_the_agent_says_nothing_where_the_case_expects_an_answer():
    german = "Das Rennen hat Mira Sol gewonnen und nicht ihre Schwester."
    assert relevances(german, ("Mira Sol",)) == relevances("Nobody.", ("Mira Sol",))
    assert relevances(german)[0] == "question"


def test_by_the_question_alone_no_passage_on_the_topic_is_sure():
    """Else an agent that declines would seem to retrieve better than one that answers."""
    _, declined = relevances("I'm sorry, but I cannot answer that.")
    _, right = relevances("Mira Sol won it.")
    assert max(declined) < max(right)
    assert max(declined) < 0.8


def test_the_place_of_the_answer_in_a_long_passage_hardly_matters():
    filler = [f"The harbor race in 20{number} was held in rain." for number in range(22, 82)]
    answer = "Mira Sol took the cup."
    values = []
    for place in (0, 20, 40):
        passage = " ".join([*filler[:place], answer, *filler[place:]])
        question = asked("", [passage], "Who won the harbor race in 2021?", (answer,))
        values.append(LocalBackend().judge("retrieval_quality", [question])[0].value)
    assert max(values) - min(values) < 0.05


def test_declining_is_right_where_the_case_expects_it():
    expected = ("The documents do not say when couples may adopt.",)
    question = "When may couples adopt?"
    declined, invented, hedged = LocalBackend().judge(
        "answer_correctness",
        [
            asked("I'm sorry, I can't answer that.", [], question, expected),
            asked("Couples may adopt after 1 to 3 years.", [], question, expected),
            asked("I do not know exactly. Ask the office in Bend.", [], question, expected),
        ],
    )
    assert (declined.value, declined.detail["rule"]) == (1.0, "the answer declines, as the expected answer does")
    assert invented.value <= 0.2
    assert "does not decline" in invented.detail["rule"]
    assert "rule" not in hedged.detail


def test_an_answer_in_a_language_that_was_not_measured_is_compared_but_informs_only():
    question = asked("Der Turm wurde 1889 gebaut, und er ist offen.", [], "Wann?", ("Im Jahr 1889 wurde er gebaut.",))
    verdict = LocalBackend().judge("answer_correctness", [question])[0]
    assert "text in 'de'" in verdict.detail["informational"]
    same = asked("Im Jahr 1889", [], "Wann?", ("Im Jahr 1889",))
    detail = LocalBackend().judge("answer_correctness", [same])[0].detail
    assert detail == {"matched": "equal to an expected answer", "why": "equals an expected answer"}


def test_passages_that_each_hold_a_part_of_the_answer_are_all_relevant():
    passages = [
        "The ferry leaves at nine from pier four.",
        "A ferry ticket costs 12 euros.",
        "Bread is baked at night.",
    ]
    answer = "The ferry leaves at nine. A ticket costs 12 euros."
    verdict = LocalBackend().judge("retrieval_quality", [asked(answer, passages, "When does the ferry leave?")])[0]
    first, second, third = (each["relevance"] for each in verdict.detail["passages"])
    assert min(first, second) > 0.4 > 0.1 > third


def test_an_answer_in_a_language_that_was_not_measured_leaves_it_to_the_question_and_informs_only():
    passages = ["巴黎是法国的首都，位于塞纳河畔。", "面包是用面粉做的，需要一天的时间。"]
    verdict = LocalBackend().judge("retrieval_quality", [asked("巴黎。", passages, "法国的首都是哪里？", ("巴黎",))])[0]
    assert verdict.detail["judged_against"] == "question"
    assert "measured only on text in en" in verdict.detail["informational"]


def test_passages_are_judged_without_an_answer_too():
    case = {
        "id": "q1",
        "query": "How much is a ticket?",
        "context": ["Tickets are 12 euros.", "Bread is baked at night."],
    }
    passages = RetrievalQualityMetric(backend="local").evaluate(case, None, None).detail["passages"]
    assert passages[0]["relevance"] > passages[1]["relevance"] + 0.2
    assert RetrievalQualityMetric(backend="lexical").evaluate(case, None, None).value is None


def test_one_odd_question_does_not_take_the_others_along(monkeypatch):
    monkeypatch.setattr(agentunit_local.quality, "match_features", lambda *_: 1 / 0)
    odd, even = LocalBackend().judge("answer_correctness", [asked("A", [], "Q", ("B",)), asked("B", [], "Q", ("B",))])
    assert odd.value is None
    assert odd.detail["error"]["type"] == "ZeroDivisionError"
    assert even.value == 1.0


def test_auto_takes_it_when_nothing_else_is_configured():
    case = {"id": "q1", "query": "How much?", "context": MUSEUM, "expected_output": "12 euros"}
    for metric in (
        FaithfulnessMetric(),
        HallucinationRateMetric(),
        RetrievalQualityMetric(),
        AnswerCorrectnessMetric(),
    ):
        result = metric.evaluate(case, None, "A ticket is 12 euros.")
        assert result.detail["backend"] == "local", result
        assert 0 <= result.value <= 1
    faithful, rate = (
        metric.evaluate(case, None, "A ticket is 12 euros.").value
        for metric in (FaithfulnessMetric(), HallucinationRateMetric())
    )
    assert faithful + rate == pytest.approx(1.0)


def test_a_run_says_what_scored(tmp_path):
    records = [{"case": {"id": "q1", "context": MUSEUM}, "outcome": "It is free for children."}]
    summary = agentunit.score(records, ["faithfulness"]).summary()
    assert summary.metrics[0].backend == "local"
    assert not summary.unscored


def test_the_environment_may_say_what_auto_means(monkeypatch):
    monkeypatch.setenv("AGENTUNIT_BACKEND", "lexical")
    result = FaithfulnessMetric().evaluate({"id": "q1", "context": ["Paris"]}, None, "Paris")
    assert (result.value, result.detail["backend"]) == (1.0, "lexical")


def test_a_model_of_ones_own(tmp_path, monkeypatch):
    shutil.copy(WEIGHTS / "model.onnx", tmp_path)
    shutil.copy(WEIGHTS / "tokenizer.json", tmp_path)
    (tmp_path / "cross_encoder.json").write_text('{"name": "mine", "max_tokens": 256}')
    monkeypatch.setenv(MODEL_VARIABLE, str(tmp_path))
    assert LocalBackend().unready() is None
    verdict = LocalBackend().judge("faithfulness", [asked("A ticket is 12 euros.")])[0]
    assert verdict.detail["model"] == "mine"
    assert verdict.value > 0.5


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "must hold model.onnx"),
        ({"model.onnx": "x"}, "must hold tokenizer.json"),
        ({"model.onnx": "x", "tokenizer.json": "{}", "cross_encoder.json": "{"}, "must be JSON"),
        ({"model.onnx": "x", "tokenizer.json": "{}", "cross_encoder.json": '{"label": 1}'}, "received 'label'"),
        ({"model.onnx": "x", "tokenizer.json": "{}", "cross_encoder.json": "[1]"}, "must be a JSON object"),
        (
            {"model.onnx": "x", "tokenizer.json": "{}", "cross_encoder.json": '{"max_tokens": "many"}'},
            "max_tokens must be",
        ),
        ({"model.onnx": "x", "tokenizer.json": "{}", "cross_encoder.json": '{"supported": -1}'}, "supported must be"),
        ({"model.onnx": "x", "tokenizer.json": "{}"}, "tokenizer.json"),
    ],
)
def test_a_wrong_folder_is_named(tmp_path, monkeypatch, files, said):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv(MODEL_VARIABLE, str(tmp_path))
    assert said in LocalBackend().unready()
    with pytest.raises(quality.BackendUnavailable, match=MODEL_VARIABLE):
        FaithfulnessMetric(backend="local")


def test_a_label_that_the_model_lacks_is_named(tmp_path, monkeypatch):
    shutil.copy(WEIGHTS / "model.onnx", tmp_path)
    shutil.copy(WEIGHTS / "tokenizer.json", tmp_path)
    (tmp_path / "cross_encoder.json").write_text('{"supported": 7}')
    monkeypatch.setenv(MODEL_VARIABLE, str(tmp_path))
    assert "supported must be the number of a label" in LocalBackend().unready()


def test_a_tokenizer_of_another_family_is_refused():
    class Other:
        def no_padding(self): ...
        def no_truncation(self): ...
        def token_to_id(self, name): ...

    with pytest.raises(ModelFilesError, match=r"\[CLS\] and \[SEP\]"):
        PairTokens(Other(), 512)


def test_half_a_surrogate_pair_is_read_like_any_unknown_sign():
    broken, whole = (asked(f"It opens at nine {sign} every day.") for sign in ("\ud83d", "\ufffd"))
    first, second = LocalBackend().judge("faithfulness", [broken, whole])
    assert first.value == second.value is not None


@pytest.mark.parametrize(
    ("answer", "context", "said"), [("👍", MUSEUM, "the answer holds no claim"), ("Yes.", [""], "the context holds no")]
)
def test_what_is_lacking_is_named(answer, context, said):
    verdict = LocalBackend().judge("faithfulness", [asked(answer, context)])[0]
    assert verdict.value is None
    assert said in verdict.detail["reason"]


def test_what_the_model_did_not_read_is_counted():
    signs = LocalBackend().judge("faithfulness", [asked("It opens at nine " + "= " * 600)])[0]
    assert signs.detail["claim_tokens_left_out"] > 200
    long, short = LocalBackend().judge(
        "answer_correctness",
        [asked("It is nine, " * 50, [], "When?", tuple("abcdefgh")), asked("nine", [], "When?", ("at nine",))],
    )
    assert long.detail["not_read_by_model"] == {"answer_words": 30, "expected_answers": 2}
    assert "not_read_by_model" not in short.detail
