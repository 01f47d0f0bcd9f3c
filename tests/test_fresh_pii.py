"""The fresh personal-data rows are labeled right, come out the same each time, and are varied enough."""

from __future__ import annotations

import importlib
import ipaddress
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def fresh() -> Any:
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module("benchmarks.validity.fresh_pii.generate")
    finally:
        sys.path.remove(str(ROOT))


@pytest.fixture(scope="module")
def rows(fresh: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = fresh.rows()
    return made


def values(rows: list[dict[str, Any]], span_type: str) -> list[str]:
    return [row["text"][s["start"] : s["end"]] for row in rows for s in row["spans"] if s["type"] == span_type]


def luhn_ok(number: str) -> bool:
    digits = [int(digit) for digit in reversed(number)]
    return sum(digits[0::2] + [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]) % 10 == 0


def iban_ok(iban: str) -> bool:
    return int("".join(str(int(letter, 36)) for letter in iban[4:] + iban[:4])) % 97 == 1


def is_ip(text: str) -> bool:
    return bool(ipaddress.ip_address(text))


READS_AS = {
    "PERSON": lambda text: not re.search(r"[\d@]", text) and any(letter.isalpha() for letter in text),
    "STREET_ADDRESS": lambda text: re.search(r"\d", text) and re.search(r"[^\W\d]{3}", text),
    "PHONE_NUMBER": lambda text: (
        re.fullmatch(r"[\d +()./-]+", text) and 8 <= sum(sign.isdigit() for sign in text) <= 15
    ),
    "EMAIL_ADDRESS": lambda text: re.fullmatch(r"[a-z0-9._+-]+@[a-z0-9-]+(\.[a-z]+)+(\.[a-z]+)?", text),
    "CREDIT_CARD": lambda text: len(re.sub(r"[ -]", "", text)) in {15, 16} and luhn_ok(re.sub(r"[ -]", "", text)),
    "US_SSN": lambda text: re.fullmatch(r"(?!000|666|9)\d{3}([- ]?)(?!00)\d\d\1(?!0000)\d{4}", text),
    "IBAN_CODE": lambda text: iban_ok(text.replace(" ", "")),
    "IP_ADDRESS": is_ip,
    "DATE_OF_BIRTH": lambda text: re.search(r"\d", text) and len(text) >= 6,
    "PASSPORT": lambda text: re.fullmatch(r"[A-Z0-9]{8,9}", text),
    "DRIVER_LICENSE": lambda text: re.fullmatch(r"[A-Z0-9-]{8,16}", text),
    "CREDENTIAL": lambda text: len(text) >= 10 and not re.search(r"\s", text),
}


def test_spans_lie_in_the_text_and_read_as_their_type(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        last = 0
        for span in row["spans"]:
            assert last <= span["start"] < span["end"] <= len(row["text"]), row
            value = row["text"][span["start"] : span["end"]]
            assert value == value.strip(), row
            assert READS_AS[span["type"]](value), (span["type"], value)
            last = span["end"]
        assert len(row["spans"]) <= 5
        assert not re.search(r"\[\[[~?a-z]", row["text"]), row


def test_a_name_stands_only_inside_spans(rows: list[dict[str, Any]], fresh: Any) -> None:
    for row in rows:
        outside = row["text"]
        for span in reversed(row["spans"]):
            outside = outside[: span["start"]] + "|" + outside[span["end"] :]
        for value in values([row], "PERSON"):
            assert not re.search(rf"\b{re.escape(value)}\b", outside), (value, row)
    given = {name for names in fresh.load_values()["names"].values() for name in names["given"]}
    for template in fresh.load_templates():
        words = set(re.findall(r"\w+", fresh.SLOT.sub(" ", template.text)))
        assert not words & given, template


def test_the_same_seed_gives_the_same_rows(rows: list[dict[str, Any]], fresh: Any) -> None:
    assert fresh.rows() == rows
    assert fresh.rows(7) != rows
    assert len(fresh.rows(7)) == len(rows)


def test_the_rows_are_many_and_varied(rows: list[dict[str, Any]], fresh: Any) -> None:
    templates = fresh.load_templates()
    assert len({template.template_id for template in templates}) == len(templates)
    assert len(templates) >= 195
    assert sum(not template.decoy for template in templates) >= 150
    assert sum(template.decoy for template in templates) >= 45
    assert 1150 <= len(rows) <= 1300
    assert [row["id"] for row in rows] == [f"fresh:{place}" for place in range(1, len(rows) + 1)]
    assert len({row["text"] for row in rows}) == len(rows)
    assert {row["group"] for row in rows} == set(fresh.GROUPS)
    assert len({row["origin"] for row in rows} - {None}) >= 12
    assert 0.12 <= sum(row["language"] != "en" for row in rows) / len(rows) <= 0.18
    assert {row["language"] for row in rows} == {"en", "de", "fr", "es", "pt"}
    counts = Counter(span["type"] for row in rows for span in row["spans"])
    assert set(counts) == set(fresh.SPAN_TYPES.values())
    assert min(counts.values()) >= 25


def test_the_origin_is_given_just_where_a_name_occurs(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert (row["origin"] is not None) == bool(values([row], "PERSON"))


def test_decoys_have_no_span(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert bool(row["spans"]) != row["template_id"].startswith("decoy-"), row
        if row["group"] == "prose":
            assert not row["spans"]


def test_tool_results_are_json(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["group"] == "tool_result_json":
            json.loads(row["text"])


def test_the_readme_gives_the_counts(rows: list[dict[str, Any]], fresh: Any) -> None:
    text = (ROOT / "benchmarks" / "validity" / "fresh_pii" / "README.md").read_text(encoding="utf-8")
    counted = [Counter(row[key] for row in rows if row[key]) for key in ("group", "origin", "language")]
    counted.append(Counter(span["type"] for row in rows for span in row["spans"]))
    for counts in counted:
        for name, count in counts.items():
            assert f"{name} {count}" in text
