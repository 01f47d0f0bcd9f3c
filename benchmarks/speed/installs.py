"""Question 2: what does a plain ``pip install`` bring along?"""

from __future__ import annotations

from benchmarks.speed.answers import Answer, Column, decimals, times
from benchmarks.speed.environments import OURS, Installed, installed_peer
from benchmarks.speed.peers import Peer

TARGET_MB = 30
TARGET_PACKAGES = 15
_BYTES_PER_MB = 1e6


def measure_installs(ours: Installed | None, peers: list[Peer]) -> Answer:
    """Count the packages and bytes of each environment, as they were right after pip made it."""
    answer = Answer(
        "install",
        "Base install in a fresh environment",
        (
            Column("name", "package"),
            Column("n_packages", "packages", decimals(0)),
            Column("megabytes", "MB", decimals(1)),
            Column("ratio", "MB to ours", times),
            Column("note", "target or remark"),
        ),
        remarks=["Without pip and setuptools, before anything is imported; MB are 1,000,000 bytes."],
    )
    if ours is None:
        answer.add(name=OURS, note="not installed from this working tree; --install-ours does it")
    else:
        met = ours.n_packages <= TARGET_PACKAGES and ours.n_bytes <= TARGET_MB * _BYTES_PER_MB
        _add(answer, OURS, ours, f"{'met' if met else 'MISSED'} (≤ {TARGET_PACKAGES} packages, ≤ {TARGET_MB} MB)")
    for peer in peers:
        installed = installed_peer(peer)
        if installed is not None:
            _add(answer, peer.name, installed, " ".join(peer.requirements))
    answer.compare("megabytes", OURS)
    return answer


def _add(answer: Answer, name: str, installed: Installed, note: str) -> None:
    megabytes = installed.n_bytes / _BYTES_PER_MB
    answer.add(name=name, n_packages=installed.n_packages, megabytes=megabytes, note=note)
