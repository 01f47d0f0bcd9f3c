"""What one test evaluated, on its way to the session's summary: as JSON text, so that xdist can carry it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.core.case import DatasetCase
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.records import LooseRecord, Outcome, Record
from agentunit.core.results import Score, encode_json
from agentunit.metrics.base import describe_error
from agentunit.reports.reported_run import Mask


class Evaluated(Struct):
    """One evaluation. ``call`` counts the evaluations of a test, ``attempt`` its attempts, both from 0.

    ``failure`` is how the agent failed, if it did. ``spend_usd`` is what running it cost, as far as the trace says;
    a recorded trace costs nothing again. ``record`` is the whole record as JSON, where a report wants it.
    """

    case_id: str
    call: int
    attempt: int
    scores: dict[str, Score]
    failure: str | None = None
    error: str | None = None
    elapsed_s: float | None = None
    spend_usd: float | None = None
    record: str | None = None


class FailedCheck(Struct):
    """A threshold that an evaluation missed."""

    call: int
    attempt: int
    metric: str
    expression: str
    value: float | None
    backend: str = ""


class ReportPayload(Struct):
    """What goes with one report of pytest. ``position`` is the test's in the order of collection."""

    position: int
    evaluated: list[Evaluated]
    failed_checks: list[FailedCheck]


class Gathering:
    """The evaluations of one test as they are made."""

    def __init__(
        self,
        *,
        position: int,
        keep_records: bool,
        properties: list[tuple[str, object]],
        show_personal_data: bool = False,
    ) -> None:
        self.mask = Mask(show_all=show_personal_data)
        self._position = position
        self._keep_records = keep_records
        self._properties = properties
        self._attempt = 0
        self._calls = 0
        self._calls_before_attempts: int | None = None
        self._evaluated: list[Evaluated] = []
        self._failed_checks: list[FailedCheck] = []
        self.at_the_end: list[Callable[[], None]] = []
        """What is to be called when the test, or one attempt at it, has passed otherwise."""

    def end(self) -> None:
        """Fail the test for what it did not look at."""
        __tracebackhide__ = True
        due, self.at_the_end = self.at_the_end, []
        for check in due:
            check()

    def begin_attempt(self, number: int) -> None:
        """The evaluations that follow belong to another attempt: each is a repeat of one of the first attempt's."""
        if self._calls_before_attempts is None:
            self._calls_before_attempts = self._calls
        if number:
            # What is left is of an attempt that failed.
            self.at_the_end.clear()
        self._attempt = number
        self._calls = self._calls_before_attempts

    def add(
        self,
        record: Record | LooseRecord,
        case_id: str,
        scores: dict[str, Score],
        *,
        failure: str | None = None,
        spend_usd: float | None = None,
    ) -> Evaluated:
        """Take in one evaluation; its values also become properties of the test, which JUnit files show."""
        outcome = record.outcome
        evaluated = Evaluated(
            case_id,
            self._calls,
            self._attempt,
            scores,
            failure,
            getattr(outcome, "error", None) if failure else None,
            getattr(outcome, "elapsed_s", None),
            spend_usd,
            _as_json(record, case_id) if self._keep_records else None,
        )
        self._calls += 1
        self._evaluated.append(evaluated)
        for name, score in scores.items():
            if score.value is not None:
                self._properties.append((f"agentunit.{name}", score.value))
        if failure:
            self._properties.append(("agentunit.failure", failure))
        return evaluated

    def add_failed_check(self, evaluated: Evaluated, metric: str, expression: str) -> None:
        """Take in a threshold that was missed."""
        score = evaluated.scores[metric]
        self._failed_checks.append(
            FailedCheck(evaluated.call, evaluated.attempt, metric, expression, score.value, score.backend)
        )

    def take_payload(self) -> str | None:
        """What came in since it was last asked for, as text."""
        if not self._evaluated and not self._failed_checks:
            return None
        text = encode_json(ReportPayload(self._position, self._evaluated, self._failed_checks)).decode()
        self._evaluated, self._failed_checks = [], []
        return text


_payload_decoder = msgspec.json.Decoder(ReportPayload)


def decode_payload(text: str) -> ReportPayload:
    """What ``Gathering.take_payload`` sent."""
    return _payload_decoder.decode(text)


def _as_json(record: Any, case_id: str) -> str:
    """The record as it will be read back, or one that says why it cannot be written."""
    try:
        line = encode_record(Record(record.case, record.trace, record.outcome))
        decode_record(line)
    except Exception as error:  # noqa: BLE001  # a user's own objects may fail in any way when they are looked at
        unwritable = Outcome(error=f"the record cannot be written as JSON: {describe_error(error)}")
        line = encode_record(Record(DatasetCase(case_id), outcome=unwritable))
    return line.decode()
