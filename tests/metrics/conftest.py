from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_media import TINY_CLIP

from agentunit.backends import quality
from agentunit.metrics import rubric

InstallPackage = Callable[..., Path]


def forget_backends() -> None:
    """Looked-up backends are cached for the life of a process; a test that changes what is installed starts afresh."""
    for value in list(vars(quality).values()):
        if callable(getattr(value, "cache_clear", None)):
            value.cache_clear()


@pytest.fixture
def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstallPackage]:
    """Put a distribution on the path that looks as pip would have left it: modules, and metadata with entry points."""
    modules_before = set(sys.modules)

    def install(
        distribution: str,
        *,
        entry_points: Mapping[str, Mapping[str, str]],
        modules: Mapping[str, str] | None = None,
    ) -> Path:
        site = tmp_path / distribution
        metadata = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(
            "\n".join(
                f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
                for group, points in entry_points.items()
            )
        )
        for name, source in (modules or {}).items():
            (site / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(str(site))
        importlib.invalidate_caches()
        forget_backends()
        return site

    forget_backends()
    yield install
    forget_backends()
    for name in set(sys.modules) - modules_before:
        origin = getattr(sys.modules[name], "__file__", None)
        if origin and origin.startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture(scope="module")
def no_backends_installed() -> Iterator[None]:
    """The lexical fallback must be what ``auto`` finds, whatever is installed where the tests run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quality, "entry_points", lambda group: ())
        forget_backends()
        yield
    forget_backends()


@pytest.fixture(scope="module")
def a_judge_for_rubrics() -> Iterator[None]:
    """The one metric that only a judge can score gets one that finds every answer middling."""

    def start(measure: str, questions: Sequence[Any]) -> Future[list[quality.Verdict]]:
        verdicts: Future[list[quality.Verdict]] = Future()
        verdicts.set_result([quality.Verdict(0.5, {"score": 3.0}) for _ in questions])
        return verdicts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rubric, "resolve_backend", lambda *_: SimpleNamespace(name="judge", start=start))
        yield


@pytest.fixture(scope="module")
def a_small_clip() -> Iterator[None]:
    """The metrics that look at pictures get the CLIP that was trained on coloured shapes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTUNIT_CLIP", str(TINY_CLIP))
        yield
