"""The folder of a job: what each unit came to, so that a job that was stopped goes on where it stood.

A unit is done when its columns are there under their final name, which happens last. Names begin with the token of
the job, a digest of inputs, metrics and settings: what another job left behind is never taken for this one's.
"""

from __future__ import annotations

import errno
import hashlib
import inspect
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

import agentunit
from agentunit.addons.scale.parallel.work import Lines, ScoringJob, UnitEnd
from agentunit.backends.media_sources import configured_media_root
from agentunit.core.results import decode_json, encode_json
from agentunit.core.score_block import Block
from agentunit.engine.scoring.records import WorkFailed
from agentunit.metrics.base import describe
from agentunit.metrics.functions import FunctionMetric
from agentunit.metrics.registry import parameters
from agentunit.traces.limits import read_limits
from agentunit.traces.reading import InputFile
from agentunit.urls import is_remote, remote_state

# What the scores of a job depend on, so that one that was stopped goes on only with the same.

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def identity_of(files: Sequence[InputFile], job: ScoringJob, block_bytes: int, expected_path: str | None) -> Identity:
    """The inputs by size and time of change, the metrics by version, parameters and code, and the settings."""
    inputs = {
        f"{each.path} ({number})" if number else each.path: [each.n_bytes, *_state(each.path)]
        for number, each in _counted(files)
    }
    settings = {
        "--from": job.format,
        "--strict": job.strict,
        "--by": job.by,
        "--expected": None if expected_path is None else [expected_path, *_state(expected_path)],
        "--media-root": None if (root := configured_media_root()) is None else os.path.abspath(root),
        "score lines": "numbered" if job.with_lines else None,
        "block size": block_bytes,
        "limits on reading": [str(limit) for limit in read_limits()],
        "version of AgentUnit": agentunit.__version__,
    }
    return Identity(inputs, {metric.name: _described(metric) for metric in job.metrics}, settings)


def _counted(files: Sequence[InputFile]) -> list[tuple[int, InputFile]]:
    """The files, each with how often it was there before: a file may be given twice."""
    times: dict[str, int] = {}
    counted = []
    for each in files:
        counted.append((times.get(each.path, 0), each))
        times[each.path] = times.get(each.path, 0) + 1
    return counted


def _state(path: str) -> list[int]:
    try:
        if is_remote(path):
            return [remote_state(path)]
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]


def _described(metric: Any) -> Any:
    text = encode_json(
        {
            "version": describe(metric).version,
            "parameters": parameters(metric),
            "backend": getattr(metric, "current_backend", None),
            "code": _digest_of_code(metric),
        }
    ).decode()
    # Objects that are no data are named by where they lie in memory, which says nothing.
    return decode_json(_ADDRESS.sub("", text))


def _digest_of_code(metric: Any) -> str | None:
    """A digest of the file that a user's own metric is defined in; AgentUnit's own have versions."""
    source = metric.function if isinstance(metric, FunctionMetric) else type(metric)
    if (getattr(source, "__module__", None) or "").split(".")[0] == "agentunit":
        return None
    try:
        path = inspect.getsourcefile(source)
        if path is None:
            return None
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:12]
    except (OSError, TypeError):
        return None


_IDENTITY = "job.json"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""How the system says that a disk is full, or a file as large as it may be."""
_LENGTH_BYTES = 8
_block_decoder = msgspec.msgpack.Decoder(Block | UnitEnd)
_encoder = msgspec.msgpack.Encoder()


class JobFolderError(RuntimeError):
    """A folder that this job cannot go on with; the message says why and what to do."""


class Identity(Struct):
    """All that the scores of a job depend on; what differs between two of them is said by name."""

    inputs: dict[str, list[int]]
    metrics: dict[str, Any]
    settings: dict[str, Any]

    def token(self) -> str:
        """A short digest."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:12]

    def differences(self, other: Identity) -> list[str]:
        """What is not the same in another identity, as sentences."""
        found = []
        for what, mine, theirs in (
            ("input", self.inputs, other.inputs),
            ("metric", self.metrics, other.metrics),
            ("setting", self.settings, other.settings),
        ):
            for name in dict.fromkeys([*mine, *theirs]):
                if name not in theirs:
                    found.append(f"{what} {name} was removed")
                elif name not in mine:
                    found.append(f"{what} {name} was added")
                elif mine[name] != theirs[name]:
                    found.append(f"{what} {name} changed")
        if not found and list(self.inputs) != list(other.inputs):
            found.append("the inputs come in another order")
        return found


class JobFolder:
    """A folder with the results of a job's units. Files in it that are of another name are left alone."""

    def __init__(self, path: str | os.PathLike[str], identity: Identity, *, resume: bool) -> None:
        self.path = os.fspath(path).rstrip("/")
        self._identity = msgspec.to_builtins(identity)
        self._token = identity.token()
        if resume:
            self._check(identity)
        self._make()
        # By one look: a file system of a network remembers for a while that a file was not there.
        self._kept = frozenset(self._names()) if resume else frozenset()
        self.n_discarded = 0
        if not resume:
            self.n_discarded = sum(name.endswith(".columns") for name in self._names())
            self.clear()
            with self._unfinished_folder() as folder:
                unfinished = f"{folder}/{_IDENTITY}.tmp"
                Path(unfinished).write_bytes(msgspec.json.encode(identity))
                self._put(unfinished, _IDENTITY)

    def _check(self, identity: Identity) -> None:
        try:
            with self._read(_IDENTITY) as file:
                before = msgspec.json.decode(file.read(), type=Identity)
        except FileNotFoundError:
            raise JobFolderError(f"there is nothing to continue: {self.path} holds no job") from None
        except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
            raise JobFolderError(f"{self.path}/{_IDENTITY} cannot be read: {error}") from None
        # Both through JSON, which knows no tuples.
        now = msgspec.json.decode(msgspec.json.encode(identity), type=Identity)
        changed = before.differences(now)
        if changed or before.token() != now.token():
            what = "; ".join(changed[:3]) or "it was made by another version"
            raise JobFolderError(f"the job in {self.path} is another one ({what}): without --resume it starts over")

    def place(self, number: int, kind: str) -> str:
        """Where a file of a unit lies: its ``columns``, ``lines`` or ``spans``."""
        return f"{self.path}/{self._name(number, kind)}"

    def _name(self, number: int, kind: str) -> str:
        return f"{self._token}-{number:08d}.{kind}"

    def is_there(self) -> bool:
        """Whether this process sees the folder of the job."""
        return self._exists(_IDENTITY)

    def is_done(self, number: int) -> bool:
        """Whether a unit's results were whole when this job began."""
        return self._name(number, "columns") in self._kept

    def write(self, number: int, make: Callable[[IO[bytes]], Iterator[tuple[Block, Lines] | UnitEnd]]) -> None:
        """Keep what a unit comes to; ``make`` gets the file for its spans.

        Whoever else does the same unit at the same time writes the same.
        """
        own = f"{socket.gethostname()}-{os.getpid()}"
        with self._named_errors(), self._unfinished_folder() as folder:
            names = {kind: self._name(number, kind) for kind in ("spans", "lines", "columns")}
            unfinished = {kind: f"{folder}/{name}.{own}.tmp" for kind, name in names.items()}
            try:
                with ExitStack() as stack:
                    files = {kind: stack.enter_context(open(path, "w+b")) for kind, path in unfinished.items()}
                    for part in make(files["spans"]):
                        if not isinstance(part, UnitEnd):
                            files["lines"].write(part[1])
                        data = _encoder.encode(part if isinstance(part, UnitEnd) else part[0])
                        files["columns"].write(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
            except OSError:
                # What fills a disk must not stay on it.
                for path in unfinished.values():
                    with suppress(OSError):
                        os.unlink(path)
                raise
            for kind, path in unfinished.items():
                if kind != "columns" and not os.path.getsize(path):
                    os.unlink(path)
                else:
                    self._put(path, names[kind])

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """A full disk says of itself neither which it is nor what was written."""
        try:
            yield
        except OSError as error:
            if error.errno in NO_ROOM:
                why = (error.strerror or str(error)).lower()
                raise WorkFailed(f"cannot write {error.filename or self.path}: {why}") from None
            raise

    def blocks(self, number: int) -> Iterator[Block | UnitEnd]:
        """What a unit came to, the end last."""
        with self._read(self._name(number, "columns")) as file:
            while head := file.read(_LENGTH_BYTES):
                yield _block_decoder.decode(file.read(int.from_bytes(head, "little")))

    def end(self, number: int) -> UnitEnd:
        """The end of a unit alone."""
        with self._read(self._name(number, "columns")) as file:
            while head := file.read(_LENGTH_BYTES):
                length = int.from_bytes(head, "little")
                at = file.tell()
                if file.seek(0, os.SEEK_END) == at + length:
                    file.seek(at)
                    found = _block_decoder.decode(file.read(length))
                    if isinstance(found, UnitEnd):
                        return found
                file.seek(at + length)
        raise JobFolderError(f"{self.place(number, 'columns')} has no end")

    def open(self, number: int, kind: str) -> IO[bytes]:
        """The lines or spans of a unit, to be read; a unit without any has an empty file."""
        try:
            return self._read(self._name(number, kind))
        except FileNotFoundError:
            return BytesIO()

    def keep_done(self) -> bool:
        """Remove what was only begun, after the work was given up; whether something is left to continue with."""
        names = self._names()
        if not any(name.endswith(".columns") for name in names):
            self.remove()
            return False
        self._delete([name for name in names if name.endswith(".tmp") and _is_ours(name)])
        return True

    def clear(self) -> None:
        """Remove what jobs wrote, and nothing else."""
        self._delete([name for name in self._names() if name == _IDENTITY or _is_ours(name)])

    def remove(self) -> None:
        """Remove what jobs wrote, and the folder if nothing else is in it."""
        self.clear()
        with suppress(OSError):
            os.rmdir(self.path)

    # What is different where a folder is no folder of a file system.

    def _make(self) -> None:
        Path(self.path).mkdir(mode=0o700, exist_ok=True)

    def _unfinished_folder(self) -> AbstractContextManager[str]:
        return nullcontext(self.path)

    def _names(self) -> list[str]:
        return os.listdir(self.path)

    def _exists(self, name: str) -> bool:
        return os.path.exists(f"{self.path}/{name}")

    def _read(self, name: str) -> IO[bytes]:
        return open(f"{self.path}/{name}", "rb")

    def _put(self, finished: str, name: str) -> None:
        """Give a finished file its name, at once and whole."""
        os.replace(finished, f"{self.path}/{name}")

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            Path(self.path, name).unlink(missing_ok=True)


def discard_job(path: str) -> int:
    """Remove what a job that was stopped has left in a folder, if it is there; how many blocks that were."""
    try:
        ours = [name for name in os.listdir(path) if name == _IDENTITY or _is_ours(name)]
    except OSError:
        return 0
    if _IDENTITY not in ours:
        return 0
    for name in ours:
        Path(path, name).unlink(missing_ok=True)
    with suppress(OSError):
        os.rmdir(path)
    return sum(name.endswith(".columns") for name in ours)


def _is_ours(name: str) -> bool:
    token, dash, rest = name.partition("-")
    number, _, kind = rest.partition(".")
    is_numbered = len(token) == 12 and bool(dash) and number.isdigit()
    return is_numbered and kind.split(".")[0] in ("columns", "lines", "spans")
