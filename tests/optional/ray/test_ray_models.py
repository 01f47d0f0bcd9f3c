"""Models that actors of a real Ray hold, on GPUs that Ray is told of: what is held runs on the processor here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

import ray
from agentunit_local.quality import GpuBackend

from agentunit.addons.scale import ray_pool as ray_models
from agentunit.backends.quality import QualityQuestion
from agentunit.engine.scoring.records import WorkFailed
from agentunit.metrics.base import CompositeMetric
from agentunit.metrics.builtin import CostMetric, FaithfulnessMetric

pytestmark = [pytest.mark.optional, pytest.mark.filterwarnings("ignore")]

TEXT = "The museum opens at nine every day but Monday. Tickets are 12 euros."
QUESTIONS = [QualityQuestion("When?", [TEXT], answer) for answer in ("At ten.", "Tickets are free.", "On Sundays.")]


def nothing() -> None:
    """The surroundings of actors on this machine are those of their node."""


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("AGENTUNIT_LOCAL_DEVICE", "cpu")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # As many tasks as processors at once: what actors held would be missing to them.
    ray.init(
        "local", num_cpus=1, num_gpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80 << 20
    )
    yield
    ray.shutdown()


def pid_of(actor) -> int:
    return ray.get(actor.__ray_call__.remote(lambda self: os.getpid()))


def test_each_gpu_has_an_actor_that_answers_and_comes_back_when_killed(cluster):
    here = GpuBackend().judge("faithfulness", QUESTIONS)
    names = ray_models.held_backends([CompositeMetric([FaithfulnessMetric(backend="local-gpu"), CostMetric()])])
    assert names == ["local-gpu"]
    actors = ray_models.start_models(names, nothing)
    assert len(actors) == 2
    assert ray.available_resources().get("GPU", 0) == 0
    # A task has the only processor, and waits for actors: they take none.
    task = ray.remote(num_cpus=1)(_judged)
    assert ray.get(task.remote(names, actors), timeout=240) == [each.value for each in here]
    for actor in actors:
        os.kill(pid_of(actor), signal.SIGKILL)
    assert ray.get(task.remote(names, actors), timeout=240) == [each.value for each in here]


def _judged(names, actors):
    ray_models.ask_models(names, actors)
    return [each.value for each in GpuBackend().judge("faithfulness", QUESTIONS)]


def test_without_gpus_there_are_no_actors(cluster, monkeypatch):
    assert ray_models.start_models([], nothing) == []
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 1.0})
    assert ray_models.start_models(["local-gpu"], nothing) == []
    monkeypatch.setenv("AGENTUNIT_LOCAL_DEVICE", "cluster")
    with pytest.raises(WorkFailed, match="needs a cluster of Ray with GPUs; this one has none"):
        ray_models.start_models(["local-gpu"], nothing)


def test_the_command_scores_as_one_process_does(tmp_path: Path):
    records = [
        {"v": 1, "case": {"id": f"q{n}", "context": [TEXT]}, "outcome": f"Tickets are {n} euros. It is open."}
        for n in range(6)
    ]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    found = {}
    for name, engine in (("alone", []), ("ray", ["--engine", "ray", "--jobs", "1"])):
        command = [sys.executable, "-m", "agentunit", "score", "runs.jsonl", "-m", "faithfulness", *engine]
        environment = {
            **os.environ,
            "AGENTUNIT_BACKEND": "local-gpu",
            "AGENTUNIT_LOCAL_DEVICE": "cpu",
            "OMP_NUM_THREADS": "1",
            "RAY_OVERRIDE_RESOURCES": '{"GPU": 1}',
        }
        done = subprocess.run(
            [*command, "--out", f"{name}.jsonl"], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found[name] = (tmp_path / f"{name}.jsonl").read_text()
    assert found["alone"].count("local-gpu") >= len(records)
    assert found["ray"] == found["alone"]
