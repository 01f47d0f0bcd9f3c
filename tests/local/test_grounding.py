"""How answers are cut into claims, compared with the context, and put together; no model is asked here."""

from __future__ import annotations

import itertools

import pytest
from agentunit_local.grounding.claims import DECLINED, NO_CLAIM, claims_of, why_no_claims
from agentunit_local.grounding.cross_encoder import PairScore
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.figures import figures_of, share_stated
from agentunit_local.grounding.kinds import kind_of
from agentunit_local.grounding.languages import language_of
from agentunit_local.grounding.lexical import compared
from agentunit_local.grounding.segments import split_sentences
from agentunit_local.grounding.support import Mix, SupportJudge, is_copied
from hypothesis import given
from hypothesis import strategies as st

MIX = Mix(
    centres={"logit": 0.0, "token": 0.0, "words": 0.5, "figures": 1.0},
    scales={"logit": 2.0, "token": 2.0, "words": 0.25, "figures": 0.25},
    weights={"logit": 1.5, "token": 0.3, "words": 1.1, "figures": 0.5},
    slope=1.0,
    intercept=0.0,
    thresholds={"summary": 0.4, "claim": 0.5, "question answering": 0.6, "dialogue": 0.7},
)


class Scripted:
    """A model that gives the logits it was made with, by a word of the claim, and notes what it was asked."""

    name = "scripted"

    def __init__(self, **logits: float) -> None:
        self.logits = logits
        self.asked: list[tuple[str, str]] = []

    def score(self, pairs):
        self.asked += pairs
        return [
            PairScore(next((value for word, value in self.logits.items() if word in claim), 0.0), 0.0, ((0, 3, 0.9),))
            for _, claim in pairs
        ]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Ho met Mr. Li in the U.S. in May.", ["Dr. Ho met Mr. Li in the U.S. in May."]),
        ("It cost 3.5 euros. Cheap.", ["It cost 3.5 euros.", "Cheap."]),
        ("at 11:00 BST.Ninety-six fans", ["at 11:00 BST.", "Ninety-six fans"]),
        ("- one\n- two\n\n", ["- one", "- two"]),
        ("Wait...What? Really?! Yes.", ["Wait...", "What?", "Really?!", "Yes."]),
        ("九点开门。门票十二欧元！好", ["九点开门。", "门票十二欧元！", "好"]),
        ("J. R. R. Tolkien wrote it.", ["J. R. R. Tolkien wrote it."]),
        ("", []),
        (" \n .!? \n", []),
    ],
)
def test_sentences(text, sentences):
    assert [each.text for each in split_sentences(text)] == sentences


@given(st.text(max_size=400))
def test_sentences_stand_where_they_say(text):
    found = split_sentences(text)
    assert all(text[each.start : each.end] == each.text for each in found)
    assert all(first.end <= second.start for first, second in itertools.pairwise(found))


def test_a_very_long_sentence_is_cut_and_nothing_lost():
    text = " ".join(f"word{number}" for number in range(1000))
    found = split_sentences(text)
    assert len(found) > 5
    assert " ".join(each.text for each in found) == text


def test_text_without_spaces_is_cut_where_the_model_could_not_read_it_at_once():
    found = split_sentences("门" * 1000)
    assert max(len(each.text) for each in found) <= 160
    assert "".join(each.text for each in found) == "门" * 1000


def test_a_bare_answer_is_read_with_its_question():
    assert [each.asked for each in claims_of("Paris", "What is the capital?")] == ["What is the capital? Paris"]
    assert [each.asked for each in claims_of("Paris is the capital of France, of course.", "What?")] == [
        "Paris is the capital of France, of course."
    ]


def test_evidence_is_what_bears_on_the_claim_within_the_budget():
    filler = " ".join(f"The weather in town {number} was mild and dry." for number in range(80))
    context = Context([filler, "Anna Berg opened the bakery in 1987. She sold it to a cousin later."])
    chosen = context.evidence_for("The bakery was opened by Anna Berg in 1987.", budget=40)
    texts = [context.sentences[number].sentence.text for number in chosen]
    assert "Anna Berg opened the bakery in 1987." in texts
    assert "She sold it to a cousin later." in texts
    assert sum(len(context.sentences[number].stems) for number in chosen) <= 40 + 12
    assert chosen == sorted(chosen)


def test_each_sentence_chosen_adds_what_is_not_covered_yet():
    filler = " ".join(f"Weather report {number} was mild." for number in range(80))
    twice = "Anna Berg opened the bakery. Anna Berg opened the bakery. The cousin came in 2004."
    context = Context([filler, twice])
    chosen = context.evidence_for("Anna Berg opened the bakery and the cousin came in 2004.", budget=8)
    assert [context.sentences[number].sentence.text for number in chosen] == [
        "Anna Berg opened the bakery.",
        "The cousin came in 2004.",
    ]


def test_a_context_that_fits_is_shown_whole():
    context = Context(["One thing.", "Another thing."])
    assert sorted(context.evidence_for("Something else")) == [0, 1]


def test_a_passage_that_holds_little_of_the_claim_is_not_shown():
    bakery = "Anna Berg opened the bakery in 1987. She sold it to a cousin later."
    others = [f"The weather in town {number} was mild. Nobody opened a window." for number in range(20)]
    chosen = Context([*others, bakery]).evidence_for("The bakery was opened by Anna Berg in 1987.")
    assert len(chosen) == 2


@given(st.permutations(["Ann paid 20 euros. Bob was there.", "Bob paid 30 euros. Ann left.", "It rained. Ann slept."]))
def test_the_order_of_passages_changes_nothing(passages):
    context = Context(passages)
    shown = [context.sentences[number].sentence.text for number in context.evidence_for("Ann paid Bob 20 euros.", 6)]
    assert shown == ["Ann paid 20 euros.", "Bob paid 30 euros."]
    assert all(passages[each.passage].find(each.sentence.text) >= 0 for each in context.sentences)


@pytest.mark.parametrize(
    ("claim", "share", "value"),
    [
        ("Ann paid 20 euros.", "content", 1.0),
        ("Ann paid 30 euros.", "figures", 0.0),
        ("Ann paid.", "figures", 1.0),
        ("ANN PAID twenty euros", "figures", 1.0),
        ("Ann paid 20 euros.", "triples", 1.0),
        ("Ann then paid 20 euros.", "triples", 1 / 3),
        ("Bob paid 20 euros.", "one_sentence", 0.75),
        ("Two dogs bark.", "content", 0.0),
    ],
)
def test_comparison(claim, share, value):
    found = compared(claim, Context(["Ann paid 20 euros.", "Bob left."]).sentences)
    assert getattr(found, share) == pytest.approx(value)


@given(st.text(max_size=200), st.lists(st.text(max_size=200), max_size=3))
def test_comparison_stays_in_range_for_any_text(claim, passages):
    found = compared(claim, Context(passages).sentences)
    assert all(0 <= value <= 1 for value in (found.content, found.triples, found.one_sentence, found.figures))


@pytest.mark.parametrize(
    ("claim", "evidence", "share"),
    [
        ("It sold 4.5 million copies.", "It sold 4,500,000 copies.", 1.0),
        ("About 14 % voted.", "13.8 % voted.", 1.0),
        ("14 % voted.", "13.8 % voted.", 0.0),
        ("Nearly 600 came.", "593 people came.", 1.0),
        ("Nearly 600 came.", "493 people came.", 0.0),
        ("It is 5 km away.", "It is 5,000 m away.", 1.0),
        ("It is 5 miles away.", "It is 5 km away.", 0.0),
        ("It began at 2:00 PM.", "It began at 14:00.", 1.0),
        ("It began on July 20, 1969.", "It began on 20 July 1969.", 1.0),
        ("It began in 1969.", "It began on 20 July 1969.", 1.0),
        ("It began on 20 July 1969.", "It began in 1969.", 0.0),
        ("Twelve men and 3 dogs.", "12 men and four dogs.", 0.5),
        ("One can only hope.", "Hope is all.", None),
    ],
)
def test_figures_in_other_spellings(claim, evidence, share):
    assert share_stated(figures_of(claim), [figures_of(evidence)]) == share


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        ("1. Bread\n2. Milk", ["Bread", "Milk"]),
        ("Key points include:\n- It is old.", ["It is old."]),
        ("Here is a concise summary of the passage: The film is from 2014.", ["The film is from 2014."]),
        ("Sure! Based on the given passages, it is old. I hope this helps!", ["it is old."]),
        ("It holds:\n* Herbs\n* Old leaves (Passage 2)", ["It holds: Herbs", "It holds: Old leaves (Passage 2)"]),
        ("It is old. Let me know if you have any questions.", ["It is old."]),
        ("The key is under the mat.", ["The key is under the mat."]),
        ("Thank you for the music was written in 1977.", ["Thank you for the music was written in 1977."]),
        ("The answer is 42.", ["The answer is 42."]),
        ("I do not know. It may be old.", ["It may be old."]),
        ("He did not know the way.", ["He did not know the way."]),
        ("You're welcome!", []),
    ],
)  # fmt: skip
def test_what_claims_nothing_is_left_out(answer, asked):
    found = claims_of(answer)
    assert [each.asked for each in found] == asked
    assert all(answer[each.start : each.end] == each.text and each.asked.endswith(each.text) for each in found)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I'm sorry, but I cannot answer that.", DECLINED),
        ("Unable to answer based on given passages.", DECLINED),
        ("Hello! How can I help you?", NO_CLAIM),
    ],
)
def test_an_answer_without_a_claim_says_why(answer, reason):
    assert claims_of(answer) == []
    assert why_no_claims(answer) == reason


_PIECES = [
    "Sure!",
    "Here is a summary:",
    "It holds:",
    "- Bread",
    "1. Milk",
    "Ann paid 20 euros.",
    "I do not know.",
    "Yes",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=6), st.sampled_from(_PIECES), st.sampled_from([None, "What is it?"]))
def test_claims_do_not_depend_on_what_follows(pieces, more, question):
    before = claims_of("\n".join(pieces), question)
    assert claims_of("\n".join([*pieces, more]), question)[: len(before)] == before


@given(st.text(max_size=300))
def test_claims_stand_where_they_say_in_any_text(answer):
    assert all(answer[each.start : each.end] == each.text for each in claims_of(answer, "Why?"))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The bakery opens at seven and sells rye bread."),
        ("de", "Die Bäckerei öffnet um sieben und verkauft das Brot."),
        ("fr", "La boulangerie ouvre à sept heures et vend du pain."),
        ("es", "La panadería abre a las siete y vende pan de centeno."),
        ("pt", "A padaria abre às sete e vende pão de centeio para os vizinhos."),
        ("it", "Il forno apre alle sette e vende il pane di segale."),
        ("nl", "De bakkerij gaat om zeven uur open en verkoopt het brood."),
        ("pl", "Piekarnia jest otwarta od siódmej i nie sprzedaje ciast."),
        ("tr", "Fırın yedide açılır ve çavdar ekmeği için bir kuyruk olur."),
        ("ru", "Пекарня открывается в семь и продаёт ржаной хлеб."),
        ("zh", "面包店七点开门，出售黑麦面包。"),
        ("ja", "パン屋は七時に開き、ライ麦パンを売っています。"),
        ("ar", "يفتح المخبز في السابعة ويبيع خبز الجاودار."),
        ("hi", "बेकरी सात बजे खुलती है और राई की रोटी बेचती है।"),
        (None, "42"),
        (None, "Paris"),
        ("en", "order id: A-1058, ordered on: 2025-10-08, parcel id: NB-58E, email: sam.delgado@example.com"),
        (None, "vitamin A, vitamin E, vitamin B; sizes: A-4, E-22, O-7"),
        (None, "Los Angeles, La Jolla, Las Vegas, El Paso, Santa Fe, Del Mar"),
        (None, '{"a": 1, "o": 2, "e": 3, "link": "www.la.com/e/o"}'),
        (None, '{"origin": "DEN", "via": "AUS", "destination": "LAS", "fare": 120, "gate": "DEN", "stop": "AUS"}'),
        ("de", "DIE BÄCKEREI ÖFFNET UM SIEBEN UND VERKAUFT DAS BROT."),
    ],
)
def test_languages(language, text):
    assert language_of([text]) == language


@pytest.mark.parametrize(
    ("question", "n_claims", "kind"),
    [
        (None, 1, "claim"),
        (" ", 4, "summary"),
        ("How high is it?", 3, "question answering"),
        ("oil stain on driveway", 3, "question answering"),
        ("I like rugby league", 1, "dialogue"),
    ],
)
def test_kinds_of_answers(question, n_claims, kind):
    assert kind_of(question, n_claims) == kind


def test_only_what_is_not_copied_is_asked():
    model = Scripted(tickets=-4.0)
    passages = ["The museum opens at nine every day.", "Tickets are 12 euros."]
    support = SupportJudge(model, MIX).judge(None, passages, "The museum opens at nine every day. Big tickets cost 30.")
    assert support is not None
    assert [claim for _, claim in model.asked] == ["Big tickets cost 30."]
    copied, invented = support.claims
    assert (copied.copied, invented.copied) == (True, False)
    assert (copied.passage, invented.passage) == (0, 1)
    assert copied.probability > 0.9 > 0.1 > invented.probability
    assert invented.doubtful == ({"start": 36, "end": 39, "probability": 0.9},)


@pytest.mark.parametrize(
    ("passages", "answer"),
    [
        (["Yes."], "Yes."),
        (["It is open. Tickets are 12 euros."], "It is open. Tickets are 12 euros."),
        (["It is open.", "Tickets are 12 euros"], "TICKETS are  12 euros.\nIt is open!"),
    ],
)
def test_an_answer_that_repeats_the_context_is_fully_grounded(passages, answer):
    model = Scripted()
    support = SupportJudge(model, MIX).judge("Is it open?", passages, answer)
    assert support.value == 1.0
    assert {claim.probability for claim in support.claims} == {1.0}
    assert not model.asked


@pytest.mark.parametrize("answer", ["It is 5 degrees.", "It is -5 degrees. It rains.", "degrees"])
def test_only_whole_sentences_are_verbatim(answer):
    support = SupportJudge(Scripted(), MIX).judge(None, ["It is -5 degrees."], answer)
    assert support.value < 1.0


def test_doubt_about_a_bare_answer_is_kept_when_its_question_is_doubted_too():
    class Doubting(Scripted):
        def score(self, pairs):
            (claim,) = [claim for _, claim in pairs]
            # The end mark that was added for the model is no part of the answer.
            end = len(claim.removesuffix("."))
            return [PairScore(-2.0, 2.0, ((end - 11, end - 7, 0.7), (end - 6, end, 0.9), (end, end + 1, 0.99)))]

    support = SupportJudge(Doubting(), MIX).judge("What does it cost", ["Tickets are 12 euros."], "Thirty")
    assert support.claims[0].doubtful == ({"start": 0, "end": 6, "probability": 0.9},)


_CLAIM_SCORES = st.lists(st.floats(-9, 6), min_size=1, max_size=9)


@given(_CLAIM_SCORES, st.data())
def test_a_better_claim_never_lowers_the_answer(scores, data):
    place = data.draw(st.integers(0, len(scores) - 1))
    raised = [*scores[:place], scores[place] + 1, *scores[place + 1 :]]
    assert MIX.answer_score(raised) >= MIX.answer_score(scores) - 1e-9


@given(_CLAIM_SCORES, st.floats(-9, -1))
def test_an_unsupported_claim_never_raises_the_answer(scores, unsupported):
    assert MIX.answer_score([*scores, unsupported]) <= MIX.answer_score(scores) + 1e-9


@given(_CLAIM_SCORES)
def test_a_claim_below_the_least_supported_one_lowers_the_answer(scores):
    assert MIX.answer_score([*scores, min(scores) - 1]) < MIX.answer_score(scores)


@given(_CLAIM_SCORES, st.randoms())
def test_the_order_of_claims_changes_nothing(scores, rng):
    shuffled = scores[:]
    rng.shuffle(shuffled)
    assert MIX.answer_score(shuffled) == pytest.approx(MIX.answer_score(scores))


def test_copied_means_word_for_word():
    context = Context(["The museum opens at nine, every day."])
    assert is_copied("the museum opens at nine every day", context)
    assert not is_copied("The museum opens at ten every day", context)
    assert not is_copied("The museum", context)


@pytest.mark.parametrize(("passages", "answer"), [([], "Something."), (["…"], "Something."), (["A fact."], " … ")])
def test_nothing_to_compare_is_no_score(passages, answer):
    assert SupportJudge(Scripted(), MIX).judge(None, passages, answer) is None


def test_a_supported_claim_alone_has_its_own_score():
    assert MIX.answer_score([2.5]) == pytest.approx(2.5)
    assert MIX.answer_score([MIX.highest] * 20) == pytest.approx(MIX.highest)
