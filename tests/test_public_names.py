"""What users import: from a package or from the top, the same object, named after where it was found."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from scripts.public_api import MODULES

import agentunit
from agentunit.metrics.registry import MetricRegistry, import_path

ROOT = Path(__file__).resolve().parents[1]
# Paths of the catalog that are no packages.
DOCUMENTED = {*MODULES, "agentunit.metrics.builtin", "agentunit.multiagent.metrics"}
CLASSES = sorted(
    {
        (module, name)
        for module in MODULES
        for name in import_module(module).__all__
        if inspect.isclass(getattr(import_module(module), name))
    }
)
FAMILIES = ("metrics", "multiagent", "multimodal", "privacy", "sustainability")


def run_python(code: str, *arguments: str, **options: Any) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


@pytest.mark.parametrize("family", FAMILIES)
def test_a_package_has_the_catalogs_classes_of_its_modules(family: str) -> None:
    package = import_module(f"agentunit.{family}")
    inner = import_module(f"agentunit.{family}.{'builtin' if family == 'metrics' else 'metrics'}")
    own = [name for name in vars(inner) if name.endswith("Metric") and name[0] != "_" and name != "ItemMetric"]
    assert own
    for name in own:
        assert name in package.__all__
        assert name in dir(package)
        assert getattr(package, name) is getattr(inner, name)
    with pytest.raises(AttributeError, match=f"module 'agentunit.{family}' has no attribute 'unheard_of'"):
        package.unheard_of  # noqa: B018


@pytest.mark.parametrize("family", FAMILIES)
def test_a_package_loads_its_metrics_only_when_asked(family: str) -> None:
    code = (
        f"import sys, agentunit; agentunit.{family}; print([m for m in sys.modules if m.startswith('agentunit.')]);"
        f"agentunit.{family}.__all__"
    )
    loaded = run_python(code)
    assert f"'agentunit.{family}'" in loaded
    assert "'agentunit.core" not in loaded


@pytest.mark.parametrize("name", ["DEFAULT_METRICS", "run", "score", "compare", "Suite", "RunResult"])
def test_what_most_programs_need_is_at_the_top(name: str) -> None:
    assert name in agentunit.__all__
    assert getattr(agentunit, name) is not None


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_a_class_names_the_module_that_users_import_it_from(module: str, name: str) -> None:
    found = getattr(import_module(module), name)
    assert found.__module__ in DOCUMENTED
    assert repr(found) in (f"<class '{found.__module__}.{name}'>", f"<enum '{name}'>")
    assert getattr(import_module(found.__module__), name) is found
    assert pickle.loads(pickle.dumps(found)) is found
    # Other libraries read annotations in the module that a class names.
    get_type_hints(found)


# One that counts from case to case stays in its process.
@pytest.mark.parametrize("name", sorted({*MetricRegistry(entry_point_group=None).names()} - {"privacy_budget"}))
def test_every_metric_survives_the_way_to_another_process(name: str) -> None:
    metric = MetricRegistry(entry_point_group=None).create(name)
    again = pickle.loads(pickle.dumps(metric))
    assert type(again) is type(metric)
    assert import_path(again) == f"{type(metric).__module__}.{type(metric).__qualname__}"


def test_a_process_that_has_loaded_nothing_reads_what_another_sends(tmp_path: Path) -> None:
    sent = [
        agentunit.Record(agentunit.DatasetCase("q1"), agentunit.TraceLog(), agentunit.Outcome(output="4")),
        agentunit.InteractionType("delegation"),
        agentunit.sustainability.CarbonMetric(),
        agentunit.privacy.PIILeakageMetric(),
        agentunit.MetricResult("m", 1.0, {}),
    ]
    file = tmp_path / "sent.pickle"
    file.write_bytes(pickle.dumps(sent))
    code = "import pickle, sys; print(*(type(each).__name__ for each in pickle.load(open(sys.argv[1], 'rb'))))"
    read = run_python(code, str(file)).split()
    assert read == ["Record", "InteractionType", "CarbonMetric", "PIILeakageMetric", "MetricResult"]


def test_a_program_of_a_user_is_type_checked_with_ours() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'modules = ["user_program"]' in settings
    assert (ROOT / "tests" / "typing" / "user_program.py").is_file()
