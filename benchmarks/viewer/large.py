"""Large runs made without an agent: many cases, or one with a long transcript."""

from __future__ import annotations

import random
import re
from pathlib import Path

from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.results import MetricResult, Score
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.engine.scoring.scored_run import infos_as_data
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.score_blocks import ScoreBuffer
from agentunit.store.sqlite import Store

METRICS = ("exact_match", "tool_success", "faithfulness", "answer_correctness", "cost", "response_time")
_AT_ONCE = 4_096
_WORDS = re.findall(
    r"\w+",
    "order parcel depot carrier refund price store return customer delay package address name account invoice status "
    "shipped packed cancelled Monday Tuesday October warehouse tracking number email answer question please thanks",
)


def many_cases(path: Path, n_cases: int, *, events: int = 2) -> str:
    """A store with one run of so many cases, about a kilobyte each; returns the id of the run."""
    choose = random.Random(1)
    with Store(path) as store:
        run_id = _begin(store, "many", n_cases)
        for start in range(0, n_cases, _AT_ONCE):
            lines, scores = [], ScoreBuffer()
            for n in range(start, min(n_cases, start + _AT_ONCE)):
                record = _record(choose, n, events)
                lines.append((run_id, n, 0, record.case.id, int(n % 997 == 0), choose.random(), encode_record(record)))
                scores.add(n, 0, _scores(choose, n))
            with store.transaction():
                store.add_lines(lines)
                store.add_blocks(run_id, scores.take())
        store.set_status(run_id, "finished")
    return run_id


def long_transcript(path: Path, n_events: int, characters: int) -> str:
    """A store with one case of so many events of so many characters each; returns the id of the run."""
    choose = random.Random(2)
    text = _text(choose, 2 * characters)
    events = []
    for n in range(n_events):
        at = choose.randrange(characters)
        said = text[at : at + characters]
        if n % 2:
            payload = {"name": "read", "arguments": {"path": f"{n}.py"}, "status": "success", "result": said}
            events.append(TraceEvent("tool_call", payload, 1_000.0 + n))
        else:
            events.append(TraceEvent("message", {"role": "assistant", "content": said}, 1_000.0 + n))
    with Store(path) as store:
        run_id = _begin(store, "long", 1)
        record = Record(DatasetCase("long", "Refactor the parser.", "Done."), TraceLog(events), "Done.")
        store.add_lines([(run_id, 0, 0, "long", 0, 1.0, encode_record(record))])
        store.set_status(run_id, "finished")
    return run_id


def _begin(store: Store, name: str, n_planned: int) -> str:
    infos = infos_as_data(resolve_metrics(METRICS))
    settings = {"metrics": list(METRICS), "metric_infos": infos, "gates": ["exact_match >= 0.5"]}
    return store.create_run(name, agentunit_version="0", settings=settings, n_planned=n_planned).id


def _text(choose: random.Random, characters: int) -> str:
    words: list[str] = []
    while sum(map(len, words)) + len(words) < characters:
        words += choose.choices(_WORDS, k=50)
    return " ".join(words)[:characters]


def _record(choose: random.Random, n: int, events: int) -> Record:
    question = f"{' '.join(choose.choices(_WORDS, k=12))} {n}?"
    answer = f"{' '.join(choose.choices(_WORDS, k=30))} {choose.randrange(10**6)}."
    trace = TraceLog(
        [
            TraceEvent(
                "tool_call",
                {
                    "name": choose.choice(("find_order", "track_parcel")),
                    "arguments": {"order": f"A-{choose.randrange(10**6)}"},
                    "status": "success",
                    "result": " ".join(choose.choices(_WORDS, k=40)),
                },
                1_000.0 + at,
            )
            for at in range(events)
        ]
    )
    case = DatasetCase(f"case-{n:07}", question, answer, metadata={"shop": choose.choice("abcd")})
    return Record(case, trace, Outcome(success=True, output=answer, cost=0.001))


def _scores(choose: random.Random, n: int) -> dict[str, Score]:
    values = {
        "exact_match": float(choose.random() < 0.8),
        "tool_success": choose.choice((1.0, 1.0, 0.5)),
        "faithfulness": round(choose.random(), 4),
        "answer_correctness": round(choose.random(), 4),
        "cost": round(0.01 * choose.random(), 6),
        "response_time": round(choose.random() * 4, 3),
    }
    return {name: Score(MetricResult(name, value, {"n": n}), "ok", "bench", "1") for name, value in values.items()}
