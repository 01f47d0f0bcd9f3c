"""Question 3: what does the machinery cost when the metric itself costs nothing?"""

from __future__ import annotations

from benchmarks.speed.answers import Answer
from benchmarks.speed.environments import OURS, python_of
from benchmarks.speed.peers import Peer
from benchmarks.speed.per_case import Subject, measure_per_case, per_case_answer
from benchmarks.speed.processes import OUR_PYTHON

TARGET_MS = 0.02


def measure_overhead(peers: list[Peer], rounds: int, n_cases: int) -> Answer:
    """Score cases with a metric that returns 1.0, each tool in fresh processes, all tools in turn."""
    answer = per_case_answer("overhead", "Overhead of a trivial metric, per case")
    subjects = [Subject(OURS, OUR_PYTHON, "with_agentunit.py", n_cases, target_ms=TARGET_MS)]
    for peer in peers:
        for script, label in peer.trivial_runs:
            name, arguments = (f"{peer.name}, {label}", (label,)) if label else (peer.name, ())
            subjects.append(Subject(name, python_of(peer.name), script, min(n_cases, peer.most_cases), arguments))
    measure_per_case([(answer, subjects, OURS)], rounds)
    answer.remarks.append(
        f"Best and worst of {rounds} fresh processes each, in turn; building the cases and importing are not counted, "
        "making the summary is. Slow tools get fewer cases."
    )
    left_out = [peer.name for peer in peers if not peer.trivial_runs]
    if left_out:
        answer.remarks.append(f"Not measured here: {', '.join(left_out)}.")
    return answer
