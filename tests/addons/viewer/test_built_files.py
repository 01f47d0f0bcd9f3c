"""The built viewer is committed, so that installing needs no Node: it must be what the sources build."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "viewer"
BUILT = ROOT / "src" / "agentunit" / "addons" / "viewer" / "static"
MOST_GZIPPED_BYTES = 150_000


def digest_of_sources() -> str:
    """The digest that viewer/build.mjs writes into what it builds."""
    names = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"]
    paths = [SOURCES / name for name in names] + [path for path in (SOURCES / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(SOURCES).as_posix(), path) for path in paths):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


@pytest.mark.parametrize("name", ["app.js", "app.css"])
def test_built_files_are_fresh(name: str) -> None:
    first_line = (BUILT / name).read_text(encoding="utf-8").split("\n", 1)[0]
    built_from = re.search(r"sources: ([0-9a-f]{64})", first_line)
    assert built_from is not None
    assert built_from[1] == digest_of_sources(), f"{name} is not what viewer/ builds. Run: make viewer"


def test_viewer_stays_small() -> None:
    size = sum(len(gzip.compress((BUILT / name).read_bytes(), 9)) for name in ("app.js", "app.css"))
    assert size <= MOST_GZIPPED_BYTES


def test_built_files_can_be_inlined() -> None:
    for name in ("app.js", "app.css"):
        text = (BUILT / name).read_text(encoding="utf-8").lower()
        assert "</script" not in text
        assert "</style" not in text
        assert "<!--" not in text


def test_nothing_is_loaded_from_elsewhere() -> None:
    style = (BUILT / "app.css").read_text(encoding="utf-8")
    assert "@import" not in style
    assert "url(" not in style
    assert "//# sourceMappingURL" not in (BUILT / "app.js").read_text(encoding="utf-8")
