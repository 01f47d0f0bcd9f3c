"""The import contracts cover every package and every module of metrics, and the design page shows the same rows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from agentunit import doors

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


# What an add-on asks of another one by name, and why it may. The design page says what each must offer.
BETWEEN_ADDONS = {
    ("ragas", "judge_backend"): "RAGAS asks through the judge's client: one cap, one cache, one sum",
    ("review", "read_document"): "the doctor looks at tests of other tools",
    ("review", "read_foreign"): "the doctor looks at tests of other tools",
    ("viewer", "label_questions"): "people also label in the browser",
    ("viewer", "label_session"): "people also label in the browser",
    ("viewer", "open_score_table"): "a table of scores opens as a run, without being held in memory",
}


def parts_asked_for(path: Path) -> list[str]:
    return re.findall(r'\bpart\(\s*"(\w+)"', path.read_text(encoding="utf-8"))


def test_every_part_that_is_asked_for_is_in_the_table_and_the_other_way_round() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "doors.py"]
    assert {name for path in files for name in parts_asked_for(path)} <= set(doors._PARTS)
    # Some names are chosen by a table of their own.
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    assert [name for name in doors._PARTS if f'"{name}"' not in source] == []


def test_addons_ask_each_other_only_for_what_is_listed() -> None:
    asked = set()
    for path in sorted((PACKAGE / "addons").rglob("*.py")):
        addon = path.relative_to(PACKAGE / "addons").parts[0]
        asked |= {(addon, name) for name in parts_asked_for(path) if not doors._PARTS[name].startswith(f"{addon}.")}
    assert asked == set(BETWEEN_ADDONS)
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    for addon, name in asked:
        assert re.search(rf"^\| `{addon}` \| .*`{name}`", page, re.MULTILINE), (addon, name)
