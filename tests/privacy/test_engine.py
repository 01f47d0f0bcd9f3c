from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.privacy.detection import engine
from agentunit.privacy.detection.engine import Accepted, Candidate, Recognizer, Tables, without_overlaps
from agentunit.privacy.detectors import TABLES, TABLES_ALONE, PatternDetector
from agentunit.privacy.findings import PII_TYPES, Finding

COMPILED = Tables(TABLES, TABLES_ALONE)
DETECTOR = PatternDetector()

VALUES = (
    "ada@example.org", "müller@bücher.example", "+44 20 7946 0958", "602-272-9781", "536-22-6789",
    "4111 1111 1111 1111",
    "378282246310005", "GB82 WEST 1234 5698 7654 32", "165.165.185.178", "2001:db8::1", "00:1A:2B:3C:4D:5E",
    "dob: 1990-04-05",
    "password: Tr0ub4dor&3", "passport X1234567", "MRN: 00123456", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
    "AKIAIOSFODNN7EXAMPL1",
    "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq9\n-----END PRIVATE KEY-----", "phone 5403926876", "2001:db8::",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.", "Ada Lovelace", "12 Main Street", "-----BEGIN PRIVATE KEY-----",
)  # fmt: skip
BETWEEN = (
    " ", "", "\n", "\x00", "\xff", "ÿ", "é", "\u2028", "\ud800", "😀", "̈", "，", ", ", "-", ".", "(", ")", "+", "@",
    ":", "/",
    "x", "0", "A", "'", '"', "\\n", "\t", "\u00a0", "\u2011", "。",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(exclude_categories=[]), max_size=30),
    st.text("0123456789+-. ()x@:/", max_size=60),
    st.lists(st.sampled_from(VALUES + BETWEEN), max_size=8).map("".join),
)


def structured(texts: list[str]) -> list[list[Finding]]:
    return [without_overlaps(each) for each in COMPILED.find(texts)]


@given(TEXTS)
@settings(max_examples=400, deadline=None)
def test_findings_lie_in_the_text_in_order_and_apart(text: str) -> None:
    for findings in (structured([text])[0], DETECTOR.find([text])[0]):
        end = 0
        for each in findings:
            assert end <= each.start < each.end <= len(text)
            assert each.type in PII_TYPES
            assert 0.0 < each.confidence <= 1.0
            end = each.end


@given(st.lists(TEXTS, max_size=6))
@settings(max_examples=200, deadline=None)
def test_a_batch_finds_what_single_texts_do(texts: list[str]) -> None:
    assert structured(texts) == [structured([text])[0] for text in texts]
    assert DETECTOR.find(texts) == [DETECTOR.find([text])[0] for text in texts]


@given(
    st.text(st.characters(exclude_categories=[]), max_size=20),
    st.sampled_from(VALUES[:6]),
    st.text("é😀\ud800 ÿ", max_size=9),
)
@settings(max_examples=200, deadline=None)
def test_characters_before_do_not_move_a_finding(before: str, value: str, after: str) -> None:
    text = f"{before} | {value} |{after}"
    start = len(before) + 3
    assert any((each.start, each.end) == (start, start + len(value)) for each in structured([text])[0])


@given(
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=5),
    st.sampled_from(["\xff", "\x00", "ÿ", "\ud800", "\U0010ffff"]),
)
@settings(deadline=None)
def test_no_character_of_a_text_acts_as_the_byte_between_texts(values: list[str], character: str) -> None:
    alone = [each.type for value in values for each in structured([value])[0]]
    joined = f" {character} ".join(values)
    assert [each.type for each in structured([joined])[0]] == alone


def test_texts_are_never_read_as_one() -> None:
    assert structured(["4111 1111", "1111 1111", "ada@", "example.org", "+44 20", "7946 0958"]) == [[]] * 6
    assert [len(each) for each in structured(["", "ada@example.org", "", "", "x", "ada@example.org", ""])] == [
        0,
        1,
        0,
        0,
        0,
        1,
        0,
    ]
    assert structured([]) == []
    assert DETECTOR.find([]) == []


def test_batches_larger_than_the_buffer_are_cut_between_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{n} é ada{n}@example.org" for n in range(20)] + ["x" * 200 + " ada@example.org"]
    at_once = structured(texts)
    monkeypatch.setattr(engine, "_BATCH_BYTES", 64)
    assert structured(texts) == at_once
    assert all(len(each) == 1 for each in at_once)


def found(type: str, start: int, end: int, confidence: float = 0.9) -> Finding:
    return Finding(type, start, end, confidence)


@pytest.mark.parametrize(
    ("findings", "kept"),
    [
        ([], []),
        ([found("a", 5, 9), found("b", 0, 3)], [found("b", 0, 3), found("a", 5, 9)]),
        ([found("a", 0, 3), found("b", 3, 6)], [found("a", 0, 3), found("b", 3, 6)]),
        ([found("a", 0, 5), found("b", 1, 9)], [found("b", 1, 9)]),
        ([found("a", 2, 4, 1.0), found("b", 0, 9, 0.6)], [found("b", 0, 9, 0.6)]),
        ([found("a", 0, 4, 0.6), found("b", 0, 4, 0.9)], [found("b", 0, 4, 0.9)]),
        ([found("b", 0, 4), found("a", 0, 4)], [found("a", 0, 4)]),
        ([found("a", 0, 4), found("b", 3, 9), found("c", 8, 12)], [found("b", 3, 9)]),
    ],
)
def test_of_overlapping_findings_the_longer_stays(findings: list[Finding], kept: list[Finding]) -> None:
    assert without_overlaps(findings) == kept
    assert without_overlaps(findings[::-1]) == kept


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.integers(1, 9), st.sampled_from([0.5, 0.9])),
        max_size=12,
    )
)
def test_what_is_dropped_overlaps_something_kept_that_is_no_shorter(rows: list[tuple[str, int, int, float]]) -> None:
    findings = [Finding(kind, start, start + length, confidence) for kind, start, length, confidence in rows]
    kept = without_overlaps(findings)
    assert all(one.end <= other.start for one, other in pairwise(kept))
    for each in set(findings) - set(kept):
        over = [other for other in kept if other.start < each.end and each.start < other.end]
        assert any(other.end - other.start >= each.end - each.start for other in over)


def test_a_row_is_told_from_its_neighbours_and_its_value_from_its_words() -> None:
    table = Tables([[
        Recognizer("a", "first", r"\ba+\b", 0.5),
        Recognizer("b", "second", r"\bb (?P<value>[0-9]+)\b", 0.6),
        Recognizer("c", "third", r"\bc (?P<value>[0-9]+)\b", 0.7, lambda candidate: ()),
    ]])  # fmt: skip
    findings = table.find(["aa b 12 c 34 é b 5"])[0]
    assert findings == [
        Finding("a", 0, 2, 0.5, "first"),
        Finding("b", 5, 7, 0.6, "second"),
        Finding("b", 17, 18, 0.6, "second"),
    ]


def test_what_a_check_cuts_off_is_looked_at_again() -> None:
    def first_two(candidate: Candidate) -> list[Accepted]:
        return [Accepted(candidate.start, min(candidate.start + 2, candidate.end), 0.5)]

    table = Tables([[Recognizer("a", "pairs", "[0-9]+", 0.5, first_two)]])
    assert [(each.start, each.end) for each in table.find(["12345 6"])[0]] == [
        (0, 2),
        (2, 4),
        (4, 5),
        (6, 7),
    ]


def test_chains_above_the_limit_are_dropped_unread() -> None:
    table = Tables([[Recognizer("a", "chain", "(?:1-)+", 0.5, longest_bytes=10)]])
    assert [(each.start, each.end) for each in table.find(["1-1-1- " + "1-" * 6 + " 1-"])[0]] == [
        (0, 6),
        (20, 22),
    ]


def test_context_ends_where_the_text_does() -> None:
    candidate = Candidate(b"card\xff4111 x\xffcard", 5, 9, 0.9)
    assert candidate.before(20) == b""
    assert candidate.after(20) == b" x"
    assert candidate.written == b"4111"


def test_patterns_mean_the_same_to_both_engines_on_every_finding() -> None:
    text = "\n".join(VALUES)
    assert {each.type for each in structured([text])[0]} >= {
        "email", "phone", "ssn", "credit_card", "iban", "ip_address", "mac_address", "date_of_birth", "password",
        "passport",
        "medical_record", "crypto_address", "api_key", "private_key", "jwt",
    }  # fmt: skip


@pytest.mark.parametrize(
    "unit",
    ["1", ".", "@", "1.", "a@a.", "1 ", "(1)", "aa:", "1::", "Ab ", "+1-", "eyJ", "-----BEGIN ", "é@", "0x", "sk-"],
)
def test_long_runs_of_one_thing_break_nothing(unit: str) -> None:
    text = unit * 20_000
    for each in DETECTOR.find([text])[0]:
        assert 0 <= each.start < each.end <= len(text)


def test_an_address_ends_where_a_number_starts() -> None:
    text = "PSC 3294, Box 9168\nAPO AA 61487\n416 60 039 office"
    found = [(each.type, text[each.start : each.end]) for each in DETECTOR.find([text])[0]]
    assert found == [("address", "PSC 3294, Box 9168\nAPO AA 61487"), ("phone", "416 60 039")]


def test_patterns_are_compiled_when_something_is_found(monkeypatch):
    compiled, compile_pattern = [], re.compile
    monkeypatch.setattr(re, "compile", lambda pattern: compiled.append(pattern) or compile_pattern(pattern))
    tables = Tables([[Recognizer("number", "digits", "[0-9]{4}", 0.5)]])
    assert tables.find(["in plain words"]) == [[]]
    assert not compiled
    assert [each.rule for each in tables.find(["in 2024"])[0]] == ["digits"]
