"""Times our detector in this process: ``python -m benchmarks.privacy.with_agentunit mails|odd BYTES ROUNDS``."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from agentunit.privacy.detectors import PatternDetector
from benchmarks.privacy.texts import ODD_TEXTS, mails, prose


def best_s(texts: list[str], rounds: int) -> tuple[float, int]:
    """The least CPU time of finding everything in some texts, and how much was found."""
    detector = PatternDetector()
    seconds: list[float] = []
    n_found = 0
    for _ in range(rounds):
        start = time.process_time()
        n_found = sum(len(each) for each in detector.find(texts))
        seconds.append(time.process_time() - start)
    return min(seconds), n_found


def main() -> None:
    """Print what was measured as one JSON object."""
    what, n_bytes, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    best_s(mails(20_000), 1)
    figures: dict[str, Any] = {}
    if what == "mails":
        texts = mails(n_bytes)
        seconds, n_found = best_s(texts, rounds)
        figures = {"elapsed_s": seconds, "n_found": n_found, "n_bytes": sum(len(each.encode()) for each in texts)}
    else:
        addresses = " ".join(f"a{n}@example.com" for n in range(n_bytes // 18))
        makers = {"prose": prose, **ODD_TEXTS, "email addresses": lambda n_bytes: addresses}
        for name, make in makers.items():
            text = make(n_bytes)
            seconds, n_found = best_s([text], rounds)
            figures[name] = {"elapsed_s": seconds, "n_found": n_found, "n_bytes": len(text.encode())}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
