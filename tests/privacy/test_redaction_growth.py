"""Redaction of one record takes time in proportion to it, however many values it holds and however they are alike."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from agentunit.privacy.detectors import PatternDetector
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor

_FEW, _TIMES_MORE = 250, 8
# Work in proportion grows 8 times, work that is quadratic 64 times; the machine may be busy with something else.
_MOST_GROWTH = 20.0


def lettered(number: int) -> str:
    """A word of its own for each number."""
    word = ""
    for _ in range(4):
        word += chr(ord("a") + number % 26)
        number //= 26
    return word.capitalize()


def names_with_one_first_word(number: int) -> Any:
    return {"full_name": f"Customer {lettered(number)}"}


def names_that_nobody_knows(number: int) -> Any:
    return {"full_name": f"Qx{lettered(number)} Zv{lettered(number)}"}


def first_names_and_surnames(number: int) -> Any:
    return {"first_name": "Mia", "last_name": f"L{lettered(number)}"}


def addresses(number: int) -> Any:
    return f"a{number}@example.org, a{number} at example dot org"


def addresses_of_machines(number: int) -> Any:
    return f"10.{number // 256}.{number % 256}.7, 10.{number // 256}.{number % 256}.7"


def accounts(number: int) -> Any:
    return {"customer_id": f"user-{number}-x", "text": f"of user-{number}-x"}


def pieces(number: int) -> Any:
    return {"delta": f"to a{number}@exam" if number % 2 else "ple.org, and"}


SHAPES: tuple[Callable[[int], Any], ...] = (
    names_with_one_first_word,
    names_that_nobody_knows,
    first_names_and_surnames,
    addresses,
    addresses_of_machines,
    accounts,
    pieces,
)


def seconds_for(data: Any) -> float:
    redactor = Redactor(PatternDetector(), PII_TYPES, Pseudonyms())
    record = {"case": {"id": "q"}, "outcome": {"output": data}}
    start = time.process_time()
    redactor.redact_data([record])
    redactor.redact_known(record, redactor.known_by_now())
    return time.process_time() - start


@pytest.mark.parametrize("in_one_text", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_many_values_in_one_record_take_time_in_proportion(shape: Callable[[int], Any], in_one_text: bool) -> None:
    def data(n_values: int) -> Any:
        values = [shape(number) for number in range(n_values)]
        return json.dumps(values) if in_one_text else values

    # The first time, what is known about each word is looked up.
    few = min(seconds_for(data(_FEW)) for _ in range(3))
    many = min(seconds_for(data(_FEW * _TIMES_MORE)) for _ in range(2))
    assert many < _MOST_GROWTH * few, f"{_TIMES_MORE} times the values took {many / few:.1f} times as long"
