"""One timing in this process: ``python stage.py WHAT URL N CONCURRENCY [CACHE]``; prints what it took as JSON.

Runs by itself in any environment, so it imports what it measures and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

_TEXT = "The passage says that the committee met on the third of May and agreed on the plan for the new library. "
_SYSTEM = "You check claims against passages. Reply with JSON."


def question(number: int) -> str:
    """About 1.5 kB, different for each number."""
    return f"Question {number}. " + _TEXT * 14


def with_client(url: str, n: int, concurrency: int, cache: str | None) -> dict[str, Any]:
    """Our client, a window of questions handed in at a time."""
    from agentunit.addons.judge.client import JudgeClient, JudgeRequest
    from agentunit.addons.judge.settings import JudgeSettings
    from agentunit.metrics.usage import price_usd

    price_usd("judge-1", 0, 0)
    client = JudgeClient(JudgeSettings(url=url, model="judge-1", concurrency=concurrency, cache=cache))
    schema = {"type": "object"}

    def run() -> int:
        window: deque[Any] = deque()
        n_right = 0
        for number in range(n):
            window.append(client.submit(client.ask(JudgeRequest("verdicts", _SYSTEM, question(number), schema))))
            if len(window) >= 4 * concurrency:
                n_right += window.popleft().result().text is not None
        return n_right + sum(each.result().text is not None for each in window)

    found = _measured(run, n)
    client.close()
    return found


def with_nothing(url: str, n: int, concurrency: int, _: str | None) -> dict[str, Any]:
    """Bytes over kept connections, replies unread but for their length: what the machine allows at this moment."""
    place = urlsplit(url)
    payloads = [json.dumps(_body(number)).encode() for number in range(n)]

    async def one(numbers: Iterator[int]) -> int:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        n_right = 0
        for number in numbers:
            payload = payloads[number]
            writer.write(b"POST %s/chat/completions HTTP/1.1\r\n" % place.path.encode())
            writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(payload), payload))
            head = await reader.readuntil(b"\r\n\r\n")
            n_right += bool(await reader.readexactly(int(head.partition(b"Content-Length: ")[2].split()[0])))
        writer.close()
        await writer.wait_closed()
        return n_right

    async def run() -> int:
        numbers = iter(range(n))
        return sum(await asyncio.gather(*(one(numbers) for _ in range(concurrency))))

    return _measured(lambda: asyncio.run(run()), n)


def with_httpx(url: str, n: int, concurrency: int, _: str | None) -> dict[str, Any]:
    """httpx behind a semaphore: no retries, no cache, no caps."""
    import httpx

    async def ask(client: httpx.AsyncClient, number: int) -> bool:
        response = await client.post(f"{url}/chat/completions", json=_body(number))
        return bool(response.json()["choices"][0]["message"]["content"])

    async def run() -> int:
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:
            return await _all(lambda number: ask(client, number), n, concurrency)

    return _measured(lambda: asyncio.run(run()), n)


def with_openai(url: str, n: int, concurrency: int, _: str | None) -> dict[str, Any]:
    """The openai package behind a semaphore."""
    from openai import AsyncOpenAI

    async def ask(client: AsyncOpenAI, number: int) -> bool:
        reply = await client.chat.completions.create(**_body(number))
        return bool(reply.choices[0].message.content)

    async def run() -> int:
        async with AsyncOpenAI(base_url=url, api_key="none") as client:
            return await _all(lambda number: ask(client, number), n, concurrency)

    return _measured(lambda: asyncio.run(run()), n)


def with_score(url: str, n: int, concurrency: int, cache: str | None) -> dict[str, Any]:
    """``agentunit.score`` with a judged metric, from records to a summary."""
    import agentunit
    from agentunit import DatasetCase, Outcome, Record, TraceLog
    from agentunit.addons.judge import judge_backend  # noqa: F401  # loaded before the clock runs
    from agentunit.metrics.builtin import FaithfulnessMetric
    from agentunit.metrics.usage import price_usd

    price_usd("judge-1", 0, 0)
    agentunit.configure(judge={"url": url, "model": "judge-1", "concurrency": concurrency, "cache": cache})

    def records() -> Iterator[Record]:
        for number in range(n):
            context = [f"Library {number} opened on the third of May. It has {number} rooms."]
            case = DatasetCase(id=str(number), query="When did it open?", context=context)
            answer = f"Library {number} opened on the third of May. It has {number} rooms."
            yield Record(case=case, trace=TraceLog(), outcome=Outcome(success=True, output=answer))

    def run() -> int:
        n_scored = 0
        for scores in agentunit.score(records(), [FaithfulnessMetric(backend="judge")]):
            n_scored += scores.scores["faithfulness"].result.value is not None
        return n_scored

    return _measured(run, n)


def _body(number: int) -> dict[str, Any]:
    messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": question(number)}]
    shape = {"name": "verdicts", "schema": {"type": "object"}, "strict": True}
    wanted = {"type": "json_schema", "json_schema": shape}
    return {"model": "judge-1", "messages": messages, "max_tokens": 1024, "temperature": 0, "response_format": wanted}


async def _all(ask: Callable[[int], Any], n: int, concurrency: int) -> int:
    turns = asyncio.Semaphore(concurrency)

    async def one(number: int) -> bool:
        async with turns:
            return bool(await ask(number))

    return sum(await asyncio.gather(*(one(number) for number in range(n))))


def _measured(run: Callable[[], int], n: int) -> dict[str, Any]:
    before_bytes = _resident_bytes()
    peak_bytes = [before_bytes]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            peak_bytes[0] = max(peak_bytes[0], _resident_bytes())

    threading.Thread(target=watch, daemon=True).start()
    start, processor_start = time.perf_counter(), time.process_time()
    n_right = run()
    elapsed_s, processor_s = time.perf_counter() - start, time.process_time() - processor_start
    done.set()
    if n_right != n:
        raise SystemExit(f"{n - n_right} of {n} questions got no answer")
    grown_bytes = max(peak_bytes[0], _resident_bytes()) - before_bytes
    return {"elapsed_s": elapsed_s, "processor_s": processor_s, "grown_mib": grown_bytes / 2**20}


def _resident_bytes() -> int:
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


WAYS = {"client": with_client, "nothing": with_nothing, "httpx": with_httpx, "openai": with_openai, "score": with_score}


def main() -> None:
    """Time one thing and print what it took."""
    what, url, n, concurrency, *rest = sys.argv[1:]
    print(json.dumps(WAYS[what](url, int(n), int(concurrency), rest[0] if rest else None)))


if __name__ == "__main__":
    main()
