"""Texts that attack whoever shows them, in every place that a text can stand in, through every output."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

from benchmarks.torture.children import agentunit, done
from benchmarks.torture.ledger import Ledger, Lost, Skipped, Trial

HOSTILE = (
    "\x1b[2J\x1b]0;title\x07\x1b[31mred",
    "\x9b31m\x9d0;x\x9c",
    "\u202eevil\u2066\u2069\u200f\u061c",
    "::error file=a.py::boo",
    "a\n::set-output name=x::y\n  ::warning::z",
    "\u200b::add-mask::x",
    "x ##[error]boo ##vso[task.setvariable variable=a]b ##teamcity[x]",
    "=1+1",
    '=HYPERLINK("http://example.invalid","x")',
    "+1",
    "-1+1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</script><script>alert(1)</script>",
    "[x](javascript:alert(1)) ![y](http://example.invalid/z.png)",
    "| a | b |\n|---|---|\n# head\n```\ncode",
    "<!-- -->]]><![CDATA[x",
    "&lt;script&gt;&#0;\x00\ufffe",
    "{{7*7}} ${jndi:ldap://x} %s %n",
    "\ud800 lone",
    "a\u2028b\u2029c\u0085d",
)
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OWN_COMMAND = re.compile(r"^::(error|warning|notice)( [^:]*)?::")

_SUITE = """
import json, os
from agentunit import Suite

texts = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts.json")))
at = {f"{n} {text}" if n % 2 else f"{text} {n}": text for n, text in enumerate(texts)}


def agent(query, case, trace):
    text = at[case.id]
    trace.record("tool_call", name=text, status="error", arguments={text: text}, result=text, error=text)
    trace.record("message", role="user", content=text)
    trace.metadata[text] = text
    print(text)
    if len(text) % 3 == 0:
        raise RuntimeError(text)
    return text


suite = Suite(
    dataset=[
        {
            "id": key,
            "query": text,
            "expected_output": text,
            "context": [text],
            "metadata": {"category": text, "contains": text},
        }
        for key, text in at.items()
    ],
    agent=agent,
    metrics=["exact_match", "contains", "faithfulness", "tool_success", "pii_leakage", "data_minimization"],
    gates=["exact_match <= 0.5", "contains all == 1"],
)
"""


def torture_with_output(ledger: Ledger) -> None:
    """One hostile run, and everything that shows it."""
    kinds = {
        "terminal: run, show, runs, compare, gate": _terminal,
        "CI log with workflow commands, and step summary": _ci_log,
        "usage errors: what stands on the command line": _usage,
        "JUnit": _junit,
        "CSV": _csv,
        "Markdown": _markdown,
        "HTML": _html,
        "JSON": _json,
        "Parquet": _parquet,
    }
    wanted = [name for name in kinds if ledger.wants("output", name)]
    for name in wanted:
        with ledger.trying("output", name) as trial:
            assert trial is not None
            kinds[name](trial, _recorded(trial.place("run")))


def _recorded(folder: Path) -> Path:
    (folder / "suite.py").write_text(_SUITE)
    (folder / "texts.json").write_text(json.dumps(HOSTILE))
    name = "n\x1b[2J\u202e ::error::x"
    done(agentunit("run", "suite.py", "--name", name, "--tag", "t=<script>\x1b[1m"), folder, expect=(1, 3))
    return folder


def _check_shown(text: str, where: str) -> None:
    for found, what in ((_CONTROLS.search(text), "a control character"), (_BIDI.search(text), "a bidi character")):
        if found:
            raise Lost(f"{where} shows {what}: {text[max(0, found.start() - 60) : found.end() + 20]!r}")
    for line in text.splitlines():
        bare = line.lstrip("\u00ad\u200b\u200c\u200d\u2060\ufeff \t│┃|")
        if bare.startswith("::"):
            raise Lost(f"{where} shows a workflow command: {line[:120]!r}")
        if "##[" in line or "##vso[" in line or "##teamcity[" in line:
            raise Lost(f"{where} shows a command of a CI system: {line[:160]!r}")


def _terminal(trial: Trial, folder: Path) -> None:
    first = next(iter(HOSTILE)) + " 0"
    for command in (
        ["run", "suite.py"],
        ["run", "suite.py", "--all", "--json"],
        ["runs"],
        ["show", "last"],
        ["show", "last", first],
        *(
            ["show", "last", f"1 {HOSTILE[1]}"],
            ["show", "last", f"{HOSTILE[4]} 4"],
            ["show", "last", f"{HOSTILE[6]} 6"],
        ),
        ["compare", "last", "last~1"],
        ["gate", "last"],
        ["score", "last", "--metrics", "response_time", "--by", "metadata.category", "--all"],
        ["export", "last", "--to", "-", "--format", "markdown"],
        ["promote", "last", "--out", "cases.jsonl"],
        ["validity", "last"],
    ):
        child = done(agentunit(*command), folder, expect=None)
        where = " ".join(command[:2])
        _check_shown(child.errors, where)
        if "--to" not in command and "--json" not in command:
            _check_shown(child.out, where)
        trial.times += len(HOSTILE)


def _ci_log(trial: Trial, folder: Path) -> None:
    summary = folder / "summary.md"
    environment = {"GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    for command in (
        ["run", "suite.py"],
        ["run", "suite.py", "--json"],
        ["gate", "last"],
        ["compare", "last", "last~1"],
    ):
        child = done(agentunit(*command), folder, expect=None, environment=environment)
        for line in [*child.out.splitlines(), *child.errors.splitlines()]:
            if line.startswith("::") and not _OWN_COMMAND.match(line):
                raise Lost(f"{command[0]} lets a workflow command through: {line[:120]!r}")
        others = "\n".join(line for line in child.errors.splitlines() if not line.startswith("::"))
        _check_shown(others, command[0])
        stray = [each for each in child.errors.splitlines() if re.match(r"::(set-output|add-mask|warning::z)", each)]
        trial.require(not stray, f"{command[0]} lets a workflow command through: {stray[:1]}")
        trial.times += len(HOSTILE)
    if summary.exists():
        _check_markdown(summary.read_text(encoding="utf-8"), "the step summary")


def _usage(trial: Trial, folder: Path) -> None:
    verbs = (
        "run",
        "score",
        "show",
        "compare",
        "gate",
        "export",
        "import",
        "label",
        "convert",
        "redact",
        "metrics",
        "doctor",
    )
    texts = [
        *(each for each in HOSTILE if "\x00" not in each and "\ud800" not in each),
        "\udcff\udcfe",
        "\n::error::x\n",
    ]
    lines = [
        words
        for text in texts
        for words in trial.chance.sample([[text], ["run", "s", f"--{text}"], *([verb, text] for verb in verbs)], 3)
    ]
    with ThreadPoolExecutor(2) as pool:
        shown = pool.map(lambda words: done(agentunit(*words), folder, expect=(0, 2, 3)), lines)
        for words, child in zip(lines, shown, strict=True):
            trial.require("AGENTUNIT_TRACEBACK" not in child.errors, f"{words!r}: {child.errors[-300:]}")
            _check_shown(child.errors, repr(words)[:80])
            _check_shown(child.out, repr(words)[:80])
            trial.times += 1


def _exported(folder: Path, name: str) -> Path:
    done(agentunit("export", "last", "--to", name), folder, expect=(0, 1, 3, 4))
    return folder / name


def _junit(trial: Trial, folder: Path) -> None:
    tree = ElementTree.parse(_exported(folder, "junit.xml"))
    cases = tree.getroot().findall(".//testcase")
    trial.require(len(cases) >= len(HOSTILE), f"{len(cases)} test cases of {len(HOSTILE)}")
    known = {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "skipped",
        "properties",
        "property",
        "system-out",
        "system-err",
    }
    tags = {each.tag for each in tree.iter()}
    trial.require(tags <= known, f"elements of the data: {sorted(tags - known)}")
    trial.times += len(cases)


def _csv(trial: Trial, folder: Path) -> None:
    with open(_exported(folder, "run.csv"), encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            for cell in row:
                if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell):
                    raise Lost(f"a cell that a spreadsheet computes: {cell[:80]!r}")
                trial.times += 1


def _check_markdown(text: str, where: str) -> None:
    for pattern in (r"<script", r"<img\b", r"<svg\b", r"<!--", r"\]\(javascript:", r"!\[y\]\("):
        found = re.search(r"(?<!\\)" + pattern, text, re.IGNORECASE)
        if found and not _is_code(text, found.start()):
            raise Lost(f"{where} holds live markup: {text[max(0, found.start() - 60) : found.end() + 40]!r}")


def _is_code(text: str, at: int) -> bool:
    """Whether a place stands in a code span of its line, where markup is not read."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line.count("`") % 2 == 1


def _markdown(trial: Trial, folder: Path) -> None:
    text = _exported(folder, "run.md").read_text(encoding="utf-8")
    _check_markdown(text, "Markdown")
    trial.times += len(HOSTILE)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.events: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.events += [
            f"{tag} {name}" for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")
        ]


def _html(trial: Trial, folder: Path) -> None:
    hostile = _tags_of(_exported(folder, "run.html"))
    trial.require(not hostile.events, f"live attributes: {hostile.events[:3]}")
    plain = trial.place("plain")
    (plain / "suite.py").write_text(_SUITE)
    (plain / "texts.json").write_text(json.dumps([f"plain {n}" for n in range(len(HOSTILE))]))
    done(agentunit("run", "suite.py"), plain, expect=None)
    expected = _tags_of(_exported(plain, "run.html"))
    for tag in ("script", "img", "svg", "iframe", "object", "embed", "link", "base", "meta", "form"):
        trial.require(
            hostile.tags[tag] <= expected.tags[tag],
            f"{hostile.tags[tag]} elements <{tag}> in place of {expected.tags[tag]}",
        )
    trial.times += len(HOSTILE)


def _tags_of(file: Path) -> _Tags:
    found = _Tags()
    found.feed(file.read_text(encoding="utf-8"))
    return found


def _json(trial: Trial, folder: Path) -> None:
    for line in _exported(folder, "run.json").read_text(encoding="utf-8").split("\n"):
        if line:
            json.loads(line)
            trial.times += 1
    child = done(agentunit("run", "suite.py", "--json"), folder, expect=None)
    json.loads(child.out)
    _check_shown("".join(each for each in child.out if each != "\n"), "run --json")


def _parquet(trial: Trial, folder: Path) -> None:
    if find_spec("pyarrow") is None:
        raise Skipped("pyarrow is not installed")
    import pyarrow.parquet

    trial.times += pyarrow.parquet.read_table(_exported(folder, "run.parquet")).num_rows
    trial.require(trial.times >= len(HOSTILE), "rows are lacking")
