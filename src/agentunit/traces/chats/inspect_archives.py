"""The .eval archives of Inspect: a ZIP file with one JSON file a sample, compressed by Deflate or Zstandard."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import msgspec

from agentunit.core.results import InputError
from agentunit.traces.chats.plain_data import as_dict
from agentunit.traces.chats.rows import Row
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, decompressed
from agentunit.traces.formats_base import Source

ARCHIVE_START = b"PK\x03\x04"

# The directory of an archive is at its end: what cannot be moved about in is held in memory up to here.
LONGEST_UNSEEKABLE_BYTES = 1 << 30
LONGEST_SAMPLE_BYTES = 256 << 20
# Recent versions of Inspect write Zstandard, which Python's zipfile knows only from 3.14 on.
_ZSTANDARD = 93
_LOCAL_HEADER_BYTES = 30
_HEADERS = ("header.json", "_journal/start.json")


def archive_rows(source: Source) -> Iterator[Row | InputError]:
    """The samples of an archive as rows, in the order of their names; around each stands the log's header."""
    try:
        file = _seekable(source)
        if file is None:
            size = f"{LONGEST_UNSEEKABLE_BYTES >> 20} MiB"
            yield InputError(
                source.name, None, f"an archive of more than {size} must be given as a file, not compressed"
            )
            return
        archive = zipfile.ZipFile(file)
    except (*BROKEN_STREAM, zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        yield InputError(source.name, None, f"the .eval archive is cut off or damaged ({error})")
        return
    with archive:
        around = _header(archive, file)
        names = sorted(name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json"))
        if not names:
            yield InputError(source.name, None, "the .eval archive holds no samples")
        for name in names:
            data = _member(archive, file, name)
            if isinstance(data, str):
                yield InputError(source.name, None, f"{name} in the archive cannot be read: {data}")
            else:
                yield Row(data, None, around, name)


def _seekable(source: Source) -> BinaryIO | None:
    stream = source.stream
    if stream.seekable():
        return cast(BinaryIO, stream)
    data = stream.read(LONGEST_UNSEEKABLE_BYTES + 1)
    return io.BytesIO(data) if len(data) <= LONGEST_UNSEEKABLE_BYTES else None


def _header(archive: zipfile.ZipFile, file: BinaryIO) -> dict[str, Any]:
    for name in _HEADERS:
        if name in archive.namelist():
            data = _member(archive, file, name)
            try:
                return as_dict(msgspec.json.decode(data)) if isinstance(data, bytes) else {}
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                continue
    return {}


def _member(archive: zipfile.ZipFile, file: BinaryIO, name: str) -> bytes | str:
    """The content of a file in the archive, or the reason why there is none."""
    info = archive.getinfo(name)
    try:
        if info.compress_type == _ZSTANDARD:
            data = _zstandard_member(file, info)
        else:
            with archive.open(info) as member:
                data = member.read(LONGEST_SAMPLE_BYTES + 1)
    except ZstandardMissing as missing:
        return str(missing)
    except (*BROKEN_STREAM, zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        return f"it is damaged ({error})"
    return data if len(data) <= LONGEST_SAMPLE_BYTES else f"it is longer than {LONGEST_SAMPLE_BYTES >> 20} MiB"


def _zstandard_member(file: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER_BYTES)
    if len(header) < _LOCAL_HEADER_BYTES or not header.startswith(ARCHIVE_START):
        raise zipfile.BadZipFile("its header is not where the directory says")
    names_bytes = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    file.seek(info.header_offset + _LOCAL_HEADER_BYTES + names_bytes)
    packed = io.BytesIO(file.read(info.compress_size))
    data = decompressed(packed).read(LONGEST_SAMPLE_BYTES + 1)
    if len(data) <= LONGEST_SAMPLE_BYTES and zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile("its checksum does not match")
    return data
