"""Record files as people have them: compressed or not, tidy or not, whole or cut off."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import sys
import threading
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest

from agentunit import read_records
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.traces.native import RecordFile

zstandard = pytest.importorskip("zstandard")


def lines(n: int, start: int = 0, padding: int = 0) -> bytes:
    """Records whose text does not compress well, so that files of some size can be cut in interesting places."""
    noise = random.Random(start)
    return b"".join(
        json.dumps({"v": 1, "case": {"id": f"q{k}", "query": noise.randbytes(padding).hex()}}).encode() + b"\n"
        for k in range(start, start + n)
    )


def file_of(tmp_path: Path, data: bytes, name: str = "records.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def read(*paths: Any) -> tuple[list[str], list[InputError]]:
    items = list(read_records(*paths))
    records = [item for item in items if isinstance(item, Record)]
    errors = [item for item in items if isinstance(item, InputError)]
    assert len(records) + len(errors) == len(items)
    return [record.case.id for record in records], errors


def ids(n: int, start: int = 0) -> list[str]:
    return [f"q{k}" for k in range(start, start + n)]


def zstd(data: bytes, *, sized: bool = True) -> bytes:
    # With a checksum, as the zstd command writes it: without one, damage can pass for data.
    return bytes(zstandard.ZstdCompressor(write_content_size=sized, write_checksum=True).compress(data))


def zstd_in_blocks(parts: list[bytes]) -> bytes:
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    flushed = [compressor.compress(part) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for part in parts]
    return b"".join(flushed) + compressor.flush()


# Containers

CONTAINERS = {
    "plain": lambda a, b: a + b,
    "gzip": lambda a, b: gzip.compress(a + b),
    "gzip of two members": lambda a, b: gzip.compress(a) + gzip.compress(b),
    "gzip with an empty member": lambda a, b: gzip.compress(a) + gzip.compress(b"") + gzip.compress(b),
    "gzip padded with zeros": lambda a, b: gzip.compress(a + b) + b"\0" * 64,
    "zstd": lambda a, b: zstd(a + b),
    "zstd without its size": lambda a, b: zstd(a + b, sized=False),
    "zstd of two frames": lambda a, b: zstd(a) + zstd(b),
    "zstd with an empty frame": lambda a, b: zstd(a) + zstd(b"") + zstd(b),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("padding", [0, 3000], ids=["small", "larger than a buffer"])
def test_every_container_gives_the_same_records(tmp_path: Path, container: str, padding: int) -> None:
    data = CONTAINERS[container](lines(60, padding=padding), lines(60, start=60, padding=padding))
    assert read(file_of(tmp_path, data)) == (ids(120), [])


def test_the_content_decides_not_the_name(tmp_path: Path) -> None:
    assert read(file_of(tmp_path, gzip.compress(lines(2)), "a.jsonl")) == (ids(2), [])
    assert read(file_of(tmp_path, lines(2), "a.jsonl.gz")) == (ids(2), [])
    assert read(file_of(tmp_path, zstd(lines(2)), "a.txt")) == (ids(2), [])


def test_a_line_may_span_two_members_or_frames(tmp_path: Path) -> None:
    data = lines(3)
    cut = len(data) // 2
    assert read(file_of(tmp_path, gzip.compress(data[:cut]) + gzip.compress(data[cut:]))) == (ids(3), [])
    assert read(file_of(tmp_path, zstd(data[:cut]) + zstd(data[cut:]))) == (ids(3), [])


def test_several_files_one_after_the_other(tmp_path: Path) -> None:
    first = file_of(tmp_path, lines(2), "a")
    second = file_of(tmp_path, gzip.compress(lines(2, start=2)), "b")
    assert read(first, str(second)) == (ids(4), [])
    assert read() == ([], [])


def test_without_the_zstd_package_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    records, [error] = read(file_of(tmp_path, zstd(lines(2)), "a.zst"), file_of(tmp_path, lines(1), "b"))
    assert records == ids(1)
    assert "pip install" in error.reason
    assert "zstd" in error.reason


# Lines


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", []),
        (b"\n \n\t\n\r\n", []),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", []),
        (b"\xef\xbb\xbf" + lines(2), ids(2)),
        (lines(2).rstrip(b"\n"), ids(2)),
        (lines(2).replace(b"\n", b"\r\n"), ids(2)),
        (b"\n\n" + lines(1) + b"  \n\n" + lines(1, start=1) + b"\n", ids(2)),
        (b"  " + lines(1), ids(1)),
    ],
    ids=[
        "empty", "one newline", "blank lines", "only a BOM", "a BOM and a newline", "BOM", "no final newline", "CRLF",
        "blank lines between", "indented",
    ],
)  # fmt: skip
def test_untidy_lines(tmp_path: Path, data: bytes, expected: list[str]) -> None:
    assert read(file_of(tmp_path, data)) == (expected, [])
    assert read(file_of(tmp_path, gzip.compress(data))) == (expected, [])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"not JSON at all", "not JSON"),
        (b'{"case": {"id": "x"}', "not JSON"),
        (b'{"case": {"id": "\xff"}}', "not valid UTF-8"),
        (b'{"case": {"id": "x"}, "outcome": {"cost": NaN}}', "NaN is not JSON"),
        (b"[]", "a JSON array"),
        (b"{}", "a record needs 'case'"),
        (b'{"v": 9, "case": {}}', "version"),
        (b"\x00\x01\x02", "not JSON"),
        (b"\xef\xbb\xbf" + lines(1).strip(), "not JSON"),  # a byte-order mark belongs at the start of a file only
    ],
)
def test_a_bad_line_is_told_by_number_and_the_rest_is_read(tmp_path: Path, bad: bytes, reason: str) -> None:
    data = lines(2) + b"\n" + bad + b"\n" + lines(2, start=2)
    path = file_of(tmp_path, data)
    items = list(read_records(path))
    assert [type(item) for item in items] == [Record, Record, InputError, Record, Record]
    error = items[2]
    assert isinstance(error, InputError)
    assert (error.source, error.line) == (str(path), 4)  # blank lines count
    assert reason in error.reason


def test_reading_goes_on_after_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", str(1000 / 2**20))
    data = lines(2) + b'{"case": {"id": "' + b"x" * 2000 + b'"}}\n' + lines(2, start=2)
    records, [error] = read(file_of(tmp_path, data, "long"), file_of(tmp_path, lines(1, start=9), "next"))
    assert records == [*ids(4), "q9"]
    assert error.line == 3
    assert "longer" in error.reason
    assert "AGENTUNIT_MAX_ITEM_MB raises this limit" in error.reason


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_of_just_the_allowed_length_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: bytes) -> None:
    line = lines(1).strip() + end
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", str(len(line) / 2**20))
    assert read(file_of(tmp_path, line)) == (ids(1), [])
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", str((len(line) - 1) / 2**20))
    assert "longer" in read(file_of(tmp_path, line))[1][0].reason


# Broken files


def test_a_missing_file_does_not_cost_the_others(tmp_path: Path) -> None:
    good = file_of(tmp_path, lines(1))
    missing = tmp_path / "nowhere.jsonl"
    records, errors = read(missing, good)
    assert records == ids(1)
    assert errors == [InputError(str(missing), None, "no such file")]


def complete_lines(decompressed: bytes) -> int:
    return decompressed.count(b"\n")


def readable_part_of_gzip(data: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(data)


def readable_part_of_zstd(data: bytes) -> bytes:
    return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(data))


@pytest.mark.parametrize("padding", [10, 400])
@pytest.mark.parametrize(
    ("compress", "readable"),
    [(gzip.compress, readable_part_of_gzip), (zstd, readable_part_of_zstd)],
    ids=["gzip", "zstd"],
)
def test_a_cut_off_file_gives_every_line_before_the_cut(
    tmp_path: Path, compress: Any, readable: Any, padding: int
) -> None:
    whole = compress(lines(2000, padding=padding))
    for share in (0.02, 0.3, 0.5, 0.77, 0.999):
        cut = whole[: int(len(whole) * share)]
        expected = complete_lines(readable(cut))
        records, errors = read(file_of(tmp_path, cut))
        assert records == ids(expected), share
        assert len(errors) == 1
        assert errors[0].line == expected + 1
        assert "cut off or damaged" in errors[0].reason


def test_a_cut_just_before_the_end_marker_is_noticed(tmp_path: Path) -> None:
    for whole in (gzip.compress(lines(5)), zstd(lines(5))):
        records, [error] = read(file_of(tmp_path, whole[:-1]))
        assert "cut off or damaged" in error.reason
        assert records in (ids(5), [])  # a single block may only decompress as a whole


def test_a_cut_in_the_second_member_or_frame_keeps_the_first(tmp_path: Path) -> None:
    for compress in (gzip.compress, zstd):
        data = compress(lines(50)) + compress(lines(50, start=50))[:-5]
        records, [error] = read(file_of(tmp_path, data))
        assert records[:50] == ids(50)
        assert "cut off or damaged" in error.reason


def damaged(data: bytes, position: int) -> bytes:
    return data[:position] + bytes(255 - byte for byte in data[position : position + 40]) + data[position + 40 :]


@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_a_damaged_file_ends_with_an_error_and_never_an_exception(tmp_path: Path, compress: Any) -> None:
    whole = compress(lines(2000, padding=100))
    for share in (0.001, 0.1, 0.5, 0.9, 0.9999):
        _, errors = read(file_of(tmp_path, damaged(whole, int(len(whole) * share))))
        assert errors, share


@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_damage_in_the_second_member_or_frame_keeps_the_first(tmp_path: Path, compress: Any) -> None:
    second = compress(lines(50, start=50, padding=50))
    data = compress(lines(50, padding=50)) + damaged(second, len(second) // 2)
    records, errors = read(file_of(tmp_path, data))
    assert records[:50] == ids(50)
    assert "cut off or damaged" in errors[-1].reason


@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_rubbish_after_the_end_keeps_what_came_before(tmp_path: Path, compress: Any) -> None:
    records, errors = read(file_of(tmp_path, compress(lines(50)) + b"this is no compressed data"))
    assert records == ids(50)
    assert len(errors) == 1
    assert "cut off or damaged" in errors[0].reason


def test_damage_in_a_later_block_keeps_the_blocks_before(tmp_path: Path) -> None:
    parts = [lines(100, start=100 * k, padding=200) for k in range(4)]
    whole = bytearray(zstd_in_blocks(parts))
    # Three blocks and the empty one that ends a frame (3 bytes): there, in the whole, the fourth block begins.
    fourth = len(zstd_in_blocks(parts[:3])) - 3
    whole[fourth] = 0xFF  # a kind of block that does not exist
    records, errors = read(file_of(tmp_path, bytes(whole)))
    assert records[:300] == ids(300)
    assert "cut off or damaged" in errors[-1].reason


def test_a_wrong_checksum_is_told_after_the_records(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(lines(20)))
    whole[-8] ^= 0xFF  # the first byte of the CRC
    records, [error] = read(file_of(tmp_path, bytes(whole)))
    assert records == ids(20)
    assert "cut off or damaged" in error.reason


# Streams


def as_stdin(monkeypatch: pytest.MonkeyPatch, stream: io.BufferedIOBase) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, compress: Any) -> None:
    as_stdin(monkeypatch, io.BufferedReader(io.BytesIO(compress(lines(3)))))
    assert read("-") == (ids(3), [])


def test_errors_on_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    as_stdin(monkeypatch, io.BytesIO(lines(1) + b"oops\n"))
    records, [error] = read("-")
    assert records == ids(1)
    assert (error.source, error.line) == ("standard input", 2)


def test_standard_input_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    as_stdin(monkeypatch, io.BufferedReader(io.BytesIO(lines(1))))
    assert read("-") == (ids(1), [])
    assert not sys.stdin.closed
    assert not sys.stdin.buffer.closed
    assert read("-") == ([], [])  # asked again, it is simply at its end


def test_a_compressed_pipe_that_starts_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    data = gzip.compress(lines(3))
    read_end, write_end = os.pipe()
    first_byte_taken = threading.Event()

    class Slow(io.RawIOBase):
        """The first read gives one byte, as a pipe may."""

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            size = 1 if not first_byte_taken.is_set() else len(buffer)
            first_byte_taken.set()
            chunk = os.read(read_end, size)
            buffer[: len(chunk)] = chunk
            return len(chunk)

    os.write(write_end, data)
    os.close(write_end)
    as_stdin(monkeypatch, io.BufferedReader(Slow()))
    try:
        assert read("-") == (ids(3), [])
    finally:
        os.close(read_end)


def test_reading_is_lazy(tmp_path: Path) -> None:
    path = file_of(tmp_path, lines(20_000))
    file = RecordFile(path)
    assert (file.position, file.size) == (0, 0)
    stream = iter(file)
    next(stream)
    assert file.size == path.stat().st_size
    assert 0 < file.position < file.size
    for _ in stream:
        pass
    assert file.position == file.size


@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_a_file_that_compresses_well_is_not_held_in_memory_whole(tmp_path: Path, compress: Any) -> None:
    line = json.dumps({"case": {"id": "q", "query": "x" * 16_000}}).encode() + b"\n"
    path = file_of(tmp_path, compress(line * 4000))  # 64 MB, a few kB on disk
    tracemalloc.start()
    try:
        n_records = sum(1 for _ in read_records(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n_records == 4000
    assert peak < 16_000_000


def test_a_file_can_be_left_early_and_read_again(tmp_path: Path) -> None:
    file = RecordFile(file_of(tmp_path, lines(5)))
    stream = iter(file)
    next(stream)
    stream.close()
    assert len(list(file)) == 5
