"""Cases and texts as reports may show them: e-mail addresses, numbers of people and credentials replaced.

A report goes to places that its records do not: a pull request, a CI log, a colleague's mailbox. So whatever a report
prints of a case comes through here, once, before any of it is cut or compared. Names and postal addresses stay: what
finds them errs too often to blank out words of every report.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from agentunit.core.codec import decode_record, encode_record
from agentunit.core.records import Record
from agentunit.core.results import RunSummary, Score, encode_json, json_fallback
from agentunit.engine.decision import Decision

if TYPE_CHECKING:
    from agentunit.privacy.redaction import Redactor

_NOT_MASKED = frozenset(("name", "address", "account"))


class ReportedCase(Struct):
    """One finished case of a run with its scores. ``repeat`` counts from 0, as in the store."""

    position: int
    repeat: int
    case_id: str
    failed: bool
    elapsed_s: float
    record: Record
    scores: dict[str, Score]


class Mask:
    """Replaces personal data by pseudonyms, as ``agentunit redact`` does: in one report a value always gets the same.

    >>> Mask().text("Write to ada@example.org or ADA@example.org."), Mask(show_all=True).text("ada@example.org")
    ('Write to <EMAIL_1> or <EMAIL_1>.', 'ada@example.org')
    """

    def __init__(self, *, show_all: bool = False) -> None:
        self.show_all = show_all

    @cached_property
    def _redactor(self) -> Redactor:
        from agentunit.privacy.detectors import StructuredDetector
        from agentunit.privacy.findings import PII_TYPES
        from agentunit.privacy.pseudonyms import Pseudonyms
        from agentunit.privacy.redaction import Redactor

        return Redactor(StructuredDetector(), set(PII_TYPES) - _NOT_MASKED, Pseudonyms())

    def case(self, case: ReportedCase) -> ReportedCase:
        """A case with its record and the details of its scores masked; its id stays, or it could not be found again."""
        if self.show_all:
            return case
        data = msgspec.json.decode(encode_record(case.record))
        data["scores"] = msgspec.to_builtins(case.scores, enc_hook=json_fallback, str_keys=True)
        if not self._redactor.redact_data([data]):
            return case
        scores = msgspec.convert(data.pop("scores"), dict[str, Score])
        return structs.replace(case, record=decode_record(encode_json(data)), scores=scores)

    def text(self, text: str) -> str:
        """One text, masked."""
        masked: str = self.data([text])[0]
        return masked

    def data(self, value: Any) -> Any:
        """Plain data, masked."""
        if self.show_all:
            return value
        plain = {"data": msgspec.to_builtins(value, enc_hook=json_fallback, str_keys=True)}
        self._redactor.redact_data([plain])
        return plain["data"]

    def summary(self, summary: RunSummary) -> RunSummary:
        """A summary whose reasons, which may quote a record, are masked."""
        if self.show_all or not (summary.unscored or summary.input_errors):
            return summary
        unscored = self.data([each.reason for each in summary.unscored])
        errors = self.data([each.reason for each in summary.input_errors])
        return structs.replace(
            summary,
            unscored=[
                structs.replace(each, reason=reason) for each, reason in zip(summary.unscored, unscored, strict=True)
            ],
            input_errors=[
                structs.replace(each, reason=reason) for each, reason in zip(summary.input_errors, errors, strict=True)
            ],
        )

    def decision(self, decision: Decision) -> Decision:
        """A decision whose reasons, which may quote a record, are masked."""
        if self.show_all or not decision.reasons:
            return decision
        texts = [
            decision.headline,
            *(each.text for each in decision.reasons),
            *(each.reason for each in decision.gates),
        ]
        headline, *others = self.data(texts)
        n_reasons = len(decision.reasons)
        return replace(
            decision,
            headline=headline,
            reasons=tuple(
                replace(each, text=text) for each, text in zip(decision.reasons, others[:n_reasons], strict=True)
            ),
            gates=tuple(
                replace(each, reason=text) for each, text in zip(decision.gates, others[n_reasons:], strict=True)
            ),
        )
