"""The folder of a job by URL, for machines that share no file system."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import IO

from agentunit.addons.scale.parallel.folder import JobFolder
from agentunit.addons.scale.remote import StorageOutput, delete_files, exists, file_names, open_remote

_COPY_BYTES = 1 << 20


class RemoteJobFolder(JobFolder):
    """A folder of objects, such as ``s3://bucket/scores.parquet.blocks``. An object is there whole, or not at all."""

    def _make(self) -> None:
        """Objects need no folder."""

    def _unfinished_folder(self) -> AbstractContextManager[str]:
        return tempfile.TemporaryDirectory(prefix="agentunit-unit-")

    def _names(self) -> list[str]:
        return file_names(self.path)

    def _exists(self, name: str) -> bool:
        return exists(f"{self.path}/{name}")

    def _read(self, name: str) -> IO[bytes]:
        return open_remote(f"{self.path}/{name}")

    def _put(self, finished: str, name: str) -> None:
        with open(finished, "rb") as file, StorageOutput(f"{self.path}/{name}") as target:
            shutil.copyfileobj(file, target, _COPY_BYTES)

    def _delete(self, names: Sequence[str]) -> None:
        delete_files([f"{self.path}/{name}" for name in names])
