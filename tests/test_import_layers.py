"""The import contracts cover every package and every module of metrics, and the design page shows the same rows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info < (3, 11):
    pytest.skip("pyproject.toml is read with tomllib", allow_module_level=True)

import tomllib

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "agentunit"
HEAVY_ROOMS = {"addons", "backends", "probes", "engine"}
HEAVY_ADDONS = {"media", "names", "ragas", "scale"}
FAMILIES = {"multimodal", "privacy", "sustainability", "multiagent"}


def contracts() -> list[dict[str, Any]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return list(tomllib.load(file)["tool"]["importlinter"]["contracts"])


def layers_of(container: str) -> dict[str, Any]:
    (contract,) = [each for each in contracts() if each.get("containers") == [container]]
    return contract


def names_in(layer: str) -> set[str]:
    return set(re.split(r"\s*[|:]\s*", layer))


def modules_in(folder: Path) -> set[str]:
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


@pytest.mark.parametrize(
    ("container", "folder"),
    [("agentunit", PACKAGE), ("agentunit.addons", PACKAGE / "addons"), ("agentunit.metrics", PACKAGE / "metrics")],
)
def test_every_module_stands_in_one_layer_and_no_layer_names_another(container: str, folder: Path) -> None:
    contract = layers_of(container)
    listed = [name for layer in contract["layers"] for name in sorted(names_in(layer))]
    assert contract["exhaustive"] is True
    assert not contract.get("exhaustive_ignores")
    assert not contract.get("ignore_imports")
    assert sorted(listed) == sorted(modules_in(folder))


@pytest.mark.parametrize("container", ["agentunit", "agentunit.metrics"])
def test_the_design_page_shows_the_layers(container: str) -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    assert "```text\n" + "\n".join(layers_of(container)["layers"]) + "\n```" in page


def test_metrics_stand_below_whatever_runs_stores_or_shows_them() -> None:
    order = [names_in(layer) for layer in layers_of("agentunit")["layers"]]
    place = {name: row for row, names in enumerate(order) for name in names}
    above = {name for name, row in place.items() if row < place["metrics"]}
    assert {"cli", "pytest_plugin", "reports", "engine", "store", "adapters"} <= above
    assert above >= FAMILIES


def test_families_are_kept_from_every_module_above_what_metrics_share() -> None:
    *upper, _ = layers_of("agentunit.metrics")["layers"]
    (contract,) = [each for each in contracts() if "agentunit.metrics.registry" in each.get("forbidden_modules", [])]
    assert set(contract["source_modules"]) == {f"agentunit.{name}" for name in FAMILIES}
    assert set(contract["forbidden_modules"]) == {
        f"agentunit.metrics.{name}" for row in upper for name in names_in(row)
    }


def test_heavy_packages_are_refused_everywhere_but_where_they_live() -> None:
    (contract,) = [each for each in contracts() if "numpy" in each.get("forbidden_modules", [])]
    light = modules_in(PACKAGE) - HEAVY_ROOMS
    light |= {f"addons.{name}" for name in modules_in(PACKAGE / "addons") - HEAVY_ADDONS}
    assert set(contract["source_modules"]) == {f"agentunit.{name}" for name in light}
