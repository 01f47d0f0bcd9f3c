"""Presidio as a backend: our names of its types, no overlaps, nothing over the network."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from agentunit.addons.names.presidio import TYPES, PresidioAnalyzer, PresidioDetector, PresidioSpan
from agentunit.backends.quality import BackendUnavailable
from agentunit.privacy.detectors import detector_named
from agentunit.privacy.findings import PII_TYPES

READY = PresidioAnalyzer().unready() is None


class FakeEngine:
    def __init__(self, *results):
        self.results = results
        self.asked_for = []

    def get_supported_entities(self, language):
        return ["PERSON", "CREDIT_CARD", "PHONE_NUMBER", "DATE_TIME"]

    def analyze(self, text, language, entities):
        self.asked_for.append(entities)
        return [
            SimpleNamespace(entity_type=kind, start=start, end=end, score=score)
            for kind, start, end, score in self.results
        ]


def analyzer(*results):
    made = PresidioAnalyzer()
    made._engine = FakeEngine(*results)
    return made


def test_its_types_become_ours():
    assert set(TYPES.values()) <= set(PII_TYPES)


def test_of_overlapping_results_the_surer_one_stays():
    made = analyzer(
        ("PHONE_NUMBER", 0, 16, 0.4), ("CREDIT_CARD", 0, 16, 1.0), ("PERSON", 30, 33, 0.85), ("PERSON", 30, 40, 0.85)
    )
    assert made.find(["…", " "]) == [
        [PresidioSpan("credit_card", 0, 16, 1.0), PresidioSpan("name", 30, 40, 0.85)],
        [],
    ]
    # Only what it supports and we have a name for is asked for, and blank texts not at all.
    assert made._engine.asked_for == [["PERSON", "PHONE_NUMBER", "CREDIT_CARD"]]


@pytest.mark.skipif(READY, reason="Presidio is installed")
def test_without_it_the_command_that_adds_it_is_named():
    with pytest.raises(BackendUnavailable, match=r"pii_leakage: backend 'presidio' cannot run: .*pip install"):
        detector_named("presidio", "pii_leakage")


@pytest.mark.skipif(not READY, reason="needs Presidio and spaCy's English model (extra 'presidio')")
@pytest.mark.filterwarnings("default")
def test_the_real_one_finds_its_types_and_opens_no_connection(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    text = "Jonas Nielsen, jonas@example.com, 4111 1111 1111 1111, 192.168.3.44"
    found = {(each.type, text[each.start : each.end]) for each in PresidioDetector().find([text])[0]}
    assert found == {
        ("name", "Jonas Nielsen"),
        ("email", "jonas@example.com"),
        ("credit_card", "4111 1111 1111 1111"),
        ("ip_address", "192.168.3.44"),
    }


@pytest.mark.parametrize(
    ("kind", "text", "value", "kept"),
    [
        ("PHONE_NUMBER", '{"ts": 1715526151}', "1715526151", None),
        ("PHONE_NUMBER", "[12345.678901] link up", "12345.678901", None),
        ("PHONE_NUMBER", "call 030 1234567", "030 1234567", "030 1234567"),
        ("EMAIL_ADDRESS", "git@github.com:org/repo.git", "git@github.com", None),
        ("PERSON", "Ihre Bestellung wurde versandt.", "Ihre Bestellung wurde", None),
        ("PERSON", "Vielen Dank", "Vielen Dank", None),
        ("PERSON", "Dear Mia Lindqvist,", "Dear Mia Lindqvist", "Mia Lindqvist"),
    ],
)
def test_what_it_takes_for_personal_data_passes_our_checks(kind, text, value, kept):
    made = PresidioDetector()
    made._analyzer = analyzer((kind, text.index(value), text.index(value) + len(value), 1.0))
    made._analyzer._engine.get_supported_entities = lambda language: [kind]
    (found,) = made.find([text])
    assert [text[each.start : each.end] for each in found] == ([kept] if kept else [])
