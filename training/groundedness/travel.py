"""Carries files to a lent machine and back in pieces: ``python -m training.groundedness.travel VERB …``.

``pack FOLDER OUT`` cuts the files of a folder into pieces, in folders ``OUT/1``, ``OUT/2`` … that each fit one call.
``join PIECES OUT`` puts pieces together, in any order and over several calls; a file appears once all of it is there and its
checksum is right, and ``.xz`` is taken off. ``thin`` lets git see only this folder, so that the rest of a checkout stays at
home, and ``whole`` undoes that.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

PIECE_BYTES = 15 * 1024 * 1024
CALL_PIECES = 4
"""Pieces a call takes: 60 MiB of the 64 that may travel; the rest is for the code."""
_DONE = ".pieces.json"
_THIN_IGNORE = "/*\n!/training/\n!/.gitignore\n__pycache__/\n"


def pieces_of(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """The pieces of a file, each with its own name; the first line of a piece says where it belongs."""
    content = path.read_bytes()
    whole = hashlib.sha256(content).hexdigest()
    mark = hashlib.sha256(f"{name} {whole}".encode()).hexdigest()[:12]
    for at in range(0, max(1, len(content)), PIECE_BYTES):
        part = content[at : at + PIECE_BYTES]
        facts = {"file": name, "at": at, "size": len(content), "whole": whole, "part": hashlib.sha256(part).hexdigest()}
        yield f"{mark}-{at // PIECE_BYTES:03d}.piece", json.dumps(facts).encode() + b"\n" + part


def pack(folder: Path, out: Path) -> int:
    """Cut the files of a folder into folders of pieces; returns how many calls they take."""
    if out.exists():
        shutil.rmtree(out)
    call, room, n_pieces = 0, 0, 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for name, content in pieces_of(path, str(path.relative_to(folder))):
            if room < len(content) or n_pieces == 8:
                call, room, n_pieces = call + 1, CALL_PIECES * (PIECE_BYTES + 1024), 0
                (out / str(call)).mkdir(parents=True)
            (out / str(call) / name).write_bytes(content)
            room, n_pieces = room - len(content), n_pieces + 1
    return call


def join(pieces: Iterable[Path], out: Path) -> tuple[list[str], list[str]]:
    """Put pieces together; returns the files that are whole now, and those of which something is still lacking."""
    out.mkdir(parents=True, exist_ok=True)
    ledger = out / _DONE
    known: dict[str, dict[str, int]] = json.loads(ledger.read_text()) if ledger.exists() else {}
    for piece in sorted(pieces):
        head, _, part = piece.read_bytes().partition(b"\n")
        facts = json.loads(head)
        if hashlib.sha256(part).hexdigest() != facts["part"]:
            raise SystemExit(f"{piece}: does not match its checksum; send it again")
        name = facts["file"]
        target = out / name
        if not target.resolve().is_relative_to(out.resolve()):
            raise SystemExit(f"{piece}: names a file outside {out}: {name}")
        if _whole(target, facts["whole"]):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(target.name + ".partial")
        with open(partial, "r+b" if partial.exists() else "w+b") as file:
            file.truncate(facts["size"])
            file.seek(facts["at"])
            file.write(part)
        had = known.setdefault(name, {})
        had[str(facts["at"])] = len(part)
        if sum(had.values()) == facts["size"]:
            _finish(partial, target, facts["whole"])
            del known[name]
        ledger.write_text(json.dumps(known))
    whole = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and path.name[0] != ".")
    return [name for name in whole if not name.endswith((".partial", ".sha256"))], sorted(known)


def _finish(partial: Path, target: Path, whole: str) -> None:
    found = hashlib.sha256(partial.read_bytes()).hexdigest()
    if found != whole:
        partial.unlink()
        raise SystemExit(f"{target}: put together, it does not match its checksum; send all its pieces again")
    partial.replace(target)
    target.with_name(target.name + ".sha256").write_text(whole)
    if target.suffix == ".xz":
        with lzma.open(target) as packed, open(target.with_suffix(""), "wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)


def _whole(target: Path, whole: str) -> bool:
    mark = target.with_name(target.name + ".sha256")
    return target.exists() and mark.exists() and mark.read_text() == whole


def send(files: Iterable[Path], root: Path, out: Path, sent: Path) -> tuple[int, int]:
    """Put the next pieces of files that were not sent yet into ``out``; returns how many went and how many are left."""
    gone = set(json.loads(sent.read_text())) if sent.exists() else set()
    out.mkdir(parents=True, exist_ok=True)
    went = left = size = 0
    for path in files:
        for name, content in pieces_of(path, str(path.relative_to(root))):
            if name in gone:
                continue
            if went == 8 or size + len(content) > CALL_PIECES * (PIECE_BYTES + 1024):
                left += 1
                continue
            (out / name).write_bytes(content)
            gone.add(name)
            went, size = went + 1, size + len(content)
    sent.write_text(json.dumps(sorted(gone)))
    return went, left


def thin(root: Path) -> None:
    """Let git see this folder alone: what it does not see does not travel. Nothing on disk changes but .gitignore."""
    if _git(root, "status", "--porcelain").strip():
        raise SystemExit(f"{root}: commit or stash what you changed first; 'whole' would throw it away")
    _git(root, "rm", "-r", "-q", "--cached", ".")
    (root / ".gitignore").write_text(_THIN_IGNORE, encoding="utf-8")
    _git(root, "add", ".gitignore", "training")
    print(f"{len(_git(root, 'ls-files').split())} files travel; 'whole' brings the others back into git's sight")


def whole(root: Path) -> None:
    """Undo ``thin``."""
    _git(root, "reset", "-q")
    _git(root, "checkout", "-q", "--", ".gitignore")
    print(_git(root, "status", "--short") or "the checkout is whole again")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout


def main(arguments: list[str]) -> None:
    """Do what the first argument says."""
    verb, paths = arguments[0], [Path(argument) for argument in arguments[1:]]
    if verb == "pack":
        print(f"{pack(*paths)} calls: one for each folder in {paths[1]}")
    elif verb == "join":
        *folders, out = paths
        there, lacking = join([piece for folder in folders for piece in folder.rglob("*.piece")], out)
        print(f"whole: {', '.join(there) or 'nothing'}\nnot yet whole: {', '.join(lacking) or 'nothing'}")
    elif verb in ("thin", "whole"):
        (thin if verb == "thin" else whole)(paths[0] if paths else Path.cwd())
    else:
        raise SystemExit(f"{verb}: the verbs are pack, join, thin and whole")


if __name__ == "__main__":
    main(sys.argv[1:])
