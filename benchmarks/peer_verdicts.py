"""What promptfoo and DeepEval themselves say to the answers of ``examples/trial``: their own programs are run.

    python -m benchmarks.peer_verdicts --install-peers    install both under .bench/ first (npm, pip)
    python -m benchmarks.peer_verdicts --seeds 5          fewer seeds a row

A seed gives a baseline of version 1 and some candidates: the same run once more, version 1 with other tool failures,
and version 2, where it breaks nine cases and where it breaks the share that nine of 66 are. Each tool gets the answers
of a candidate and one deterministic check: the answer contains the expected text (promptfoo: its provider ``echo`` and
its assertion ``contains``; DeepEval: ``assert_test`` with a metric of its ``BaseMetric``, in ``deepeval test run``).
The exit code is the verdict. promptfoo is run once more with ``PROMPTFOO_PASS_RATE_THRESHOLD`` set to the baseline's
pass rate, the one way in which it takes a baseline into account. "as the rule" counts the verdicts that agree with the
rule of ``benchmarks.verdicts`` that is named.

Telemetry is switched off, and where Linux lets us (``unshare``) the programs run without any network. A tool that is
not installed is skipped by name.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from benchmarks.speed.environments import ENVIRONMENTS, InstallFailed, install_peer, installed_peer, python_of
from benchmarks.speed.peers import PEERS

TRIAL = Path(__file__).resolve().parents[1] / "examples" / "trial" / "agent.py"
KNOWN, MORE, OF = 10, 9, 66
SAME = "the same run again"
_UNHEARD = SimpleNamespace(record=lambda *_args, **_facts: None)

PROMPTFOO_VERSION = "0.121.20"
PROMPTFOO = ENVIRONMENTS / "promptfoo" / "node_modules" / ".bin" / "promptfoo"
DEEPEVAL = next(peer for peer in PEERS if peer.name == "deepeval")
TIMEOUT_S = 300
_FAILED = {"promptfoo": 100, "deepeval": 1}

DEEPEVAL_TESTS = """
import json
import os

import pytest
from deepeval import assert_test
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase


class Contains(BaseMetric):
    threshold = 1.0
    async_mode = False

    def measure(self, test_case, *args, **kwargs):
        self.score = float(test_case.expected_output in test_case.actual_output)
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case, *args, **kwargs):
        return self.measure(test_case)

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "Contains"


with open(os.environ["TRIAL_ANSWERS"], encoding="utf-8") as file:
    ROWS = json.load(file)


@pytest.mark.parametrize(("query", "answer", "expected"), ROWS, ids=[str(place) for place in range(len(ROWS))])
def test_answer(query, answer, expected):
    case = LLMTestCase(input=query, actual_output=answer, expected_output=expected)
    assert_test(case, [Contains()], run_async=False)
"""

Row = tuple[str, str, str]
"""A question, what the agent said, and what its answer must contain."""


@dataclass(frozen=True)
class Way:
    """One way to have a tool decide: whether it fails these answers, seen beside those of the baseline."""

    tool: str
    setting: str
    fails: Callable[[Sequence[Row], Sequence[Row]], bool]
    rule: Callable[[Sequence[Row], Sequence[Row]], bool]
    rule_name: str


def n_passed(rows: Sequence[Row]) -> int:
    """How many answers contain what they must."""
    return sum(expected in answer for _, answer, expected in rows)


def any_fails(new: Sequence[Row], old: Sequence[Row]) -> bool:
    """The rule "any fails"."""
    return n_passed(new) < len(new)


def mean_dropped(new: Sequence[Row], old: Sequence[Row]) -> bool:
    """The rule "mean dropped"."""
    return n_passed(new) < n_passed(old)


def promptfoo_fails(new: Sequence[Row], old: Sequence[Row] | None = None) -> bool:
    """The verdict of ``promptfoo eval``; with ``old``, its pass rate is what must be reached."""
    tests = [
        {"vars": {"query": query, "answer": answer}, "assert": [{"type": "contains", "value": expected}]}
        for query, answer, expected in new
    ]
    config = {"prompts": ["{{answer}}"], "providers": ["echo"], "tests": tests}
    settings = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    if old is not None:
        settings["PROMPTFOO_PASS_RATE_THRESHOLD"] = repr(100.0 * n_passed(old) / len(old))
    flags = ["--no-cache", "--no-write", "--no-table", "--no-progress-bar", "--no-share"]
    with tempfile.TemporaryDirectory() as folder:
        settings["PROMPTFOO_CONFIG_DIR"] = folder
        (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return _fails("promptfoo", [str(PROMPTFOO), "eval", "-c", "config.json", *flags], settings, folder)


def deepeval_fails(new: Sequence[Row], old: Sequence[Row] | None = None) -> bool:
    """The verdict of ``deepeval test run``; it takes no baseline."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "answers.json").write_text(json.dumps(new), encoding="utf-8")
        (Path(folder) / "test_trial.py").write_text(DEEPEVAL_TESTS, encoding="utf-8")
        settings = {
            "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
            "DEEPEVAL_RESULTS_FOLDER": folder,
            "HOME": folder,
            "TRIAL_ANSWERS": str(Path(folder) / "answers.json"),
        }
        command = [str(python_of("deepeval").with_name("deepeval")), "test", "run", "test_trial.py"]
        return _fails("deepeval", command, settings, folder)


def _fails(tool: str, command: Sequence[str], settings: dict[str, str], folder: str) -> bool:
    done = subprocess.run(
        [*without_network(), *command],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode not in (0, _FAILED[tool]):
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise RuntimeError(f"{tool} ended with {done.returncode}: {' '.join(said)}")
    return done.returncode != 0


def without_network() -> list[str]:
    """What to put before a command so that it finds no network; nothing where the system does not allow it."""
    unshare = shutil.which("unshare")
    prefix = [unshare, "--map-root-user", "--net"] if unshare else []
    works = bool(prefix) and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if works else []


WAYS = (
    Way("promptfoo", "as it comes", lambda new, old: promptfoo_fails(new), any_fails, "any fails"),
    Way("promptfoo", "pass rate of the baseline", promptfoo_fails, mean_dropped, "mean dropped"),
    Way("deepeval", "as it comes", deepeval_fails, any_fails, "any fails"),
)


def installed(install: bool) -> Iterator[str]:
    """The tools that are there, each named with its version on stderr; the others with the reason."""
    if install:
        _install_promptfoo()
        if installed_peer(DEEPEVAL) is None:
            try:
                install_peer(DEEPEVAL)
            except InstallFailed as error:
                print(f"skipped deepeval: {error}", file=sys.stderr)
    hint = "python -m benchmarks.peer_verdicts --install-peers"
    for name, is_there, version in (
        ("promptfoo", PROMPTFOO.exists(), PROMPTFOO_VERSION),
        ("deepeval", installed_peer(DEEPEVAL) is not None, DEEPEVAL.requirements[0].partition("==")[2]),
    ):
        if is_there:
            print(f"{name} {version}, {'without' if without_network() else 'with'} a network", file=sys.stderr)
            yield name
        else:
            print(f"skipped {name}: it is not installed ({hint})", file=sys.stderr)


def _install_promptfoo() -> None:
    if shutil.which("npm") is None:
        print("skipped promptfoo: it needs Node and npm", file=sys.stderr)
    elif not PROMPTFOO.exists():
        folder = str(ENVIRONMENTS / "promptfoo")
        options = ["--no-audit", "--no-fund", "--silent", "--ignore-scripts"]
        subprocess.run(["npm", "install", "--prefix", folder, *options, f"promptfoo@{PROMPTFOO_VERSION}"], check=False)


def trial_agent() -> ModuleType:
    """The module of the example; it is not in a package."""
    spec = importlib.util.spec_from_file_location("agentunit_trial_agent", TRIAL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answers(
    trial: ModuleType, cases: Sequence[Mapping[str, Any]], version: str, seed: str, repeats: int
) -> list[list[str]]:
    """What the agent says, by case and repeat."""
    return [
        [
            trial.answer(case["query"], case["metadata"], _UNHEARD, f"{seed} {case['id']} {repeat}", version)
            for repeat in range(repeats)
        ]
        for case in cases
    ]


def candidates(n: int) -> dict[str, tuple[str, int]]:
    """The version of the agent behind each candidate, and how many of n cases it truly breaks."""
    share = round(n * MORE / OF)
    return {
        SAME: ("1", 0),
        "only noise": ("1", 0),
        f"{MORE} more broken": ("2", MORE),
        f"{share} more broken": ("2", share),
    }


def rows_of(n: int, repeats: int, seed: int) -> Iterator[tuple[str, list[Row], list[Row]]]:
    """For each candidate its answers and the baseline's."""
    trial = trial_agent()
    for name, (version, n_broken) in candidates(n).items():
        cases = trial.cases(n, KNOWN, n_broken)

        def made(version: str, seed: str, cases: Sequence[dict[str, object]] = cases) -> list[Row]:
            return [
                (str(case["query"]), answer, case["metadata"]["contains"])  # type: ignore[index]
                for case, repeated in zip(cases, answers(trial, cases, version, seed, repeats), strict=True)
                for answer in repeated
            ]

        old = made("1", f"old {seed}")
        yield name, old if name == SAME else made(version, f"new {seed}"), old


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one row for each number of cases, candidate, tool and setting."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer_verdicts", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="seeds a row (default: 20)")
    parser.add_argument("--cases", type=int, nargs="+", default=[66, 200, 600], help="cases a run")
    parser.add_argument("--repeats", type=int, default=1, help="repeats of each case (default: 1)")
    parser.add_argument("--install-peers", action="store_true", help="install promptfoo and DeepEval under .bench/")
    options = parser.parse_args(arguments)
    tools = list(installed(options.install_peers))
    if not tools:
        return 0
    print("| cases | candidate | tool | setting | seeds | fails | as the rule |")
    print("|---:|---|---|---|---:|---:|---:|")
    for n in options.cases:
        made = [list(rows_of(n, options.repeats, seed)) for seed in range(options.seeds)]
        for of_seeds in zip(*made, strict=True):
            for way in WAYS:
                if way.tool in tools:
                    verdicts = [(way.fails(new, old), way.rule(new, old)) for _, new, old in of_seeds]
                    failed = sum(fails for fails, _ in verdicts)
                    agreed = sum(fails == ruled for fails, ruled in verdicts)
                    print(
                        f"| {n} | {of_seeds[0][0]} | {way.tool} | {way.setting} | {len(verdicts)} "
                        f"| {failed} | {agreed} ({way.rule_name}) |",
                        flush=True,
                    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
