"""Stores that keep masked text only: every record is masked before it is written, whoever writes it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from agentunit.core.results import encode_json
from agentunit.store.database import Database
from agentunit.store.runs import WrittenRecord
from agentunit.store.schema import StoreError

_TABLE = "store_settings"
_SALT = "masked_with"


class Masking:
    """Whether a store keeps masked text only, and what masks it.

    The salt of the pseudonyms is kept in the store, so that a value has the same one in every run.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._salt: str | None = None
        self._redactor: Any = None
        if database.has_table(_TABLE):
            found = database.execute(f"SELECT value FROM {_TABLE} WHERE name = ?", (_SALT,))
            self._salt = str(found[0][0]) if found else None

    @property
    def is_on(self) -> bool:
        """Whether only masked text is kept."""
        return self._salt is not None

    def turn_on(self) -> None:
        """Keep masked text only, from now on and for good; a store with runs of plain text is refused."""
        if self.is_on:
            return
        if self._database.execute("SELECT 1 FROM records LIMIT 1"):
            raise StoreError(
                f"{self._database.address} holds runs with text as it was, so it cannot keep masked text only: "
                "erase them ('agentunit runs --erase older=0h'), or name another store with --store"
            )
        salt = secrets.token_hex()
        with self._database.transaction():
            self._database.change(f"CREATE TABLE IF NOT EXISTS {_TABLE} (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            self._database.change(f"INSERT INTO {_TABLE} VALUES (?, ?)", (_SALT, salt))
        self._salt = salt

    def pseudonyms_of(self, value: str) -> tuple[str, ...]:
        """What may stand for a value in the records: whoever is to be erased is named by the value itself."""
        if self._salt is None:
            return ()
        from agentunit.privacy.findings import PII_TYPES
        from agentunit.privacy.pseudonyms import Pseudonyms

        known = Pseudonyms(self._salt).known
        return tuple(known(type, value) for type in PII_TYPES)

    def masked(self, rows: Sequence[WrittenRecord]) -> Sequence[WrittenRecord]:
        """The records as they are kept."""
        if self._salt is None:
            return rows
        plain: list[Any] = [msgspec.json.decode(row[6]) for row in rows]
        self._redact(plain)
        return [
            (*row[:3], str(data["case"].get("id", row[3])), *row[4:6], encode_json(data))
            for row, data in zip(rows, plain, strict=True)
        ]

    def masked_data(self, data: Any) -> Any:
        """Plain data as it is kept; a record in its own shape, whose structure stays."""
        if self._salt is None:
            return data
        if isinstance(data, dict) and "case" in data:
            self._redact([data])
            return data
        plain = {"data": data}
        self._redact([plain])
        return plain["data"]

    def masked_text(self, text: str) -> str:
        """A text that somebody wrote, as it is kept."""
        return str(self.masked_data(text)) if text else text

    def _redact(self, plain: list[Any]) -> None:
        if self._redactor is None:
            # Only here: detectors have long lists to load.
            from agentunit.privacy.detectors import detector_named
            from agentunit.privacy.findings import PII_TYPES
            from agentunit.privacy.pseudonyms import Pseudonyms
            from agentunit.privacy.redaction import Redactor

            self._redactor = Redactor(
                detector_named("patterns", "store"), PII_TYPES, Pseudonyms(self._salt or ""), audits=False
            )
        self._redactor.redact_data(plain)
