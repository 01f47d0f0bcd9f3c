"""The RAGAS backend where RAGAS is missing, broken or misbehaving; with RAGAS itself: tests/optional/ragas."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from judge_server import JudgeServer
from ragas_decisions import decide

from agentunit.addons.judge.client import JudgeClient
from agentunit.addons.judge.settings import JudgeSettings, configure_judge
from agentunit.addons.ragas import _installed as installed
from agentunit.addons.ragas import backend
from agentunit.addons.ragas._ragas_backend import RagasBackend
from agentunit.backends.quality import QualityQuestion, Verdict
from agentunit.installation import install_command

PARIS = "Paris is in France."

# The smallest package that passes for RAGAS: {score} is what Faithfulness makes of the judge's two replies.
FAKE = {
    "__init__.py": "",
    "llms/__init__.py": "",
    "llms/base.py": "from abc import ABC\n\n\nclass InstructorBaseRagasLLM(ABC):\n    pass\n",
    "embeddings/__init__.py": "",
    "embeddings/base.py": "from abc import ABC\n\n\nclass BaseRagasEmbedding(ABC):\n    pass\n",
    "metrics/__init__.py": "",
    "metrics/collections.py": """
import json
from types import SimpleNamespace

from ragas.llms.base import InstructorBaseRagasLLM


class Reply:
    @staticmethod
    def model_json_schema():
        return {{"type": "object", "properties": {{"statements": {{"type": "array"}}}}}}

    @staticmethod
    def model_validate(value):
        if not isinstance(value.get("statements"), list):
            raise ValueError("statements must be a list")
        return SimpleNamespace(statements=[
            SimpleNamespace(**each) if isinstance(each, dict) else each for each in value["statements"]
        ])


def prompt(**given):
    return "Do it.\\n\\nNow perform the same with the following input\\ninput: " + json.dumps(given) + "\\nOutput: "


class Faithfulness:
    def __init__(self, llm):
        assert isinstance(llm, InstructorBaseRagasLLM)
        self.llm = llm

    async def ascore(self, user_input, response, retrieved_contexts):
        found = await self.llm.agenerate(prompt(question=user_input, answer=response), Reply)
        context = " ".join(retrieved_contexts)
        judged = await self.llm.agenerate(prompt(context=context, statements=found.statements), Reply)
        verdicts = [each.verdict for each in judged.statements]
        return SimpleNamespace(value={score}, reason=None)


class AnswerCorrectness: pass
class ContextPrecision: pass
class ContextUtilization: pass
""",
}

Install = Callable[..., None]


@pytest.fixture(autouse=True)
def _nothing_is_configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("AGENTUNIT_JUDGE_", "AGENTUNIT_RAGAS"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "false")
    configure_judge()
    yield
    configure_judge()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a package named ragas first on the path, as if it were installed in this version."""
    set_aside = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "ragas"}
    installed.load_ragas.cache_clear()

    def write(score: str = "sum(verdicts) / len(verdicts)", version: str = "0.4.3", **files: str) -> None:
        for name, text in {**FAKE, **files}.items():
            path = tmp_path / "ragas" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(score=score) if name == "metrics/collections.py" else text, encoding="utf-8")
        about = tmp_path / f"ragas-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ragas\nVersion: {version}\n", encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))

    yield write
    for name in [name for name in sys.modules if name.split(".")[0] == "ragas"]:
        del sys.modules[name]
    sys.modules.update(set_aside)
    installed.load_ragas.cache_clear()


@pytest.fixture
def judged(install: Install) -> Iterator[Callable[..., list[Verdict]]]:
    """Verdicts on answers with a fake RAGAS and a real judge's client, against a server on loopback."""
    clients: list[JudgeClient] = []
    with JudgeServer(decide) as server:

        def judge(*answers: str, **fake: str) -> list[Verdict]:
            install(**fake)
            clients.append(JudgeClient(JudgeSettings(server.url, "judge-1", cache=None)))
            questions = [QualityQuestion("Where is Paris?", [PARIS], answer) for answer in answers]
            return RagasBackend(clients[-1]).judge("faithfulness", questions)

        yield judge
        for client in clients:
            client.close()


def configure() -> None:
    configure_judge(url="http://127.0.0.1:9/v1", model="judge-1", cache=None)


# Ready or not


def test_without_ragas_the_reason_is_the_command_that_adds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    configure()
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    assert backend().unready() == f"RAGAS is not installed; {install_command('ragas')} adds it"


def test_without_a_judge_the_reason_names_the_variables_and_nothing_is_imported(install: Install) -> None:
    install(**{"__init__.py": "raise RuntimeError('imported')"})
    reason = backend().unready()
    assert reason is not None
    assert "AGENTUNIT_JUDGE_URL and AGENTUNIT_JUDGE_MODEL" in reason
    assert "ragas" not in sys.modules


def test_a_wrong_setting_is_a_reason(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    monkeypatch.setenv("AGENTUNIT_JUDGE_CONCURRENCY", "many")
    assert "AGENTUNIT_JUDGE_CONCURRENCY must be a whole number" in str(backend().unready())


@pytest.mark.parametrize(
    ("ragas", "community", "works"),
    [("0.4.3", "0.4.2", False), ("0.4.3", "0.3.31", True), ("0.5.0", "0.4.2", True), ("0.4.3", None, True)],
)
def test_a_pair_of_versions_that_cannot_be_imported_is_told_without_trying(
    install: Install, monkeypatch: pytest.MonkeyPatch, ragas: str, community: str | None, works: bool
) -> None:
    install()
    configure()
    found = {"ragas": ragas, "langchain-community": community}

    def version(name: str) -> str:
        if found[name] is None:
            raise installed.PackageNotFoundError(name)
        return str(found[name])

    monkeypatch.setattr(installed, "version", version)
    reason = backend().unready()
    assert (reason is None) == works
    if reason is not None:
        assert "langchain-community 0.4.2" in reason
        assert install_command("ragas") in reason
        assert "ragas" not in sys.modules


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("import langchain_community.chat_models.gone", "ModuleNotFoundError: No module named 'langchain_community"),
        ("raise RuntimeError('numpy was built for another world')", "RuntimeError: numpy was built for another world"),
        ("this is no Python", "SyntaxError"),
    ],
)
def test_an_install_that_breaks_on_import_says_how_and_the_way_out(install: Install, broken: str, said: str) -> None:
    install(**{"llms/base.py": broken})
    configure()
    reason = backend().unready()
    assert reason is not None
    assert said in reason
    assert reason.startswith("ragas 0.4.3 is installed but cannot be imported")
    assert reason.endswith(f"{install_command('ragas')} fixes that")


def test_telemetry_is_off_before_the_import_and_its_warnings_stay_inside(install: Install) -> None:
    noisy = """
import os
import warnings

if os.environ.get("RAGAS_DO_NOT_TRACK") != "true":
    raise RuntimeError("telemetry is on")
warnings.warn("all of this is deprecated", DeprecationWarning)
"""
    install(**{"__init__.py": noisy})
    configure()
    assert backend().unready() is None


@pytest.mark.parametrize(("given", "taken"), [(None, True), ("", True), ("1", True), ("0", False), (" Off ", False)])
def test_auto_takes_it_unless_told_not_to(monkeypatch: pytest.MonkeyPatch, given: str | None, taken: bool) -> None:
    if given is not None:
        monkeypatch.setenv("AGENTUNIT_RAGAS", given)
    assert backend().automatic is taken


# Scores and failures


def test_a_score_comes_with_claims_and_what_it_took(judged: Callable[..., list[Verdict]]) -> None:
    (verdict,) = judged(f"{PARIS} It rains.")
    assert verdict.value == 0.5
    assert [claim["verdict"] for claim in verdict.detail["claims"]] == ["supported", "not_supported"]
    assert verdict.detail["judge"]["calls"] == 2


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ("float('nan')", "RAGAS gave nan as a score"),
        ("float('inf')", "RAGAS gave inf as a score"),
        ("2.5", "RAGAS gave 2.5 as a score"),
        ("-0.5", "RAGAS gave -0.5 as a score"),
    ],
)
def test_what_is_no_score_is_an_error_with_what_the_judge_said(
    judged: Callable[..., list[Verdict]], score: str, said: str
) -> None:
    odd, good = judged(f"{PARIS} It rains.", PARIS, score=f"1.0 if len(verdicts) == 1 else {score}")
    assert good.value == 1.0
    assert odd.value is None
    assert said in odd.detail["reason"]
    assert odd.detail["error"]["type"] == "JudgeFailed"
    assert "It rains." in odd.detail["raw"]


def test_an_exception_of_ragas_is_an_error_of_its_case_alone(judged: Callable[..., list[Verdict]]) -> None:
    odd, good = judged(f"{PARIS} It rains.", PARIS, score="1.0 if len(verdicts) == 1 else [][0]")
    assert good.value == 1.0
    assert odd.value is None
    assert odd.detail["error"] == {"type": "IndexError", "message": "IndexError: list index out of range"}


def test_prompts_of_another_layout_are_refused_not_sent(judged: Callable[..., list[Verdict]]) -> None:
    changed = FAKE["metrics/collections.py"].replace("Now perform the same", "Carry on")
    (verdict,) = judged(PARIS, **{"metrics/collections.py": changed})
    assert verdict.value is None
    assert "laid out in an unknown way" in verdict.detail["reason"]
    assert verdict.detail["judge"]["calls"] == 0
