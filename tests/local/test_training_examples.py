"""What the groundedness models learn from: each maker of claims shows an example, and no claim gives itself away."""

from __future__ import annotations

import json
import random
import re
import zipfile
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from training.groundedness import balance, examples, further, removed, revisions, summaries, tables
from training.groundedness.agreement import auroc
from training.groundedness.dialogues import dialogue_groups, report
from training.groundedness.edits import Editor, Made, Source
from training.groundedness.groups import Group, Pair

LEXICON = {
    "n": {"bakery": {"sister": ["brewery"]}, "loaf": {"sister": ["cake"]}, "worker": {"opposite": ["employer"]}},
    "v": {"hire": {"same": ["engage"]}, "engage": {"same": ["hire"]}, "begin": {"same": ["open"], "opposite": ["end"]}},
    "a": {"large": {"opposite": ["small"]}},
    "r": {},
}
TEXT = (
    "Maren Holt opened the bakery on Monday in Oslo. The bakery had sold 120 loaves before noon. Tomas Reyes bought "
    "the shop in May. Tomas Reyes was a retired sailor from Bergen. He could hire two new workers after the sale. The "
    "old ovens were sent to a museum in March. The neighbors were happy about the smell of bread."
)
CHAT = """User: I would like to book a table in San Jose.
System: What time would you like to eat?
User: Please find something around 7 pm for my parents.
System: The Bird Dog restaurant is located at 420 Ramona Street.
User: I am allergic to peanuts.
System: Your table is reserved. Have a good time!"""


def editor(seed=1):
    return Editor(LEXICON, random.Random(seed), ["Quinn Abara"])


def made(maker, text=TEXT, kind="own", seeds=60):
    found = []
    for seed in range(seeds):
        found += [
            each
            for each in examples.made_groups(kind, text, editor(seed), random.Random(seed), 2)
            if each.maker == maker
        ]
    assert found, maker
    return found


def claim(group):
    return group.pairs[0].claim


def evidence(group):
    return group.pairs[0].evidence


def marked(group):
    return [claim(group)[start:end] for start, end in group.pairs[0].wrong]


def by_claim(groups):
    labels = defaultdict(set)
    for group in groups:
        labels[claim(group)].add(group.label)
    return labels


@pytest.mark.parametrize("maker", ["mirrored", "denied", "reworded", "detail", "bridge removed"])
def test_every_claim_is_met_with_both_labels(maker):
    assert all(labels == {0.0, 1.0} for labels in by_claim(made(maker)).values())


def test_a_change_is_false_of_the_text_and_true_where_the_text_has_it():
    first, second, third, fourth = made("mirrored")[:4]
    assert [group.label for group in (first, second, third, fourth)] == [1.0, 0.0, 1.0, 0.0]
    assert claim(first) == claim(fourth) != claim(second) == claim(third)
    assert evidence(first) == evidence(second) != evidence(third) == evidence(fourth)
    assert first.document == second.document == third.document - 1
    assert not marked(first)
    assert marked(second)
    assert marked(fourth)


def test_only_the_words_that_differ_are_marked():
    false = next(group for group in made("denied") if not group.label)
    assert marked(false) in (["not"], ["was"], ["had"], ["were"], ["could"])
    longer = Made.of("Ann was not born in Rome.")
    shorter = Made.of("Ann was born in Rome.")
    assert [token for token, wrong in zip(longer.tokens, longer.unlike(shorter).wrong, strict=True) if wrong] == ["not"]
    assert [token for token, wrong in zip(shorter.tokens, shorter.unlike(longer).wrong, strict=True) if wrong] == [
        "was"
    ]


def test_a_denial_is_true_where_the_text_denies():
    true = [group for group in made("denied") if group.label and " not " in claim(group)]
    assert true
    assert all(re.search(r"\b(?:not|never)\b", evidence(group)) for group in true)


@pytest.mark.parametrize(
    "sentence",
    [
        "Is he going to pay the bill today?",
        "They have two dogs at home.",
        "Who can say such a thing?",
        "He did it.",
        "It is not open.",
    ],
)
def test_a_not_is_put_in_only_where_it_can_stand(sentence):
    assert editor().denied(Source.of([sentence]), 0) is None


def test_a_sentence_without_which_a_claim_is_not_said():
    first, second = removed.with_and_without(
        TEXT, "Maren Holt opened a bakery in Oslo.", "own", random.Random(1), "removed"
    )
    assert (first.label, second.label) == (1.0, 0.0)
    assert claim(first) == claim(second)
    assert "Maren Holt" in evidence(first)
    assert "Maren Holt" not in evidence(second)
    # Something was taken out of both, so that a gap is no sign.
    assert len(evidence(first)) < len(TEXT)


def test_nothing_is_removed_where_two_sentences_say_it():
    twice = TEXT + " It was Maren Holt who opened that bakery in Oslo on a Monday."
    assert (
        removed.with_and_without(
            twice, "Maren Holt opened a bakery in Oslo on Monday.", "own", random.Random(1), "removed"
        )
        == []
    )


def test_a_name_is_replaced_by_what_the_text_says_it_is():
    text = TEXT.replace("He could hire", "After that day Tomas Reyes could hire").replace(
        "Tomas Reyes bought", "Some years later Tomas Reyes bought"
    )
    first, second = removed.defined(text, "own", random.Random(2))
    assert claim(first) == claim(second)
    assert "a retired sailor" in claim(first)
    assert "retired" in evidence(first)
    assert "retired" not in evidence(second)
    assert marked(second) == ["a retired sailor"]


def test_a_passage_without_the_sentence_that_holds_the_answer(tmp_path):
    import gzip
    import json

    (tmp_path / "train").mkdir()
    row = {"premise": TEXT, "hypothesis": "Question: Who opened the bakery? Answer: Maren Holt", "label": "entailment"}
    for source in removed.ANSWERED_SOURCES:
        (tmp_path / f"train/{source}.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    groups = list(removed.unanswered(tmp_path, random.Random(1)))
    assert {(group.maker, group.label) for group in groups} == {
        (maker, label) for maker in ("answer removed", "question without answer") for label in (0.0, 1.0)
    }
    assert all(("Maren Holt opened" in evidence(group)) == bool(group.label) for group in groups)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I would like to book a table in San Jose.", "Ann would like to book a table in San Jose."),
        ("I'm allergic to peanuts.", "Ann is allergic to peanuts."),
        ("Sure, I need it for my parents today.", "Ann needs it for their parents today."),
        ("Can you give me the address of the place?", "Ann asks Ben to give them the address of the place."),
        ("What is the address of the restaurant?", "Ann asks what the address of the restaurant is."),
        (
            "The restaurant is located at 420 Ramona Street.",
            "Ann says that the restaurant is located at 420 Ramona Street.",
        ),
        ("Would you like to transfer funds from this account?", None),
        ("Thought it might be handy to put a display on it.", None),
        ("Um , I think so , yeah .", None),
    ],
)
def test_what_somebody_said_is_told_by_rules_or_not_at_all(said, told):
    assert report(said, "Ann", "Ben") == told


def test_speakers_change_places_in_the_claim_or_in_the_chat():
    groups = [
        each
        for seed in range(20)
        for each in dialogue_groups("sgd_dialogue", CHAT, editor(seed), random.Random(seed), 2)
    ]
    exchanged = [each for each in groups if each.maker == "speakers exchanged"]
    edited = [each for each in groups if each.maker == "chat edited"]
    assert exchanged
    assert edited
    first, second, third, fourth = exchanged[:4]
    assert [group.label for group in (first, second, third, fourth)] == [1.0, 0.0, 0.0, 1.0]
    assert claim(first) == claim(third) != claim(second) == claim(fourth)
    assert all(labels == {0.0, 1.0} for labels in by_claim(edited).values())
    assert all(marked(group) for group in exchanged if not group.label)


def test_what_the_other_one_says_too_is_not_exchanged():
    chat = CHAT.replace("What time would you like to eat?", "I would like to book a table in San Jose for you.")
    groups = [
        each
        for seed in range(20)
        for each in dialogue_groups("sgd_dialogue", chat, editor(seed), random.Random(seed), 6)
    ]
    assert not [each for each in groups if each.maker == "speakers exchanged" and "San Jose" in claim(each)]


def told():
    other = (
        "The council met on Friday. The library should open on Sundays. Nobody bought the school. No museum is planned."
    )
    return [
        summaries.Told(
            "qmsum_span", TEXT, "Maren Holt opened the bakery in Oslo before Tomas Reyes bought the shop.", "a"
        ),
        summaries.Told("qmsum_span", other, "The council said that the library should open on Sundays.", "b"),
    ]


def test_claims_of_peoples_summaries_are_true_of_their_document_only():
    groups = list(summaries.summary_groups(told(), editor(), random.Random(1)))
    plain = [each for each in groups if each.maker == "summary"]
    assert {(each.label, "Maren" in evidence(each)) for each in plain if "Maren" in claim(each)} == {
        (1.0, True),
        (0.0, False),
    }
    wrong = [each for each in groups if each.maker == "summary edited" and not each.label]
    assert wrong
    assert all(marked(each) for each in wrong)


def test_a_summary_that_says_more_than_the_document_is_not_called_true():
    assert summaries.covered("Maren Holt opened 14 bakeries.", TEXT) == 0.0
    assert summaries.covered("Then Quinn came to Oslo.", TEXT) == 0.0
    assert summaries.covered("The bakery opened in Oslo.", TEXT) == 1.0


def test_headings_and_half_sentences_of_a_note_are_no_claims():
    plan = "The patient will continue the exercises at home."
    note = f"CHIEF COMPLAINT\n\nKnee pain.\n\nPLAN\n{plan}\nTwo cases were joined (Clayworth v. Bonta and Cal."
    assert summaries.claims_of_summary(note) == [plan]


def groups_of(claims):
    return [Group([Pair("evidence", text)], label, kind="made:own", maker="own") for text, label in claims]


def test_claims_that_give_themselves_away_are_dropped():
    rng = random.Random(4)
    things = ["bread", "milk", "iron", "paper", "glass", "stone", "cotton", "silver", "copper", "wool"]
    sentences = [f"{rng.choice(things)} number {n} came from the {rng.choice(things)} shop" for n in range(400)]
    fair = groups_of((f"{text} {rng.choice(['', 'not '])}today", float(rng.random() < 0.5)) for text in sentences)
    telling = groups_of(
        (f"{text} not today" if not n % 2 and n % 8 else f"{text} today", float(n % 2))
        for n, text in enumerate(sentences)
    )
    labels = np.array([each.label for each in telling])
    assert auroc(labels, balance.told_by_words(telling)) > 0.8
    left = balance.balanced(telling)
    assert len(left) < len(telling)
    assert auroc(np.array([each.label for each in left]), balance.told_by_words(left)) < 0.65
    assert len(balance.balanced(fair)) == len(fair)


def test_words_of_made_claims_alone_tell_nothing():
    """On claims from a few hundred made-up texts: with real data the same is printed with every build."""
    rng = random.Random(7)
    names, places = (
        ["Ann Berg", "Bo Lind", "Cy Voss", "Dee Roth", "Eli Marsh"],
        ["Oslo", "Rome", "Lima", "Cairo", "Perth"],
    )
    groups = []
    for number in range(80):
        some = rng.sample(names, 3), rng.sample(places, 3)
        people, towns = some
        text = (
            f"In the spring {people[0]} moved to {towns[0]} with {rng.randint(2, 90)} boxes. The house was built "
            f"before the war in {rng.randint(1800, 1950)}. Later {people[1]} and the family could visit {towns[1]} "
            f"every {rng.choice(['May', 'June', 'July'])}. The train to {towns[2]} was cheap and the trip took "
            f"{rng.randint(2, 40)} hours. Most guests had liked the large garden near the river. On Monday {people[2]} "
            f"bought the old mill for {rng.randint(100, 900)} dollars."
        )
        groups += examples.made_groups("own", text, editor(number), rng, 2)
    left = balance.balanced(groups)
    for maker in ("mirrored", "denied", "reworded", "edited"):
        some = [each for each in left if each.maker == maker]
        labels = np.array([each.label for each in some])
        assert auroc(labels, balance.told_by_words(some)) < 0.6, maker
        for word in ("not", "never"):
            having = [each.label for each in some if f" {word} " in claim(each)]
            assert len(having) < 20 or 0.35 < np.mean(having) < 0.65, (maker, word)


def test_neighbors_stay_neighbors_when_claims_are_dropped():
    groups = groups_of((f"claim {n}", float(n % 2)) for n in range(50))
    assert all(int(claim(a).split()[1]) < int(claim(b).split()[1]) for a, b in pairwise(balance.balanced(groups)))


def test_rewording_cuts_no_number_in_two():
    source = Source.of(["The family gave the town the farm, which comprised 2,000 acres of land, in the year 1637."])
    assert not [text for seed in range(80) if "farm000" in (text := editor(seed).supported(source, 0).text)]


def test_a_word_that_may_be_of_two_kinds_is_not_reworded():
    lexicon = {
        "n": {},
        "v": {},
        "a": {"ill": {"opposite": ["well"]}},
        "r": {"ill": {"same": ["poorly"]}, "poorly": {"same": ["ill"]}},
    }
    source = Source.of(["They felt ill will against him."])
    made_texts = {Editor(lexicon, random.Random(seed), []).supported(source, 0).text for seed in range(60)}
    assert not [text for text in made_texts if "poorly" in text]


def test_only_a_noun_has_sisters_that_are_other_things():
    lexicon = {"n": {}, "v": {"join": {"sister": ["connect"]}}, "a": {}, "r": {}}
    edits = Editor(lexicon, random.Random(1), [])
    assert edits._sister(Made.of("the cases join today"), Source.of([])) is False


def test_shortened_evidence_keeps_what_a_claim_is_about():
    claim = "The old ovens were sent to a museum in March."
    text = " ".join([TEXT, *(f"Street {n} has a shop for number {n} shoes." for n in range(60))])
    group = Group([Pair(text, claim, [(0, 3)])], 1.0, 0.6, "made:own", document=8, maker="mirrored")
    short = further.shortened(group)
    assert claim in short.pairs[0].evidence
    assert len(short.pairs[0].evidence.split()) < 150 < len(text.split())
    assert (short.pairs[0].wrong, short.label, short.document) == ([(0, 3)], 1.0, 8)
    for maker in ("answer", "bridge removed"):
        whole = Group([Pair(text, claim)], 1.0, maker=maker)
        assert further.shortened(whole) is whole


def test_a_document_and_its_double_are_drawn_together_and_measured_rows_never():
    groups = [Group([Pair(TEXT, "x")], 1.0, document=document, maker="denied") for document in range(400)]
    documents = {group.document for group in further.chosen(groups, {"denied": 0.6})}
    assert documents == {document ^ 1 for document in documents}
    assert 0.4 < len(documents) / 400 < 0.8
    measured = [Group([Pair(TEXT, "x")], 1.0, fold=-2, maker="answer")]
    assert further.chosen(measured, {"answer": 1.0}) == []


def test_a_claim_without_a_document_keeps_its_twin_and_its_length_is_left_to_chance():
    text = " ".join(f"Street {n} has a shop for number {n} shoes." for n in range(60))
    twins = [
        Group([Pair(text, f"Street {n} has a shop.")], label, maker="reworded")
        for n in range(300)
        for label in (1.0, 0.0)
    ]
    found = further.chosen(twins, {"reworded": 0.3})
    labels = defaultdict(set)
    for group in found:
        labels[group.pairs[0].claim].add(group.label)
    assert 0 < len(labels) < 300
    assert all(each == {0.0, 1.0} for each in labels.values())
    lengths = {round(len(further.shortened(group).pairs[0].evidence.split()), -1) for group in found}
    assert len(lengths) >= 3


def test_shares_are_by_maker_but_of_revisions_and_long_texts_by_set():
    shares = {"given": 1.0, "long": 0.0, "vitaminc_real": 0.0, "vitaminc_synthetic": 1.0}
    groups = [
        Group([Pair("a", "b")], 1.0, kind=kind, maker=maker)
        for kind, maker in (
            ("mnli_dev", "given"), ("boolq_lt", "given"),
            ("vitaminc_real", "revised"), ("vitaminc_synthetic", "revised"),
        )
    ]  # fmt: skip
    assert [group.kind for group in further.chosen(groups, shares)] == ["mnli_dev", "vitaminc_synthetic"]
    for size in further.SHARES.values():
        assert size.keys() == further.SHARES["small"].keys()


def test_a_revision_makes_one_claim_true_and_the_other_false(tmp_path):
    before, after = "The album was released in 2003 .", "The album was released in 2005 ."
    first, second = "Ten Bells -LRB- album -RRB- came out in 2003 .", "Ten Bells -LRB- album -RRB- came out in 2005 ."
    rows = [
        {"case_id": "1", "page": "Ten_Bells", "claim": claim, "evidence": evidence, "label": label}
        for claim, evidence, label in (
            (first, before, "SUPPORTS"), (first, after, "REFUTES"),
            (second, after, "SUPPORTS"), (second, before, "NOT ENOUGH INFO"),
        )
    ]  # fmt: skip
    with zipfile.ZipFile(tmp_path / "vitaminc_real.zip", "w") as archive:
        archive.writestr("vitaminc_real/test.jsonl", "\n".join(map(json.dumps, rows)))
    groups = list(revisions.revised_groups(tmp_path / "vitaminc_real.zip"))
    assert [group.label for group in groups] == [1.0, 0.0, 1.0, 0.0]
    assert len({group.document for group in groups}) == 1
    assert claim(groups[0]) == "Ten Bells (album) came out in 2003."
    assert evidence(groups[0]) == "Ten Bells: The album was released in 2003."
    # What a refuted claim has otherwise than the true one is wrong; what is left open has no place.
    wrong = [None if pair.wrong is None else [pair.claim[a:b] for a, b in pair.wrong] for pair in
             (group.pairs[0] for group in groups)]  # fmt: skip
    assert wrong == [[], ["2003"], [], None]


def test_claims_about_a_box_are_read_with_its_fields_as_text(tmp_path):
    (tmp_path / "maindata").mkdir()
    (tmp_path / "tables/json").mkdir(parents=True)
    (tmp_path / "maindata/infotabs_train.tsv").write_text(
        'annotater_id\ttable_id\thypothesis\tlabel\nA\tT1\t"It has a ""drum""."\tE\nA\tT1\tIt is long.\tN\n'
    )
    (tmp_path / "tables/json/T1.json").write_text('{"title": ["Ten Bells"], "Instruments": ["drum", "flute"]}')
    groups = list(tables.table_groups(tmp_path))
    assert [(claim(group), group.label) for group in groups] == [('It has a "drum".', 1.0), ("It is long.", 0.0)]
    assert evidence(groups[0]) == "title: Ten Bells\nInstruments: drum, flute"
    assert groups[0].document == groups[1].document
