"""Question 5: what does recording cost when the agent itself costs nothing, and every case is kept as it ends?"""

from __future__ import annotations

from benchmarks.speed.answers import Answer
from benchmarks.speed.environments import OURS, python_of
from benchmarks.speed.peers import Peer
from benchmarks.speed.per_case import Subject, measure_per_case, per_case_answer
from benchmarks.speed.processes import OUR_PYTHON

TARGET_MS = 0.3
_SCORED = "scored"
# Where an agent runs: in the event loop, in threads, or (a function with a timeout) in processes that can be ended.
_WAYS = ("async", "threads", "processes")
_USUAL_WAY = "threads"


def measure_recording(peers: list[Peer], rounds: int, n_cases: int) -> list[Answer]:
    """Record an agent that returns its question into a fresh store, then the same with a trivial metric's scores."""
    recorded = per_case_answer("recording", "Recording a trivial agent durably, per case")
    scored = per_case_answer("recording_scored", "A run: a trivial agent, recorded and scored with a trivial metric")
    usual = f"{OURS}, {_USUAL_WAY}"
    measure_per_case(
        [
            (recorded, _recording_subjects(peers, n_cases), usual),
            (scored, _running_subjects(peers, n_cases), usual),
        ],
        rounds,
    )
    recorded.remarks.append(
        f"Processor time, best and worst of {rounds} fresh processes each, in turn, four cases at once; building the "
        "cases and importing are not counted, opening, planning and closing are. Ours: every case is committed to "
        "SQLite when it ends and survives a killed process. Peers keep their log as they do by default, on the same "
        "disk, with as many cases at once as they choose; mlflow's limit of about ten cases a second is off. Slow "
        "tools get fewer cases."
    )
    scored.remarks.append(
        "As above, with each case's score kept too, and the mean of all. pydantic-evals and deepeval keep nothing on "
        "disk; 'less' is inspect-ai without a log of its samples."
    )
    return [recorded, scored]


def _recording_subjects(peers: list[Peer], n_cases: int) -> list[Subject]:
    subjects = _our_subjects(n_cases, ())
    for peer in peers:
        if peer.recorded_by:
            n_theirs = min(n_cases, peer.most_cases)
            subjects.append(Subject(peer.name, python_of(peer.name), peer.recorded_by, n_theirs))
    return subjects


def _running_subjects(peers: list[Peer], n_cases: int) -> list[Subject]:
    subjects = _our_subjects(n_cases, (_SCORED,))
    for peer in peers:
        for script, word in peer.run_by:
            name, arguments = (f"{peer.name}, {word}", (_SCORED, word)) if word else (peer.name, (_SCORED,))
            n_theirs = min(n_cases, peer.most_cases)
            subjects.append(Subject(name, python_of(peer.name), script, n_theirs, arguments))
    return subjects


def _our_subjects(n_cases: int, arguments: tuple[str, ...]) -> list[Subject]:
    return [
        Subject(f"{OURS}, {way}", OUR_PYTHON, "record_with_agentunit.py", n_cases, (way, *arguments), TARGET_MS)
        for way in _WAYS
    ]
