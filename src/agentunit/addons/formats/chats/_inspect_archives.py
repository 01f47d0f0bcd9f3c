"""The .eval archives of Inspect: a ZIP file with one JSON file a sample, compressed by Deflate or Zstandard."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import msgspec

from agentunit.addons.formats.chats.loose_values import as_dict
from agentunit.core.results import InputError, decode_json
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, decompressed, read_whole
from agentunit.traces.formats_base import Source
from agentunit.traces.json_files.stream import JsonRow
from agentunit.traces.limits import Expansion, LimitExceeded, check_nodes, item_too_long, read_limits

ARCHIVE_START = b"PK\x03\x04"

# Recent versions of Inspect write Zstandard, which Python's zipfile knows only from 3.14 on.
_ZSTANDARD = 93
_LOCAL_HEADER_BYTES = 30
_PIECE_BYTES = 1 << 18
_HEADERS = ("header.json", "_journal/start.json")


def archive_rows(source: Source) -> Iterator[JsonRow | InputError]:
    """The samples of an archive as rows, in the order of their names; around each stands the log's header."""
    try:
        file = _seekable(source)
        archive = zipfile.ZipFile(file)
        members = _Members(archive, file)
    except LimitExceeded as error:
        yield InputError(source.name, None, str(error))
        return
    except (*BROKEN_STREAM, zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        yield InputError(source.name, None, f"the .eval archive is cut off or damaged ({error})")
        return
    with archive:
        around = _header(members)
        names = sorted(name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json"))
        if not names:
            yield InputError(source.name, None, "the .eval archive holds no samples")
        for name in names:
            data = members.read(name)
            if isinstance(data, str):
                yield InputError(source.name, None, f"{name} in the archive cannot be read: {data}")
            else:
                yield JsonRow(data, None, around, name)


def _seekable(source: Source) -> BinaryIO:
    """The archive as something to move about in: its directory is at its end."""
    stream = source.stream
    return cast(BinaryIO, stream) if stream.seekable() else io.BytesIO(read_whole(stream))


def _header(members: _Members) -> dict[str, Any]:
    for name in _HEADERS:
        if name in members.names:
            data = members.read(name)
            try:
                return as_dict(decode_json(data)) if isinstance(data, bytes) else {}
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                continue
    return {}


class _Members:
    """The files in an archive. Together they may not expand further than any other compressed file."""

    def __init__(self, archive: zipfile.ZipFile, file: BinaryIO) -> None:
        self.names = frozenset(archive.namelist())
        self._archive = archive
        self._file = file
        self._n_bytes = file.seek(0, io.SEEK_END)
        self._expansion = Expansion()

    def read(self, name: str) -> bytes | str:
        """The content of a file in the archive, or the reason why there is none."""
        info = self._archive.getinfo(name)
        try:
            if info.compress_type == _ZSTANDARD:
                data = self._zstandard(info)
            else:
                with self._archive.open(info) as member:
                    data = self._bounded(cast(io.BufferedIOBase, member))
            check_nodes(data)
        except (ZstandardMissing, LimitExceeded) as error:
            return str(error)
        except (*BROKEN_STREAM, zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError) as error:
            return f"it is damaged ({error})"
        return data

    def _bounded(self, member: io.BufferedIOBase) -> bytes:
        limit = read_limits().item_bytes
        pieces, n_bytes = [], 0
        while piece := member.read1(_PIECE_BYTES):
            pieces.append(piece)
            n_bytes += len(piece)
            self._expansion.add(len(piece), self._n_bytes)
            if n_bytes > limit:
                raise LimitExceeded(item_too_long("it"))
        return b"".join(pieces)

    def _zstandard(self, info: zipfile.ZipInfo) -> bytes:
        file = self._file
        file.seek(info.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
        if len(header) < _LOCAL_HEADER_BYTES or not header.startswith(ARCHIVE_START):
            raise zipfile.BadZipFile("its header is not where the directory says")
        names_bytes = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        file.seek(info.header_offset + _LOCAL_HEADER_BYTES + names_bytes)
        data = self._bounded(decompressed(io.BytesIO(file.read(info.compress_size))))
        if zlib.crc32(data) != info.CRC:
            raise zipfile.BadZipFile("its checksum does not match")
        return data
