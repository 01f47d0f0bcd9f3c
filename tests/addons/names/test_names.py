"""Names of people: what is found and what is left, a text with the names in ⟦double brackets⟧."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.names.names import find_names, find_names_in
from agentunit.privacy.detection.gazetteer import DATA_FILE, Kind, entries, fold, kinds_of

FULL_NAMES = [
    "⟦Krisztián Szöllösy⟧ listed his favourite songs.",
    "The keynote is by ⟦Hanne I. Kreutzmann⟧ and ⟦Ján M. Novák⟧.",
    "⟦J. R. Smith⟧ signed the lease.",
    "We met ⟦Ludwig van der Berg⟧ at noon.",
    "The form of ⟦María de la Cruz⟧ is missing.",
    "⟦Mohammed al-Rashid⟧ called twice.",
    "Ask ⟦Mary O'Brien⟧ or ⟦Jean-Pierre Dupont⟧.",
    "⟦Martin Luther King, Jr⟧. was born in Atlanta.",
    "⟦Nguyen Van Anh⟧ wrote the report.",
    "Maybe it's under ⟦Rubija Liberšar⟧",
    "⟦Will Smith⟧ said no.",
]

LONE_NAMES = [
    "My name is ⟦Grace⟧.",
    "What's your last name? ⟦Turgeon⟧",
    "Mr. ⟦Baker⟧ will see you now, Mrs. ⟦Pálffy⟧.",
    "Hi ⟦Aarav⟧, thanks for waiting.",
    "⟦Warrane⟧, can I speak to your boss?",
    "Our founders: ⟦Kónya⟧, ⟦Becker⟧ and ⟦Vasquez⟧.",
    "⟦Gladys⟧ told ⟦Logan⟧ everything.",
    "⟦Nicole⟧: hello!\n⟦Ubul⟧: good morning.",
    "⟦Zargan Vedzizhev⟧ moved, and then ⟦Zargan⟧ came back.",
    'He sang "you left me ⟦Mette⟧, four children".',
    '{"first_name": "⟦Raj⟧", "last_name": "⟦Sanchez⟧"}',
    "Best regards,\n⟦Daiki⟧",
    'Customer name: ⟦Vexley⟧. {"name": "⟦Raj Sanchez⟧"}',
    "We met ⟦Ronald McDonald⟧ and ⟦LaToya Jackson⟧.",
]

NO_NAMES = [
    "I fly from New York to San Diego on Monday Morning.",
    "Will you mark the box in May?",
    "Mark the date; Grace is given to all, and Hope remains.",
    "User: Can you find me a Rose Garden?",
    "She works at Smith Ltd. and at Weber University.",
    "I work for Morgan Stanley Inc.",
    "The user id is mia_li_3668.",
    "Write to john.smith@example.org or see https://example.org/John/Smith.",
    "Turn left at Kimberly Way and right at Martin Street.",
    "Windows Server and Google Chrome are installed.",
    "Entertainment Weekly reviewed Tube Snake Boogie.",
    "Capitalized words like Wisdom and Discipline are often mistaken.",
    "I will be travelling to Canada and Jordan next week.",
    "I'm Sorry. I'd like that. You Can Do It.",
    "The USS Lorenzen left the harbour.",
    "German and French are taught in December.",
    "Intern Name: Codebase Navigator\nSubgoal: Locate the function.",
    "Ask the editor\nSubgoal: change it.",
    "Airplane Mode: OFF\nData Roaming: ON",
    "Line resumed. Line has 3 points.",
    '{"name": "Bluetooth Speaker", "product_id": "1"}, {"name": "Smart Watch"}, {"name": "Indoor Security Camera"}',
    '{"name": "T-Shirt"}, {"name": "E-Reader"}, {"name": "Tea Kettle"}, {"class_name": "TextNode"}',
    "due to: LookupError: no invoice\nTypeError: it wants NaN values",
    "filename = os.path.join(root, name)",
    'name = "TOML Config"\nCall it with `Mia` or Mia(2) or mia::Mia.',
    "Source candidates: Wikipedia discussion pages.",
    "She bought 20 Valentine's cards.",
    "Ask the UK AISI. Then, summarize what WWW.AISI.GOV.UK says.",
    "See the OECD. May we go on?",
    "My IBAN: DE88. Kontonummer IBAN: FR14. My CVV: 737.",
    "In the Scikit-Learn changelog, the Co-Founder added it.",
]

LOWER_CASE = [
    "Contact ⟦JOHN SMITH⟧. Then go on.",
    "My name is ⟦Iban Puig⟧.",
    "my name is ⟦borna jerković⟧ but everyone calls me ⟦borna⟧",
    "⟦olga krylova⟧'s killers were sentenced",
    "i will mark the box in may and hope for grace",
]


def marked(text: str) -> str:
    for finding in reversed(find_names(text)):
        text = f"{text[: finding.start]}⟦{text[finding.start : finding.end]}⟧{text[finding.end :]}"
    return text


@pytest.mark.parametrize("expected", FULL_NAMES + LONE_NAMES + NO_NAMES + LOWER_CASE)
def test_names_are_found_and_near_misses_are_left(expected: str) -> None:
    assert marked(re.sub("[⟦⟧]", "", expected)) == expected


@pytest.mark.parametrize(
    "text",
    ["Sandra", "My name is Sandra", "Dear Dr. Mathias Ruud,", "Ann Lee: Hi.\nBob: Hi.", "Jane Doe said so. Jane left."],
)
def test_every_name_has_the_catalogs_confidence(text: str) -> None:
    assert {found.confidence for found in find_names(text)} == {0.60}


@given(
    st.lists(
        st.sampled_from(["Mary", "Smith", "van", "Will", "J.", "Xylo", "the", "\n", ",", "O'Brien", "É", "–", "ß"])
    )
)
def test_findings_are_in_order_and_do_not_overlap(words: list[str]) -> None:
    text = " ".join(words)
    ends = 0
    for finding in find_names(text):
        assert ends <= finding.start < finding.end <= len(text)
        assert text[finding.start : finding.end].strip() == text[finding.start : finding.end]
        ends = finding.end


@given(st.lists(st.text()))
def test_any_texts_can_be_searched_together(texts: list[str]) -> None:
    assert find_names_in(texts) == [find_names_in([text])[0] for text in texts]


def test_a_long_run_of_capitals_is_searched_in_pieces() -> None:
    assert find_names("Qwxy " * 20_000) == []
    assert find_names("A" * 100_000) == []
    assert len(find_names("Mary Smith. " * 1_000)) == 1_000


def test_the_gazetteer_is_small_and_knows_what_words_can_be() -> None:
    assert DATA_FILE.stat().st_size < 600_000
    assert all(word == fold(word) for word in list(entries())[::50])
    assert kinds_of("Mary") & Kind.FREQUENT_FIRST
    assert kinds_of("Smith") & Kind.FREQUENT_LAST
    assert kinds_of("the") & Kind.WORD
    assert kinds_of("Denmark") & Kind.COUNTRY
    assert kinds_of("Anne-Marie") & Kind.FIRST
    assert kinds_of("Qwxyz") == 0


@pytest.mark.parametrize("name", ["john f kennedy", "maria l lopez", "emma c johnson"])
def test_an_initial_without_a_dot_before_a_surname_is_part_of_a_name_in_lower_case(name: str) -> None:
    text = f"{name} called me"
    assert [text[each.start : each.end] for each in find_names(text)] == [name]


@pytest.mark.parametrize("name", ["Ela Kaya", "Dia Mirza", "Alla Petrova", "Nella Rossi", "Alem Tesfaye"])
def test_small_words_of_other_languages_before_a_surname_are_first_names(name: str) -> None:
    text = f"El cliente {name} llamó ayer para pedir una devolución y no está contento."
    assert [text[each.start : each.end] for each in find_names(text)] == [name]
    assert find_names("Ela disse que não quer mais o produto da loja.") == []
