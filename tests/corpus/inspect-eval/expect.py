"""Count what the samples in the archive state, without AgentUnit; the archive is a zip whose files are Zstandard."""

from __future__ import annotations

import json
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

ZSTANDARD = 93


def count(path: Path) -> list[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        names = [each for each in archive.infolist() if each.filename.startswith("samples/")]
    return [case_of(json.loads(content(path, each))) for each in names]


def content(path: Path, file: zipfile.ZipInfo) -> bytes:
    """The bytes of a file in the archive: Python below 3.14 does not decompress Zstandard there."""
    import zstandard

    assert file.compress_type == ZSTANDARD
    raw = path.read_bytes()
    name_length, extra_length = struct.unpack("<HH", raw[file.header_offset + 26 : file.header_offset + 30])
    start = file.header_offset + 30 + name_length + extra_length
    return zstandard.ZstdDecompressor().decompressobj().decompress(raw[start : start + file.compress_size])


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from count_inspect import case_of
    from files import write_expectations

    write_expectations(folder, count)
