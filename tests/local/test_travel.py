"""Files in pieces: they arrive whole, in any order and over several calls, or not at all."""

from __future__ import annotations

import lzma
import random
import subprocess

import pytest
from training.groundedness import travel


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(travel, "PIECE_BYTES", 1000)
    given = tmp_path / "given"
    (given / "deep").mkdir(parents=True)
    rng = random.Random(1)
    (given / "deep/one.bin").write_bytes(rng.randbytes(9_500))
    (given / "two.bin").write_bytes(rng.randbytes(300))
    (given / "empty.bin").write_bytes(b"")
    (given / "built.npz.xz").write_bytes(lzma.compress(b"built" * 1000))
    return given


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.suffix in (".bin", ".npz")}


def test_what_was_packed_is_whole_after_all_calls_in_any_order(folder, tmp_path):
    calls = travel.pack(folder, tmp_path / "travel")
    assert calls > 1
    for call in range(calls, 0, -1):
        pieces = list((tmp_path / f"travel/{call}").iterdir())
        assert len(pieces) <= 8
        assert sum(piece.stat().st_size for piece in pieces) <= 4 * (1000 + 1024)
        there, lacking = travel.join(pieces, tmp_path / "there")
        assert bool(lacking) == (call > 1)
    assert "deep/one.bin" in there
    assert contents(tmp_path / "there") == {**contents(folder), "built.npz": b"built" * 1000}
    # A call that is repeated changes nothing.
    assert travel.join((tmp_path / "travel/1").iterdir(), tmp_path / "there") == (there, [])


def test_a_damaged_piece_is_refused(folder, tmp_path):
    travel.pack(folder, tmp_path / "travel")
    piece = sorted((tmp_path / "travel/1").iterdir())[0]
    piece.write_bytes(piece.read_bytes()[:-1] + b"?")
    with pytest.raises(SystemExit, match="does not match its checksum"):
        travel.join([piece], tmp_path / "there")


def test_a_piece_cannot_name_a_file_outside(folder, tmp_path):
    ((name, content),) = travel.pieces_of(folder / "two.bin", "../two.bin")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SystemExit, match="outside"):
        travel.join([tmp_path / name], tmp_path / "there")


def test_what_comes_home_fits_a_call_and_is_sent_once(folder, tmp_path):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    left, calls = 1, 0
    while left:
        went, left = travel.send(files, folder, tmp_path / f"home-{calls}", tmp_path / "sent.json")
        assert 0 < went <= 8
        _, lacking = travel.join((tmp_path / f"home-{calls}").iterdir(), tmp_path / "home")
        calls += 1
    assert calls > 1
    assert not lacking
    assert contents(tmp_path / "home") == {**contents(folder), "built.npz": b"built" * 1000}
    assert travel.send(files, folder, tmp_path / "none", tmp_path / "sent.json") == (0, 0)


def test_a_thin_checkout_shows_git_the_training_alone_and_becomes_whole_again(tmp_path):
    def git(*arguments):
        return subprocess.run(["git", "-C", tmp_path, *arguments], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    for name in ("training/code.py", "weights/large.onnx", ".gitignore"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("build/\n")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all")
    travel.thin(tmp_path)
    assert git("ls-files", "-co", "--exclude-standard").split() == [".gitignore", "training/code.py"]
    with pytest.raises(SystemExit, match="commit or stash"):
        travel.thin(tmp_path)
    travel.whole(tmp_path)
    assert git("status", "--porcelain") == ""
    assert (tmp_path / "weights/large.onnx").exists()
