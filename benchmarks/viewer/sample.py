"""A store with runs of every kind that the viewer shows: ``python -m benchmarks.viewer.sample FOLDER``.

Tools, several agents, conversations, pictures, repeats, labels, failures, hostile texts, and a long transcript.
"""

from __future__ import annotations

import base64
import os
import random
import struct
import subprocess
import sys
import wave
import zlib
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import agentunit
from agentunit import DatasetCase, Outcome, Record, TraceEvent, TraceLog
from agentunit.core.codec import encode_record
from agentunit.datasets.demo import demo_records
from agentunit.engine.scoring.scored_run import infos_as_data, run_from_store
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.sqlite import Store

_ROOT = Path(__file__).resolve().parents[2]
_DESK_METRICS = ("task_success", "answer_correctness", "tool_success", "faithfulness", "cost", "response_time")
_BEGAN_AT = 1_780_000_000.0
_DAY_S = 86_400.0
HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1><svg onload=window.pwned=1> "
    "[link](javascript:window.pwned=1) <a href='javascript:window.pwned=1'>x</a> \"q\" 'a' `tick` \x1b[31m\u202e"
)


def make_sample(folder: Path, *, n_long: int = 5_000) -> str:
    """Write the store into a folder; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "runs.db"
    path.unlink(missing_ok=True)
    with Store(path) as store:
        for number in range(4):
            _keep(
                store,
                "desk",
                _desk(number),
                _DESK_METRICS,
                number,
                gates=("tool_success[trace] >= 0.8", "answer_correctness >= 0.7"),
            )
        _label(store, "desk")
        _keep(store, "pictures", _pictures(), ("exact_match", "tool_success"), 5)
        _keep(store, "failures", _failures(), ("exact_match", "task_success"), 6, gates=("exact_match >= 0.9",))
        _keep(store, "hostile", _hostile(), ("exact_match", "tool_success"), 7)
        _keep(store, "long", [_long(n_long)], ("tool_success",), 8)
    for version in ("1", "1", "2"):
        _run_example("trial/suite.py", path, TRIAL_VERSION=version)
    _run_example("conversation/suite.py", path)
    return str(path)


def _keep(
    store: Store, name: str, records: Iterable[Record], metrics: Sequence[str], day: int, gates: Sequence[str] = ()
) -> str:
    kept = list(records)
    resolved = resolve_metrics(metrics)
    settings: dict[str, Any] = {
        "gates": list(gates),
        "metrics": [metric.name for metric in resolved],
        "metric_infos": infos_as_data(resolved),
        "agent": "desk:answer",
        "tags": {"model": "small" if day % 2 else "large"},
        "git": {"commit": f"{day:x}" * 40, "dirty": bool(day % 2)},
    }
    began_at = _BEGAN_AT + day * _DAY_S
    header = store.create_run(
        name, agentunit_version=agentunit.__version__, settings=settings, n_planned=len(kept), created_at=began_at
    )
    for position, record in enumerate(kept):
        failed = record.trace.metadata.get("failure") is not None
        store.add_lines(
            [(header.id, position, 0, record.case.id, int(failed), 0.4 + position % 7, encode_record(record))]
        )
    for position, case in enumerate(agentunit.score(kept, list(resolved))):
        store.add_scores(header.id, position, 0, case.scores)
    store.set_status(header.id, "finished", finished_at=began_at + 75.0)
    return header.id


def _desk(number: int) -> list[Record]:
    """The bundled recording; in later runs some answers are others, and cases carry a category."""
    choose = random.Random(number)
    records = []
    for place, record in enumerate(each for each in demo_records() if isinstance(each, Record)):
        record.case.metadata.setdefault("category", ("orders", "returns", "advice")[place % 3])
        if number and choose.random() < 0.15 and isinstance(record.outcome, Outcome):
            record.outcome.output = f"{record.outcome.output} Write to ada.lovelace@example.org about it."
        if number == 3 and place % 9 == 0 and isinstance(record.outcome, Outcome):
            record.outcome.output = "I do not know."
        records.append(record)
    return records


def _label(store: Store, name: str) -> None:
    run = run_from_store(store, name)
    choose = random.Random(7)
    labels = [
        StoredLabel(
            subject_of(stored.record),
            "faithfulness",
            stored.case_id,
            float(choose.random() < 0.7),
            rater,
            question="Is everything in the answer supported?",
            note="the price is not in the context" if place == 3 else "",
            run_id=run.header.id,
            position=stored.position,
            repeat=stored.repeat,
        )
        for place, stored in enumerate(store.records(run.header.id))
        for rater in (("ana", "ben") if place < 12 else ("ana",) if place < 20 else ())
    ]
    store.add_labels(labels)


def png(red: int, green: int, blue: int, side: int = 64) -> bytes:
    """A picture of one color."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    line = b"\0" + bytes((red, green, blue)) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(line * side)) + chunk(b"IEND", b"")
    )


def data_uri(kind: str, content: bytes) -> str:
    """Bytes as a data URI."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _sound() -> bytes:
    buffer = BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8_000)
        file.writeframes(bytes(128 + (60 if at // 20 % 2 else -60) for at in range(8_000)))
    return buffer.getvalue()


def _pictures() -> list[Record]:
    red, blue = data_uri("image/png", png(214, 40, 40)), data_uri("image/png", png(40, 80, 210))
    svg = data_uri("image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><rect/></svg>')
    seen = TraceLog()
    seen.record(
        "message", role="user", content=[{"type": "text", "text": "Which color?"}, {"type": "image", "image": red}]
    )
    seen.record("tool_call", name="screenshot", arguments={}, status="success", result={"image": blue})
    seen.record("message", role="assistant", content="It is red.")
    return [
        Record(DatasetCase("red", "Which color?", "It is red.", metadata={"image_path": red}), seen, "It is red."),
        Record(DatasetCase("blue", "And this?", "blue", metadata={"images": [blue, svg]}), TraceLog(), "green"),
        Record(
            DatasetCase("sound", "What is heard?", metadata={"audio_path": data_uri("audio/wav", _sound())}),
            TraceLog(),
            "a tone",
        ),
        Record(
            DatasetCase("elsewhere", "And there?", metadata={"image_path": "https://pictures.example/cat.png"}),
            TraceLog(),
            "a cat ![cat](https://pictures.example/cat.png) and [a page](https://pages.example/)",
        ),
    ]


def _failures() -> list[Record]:
    causes = (
        ("KeyError", "KeyError: 'OPENAI_API_KEY' (desk.py:5 in answer)"),
        ("timeout", "no answer within 5 s (it was at desk.py:9 in wait)"),
        ("ValueError", "ValueError: no order 'A-{n}' in 12 rows (shop.py:31 in find)"),
    )
    records = []
    for n in range(24):
        case = DatasetCase(f"case-{n:02}", f"Where is order A-{n}?", "Tomorrow.", metadata={"shop": "ab"[n % 2]})
        if n % 2:
            records.append(Record(case, TraceLog(), "Tomorrow." if n % 3 else "Never."))
            continue
        failure, error = causes[n % 3]
        trace = TraceLog(metadata={"failure": failure, "stdout": "asking\nthe carrier", "attempts": 2})
        records.append(Record(case, trace, Outcome(success=False, error=error.format(n=n))))
    return records


def _hostile() -> list[Record]:
    records = []
    for n in range(3):
        trace = TraceLog(metadata={"failure": HOSTILE, "stdout": HOSTILE, HOSTILE: HOSTILE})
        trace.record(
            "tool_call", name=HOSTILE, arguments={HOSTILE: HOSTILE}, result=HOSTILE, status="error", error=HOSTILE
        )
        trace.record("message", role="assistant", agent=HOSTILE, content=HOSTILE)
        trace.record("message", role="user", agent="b", content=f"# {HOSTILE}\n\n- {HOSTILE}")
        case = DatasetCase(f"{n}{HOSTILE}", HOSTILE, [HOSTILE, "b"], context=[HOSTILE], metadata={HOSTILE: HOSTILE})
        records.append(
            Record(case, trace, Outcome(success=False, output=HOSTILE, error=HOSTILE, state={HOSTILE: HOSTILE}))
        )
    return records


def _long(n_events: int) -> Record:
    """One case whose transcript is long."""
    events = []
    for n in range(n_events // 2):
        text = f"Step {n}: I look at file {n % 97}.py and compare it with the plan. " * (1 + n % 9)
        events.append(TraceEvent("message", {"role": "assistant", "content": text}, 1_000.0 + n))
        payload = {"name": "read_file", "arguments": {"path": f"src/{n % 97}.py"}, "result": text * 2}
        status = {"status": "error", "error": "no such file"} if n % 50 == 49 else {"status": "success"}
        events.append(TraceEvent("tool_call", {**payload, **status}, 1_000.4 + n))
    return Record(DatasetCase("long", "Refactor the parser.", "Done."), TraceLog(events), "Done.")


def _run_example(suite: str, store: Path, **variables: str) -> None:
    command = [sys.executable, "-m", "agentunit", "run", str(_ROOT / "examples" / suite), "--store", str(store)]
    subprocess.run(command, check=False, env={**os.environ, **variables}, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    print(make_sample(Path(sys.argv[1])))
