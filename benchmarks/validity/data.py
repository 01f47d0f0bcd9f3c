"""The labeled data: where it lies, and its rows."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agentunit.core.records import Record
from agentunit.traces.reading import read_records

VARIABLE = "AGENTUNIT_DATA"
DEFAULT_FOLDER = "../shared/data"


class DataProblem(RuntimeError):
    """Data that should be there and is not, or cannot be read."""


class LabelledData:
    """The sets of a data folder. Only ``dev/`` is ever read: the rest is for the final measurement.

    ``use_recorded`` says whether figures of slow backends that were recorded for the same rows may stand in.
    """

    def __init__(self, folder: Path, *, use_recorded: bool = True) -> None:
        self._dev = folder / "dev"
        self.use_recorded = use_recorded

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of one set, in the order of the file."""
        path = self._dev / f"{name}.jsonl.gz"
        try:
            with gzip.open(path, "rb") as stream:
                return [msgspec.json.decode(line, type=dict[str, Any]) for line in stream]
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            raise DataProblem(f"{path}: {error}") from None

    def records(self, name: str) -> list[Record]:
        """The records of one set of agent runs, read as a user's file would be; what cannot be read is a problem."""
        path = self._dev / f"{name}.jsonl.gz"
        if not path.is_file():
            raise DataProblem(f"{path}: no such file")
        found = list(read_records(path))
        for each in found:
            if not isinstance(each, Record):
                raise DataProblem(f"{path}: {each}")
        return found


def data_folder(root: Path, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The folder with the labeled data, or ``None`` where it is absent; a relative one starts at the repository."""
    folder = root / environment.get(VARIABLE, DEFAULT_FOLDER)
    return folder if (folder / "dev").is_dir() else None
