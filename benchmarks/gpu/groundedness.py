"""The cross-encoders: pairs a second, evidence selection, whole cases, and how far scores are apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any
from unittest.mock import patch

import torch
from agentunit_local.grounding.cross_encoder import CrossEncoder, opened
from agentunit_local.grounding.support import SupportJudge
from agentunit_local.quality import MODEL_VARIABLE, GpuBackend, LocalBackend
from agentunit_local.text_model import Tokens
from agentunit_local.torch_text import DEVICE_VARIABLE

from agentunit.backends.quality import QualityQuestion
from benchmarks.gpu import workload
from benchmarks.speed.answers import Answer, Column, decimals

_TOKENS = 256
_CHUNK = 4_096
_TARGETS = {"small": 10_000, "large": 2_500}


def rates(models: dict[str, str | None], device: str, n_pairs: dict[str, int], rounds: int) -> Answer:
    """Pairs a second by model: from tokens that lie ready, and from texts."""
    columns = (
        Column("what", "pairs"),
        Column("tokens", "tokens a pair", decimals(0)),
        Column("rate", "pairs/s", decimals(0)),
        Column("note", "target"),
    )
    answer = Answer("pairs", f"Groundedness, pairs a second, {device_name(device)}", columns)
    for name, folder in models.items():
        model = opened(folder, device)
        texts = workload.pairs(n_pairs[name], _TOKENS)
        encoded = [Tokens(each.ids, each.types) for each in model.encode(texts)]
        tokens = mean(len(each.ids) for each in encoded)
        ready = rate(lambda m=model, e=encoded: m._model.run_tokens(e), len(texts), rounds)
        answer.add(what=f"{name}: from tokens", tokens=tokens, rate=ready)
        whole = rate(lambda m=model, t=texts: _scored(m, t), len(texts), rounds)
        met = "met" if whole >= _TARGETS[name] else "MISSED"
        answer.add(what=f"{name}: from texts", tokens=tokens, rate=whole, note=f"{met} (≥ {_TARGETS[name]:,})")
        cut = rate(lambda m=model, t=texts: m.encode(t), len(texts), 1)
        answer.add(what=f"{name}: cut into tokens only", tokens=tokens, rate=cut)
    answer.remarks.append(f"Medians of {rounds} runs after one. {os.cpu_count()} processors cut texts into tokens.")
    return answer


def _scored(model: CrossEncoder, texts: list[tuple[str, str]]) -> None:
    """All pairs, chunk by chunk: one is cut into tokens while the device reads the one before."""
    later: Callable[[], Any] | None = None
    for at in range(0, len(texts), _CHUNK):
        started = model.start(texts[at : at + _CHUNK])
        if later is not None:
            later()
        later = started
    if later is not None:
        later()


def evidence(n_cases: int) -> Answer:
    """What the processors do for the model: claims and evidence, one core."""
    columns = (Column("what", "one core"), Column("rate", "a second", decimals(0)))
    answer = Answer("evidence", "Evidence selection, without the model", columns)
    from agentunit_local.grounding.calibration import shipped_calibration

    judge = SupportJudge(opened(None), shipped_calibration().faithfulness)
    records = workload.records(n_cases)
    started = time.perf_counter()
    n_pairs = 0
    for record in records:
        case = record["case"]
        n_pairs += len(next(judge.steps(case["query"], case["context"], record["outcome"])))
    took_s = time.perf_counter() - started
    answer.add(what="cases of 5 passages, 4 sentences", rate=n_cases / took_s)
    answer.add(what="pairs", rate=n_pairs / took_s)
    return answer


def differences(models: dict[str, str | None], device: str, n_cases: dict[str, int]) -> Answer:
    """Faithfulness of the same cases: on the device, in fp32 on the CPU, by the 8-bit model on the CPU."""
    columns = (
        Column("what", "scores of the same cases"),
        Column("n", "cases", decimals(0)),
        Column("mean", "mean difference", decimals(5)),
        Column("most", "largest", decimals(5)),
        Column("note", "target"),
    )
    answer = Answer("differences", f"Faithfulness on {device_name(device)} beside the CPU", columns)
    for name, folder in models.items():
        questions = [
            QualityQuestion(record["case"]["query"], record["case"]["context"], record["outcome"])
            for record in workload.records(n_cases[name], seed=2)
        ]
        with patch.dict(os.environ, {MODEL_VARIABLE: folder or ""}):
            found = _values(GpuBackend(), device, questions)
            exact = _values(GpuBackend(), "cpu", questions)
            apart = [abs(a - b) for a, b in zip(found, exact, strict=True)]
            met = f"{'met' if max(apart) <= 0.005 else 'MISSED'} (≤ 0.005)"
            answer.add(what=f"{name}: to fp32 on the CPU", n=len(apart), mean=mean(apart), most=max(apart), note=met)
            again = [_values(GpuBackend(), device, questions[at : at + 7]) for at in range(0, len(questions), 7)]
            apart = [abs(a - b) for a, b in zip(found, [each for some in again for each in some], strict=True)]
            answer.add(what=f"{name}: to itself in other batches", n=len(apart), mean=mean(apart), most=max(apart))
            if folder is None or LocalBackend().unready() is None:
                shipped = _values(LocalBackend(), device, questions)
                apart = [abs(a - b) for a, b in zip(found, shipped, strict=True)]
                answer.add(what=f"{name}: to 8 bits on the CPU", n=len(apart), mean=mean(apart), most=max(apart))
    return answer


def _values(backend: LocalBackend, device: str, questions: list[QualityQuestion]) -> list[float]:
    with patch.dict(os.environ, {DEVICE_VARIABLE: device}):
        return [each.value for each in backend.judge("faithfulness", questions) if each.value is not None]


def cases(device: str, folder: Path, n_cases: int, jobs: list[int]) -> Answer:
    """Whole cases through ``agentunit score``: reading, evidence, model, lines."""
    columns = (
        Column("what", "agentunit score --metrics faithfulness"),
        Column("seconds", "seconds", decimals(1)),
        Column("rate", "cases/s", decimals(0)),
    )
    answer = Answer("cases", f"{n_cases:,} cases of 5 passages and 4 sentences, {device_name(device)}", columns)
    source = folder / "cases.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in workload.records(n_cases, seed=3)), encoding="utf-8")
    environment = {**os.environ, DEVICE_VARIABLE: device, "AGENTUNIT_BACKEND": "local-gpu"}
    for number in jobs:
        out = folder / f"scores-{number}.jsonl"
        command = [
            sys.executable,
            "-m",
            "agentunit",
            "score",
            str(source),
            "--metrics",
            "faithfulness",
            "--out",
            str(out),
        ]
        command += ["--jobs", str(number)] if number else []
        started = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        took_s = time.perf_counter() - started
        if done.returncode or sum(1 for _ in out.open(encoding="utf-8")) < n_cases:
            answer.remarks.append(
                f"--jobs {number}: exit code {done.returncode}: {done.stderr[-600:] or done.stdout[-600:]}"
            )
            continue
        answer.add(what=f"--jobs {number}" if number else "one process", seconds=took_s, rate=n_cases / took_s)
    answer.remarks.append("With the start of all processes and models.")
    return answer


def rate(work: Callable[[], Any], n_things: int, rounds: int) -> float:
    """Things a second: the median of some runs after one that does not count."""
    work()
    took_s = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        took_s.append(time.perf_counter() - started)
    return n_things / median(took_s)


def device_name(device: str) -> str:
    """What the device is called."""
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name()}, fp16"
    return f"{device}, fp32"
