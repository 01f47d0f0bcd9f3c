"""Records to score, import and label: small, varied, and the same every time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceLog
from agentunit.store.schema import MIGRATIONS
from agentunit.store.sqlite import Store

METRICS = "exact_match,tool_success,answer_correctness,faithfulness,cost,token_usage,pii_leakage"


def records(n: int) -> Iterator[Record]:
    """Some right, some wrong, some without an answer, a cost or an expected output."""
    for number in range(n):
        trace = TraceLog()
        trace.record("tool_call", name="search", status="success" if number % 3 else "error", arguments={"q": number})
        if number % 4:
            trace.record("llm_call", model="gpt-4o", usage={"input_tokens": number, "output_tokens": 7})
        answer = f"The answer is {number * (2 if number % 5 else 3)}, says ana{number % 11}@example.com."
        case = DatasetCase(
            f"c{number}",
            f"What is twice {number}?",
            expected_output=f"The answer is {2 * number}" if number % 6 else None,
            context=[f"Twice {number} is {2 * number}.", "Numbers are even or odd."],
        )
        yield Record(case, trace, Outcome(output=answer if number % 9 else None, success=bool(number % 2)))


def write_records(file: Path, n: int) -> None:
    """A file of records, one a line."""
    file.write_bytes(b"".join(encode_record(each) + b"\n" for each in records(n)))


def add_run(file: Path, n: int, name: str = "made-up") -> str:
    """A recorded run without scores in a store."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with Store(file) as store:
        settings = {"metrics": ["exact_match"]}
        run_id = store.create_run(name, agentunit_version="1", settings=settings, n_planned=n).id
        with store.transaction():
            for position, each in enumerate(records(n)):
                store.add_lines([(run_id, position, 0, each.case.id, 0, 0.25, encode_record(each))])
        store.set_status(run_id, "finished")
    return run_id


def write_first_store(file: Path, n: int) -> None:
    """A store as the first version wrote it: one row a score."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as connection:
        for step in MIGRATIONS[0]:
            assert isinstance(step, str)
            connection.execute(step)
        connection.execute(
            "INSERT INTO runs VALUES ('old', 'old', 1.0, 2.0, 'finished', ?, '0.0.1', ?)",
            (n, '{"metrics": ["exact_match"]}'),
        )
        for position, each in enumerate(records(n)):
            connection.execute(
                "INSERT INTO records VALUES ('old', ?, 0, ?, 0, 0.25, ?)",
                (position, each.case.id, encode_record(each)),
            )
            for metric in ("first", "second", "third"):
                connection.execute(
                    "INSERT INTO scores VALUES ('old', ?, 0, ?, ?, 'ok', 'check', '1', 0.0, ?)",
                    (position, metric, position / n, f'{{"note": "{metric} {position}"}}'),
                )
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
