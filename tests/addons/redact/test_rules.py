"""Rules as data: what they allow, deny and recognize, and what is refused; and numbers of named countries."""

from __future__ import annotations

import pickle
from importlib.util import find_spec

import pytest

from agentunit.addons.redact._regional import IDENTITY_NUMBERS, RegionalDetector, regions_of
from agentunit.addons.redact.rules import RuledDetector, read_rules
from agentunit.privacy.detectors import PatternDetector
from agentunit.privacy.personal_fields import Leaf

RULES = """
allow: [support@example.com, "@agentunit.example"]
deny:
  project: [Falcon Heights]
recognizers:
  - {type: badge, pattern: "BADGE-(?P<value>[0-9]{3,})", near: [gate, entrance]}
"""


def ruled(tmp_path, text=RULES):
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    return RuledDetector(PatternDetector(), read_rules(str(path)))


def test_rules_allow_deny_and_recognize(tmp_path):
    detector = ruled(tmp_path)
    text = "At gate 4 BADGE-417, falcon_heights: support@example.com, a@agentunit.example, b@example.com"
    (found,) = detector.find([text])
    assert [(each.type, text[each.start : each.end]) for each in found] == [
        ("badge", "417"), ("project", "falcon_heights"), ("email", "b@example.com"),
    ]  # fmt: skip
    assert detector.find(["BADGE-417 of nobody"]) == [[]]
    # Several processes may redact with the same rules.
    regional = pickle.loads(pickle.dumps(RegionalDetector(detector, ["PL"])))
    assert [each.type for each in regional.find([text])[0]] == ["badge", "project", "email"]
    assert read_rules(str(tmp_path / "rules.yaml")).own_types == ("project", "badge")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("recognizers: [{type: badge, pattern: '(a)\\1'}]", "the pattern of badge is none of RE2's"),
        (
            "recognizers: [{type: Badge!, pattern: a}]",
            "a type must be lower-case letters and underscores; received 'Badge!'",
        ),
        (
            "recognizers: [{type: badge, pattern: a, confidence: 2}]",
            "confidence must be over 0 and at most 1; received 2.0",
        ),
        ("recognizers: [{type: badge, code: 'import os'}]", "unknown field `code`"),
        ("alow: [a]", "unknown field `alow`"),
        ("allow: {", "rules.yaml"),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
    ],
)
def test_what_is_wrong_in_rules_is_told(tmp_path, text, words):
    with pytest.raises(ValueError, match=r"rules\.yaml") as refused:
        ruled(tmp_path, text)
    assert words in str(refused.value)


def test_every_named_country_has_its_modules():
    assert len(IDENTITY_NUMBERS) >= 30
    names = [name for names in IDENTITY_NUMBERS.values() for name in names.split()]
    assert [name for name in names if find_spec(f"stdnum.{name}") is None] == []


@pytest.mark.parametrize(
    ("region", "text", "type", "value"),
    [
        ("PL", "Mój numer to 44051401359.", "national_id", "44051401359"),
        ("DE", "Hier: 36 574 261 809 danke", "national_id", "36 574 261 809"),
        ("IT", "RSSMRA85T10A562S", "national_id", "RSSMRA85T10A562S"),
        ("BR", "o número 390.533.447-05", "national_id", "390.533.447-05"),
        ("SE", "nummer 880320-0016", "national_id", "880320-0016"),
        ("DK", "Ring 32 12 34 56 i morgen", "phone", "32 12 34 56"),
        ("NO", "Ring 22 12 34 56", "phone", "22 12 34 56"),
    ],
)
def test_numbers_of_a_named_country_need_no_word(region, text, type, value):
    def found(regions):
        (each,) = RegionalDetector(PatternDetector(), regions).find([text])
        return [(one.type, text[one.start : one.end]) for one in each if one.type == type]

    assert found([region]) == [(type, value)]
    assert found(["auto"]) in ([], [(type, value)])


def test_the_countries_of_a_record_are_read_from_its_fields():
    leaves = [Leaf("country", "Poland"), Leaf("note", "DE")]
    detector = RegionalDetector(PatternDetector(), ["auto"]).for_record(leaves)
    assert [each.type for each in detector.find(["numer 44051401359"])[0]] == ["national_id"]
    assert regions_of([Leaf("locale", "de-AT"), Leaf("country_code", "NO")]) == ("AT", "NO")
    with pytest.raises(ValueError, match="region must be two letters such as DE, or auto; received 'XX'"):
        RegionalDetector(PatternDetector(), ["XX"])
