"""One measurement in a process of its own: figures as one line of JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

_TOKENS = 256


def opening() -> dict[str, Any]:
    started = time.perf_counter()
    from agentunit_local.quality import backend

    reason = backend().unready()
    return {"seconds": time.perf_counter() - started, "reason": reason}


def pairs(rounds: int) -> dict[str, Any]:
    """Pairs of 256 tokens, one thread."""
    from agentunit_local import onnx_text
    from agentunit_local.grounding.cross_encoder import opened

    onnx_text.MOST_THREADS = 1
    model = opened(None)
    evidence = " ".join(f"the {number} houses of the old town were built of red stone" for number in range(20, 40))
    pair = (evidence, "The houses of the old town are made of stone.")
    length = len(model.encode([pair])[0].ids)
    while length > _TOKENS:
        evidence = evidence.rsplit(" ", 1)[0]
        pair = (evidence, pair[1])
        length = len(model.encode([pair])[0].ids)
    model.score([pair] * 3)
    best = min(_timed(lambda: model.score([pair] * 4)) for _ in range(rounds)) / 4
    return {"tokens": length, "pairs_a_second": 1 / best}


def sentences(n_texts: int) -> dict[str, Any]:
    """The sentence encoder beside a bare loop over the arrays that it would be fed, one thread, in turns."""
    from agentunit_local import onnx_text
    from agentunit_local.sentences import shipped_encoder

    onnx_text.MOST_THREADS = 1
    encoder = shipped_encoder()
    model: Any = encoder._model
    texts = [f"{n} of the old houses were built of red stone, and the others of wood or brick." for n in range(n_texts)]
    windows = [model.windows(text)[0] for text in texts]
    fed = [model._fed([windows[at] for at in places]) for places in model._batches([len(w.ids) for w in windows])]

    def bare_loop() -> None:
        for each in fed:
            model._session.run(None, each)

    turns = [(_cpu_s(bare_loop), _cpu_s(lambda: encoder.encode(texts))) for _ in range(3)]
    bare_s, ours_s = (min(each) for each in zip(*turns, strict=True))
    return {"bare": n_texts / bare_s, "ours": n_texts / ours_s}


def cases(n_cases: int) -> dict[str, Any]:
    """Short cases through ``agentunit.score``, as a stream."""
    import agentunit

    def records() -> Iterator[dict[str, Any]]:
        for number in range(n_cases):
            context = [f"Order {number} left the house on day {number % 28}.", "Parcels take two days."]
            case = {"id": str(number), "query": "When did it leave?", "context": context}
            yield {
                "case": case,
                "outcome": f"The order with number {number} was sent on day {number % 28 + number % 2}.",
            }

    from agentunit.metrics.builtin import FaithfulnessMetric

    metric = FaithfulnessMetric(backend="local")
    started = time.perf_counter()
    n_scored = sum(case.scores["faithfulness"].value is not None for case in agentunit.score(records(), [metric]))
    elapsed_s = time.perf_counter() - started
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"n_scored": n_scored, "cases_a_second": n_scored / elapsed_s, "peak_mib": peak_mib}


def _cpu_s(work: Any) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _timed(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    stage, number = sys.argv[1], int(sys.argv[2])
    stages = {"opening": lambda _: opening(), "pairs": pairs, "cases": cases, "sentences": sentences}
    print(json.dumps(stages[stage](number)))
