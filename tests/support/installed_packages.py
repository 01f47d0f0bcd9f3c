"""Distributions as pip would leave them on the path, for tests of what installed packages bring."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from agentunit import plugins
from agentunit.backends import quality
from agentunit.cli import main
from agentunit.metrics.registry import MetricRegistry, registry
from agentunit.privacy.detectors import detector_table
from agentunit.reports import reporters
from agentunit.store.opening import store_table
from agentunit.traces import formats

InstallPackage = Callable[..., Path]


def forget_plugins() -> None:
    """What is installed is looked up once in a process; a test that changes it starts afresh."""
    for module in (plugins, quality, formats, reporters, main):
        for value in list(vars(module).values()):
            if callable(getattr(value, "cache_clear", None)):
                value.cache_clear()
    detector_table.cache_clear()
    store_table.cache_clear()
    plugins._reported.clear()
    registry.table = MetricRegistry().table


def write_metadata(site: Path, distribution: str, version: str, entry_points: Mapping[str, Mapping[str, str]]) -> None:
    """The folder ``*.dist-info`` of a distribution."""
    metadata = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (metadata / "entry_points.txt").write_text(
        "\n".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
            for group, points in entry_points.items()
        )
    )


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
        write_metadata(site, distribution, "1.0", entry_points)
        for name, source in (modules or {}).items():
            (site / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(str(site))
        importlib.invalidate_caches()
        forget_plugins()
        return site

    forget_plugins()
    yield install
    forget_plugins()
    for name in set(sys.modules) - modules_before:
        origin = getattr(sys.modules[name], "__file__", None)
        if origin and origin.startswith(str(tmp_path)):
            del sys.modules[name]
