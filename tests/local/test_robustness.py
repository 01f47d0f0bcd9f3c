"""What must not change a score, and what must: the shipped weights on a few texts of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
from agentunit_local.grounding.claims import claims_of
from agentunit_local.quality import LocalBackend

import agentunit
from agentunit.backends.quality import QualityQuestion
from agentunit.metrics.builtin import FaithfulnessMetric

LIGHTHOUSE = [
    "The lighthouse on Gull Point was built in 1887 by Ada Renner. It is 38 meters high and has 214 steps. Its lamp "
    "was moved to electricity in 1931.",
    "The keeper's house is a small museum today. It opens on Saturdays from May to October. Children pay nothing.",
]
MILL = [
    "The paper mill of Osterby closed in 2009 after a fire. Some 140 people lost their work. The owner, Karl Brandt, "
    "did not rebuild it, and the town bought the land for 2.4 million euros.",
]
ANSWERS = [
    ("How high is the lighthouse?", LIGHTHOUSE, "The lighthouse is 38 meters high and was built in 1887."),
    (None, LIGHTHOUSE, "Ada Renner built the lighthouse in 1887. The house of the keeper is now a museum."),
    (None, MILL, "The mill closed after a fire in 2009. The town paid about 2.4 million euros for the land."),
    ("Did the owner rebuild the mill?", MILL, "No, Karl Brandt rebuilt nothing. He sold it to a bank in Zurich."),
]
FOREIGN = [
    "The violinist recorded nine albums in Lisbon.",
    "Its batteries last for three weeks.",
    "A comet was first seen by two students in Chile.",
]
HERBS = (
    "Sage Thyme Basil Mint Dill Leek Kale Chard Beet Fennel Carrot Onion Garlic Celery Radish Turnip Pea Bean Corn Hop"
)
PASSAGES = [
    f"{name} grows best in {soil} soil. It needs {liters} liters of water a week and is cut in {month}."
    for name, soil, liters, month in zip(
        HERBS.split(),
        ("sandy", "heavy", "wet", "light") * 5,
        range(38, 58),
        ("May", "June", "July", "August") * 5,
        strict=True,
    )
]


LARGE = Path(__file__).parents[2] / "packages/agentunit-local-large/src/agentunit_local_large/weights"
SIZES = {"small": None, "large": LARGE}


@pytest.fixture(autouse=True, params=SIZES)
def _size(request, monkeypatch):
    """Every test runs on both sizes; the larger one costs more and reads fewer answers."""
    weights = SIZES[request.param]
    if weights is not None and not (weights / "model.onnx").is_file():
        pytest.skip(f"{weights} holds no model.onnx: the larger model is not in this checkout")
    if weights is not None and request.node.callspec.params.get("answer") in {answer for *_, answer in ANSWERS[:2]}:
        pytest.skip("the larger model reads the last two answers")
    monkeypatch.setattr(LocalBackend, "weights", weights)


def value(question, context, answer):
    return LocalBackend().judge("faithfulness", [QualityQuestion(question, context, answer)])[0].value


@pytest.mark.parametrize(("question", "context", "answer"), ANSWERS)
def test_a_sentence_from_elsewhere_lowers_the_score(question, context, answer):
    before = value(question, context, answer)
    for sentence in FOREIGN:
        assert value(question, context, f"{answer} {sentence}") < before - 0.01
    assert value(question, context, f"{answer} {' '.join(FOREIGN)}") <= min(
        value(question, context, f"{answer} {sentence}") for sentence in FOREIGN
    )


@pytest.mark.parametrize(("question", "context", "answer"), ANSWERS)
def test_what_says_nothing_changes_nothing(question, context, answer):
    before = value(question, context, answer)
    variants = {
        "courtesy": (context, f"{answer} I hope this helps! Let me know if you have any other questions."),
        "preamble": (context, f"Sure! Here is a concise summary:\n\n{answer}"),
        "preamble on the line": (context, f"Based on the provided passages, {answer}"),
        "numbering": (context, f"1. {answer}"),
        "order": (context[::-1], answer),
        "capitals": (context, answer.upper()),
        "small letters": ([each.lower() for each in context], answer.lower()),
        "white space": ([each.replace(" ", "  ") for each in context], f"\n {answer.replace(' ', '  ')}\t\n"),
    }
    changed = {name: value(question, *variant) - before for name, variant in variants.items()}
    assert {name: change for name, change in changed.items() if abs(change) >= 0.03} == {}


@pytest.mark.parametrize(("question", "context", "answer"), ANSWERS)
def test_a_missing_end_mark_changes_nothing(question, context, answer):
    assert value(question, context, answer.removesuffix(".")) == value(question, context, answer)


@pytest.mark.parametrize(("question", "context", "answer"), ANSWERS)
def test_passages_about_other_things_change_little(question, context, answer):
    before = value(question, context, answer)
    assert abs(value(question, [*PASSAGES[:10], *context, *PASSAGES[10:]], answer) - before) < 0.05


def test_a_number_counts_where_it_stands_and_not_anywhere():
    wrong, right = "The lighthouse is 41 meters high.", "The lighthouse is 38 meters high."
    assert any("41 liters" in each for each in PASSAGES)
    assert value(None, [*LIGHTHOUSE, *PASSAGES], wrong) < value(None, LIGHTHOUSE, right) - 0.1


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("Der Leuchtturm ist 38 Meter hoch und wurde von Ada Renner gebaut.", "informational"),
        ("The lighthouse is 38 meters high.", "ok"),
    ],
)
def test_a_language_that_was_not_measured_is_informational(answer, status):
    records = [{"case": {"id": "q1", "context": LIGHTHOUSE}, "outcome": answer}]
    (row,) = agentunit.score(records, [FaithfulnessMetric(backend="local")])
    score = row.scores["faithfulness"]
    assert (score.status, score.backend) == (status, "local")
    assert ("'de'" in score.result.detail.get("informational", "")) == (status == "informational")


@pytest.mark.parametrize(
    "claim",
    [
        "Feel free to take as many tablets as you want.",
        "Please don't hesitate to exceed the maximum dose.",
        "Let me know if you have the receipt, because returns without one are refused.",
        "If you want a refund, ask the shop in Bend within two weeks.",
        "If you need insulin, feel free to double the dose.",
        "We cannot give refunds.",
        "We can't provide shipping to Alaska.",
        "I'm sorry, but we do not have enough rooms for your party.",
        "I don't know the exact date but it was in 1999.",
        "42.",
        "I recommend contacting the embassy in Rome.",
        "I can transfer you to a human agent who will refund the ticket.",
        "If you want a refund, such as for delays, the airline pays it.",
        "Enjoy your trip to Rome, which is sunny.",
        "Take care of the plants daily.",
        "The contract does not include insurance.",
        "There is no information desk at the station.",
        "There is no evidence that it helps.",
        "The text does not mention Rome, which was founded in 753 BC.",
        "The documents do not hold a signature, but the copy does.",
        "It was not given to him.",
        "Insufficient information led to the crash.",
    ],
)
def test_what_sounds_like_a_courtesy_or_a_refusal_may_claim_something(claim):
    assert [each.text for each in claims_of(f"Sure! {claim}", "What is it?")] == [claim]


@pytest.mark.parametrize(
    "remark",
    [
        "If you'd like more information, I'd be happy to help.",
        "If you have any other questions, just ask.",
        "Don't hesitate to contact us if anything is unclear.",
        "Could you check it and write to us again?",
        "We apologize for any inconvenience this may have caused.",
        "We do not have enough information to answer the question.",
        "Kind regards, Ana",
        "Safe travels, and I hope everything works out for your trip!",
        "If you decide to make any changes in the future, feel free to reach out.",
        "If you have other details to verify, such as dates, bags, or payments, feel free to let me know.",
        "If you believe there is an error, I recommend contacting a human agent who can look into it.",
        "I can transfer you to a human agent for further assistance.",
        "The provided context does not mention this.",
        "Based on the provided documents, there is no information about that.",
        "I'm sorry, but the provided passages do not contain the answer.",
        "There is no explicit information about the price in the given text.",
        "This is not mentioned in the provided context.",
        "Unfortunately, there is no mention of refunds in the documents.",
        "I do not have specific information.",
        "There is not enough information to answer.",
        "Unanswerable.",
    ],
)
def test_courtesies_and_refusals_claim_nothing(remark):
    assert claims_of(f"The shop opens at nine. {remark}")[1:] == []
