"""``python -m benchmarks.validity [--check] [--install-peers]``: measure, and write or compare the files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.speed.environments import InstallFailed
from benchmarks.validity import pii_peers
from benchmarks.validity.data import VARIABLE, DataProblem, LabelledData, data_folder
from benchmarks.validity.family import Family
from benchmarks.validity.page import page, trust_file
from benchmarks.validity.rows import producers

ROOT = Path(__file__).resolve().parents[2]
TRUST_FILE = "src/agentunit/metrics/validity.json"
PAGE_FILE = "docs/validity.md"


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Exit code: 0 done (or no data), 1 the committed files differ, 3 the data cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the files would change")
    parser.add_argument("--install-peers", action="store_true", help="first install the detectors measured beside ours")
    options = parser.parse_args(arguments)
    folder = data_folder(root)
    if folder is None:
        print(f"validity: skipped, no labelled data here ({VARIABLE} names its folder)")
        return 0
    try:
        if options.install_peers:
            pii_peers.install()
        families = measure_all(LabelledData(folder))
    except (DataProblem, InstallFailed) as problem:
        print(f"validity: {problem}", file=sys.stderr)
        return 3
    files = {TRUST_FILE: trust_file(families), PAGE_FILE: page(families).encode()}
    for family in families:
        files |= family.files
    return compare(files, root) if options.check else write(files, root)


def measure_all(data: LabelledData) -> list[Family]:
    """Every family's figures, telling on standard error how it goes."""
    families = []
    for name, measure in producers().items():
        start = time.monotonic()
        print(f"validity: {name} … ", end="", file=sys.stderr, flush=True)
        family = measure(data)
        print(f"{len(family.figures)} figures in {time.monotonic() - start:.0f} s", file=sys.stderr)
        families.append(family)
    return families


def compare(files: dict[str, bytes], root: Path) -> int:
    """Name the files that differ from what was measured."""
    stale = [name for name, content in files.items() if not _same(root / name, content)]
    for name in stale:
        print(f"validity: {name} differs from what the data says; run python -m benchmarks.validity")
    return 1 if stale else 0


def write(files: dict[str, bytes], root: Path) -> int:
    """Write what was measured."""
    for name, content in files.items():
        target = root / name
        changed = not _same(target, content)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        print(f"validity: {name} {'written' if changed else 'unchanged'}")
    return 0


def _same(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


if __name__ == "__main__":
    sys.exit(main())
