"""Pages of long runs, kept beside their store: adding up a million cases once is enough."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import agentunit
from agentunit.core.results import encode_json
from agentunit.store.opening import sqlite_file

_FOLDER = ".viewer"


class PageFile:
    """The masked page of a run as it was at one moment. It is a convenience: what cannot be kept is made again."""

    def __init__(self, address: str, run_id: str, stamp: str) -> None:
        file = sqlite_file(address)
        named = hashlib.sha256(f"{run_id} {agentunit.__version__}".encode()).hexdigest()[:16]
        self._path = None if file is None else Path(f"{os.path.abspath(file)}{_FOLDER}") / f"{named}.json"
        self._stamp = stamp

    def read(self) -> dict[str, Any] | None:
        """The page; ``None`` where none is kept, or the run has changed since."""
        if self._path is not None:
            with suppress(OSError, msgspec.DecodeError, KeyError, TypeError):
                kept = msgspec.json.decode(self._path.read_bytes())
                if kept["stamp"] == self._stamp:
                    page: dict[str, Any] = kept["page"]
                    return page
        return None

    def write(self, page: dict[str, Any]) -> None:
        """Keep a page in place of an earlier one."""
        if self._path is not None:
            with suppress(OSError):
                # As the store: for its owner alone.
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                unfinished = self._path.with_suffix(f".{os.getpid()}.part")
                try:
                    unfinished.write_bytes(encode_json({"stamp": self._stamp, "page": page}))
                    os.replace(unfinished, self._path)
                finally:
                    # A full disk would keep what was written of it.
                    unfinished.unlink(missing_ok=True)
