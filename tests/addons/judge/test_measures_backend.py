"""The judge as a backend: when it is ready, and which client it uses."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest
from judge_decisions import decide
from judge_faults import silence
from judge_server import JudgeServer

from agentunit.addons import judge
from agentunit.addons.judge.judge_backend import JudgeBackend
from agentunit.addons.judge.settings import JudgeSettings, configure_judge
from agentunit.backends.asking import JudgeFailed
from agentunit.backends.quality import QualityQuestion

QUESTION = QualityQuestion("?", ["Paris lies in France."], "Paris lies in France.")


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in JudgeSettings.__dataclass_fields__:
        monkeypatch.delenv(f"AGENTUNIT_JUDGE_{name.upper()}", raising=False)
    configure_judge()
    yield
    configure_judge()


def test_the_entry_point_makes_a_backend_that_is_not_ready_until_a_judge_is_configured() -> None:
    backend = judge.backend()
    assert isinstance(backend, judge.JudgeBackend)
    reason = backend.unready()
    assert reason is not None
    assert "AGENTUNIT_JUDGE_URL and AGENTUNIT_JUDGE_MODEL" in reason
    with pytest.raises(JudgeFailed, match="no judge is configured"):
        backend.judge("faithfulness", [QUESTION])
    configure_judge(url="http://127.0.0.1:9/v1", model="m")
    assert backend.unready() is None


def test_a_key_of_another_name_is_no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-lying-around")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert JudgeBackend().unready() is not None


def test_a_setting_that_is_wrong_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    configure_judge(url="http://127.0.0.1:9/v1", model="m")
    monkeypatch.setenv("AGENTUNIT_JUDGE_REPEATS", "many")
    assert JudgeBackend().unready() == "AGENTUNIT_JUDGE_REPEATS must be a whole number; received 'many'"


def test_a_spend_cap_that_cannot_be_kept_is_the_reason() -> None:
    configure_judge(url="http://127.0.0.1:9/v1", model="nobody-knows-its-price", max_spend_usd=1.0)
    reason = JudgeBackend().unready()
    assert reason is not None
    assert reason.startswith("the price of the model 'nobody-knows-its-price' is not known, so a spend cap of 1.0 USD")
    configure_judge(usd_per_million_input=1.0, usd_per_million_output=2.0)
    assert JudgeBackend().unready() is None


def test_the_client_is_kept_until_the_settings_change() -> None:
    backend = JudgeBackend()
    with JudgeServer(decide) as server:
        configure_judge(url=server.url, model="m", cache=None)
        first = backend.client
        assert backend.judge("faithfulness", [QUESTION])[0].value == 1.0
        assert backend.client is first
        configure_judge(repeats=2)
        assert backend.client is not first
        assert backend.judge("faithfulness", [QUESTION])[0].detail["judge_values"] == [1.0, 1.0]
        backend.client.close()


def test_a_batch_can_be_started_and_given_up() -> None:
    with JudgeServer(decide, faults=lambda _: silence()) as server:
        configure_judge(url=server.url, model="m", cache=None)
        backend = JudgeBackend()
        started = backend.start("faithfulness", [QUESTION, QUESTION])
        assert not started.done()
        started.cancel()
        with pytest.raises(CancelledError):
            started.result(timeout=60)
        backend.client.close()


def test_closing_the_client_ends_what_is_waited_for() -> None:
    with JudgeServer(decide, faults=lambda _: silence()) as server:
        configure_judge(url=server.url, model="m", cache=None)
        backend = JudgeBackend()
        started = backend.start("faithfulness", [QUESTION])
        backend.client.close()
        with pytest.raises(CancelledError):
            started.result(timeout=60)


def test_an_unknown_name_of_the_package() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Jury'"):
        judge.Jury  # noqa: B018
