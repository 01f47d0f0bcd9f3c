"""Measures detectors on the fresh text: ``python -m benchmarks.privacy.fresh [--detectors NAMES] [--out FOLDER]``.

``presidio`` runs in the environment that ``python -m benchmarks.validity --install-peers`` makes, or in that of
``--peer-python``. ``--public`` adds text that nobody wrote for this (see ``public.py``).
``--out`` writes the texts and what each detector found; ``--write-results`` the tables.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agentunit.privacy.detectors import detector_named
from benchmarks.privacy.fresh.generate import Row, rows
from benchmarks.privacy.fresh.public import UNSEEN, public_rows
from benchmarks.speed.environments import ROOT, python_of
from benchmarks.validity.pii_peers import ENVIRONMENT
from benchmarks.validity.rows.pii_matching import Counts, Span, match, pooled

_RESULTS = Path(__file__).with_name("RESULTS.md")
_PEERS = ("presidio", "ner")
# Words of scripts that do not part them: about so many characters make one.
_LETTERS_A_WORD = {"zh": 2.0, "ja": 2.5, "th": 4.0}
Found = list[list[Span]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--detectors", default="patterns,local,presidio", help="with commas")
    parser.add_argument("--peer-python", help="the interpreter of an environment with Presidio")
    parser.add_argument("--out", help="a folder for the texts and the findings")
    parser.add_argument("--public", type=Path, help="the folder with the packages that public.py names")
    parser.add_argument("--write-results", action="store_true", help=f"write {_RESULTS.name}")
    options = parser.parse_args(arguments)
    texts = list(rows())
    if options.public:
        texts += public_rows(options.public, UNSEEN)
    found: dict[str, Found] = {}
    seconds: dict[str, float] = {}
    for name in options.detectors.split(","):
        began = time.process_time() if name not in _PEERS else time.monotonic()
        # The peers take seconds for a page: they read the fresh text alone.
        wanted = [row.text for row in texts if name not in _PEERS or not row.group.startswith("public:")]
        found[name] = _found(name, wanted, options.peer_python)
        seconds[name] = (time.process_time() if name not in _PEERS else time.monotonic()) - began
    page = _page(texts, found, seconds)
    print(page)
    if options.out:
        _write_findings(Path(options.out), texts, found)
    if options.write_results:
        _RESULTS.write_text(page, encoding="utf-8")
    return 0


def _found(name: str, texts: list[str], peer_python: str | None) -> Found:
    if name not in _PEERS:
        detector = detector_named(name, "benchmark")
        return [[Span(each.type, each.start, each.end) for each in findings] for findings in detector.find(texts)]
    python = peer_python or str(python_of(ENVIRONMENT))
    asked = json.dumps({"detector": name, "texts": texts})
    command = [python, "-m", "benchmarks.validity.pii_worker"]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, env=paths)
    return [[Span(*each) for each in findings] for findings in json.loads(done.stdout)["found"]]


def _page(texts: Sequence[Row], found: dict[str, Found], seconds: dict[str, float]) -> str:
    names = list(found)
    with_data = [place for place, row in enumerate(texts) if row.spans]
    types = sorted({span[2] for row in texts for span in row.spans})
    of_english = [place for place in with_data if texts[place].group.startswith("origin:")]
    sections = [
        "# Finding personal data in fresh text: the last measured tables",
        "Written by `python -m benchmarks.privacy.fresh --write-results` "
        f"(Python {platform.python_version()}); do not edit by hand. The text was written before its author had read a "
        "rule of the detectors; no name in it is on a list that the recognizer was trained on, and nothing was tuned "
        "on it. The names are older than the sentences: how many of each origin were found was known when rules were "
        "changed (other names in the same sentences: recall 0.85 to 1.00 by origin, patterns). Templates are few, so "
        "rows are not independent.",
        "## By type, English sentences\n\n" + _table(
            ["type", "spans", *(f"{name} F1 (P / R)" for name in names)],
            [_type_row("all types", types, of_english, texts, found)]
            + [_type_row(each, [each], of_english, texts, found) for each in types],
        ),
        "## Names found, by origin and by script\n\n" + _table(
            ["origin or script", "names", *(f"{name} recall" for name in names)],
            [_recall_row(group, texts, found) for group in _groups(texts, ("origin:", "script:"))],
        ),
        "## False alarms in 10,000 words of text without personal data\n\n" + _table(
            ["text", "words", *names],
            [_alarm_row(group, texts, found) for group in _groups(texts, ("prose:", "technical:"))],
        ),
        *_public_section(texts, {name: spans for name, spans in found.items() if name not in _PEERS}),
        f"Seconds: {', '.join(f'{name} {seconds[name]:.1f} for {len(found[name]):,} texts' for name in names)}.",
    ]  # fmt: skip
    return "\n\n".join(sections) + "\n"


def _public_section(texts: Sequence[Row], found: dict[str, Found]) -> list[str]:
    groups = _groups(texts, ("public:",))
    if not groups:
        return []
    said = (
        "Translated messages, manuals, code, JSON and logs of public projects, at which nobody looked while rules were "
        "changed (`public.py` names them). Lines that credit people are left out; other names that are really there "
        "count as alarms. In logs, addresses of machines are not counted."
    )
    body = [_alarm_row(group, texts, found) for group in groups]
    return [f"## False alarms in 10,000 words of text that nobody wrote for this\n\n{said}\n\n" + _table(
        ["text", "words", *found], body
    )]  # fmt: skip


def _groups(texts: Sequence[Row], kinds: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(row.group for row in texts if row.group.startswith(kinds)))


def _type_row(
    label: str, types: Sequence[str], places: Sequence[int], texts: Sequence[Row], found: dict[str, Found]
) -> list[str]:
    n_spans = sum(span[2] in types for place in places for span in texts[place].spans)
    cells = []
    for spans in found.values():
        total = Counts()
        for place in places:
            labeled = [Span(kind, start, end) for start, end, kind in texts[place].spans]
            known = {span.type for span in labeled}
            # A type that no row of the set labels cannot be wrong by the labels.
            counted = [each for each in spans[place] if each.type in known or each.type in types]
            total += pooled(match(counted, labeled), types)
        cells.append(f"{_cell(total.f1)} ({_cell(total.precision)} / {_cell(total.recall)})")
    return [label, str(n_spans), *cells]


def _recall_row(group: str, texts: Sequence[Row], found: dict[str, Found]) -> list[str]:
    places = [place for place, row in enumerate(texts) if row.group == group]
    names = [(place, span) for place in places for span in texts[place].spans if span[2] == "name"]
    cells = []
    for spans in found.values():
        hits = sum(
            any(each.type == "name" and each.start < span[1] and span[0] < each.end for each in spans[place])
            for place, span in names
        )
        cells.append(_cell(hits / len(names)))
    return [group.partition(":")[2], str(len(names)), *cells]


def _alarm_row(group: str, texts: Sequence[Row], found: dict[str, Found]) -> list[str]:
    places = [place for place, row in enumerate(texts) if row.group == group]
    n_words = sum(_n_words(texts[place]) for place in places)
    counted = _not_in_logs if group == "public:log" else _every
    alarms = (sum(map(counted, (each for place in places for each in spans[place]))) for spans in found.values())
    return [group.replace(":", " "), f"{n_words:,.0f}", *(f"{10_000 * each / n_words:.0f}" for each in alarms)]


def _every(span: Span) -> bool:
    return True


def _not_in_logs(span: Span) -> bool:
    return span.type not in ("ip_address", "mac_address")


def _n_words(row: Row) -> float:
    return len(row.text) / _LETTERS_A_WORD[row.language] if row.language in _LETTERS_A_WORD else len(row.text.split())


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    line: Callable[[Sequence[str]], str] = lambda cells: f"| {' | '.join(cells)} |"  # noqa: E731
    return "\n".join([line(head), line(["---", *["--:"] * (len(head) - 1)]), *map(line, body)])


def _write_findings(folder: Path, texts: Sequence[Row], found: dict[str, Found]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as out:
        for place, row in enumerate(texts):
            line = {
                **row._asdict(),
                "found": {name: spans[place] for name, spans in found.items() if place < len(spans)},
            }
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
