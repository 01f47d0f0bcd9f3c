"""Question 3: what does scoring ready records cost when the metric itself costs nothing?"""

from __future__ import annotations

from benchmarks.speed.answers import Answer
from benchmarks.speed.environments import OURS, python_of
from benchmarks.speed.peers import Peer
from benchmarks.speed.per_case import Subject, measure_per_case, per_case_answer
from benchmarks.speed.processes import OUR_PYTHON

TARGET_MS = 0.02


def measure_overhead(peers: list[Peer], rounds: int, n_cases: int) -> Answer:
    """Score records with a metric that returns 1.0, each tool in fresh processes, in turn. No agent is called."""
    answer = per_case_answer("overhead", "Scoring ready records with a trivial metric, per case")
    subjects = [Subject(OURS, OUR_PYTHON, "with_agentunit.py", n_cases, target_ms=TARGET_MS)]
    for peer in peers:
        if peer.scored_by:
            n_theirs = min(n_cases, peer.most_cases)
            subjects.append(Subject(peer.name, python_of(peer.name), peer.scored_by, n_theirs))
    measure_per_case([(answer, subjects, OURS)], rounds)
    answer.remarks.append(
        f"Processor time, best and worst of {rounds} fresh processes each, in turn; building the cases and importing "
        "are not counted, making the summary is. Slow tools get fewer cases. autoevals is a loop that calls "
        "its scorer: no statuses, no summary, nothing kept."
    )
    left_out = [peer.name for peer in peers if not peer.scored_by]
    if left_out:
        answer.remarks.append(f"These call an agent, or were not measured: {', '.join(left_out)}.")
    return answer
