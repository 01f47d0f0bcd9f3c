"""Replies by the hundred thousand of a judge whose answers were written to be quoted: is a forged verdict ever read?

``python -m benchmarks.judge.forgery [N]`` tries N replies (100,000 unless told otherwise), with an adversary that knows
the prompts, the format of replies and the reader, and a judge that quotes without care. It ends with 1 at a forgery.
"""

from __future__ import annotations

import sys

from benchmarks.speed.environments import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))

from judge_forgeries import ENTRIES, try_forgeries


def main(arguments: list[str]) -> int:
    """Try replies to every kind of question, and print what came of them."""
    n_each = int(arguments[0] if arguments else 100_000) // len(ENTRIES) + 1
    n_forged = 0
    for key in ENTRIES:
        tried = try_forgeries(key, n_each, seed=f"benchmark {key}")
        n_forged += len(tried.forged)
        print(f"{key}: {tried.n_tried:,} replies, {tried.n_read:,} read, {len(tried.forged)} forged", flush=True)
        for text in tried.forged[:5]:
            print(f"  {text!r}")
    return 1 if n_forged else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
