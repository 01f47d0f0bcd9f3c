"""How answers are cut into claims, compared with the context, and put together; no model is asked here."""

from __future__ import annotations

import itertools

import pytest
from agentunit_local.grounding.claims import claims_of
from agentunit_local.grounding.cross_encoder import LARGEST_LOGIT, PairScore
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.lexical import FEATURES, lexical_features
from agentunit_local.grounding.segments import split_sentences
from agentunit_local.grounding.support import Mix, SupportJudge, is_copied
from hypothesis import given
from hypothesis import strategies as st

MIX = Mix(
    centres={"logit": 0.0, "token": 0.0, "words": 0.5, "facts": 1.0},
    scales={"logit": 2.0, "token": 2.0, "words": 0.25, "facts": 0.25},
    weights={"logit": 1.5, "token": 0.3, "words": 1.1, "facts": 0.5},
    slope=1.0,
    intercept=0.0,
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


@given(
    st.lists(
        st.lists(st.sampled_from(["Ann", "Bob", "paid", "not", "the", "20", "30", "river"]), max_size=9), max_size=30
    )
)
def test_the_closest_sentence_is_the_first_of_those_that_hold_most(sentences):
    context = Context([" ".join(words) + "." for words in sentences])
    wanted = {"ann", "paid", "20", "zebra"}
    held = [len(wanted & each.content) for each in context.sentences]
    most = max(held, default=0)
    assert context.closest(wanted) == (most, context.sentences[held.index(most)] if most else None)


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
    assert context.evidence_for("Something else") == [0, 1]


@pytest.mark.parametrize(
    ("claim", "feature", "value"),
    [
        ("Ann paid 20 euros.", "content_precision", 1.0),
        ("Ann paid 30 euros.", "number_precision", 0.0),
        ("Yesterday Bob paid.", "name_precision", 0.0),
        ("Ann did not pay 20 euros.", "negation_differs", 1.0),
        ("Ann paid 20 euros.", "longest_copy", 1.0),
        ("Two dogs bark.", "content_precision", 0.0),
    ],
)
def test_comparison(claim, feature, value):
    features = dict(zip(FEATURES, lexical_features(claim, Context(["Ann paid 20 euros."])), strict=True))
    assert features[feature] == pytest.approx(value)


@given(st.text(max_size=200), st.lists(st.text(max_size=200), max_size=3))
def test_comparison_stays_in_range_for_any_text(claim, passages):
    features = lexical_features(claim, Context(passages))
    assert len(features) == len(FEATURES)
    assert all(0 <= value <= 1 for value in features[:-1])


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
            end = len(claim)
            return [PairScore(-2.0, 2.0, ((end - 11, end - 7, 0.7), (end - 6, end, 0.9)))]

    support = SupportJudge(Doubting(), MIX).judge("What does it cost", ["Tickets are 12 euros."], "Thirty")
    assert support.claims[0].doubtful == ({"start": 0, "end": 6, "probability": 0.9},)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9), st.data())
def test_a_better_claim_never_lowers_the_answer(logits, data):
    place = data.draw(st.integers(0, len(logits) - 1))
    raised = [*logits[:place], min(LARGEST_LOGIT, logits[place] + 1), *logits[place + 1 :]]
    before, after = (
        MIX.answer_score([MIX.model_part(PairScore(each, 0.0)) for each in some], [0.0] * len(some))
        for some in (logits, raised)
    )
    assert after >= before - 1e-9


def test_copied_means_word_for_word():
    context = Context(["The museum opens at nine, every day."])
    assert is_copied("the museum opens at nine every day", context)
    assert not is_copied("The museum opens at ten every day", context)
    assert not is_copied("The museum", context)


@pytest.mark.parametrize(("passages", "answer"), [([], "Something."), (["…"], "Something."), (["A fact."], " … ")])
def test_nothing_to_compare_is_no_score(passages, answer):
    assert SupportJudge(Scripted(), MIX).judge(None, passages, answer) is None


@pytest.mark.parametrize(
    ("model_parts", "compared_parts", "score"),
    [
        ([1.0], [0.5], 1.5),
        # The least third is -1 and 3, its mean 1: (2 · 1 + -1) / 3; compared: the mean of all.
        ([3.0, -1.0, 4.0, 5.0], [0.0, 0.0, 1.0, 3.0], 1 / 3 + 1.0),
    ],
)
def test_an_answer_counts_by_its_least_supported_claims(model_parts, compared_parts, score):
    assert MIX.answer_score(model_parts, compared_parts) == pytest.approx(score)
