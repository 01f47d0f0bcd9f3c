"""Names by a language model: what it is given, what is made of its answers; with the model itself where it is there."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.names.ner import NerDetector, PersonNames, promising
from agentunit.addons.names.spacy_model import model_path, spacy_unready
from agentunit.backends.quality import BackendUnavailable
from agentunit.installation import install_command
from agentunit.privacy.detectors import detector_named

HAS_MODEL = spacy_unready() is None


class FakePipeline:
    """Takes the words it was told for people, as the model would; keeps what it was asked."""

    def __init__(self, *names):
        self.names = names
        self.asked = []

    def pipe(self, pieces, as_tuples, batch_size):
        for text, context in pieces:
            self.asked.append(text)
            found = [(name, text.find(name)) for name in self.names if name in text]
            entities = [
                SimpleNamespace(label_="PERSON", start_char=start, end_char=start + len(name)) for name, start in found
            ]
            yield SimpleNamespace(ents=entities), context


def people(*names):
    finder = PersonNames()
    finder._pipeline = FakePipeline(*names)
    return finder


@pytest.mark.parametrize(
    ("text", "given_to_the_model"),
    [
        ("please wait. it is done.", []),
        ("Please wait. It is Monday. Thank you!", []),
        ("Please wait. We asked Ana. It is Monday.", ["We asked Ana. "]),
        ("Ana called.", ["Ana called."]),
        ("Ask Dr. Okoye. Then wait.", ["Ask Dr. Okoye. "]),
        ("nothing\n\nÅsa left\n\nnothing", ["Åsa left\n\n"]),
        ("", []),
    ],
)
def test_only_sentences_that_may_hold_a_name_are_given_to_the_model(text, given_to_the_model):
    assert [text[start:end] for start, end in promising(text)] == given_to_the_model


def test_texts_without_a_candidate_never_load_the_model():
    finder = PersonNames("no model of this name")
    assert finder.find(["it is done.", ""]) == [[], []]
    with pytest.raises(BackendUnavailable, match="neither a folder nor an installed package"):
        finder.find(["Ana called."])


@pytest.mark.parametrize(
    ("entity", "text", "names"),
    [
        ("Ana Okoye's", "We met Ana Okoye's team.", ["Ana Okoye"]),
        ('"Ana Okoye,', 'He said "Ana Okoye, please".', ["Ana Okoye"]),
        ("Ana\nBo", "To: Ana\nBo Lind", ["Ana", "Bo"]),
        ("Ana 24", "See Ana 24.", []),
        ("!?", "Ana !?", []),
    ],
)
def test_a_name_is_cut_out_of_what_stands_around_it(entity, text, names):
    assert [text[start:end] for start, end in people(entity).find([text])[0]] == names


def test_places_are_those_of_the_whole_text():
    text = "Please wait. " * 300 + "We asked Ana Okoye."
    finder = people("Ana Okoye")
    assert finder.find(["", text]) == [[], [(len(text) - 10, len(text) - 1)]]
    assert finder._pipeline.asked == ["We asked Ana Okoye."]


@given(st.text(alphabet="Aa .!?\n'Éé9", max_size=4000))
def test_what_is_promising_are_parts_of_the_text_in_order(text):
    position = 0
    for start, end in promising(text):
        assert position <= start < end <= len(text)
        assert end - start <= 1500
        position = end


def test_the_model_adds_full_names_and_leaves_everything_else_to_patterns():
    detector = NerDetector()
    detector._people = people("Qzwx Vbnmqq", "Monday Market", "Qzwxalone", "qq.vv@example.com")
    text = "Send it: Qzwx Vbnmqq, Monday Market, Qzwxalone, qq.vv@example.com."
    found = [(each.type, text[each.start : each.end]) for each in detector.find([text])[0]]
    assert ("name", "Qzwx Vbnmqq") in found
    assert ("email", "qq.vv@example.com") in found
    assert not {("name", "Monday Market"), ("name", "Qzwxalone"), ("name", "qq.vv@example.com")} & set(found)


def test_a_backend_that_does_not_exist_is_refused_with_the_nearest_name():
    with pytest.raises(
        BackendUnavailable, match=r"redact: backend must be .*received 'presido'; did you mean 'presidio'"
    ):
        detector_named("presido", "redact")


@pytest.mark.skipif(HAS_MODEL, reason="spaCy and its model are installed")
def test_without_the_model_the_command_that_adds_it_is_named():
    with pytest.raises(BackendUnavailable, match=r"redact: backend 'ner' cannot run: .*pip install"):
        detector_named("ner", "redact")
    with pytest.raises(BackendUnavailable, match="pip install"):
        model_path()
    if find_spec("spacy") is None:
        assert spacy_unready() == f"spaCy is not installed; {install_command('ner')} adds it"


@pytest.mark.skipif(not HAS_MODEL, reason="needs spaCy and its English model (extra 'ner')")
@pytest.mark.filterwarnings("default")
def test_the_real_model_knows_people_from_towns():
    text = "Krisztian Szollosy met Jonas Nielsen in Seattle on Monday."
    found = [text[start:end] for start, end in PersonNames().find([text])[0]]
    assert found == ["Krisztian Szollosy", "Jonas Nielsen"]
