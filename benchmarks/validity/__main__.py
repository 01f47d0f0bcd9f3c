"""``python -m benchmarks.validity [--check] [--only FAMILIES] …``: measure, print the table, write or compare files."""

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
from benchmarks.validity.lines import text_table
from benchmarks.validity.page import page, results_page, trust_file
from benchmarks.validity.progress import tell
from benchmarks.validity.rows import producers

ROOT = Path(__file__).resolve().parents[2]
TRUST_FILE = "src/agentunit/metrics/validity.json"
PAGE_FILE = "docs/validity.md"
RESULTS_FILE = "benchmarks/validity/RESULTS.md"


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Exit code: 0 done (or no data), 1 the committed files differ, 2 usage, 3 the data cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the files would change")
    parser.add_argument("--install-peers", action="store_true", help="first install the detectors measured beside ours")
    parser.add_argument("--only", metavar="FAMILIES", help="measure these, separated by commas; write nothing")
    parser.add_argument("--anew", action="store_true", help="measure slow backends even where figures are recorded")
    options = parser.parse_args(arguments)
    wanted = options.only.split(",") if options.only else list(producers())
    unknown = [name for name in wanted if name not in producers()]
    if unknown:
        parser.error(f"no family is called {unknown[0]!r}; there are: {', '.join(producers())}")
    if options.only and options.check:
        parser.error("--check compares whole files, so it cannot be used with --only")
    folder = data_folder(root)
    if folder is None:
        print(f"validity: skipped, no labeled data here ({VARIABLE} names its folder)")
        return 0
    try:
        if options.install_peers:
            pii_peers.install()
        families = measure_all(LabelledData(folder, use_recorded=not options.anew), wanted)
    except (DataProblem, InstallFailed) as problem:
        print(f"validity: {problem}", file=sys.stderr)
        return 3
    if not options.check:
        print(text_table(families))
    if options.only:
        return 0
    files = {
        TRUST_FILE: trust_file(families),
        PAGE_FILE: page(families).encode(),
        RESULTS_FILE: results_page(families).encode(),
    }
    for family in families:
        files |= family.files
    return compare(files, root) if options.check else write(files, root)


def measure_all(data: LabelledData, names: Sequence[str]) -> list[Family]:
    """The figures of the named families, telling on standard error how it goes."""
    families = []
    for number, name in enumerate(names, 1):
        start = time.monotonic()
        tell(f"{name} ({number} of {len(names)}) …")
        family = producers()[name](data)
        tell(f"{name}: {len(family.figures)} figures in {time.monotonic() - start:.0f} s")
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
