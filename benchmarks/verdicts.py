"""How often each verdict on the agent of ``examples/trial`` is right, beside the rules that are usual elsewhere.

    python -m benchmarks.verdicts              200 seeds a row, some minutes
    python -m benchmarks.verdicts --runs 20    a rough look

A seed gives a baseline of version 1 and four candidates: the same run once more, version 1 with other tool failures,
and version 2, where it breaks nine cases and where it breaks the share that nine of 66 are. The verdict is that of
``agentunit compare`` on ``contains``; "by case" counts exit 1 with ``--unsure by-case``. "listed" counts the broken
cases that are listed as newly failing or worse.

Beside it, "mean dropped" fails when the mean is lower than the baseline's, and "any fails" as soon as one answer does.
``benchmarks.peer_verdicts`` has promptfoo and DeepEval themselves decide about the same answers.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from agentunit.engine.compare import compare_runs
from agentunit.engine.decision import EXIT_FAILED, count_unsure, decide_comparison
from benchmarks.gate_calibration import simulated_run

TRIAL = Path(__file__).resolve().parents[1] / "examples" / "trial" / "agent.py"
KNOWN, MORE, OF = 10, 9, 66
SAME = "the same run again"
Passes = list[list[float]]
_UNHEARD = SimpleNamespace(record=lambda *_args, **_facts: None)


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


def passes(trial: ModuleType, cases: Sequence[Mapping[str, Any]], version: str, seed: str, repeats: int) -> Passes:
    """Whether each case's answer holds the expected text, by case and repeat."""
    said = answers(trial, cases, version, seed, repeats)
    return [
        [float(case["metadata"]["contains"] in answer) for answer in repeated]
        for case, repeated in zip(cases, said, strict=True)
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


def judged(old: Passes, new: Passes, broken: Sequence[int], resamples: int | None) -> Counter[str]:
    """What the comparison and each rule say about one pair of runs; ``broken`` cases are newly broken in truth."""
    comparison = compare_runs(
        simulated_run("new", {"contains": new}),
        simulated_run("old", {"contains": old}),
        gates=["contains >= 0.5"],
        resamples=resamples,
    )
    decision = decide_comparison(comparison)
    seen = Counter([f"exit {decision.exit_code}"])
    seen["by case"] = count_unsure(decision, "by-case").exit_code == EXIT_FAILED
    listed = {each.case_id: each.kind for each in comparison.differences}
    kinds = [listed.get(f"case-{place}") for place in broken]
    seen["newly failing"] = kinds.count("newly failing")
    seen["listed"] = sum(kind in ("newly failing", "worse") for kind in kinds)
    seen["mean dropped"] = _total(new) < _total(old)
    seen["any fails"] = any(value < 1.0 for case in new for value in case)
    return seen


def _total(runs: Passes) -> float:
    return sum(map(sum, runs))


def measure(n: int, repeats: int, runs: int, resamples: int | None = None) -> dict[str, tuple[Counter[str], int]]:
    """The verdicts on each candidate over so many seeds, and how many cases it truly breaks."""
    trial = trial_agent()
    found: dict[str, tuple[Counter[str], int]] = {}
    for name, (version, n_broken) in candidates(n).items():
        cases = trial.cases(n, KNOWN, n_broken)
        seen: Counter[str] = Counter()
        for seed in range(runs):
            old = passes(trial, cases, "1", f"old {seed}", repeats)
            new = old if name == SAME else passes(trial, cases, version, f"new {seed}", repeats)
            seen += judged(old, new, range(KNOWN, KNOWN + n_broken), resamples)
        found[name] = seen, n_broken
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one row for each number of cases, of repeats, and candidate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="seeds a row (default: 200)")
    parser.add_argument("--cases", type=int, nargs="+", default=[66, 200, 600], help="cases a run")
    parser.add_argument("--repeats", type=int, nargs="+", default=[1, 3], help="repeats of each case")
    parser.add_argument("--resamples", type=int, help="sign flips a test; the product's own number unless said")
    options = parser.parse_args(arguments)
    columns = "exit 0 | exit 4 | exit 1 | by case | newly failing | listed | mean dropped | any fails"
    print(f"| cases | repeats | candidate | {columns} |")
    print(f"|---:|---:|---|{'---:|' * 8}")
    for n in options.cases:
        for repeats in options.repeats:
            for name, (seen, n_broken) in measure(n, repeats, options.runs, options.resamples).items():
                says = [_share(seen[column], options.runs) for column in ("exit 0", "exit 4", "exit 1", "by case")]
                says += [_share(seen[column], options.runs * n_broken) for column in ("newly failing", "listed")]
                says += [_share(seen[column], options.runs) for column in ("mean dropped", "any fails")]
                print(f"| {n} | {repeats} | {name} | {' | '.join(says)} |", flush=True)
    return 0


def _share(count: int, of: int) -> str:
    return f"{count / of:.1%}" if of else ""


if __name__ == "__main__":
    raise SystemExit(main())
