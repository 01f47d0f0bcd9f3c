"""Several judges: whom a panel asks, with which key and which part of the cap, and what they say together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from judge_decisions import decide
from judge_faults import Fault, failing
from judge_server import JudgeServer, Received

import agentunit
from agentunit.addons.judge._panel import Member, members_of, quorum_of, together
from agentunit.addons.judge.judge_backend import failed
from agentunit.addons.judge.rubric_metric import RubricMetric
from agentunit.addons.judge.settings import JudgeSettings, configure_judge, configured
from agentunit.backends.quality import Verdict, load_backend
from agentunit.core.judged import judged_of
from agentunit.engine.scoring.judging import plan_sending
from agentunit.metrics.builtin import HallucinationRateMetric

URL = "http://127.0.0.1:8000/v1"
PRICES = {"usd_per_million_input": 1.0, "usd_per_million_output": 1.0}


def settings(**changes: Any) -> JudgeSettings:
    return JudgeSettings(**{"url": URL, "model": "a", "cache": None, **changes})


@pytest.fixture(autouse=True)
def no_judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", "none")
    yield
    configure_judge()
    backend: Any = load_backend("judge")
    backend.close()


# Whom a panel asks


def test_a_judge_has_the_settings_of_the_panel_where_it_states_none() -> None:
    found = members_of(settings(timeout_s=7, judges=["a", {"model": "b", "weight": 2, "name": "big", "timeout_s": 9}]))
    assert [(each.name, each.weight, each.settings.model, each.settings.timeout_s) for each in found] == [
        ("a", 1.0, "a", 7),
        ("big", 2.0, "b", 9),
    ]
    assert all(not each.settings.judges for each in found)


def test_the_key_goes_to_the_panels_own_address_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    elsewhere = {"model": "c", "url": "http://other.example/v1"}
    judges = ["a", elsewhere, {**elsewhere, "name": "d", "api_key_env": "OTHER_KEY"}]
    found = members_of(settings(api_key="sk-panel", judges=judges))
    assert [each.settings.key for each in found] == ["sk-panel", None, "sk-other"]


def test_headers_of_the_panel_go_to_its_own_address_alone() -> None:
    elsewhere = {"model": "c", "url": "http://other.example/v1"}
    found = members_of(settings(headers={"X-Key": "${PANEL_KEY}"}, profile="openai", judges=["a", elsewhere]))
    assert [each.settings.headers for each in found] == [{"X-Key": "${PANEL_KEY}"}, None]
    assert [each.settings.profile for each in found] == ["openai", None]


def test_nothing_secret_is_described() -> None:
    judges = [{"model": "b", "url": "https://me:hush-hush@b.example/v1", "api_key": "sk-1234567890"}]
    described = str(settings(judges=judges).described())
    assert "sk-1234567890" not in described
    assert "hush" not in described
    assert "b.example" in described


def test_one_judge_is_described_as_before_there_were_panels() -> None:
    assert not {"judges", "quorum", "vote"} & settings().described().keys()


def test_the_cap_is_shared_by_price() -> None:
    dear = {"model": "b", "usd_per_million_input": 3.0, "usd_per_million_output": 3.0}
    found = members_of(settings(max_spend_usd=4.0, **PRICES, judges=["a", dear]))
    assert [each.settings.max_spend_usd for each in found] == pytest.approx([1.0, 3.0])


def test_a_cap_that_one_judge_cannot_keep_stops_the_panel() -> None:
    unknown = {"model": "nobody-knows-its-price"}
    configure_judge(url=URL, model="a", max_spend_usd=1.0, **PRICES, judges=["a", unknown])
    backend: Any = load_backend("judge")
    assert "price" in backend.unready()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"judges": "a,b"}, "judges must be a list"),
        ({"judges": ["a", "a"]}, "different names; received 'a' twice"),
        ({"judges": [{"url": URL}]}, "judges must be a list"),
        ({"judges": [{"model": "a", "weight": 0}]}, "weight of a judge must be a number above 0"),
        ({"judges": [{"model": "a", "repeats": 3}]}, "repeats is for the whole panel"),
        ({"judges": [{"model": "a", "colour": 3}]}, "has no setting 'colour'"),
        ({"judges": ["a", "b"], "quorum": 3}, "quorum must be from 1 to the number of judges"),
        ({"judges": ["a"], "vote": "loudest"}, "vote must be mean or majority"),
    ],
)
def test_what_cannot_be_right_is_refused(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        settings(**changes)


def test_the_environment_names_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_JUDGE_URL", URL)
    monkeypatch.setenv("AGENTUNIT_JUDGE_JUDGES", "a, b")
    found = configured()
    assert found is not None
    assert (found.model, [each["model"] for each in found.judges], quorum_of(found)) == ("a", ["a", "b"], 2)


# What verdicts make together

JUDGES = [Member(name, weight, None) for name, weight in (("a", 1.0), ("b", 1.0), ("c", 2.0))]


@pytest.mark.parametrize(
    ("values", "vote", "value", "disagree"),
    [
        ((1.0, 0.5, 0.5), "mean", 0.625, True),
        ((0.75, 0.5, 0.5), "mean", 0.5625, False),
        ((1.0, 0.75, 0.0), "majority", None, True),  # two votes of weight 1 against one of weight 2
        ((0.0, 0.5, 0.5), "majority", 1.0, True),
        ((0.0, 0.25, 1.0), "mean", 0.5625, True),
    ],
)
def test_votes(values: tuple[float, ...], vote: Any, value: float | None, disagree: bool) -> None:
    made = together(JUDGES, [Verdict(each, {}) for each in values], 2, vote)
    assert made.value == value
    assert made.detail["judges_disagree"] is disagree
    assert [row["value"] for row in made.detail["judges"]] == list(values)
    assert ("reason" in made.detail) is (value is None)


def test_a_judge_that_fails_leaves_the_decision_to_the_others_and_is_named() -> None:
    made = together(JUDGES, [failed("HTTP 500"), Verdict(0.5, {"scores": 1}), Verdict(1.0, {})], 2)
    assert made.value == pytest.approx((0.5 + 2 * 1.0) / 3)
    assert made.detail["panel_note"] == "a gave no value: HTTP 500"
    assert "error" not in made.detail
    assert made.detail["scores"] == 1


def test_too_few_for_the_quorum_is_an_error_only_where_a_judge_failed() -> None:
    silent = Verdict(None, {"reason": "the answer claims nothing"})
    made = together(JUDGES, [Verdict(1.0, {}), failed("HTTP 500"), silent], 2)
    assert made.value is None
    assert made.detail["reason"].startswith("1 of 3 judges gave a value, 2 are needed: b gave no value: HTTP 500")
    assert made.detail["error"]["type"] == "JudgeFailed"
    nothing = together(JUDGES, [Verdict(1.0, {}), silent, silent], 2)
    assert nothing.value is None
    assert "error" not in nothing.detail


def test_repeats_of_a_panel_are_averaged_over_its_judges() -> None:
    said = [Verdict(0.5, {"judge_values": [0.0, 1.0]}), Verdict(1.0, {"judge_values": [1.0, 1.0]})]
    assert together(JUDGES[:2], said, 1).detail["judge_values"] == [0.5, 1.0]


# Over HTTP


def opinion(body: dict[str, Any]) -> dict[str, Any]:
    """Judges of one server: "kind" finds everything perfect, "strict" takes a point off."""
    made = decide(body)
    for each in made.get("scores", ()):
        each["score"] = 5 if body["model"] == "kind" else max(1, each["score"] - (body["model"] == "strict"))
    return made


def broken(request: Received) -> Fault | None:
    return failing(403, "no such account") if request.body["model"] == "broken" else None


CASES = [
    {"case": {"id": "q1", "query": "Hi"}, "outcome": "dear jane"},
    {"case": {"id": "q2", "query": "Hi"}, "outcome": "nothing"},
]


def test_a_panel_scores_agrees_and_says_where_to_look() -> None:
    with JudgeServer(opinion) as server:
        agentunit.configure(judge={"url": server.url, "model": "plain", "judges": ["plain", "kind", "strict"]})
        run = agentunit.score(CASES, [RubricMetric("dear jane")])
        scored = list(run)
        backend: Any = load_backend("judge")
        backend.close()
    assert [case.scores["rubric"].value for case in scored] == pytest.approx([2.75 / 3, 1 / 3])
    assert server.n_calls == 6
    (row,) = run.summary().metrics
    assert row.panel is not None
    assert [(each.judge, each.mean) for each in row.panel.judges] == [("plain", 0.5), ("kind", 1.0), ("strict", 0.375)]
    assert row.panel.disagree_cases == ["q2"]
    # The values are [1, 1, 0.75] and [0, 1, 0]: of the ordered pairs within each, 4 differ, by 0.25 and by 1.
    observed = (4 * 0.25**2 / 2 + 4 * 1.0**2 / 2) / 6
    assert row.panel.alpha == pytest.approx(1 - observed / _expected())
    spend = run.summary().judge
    assert spend is not None
    assert (spend.models, spend.n_calls) == (["plain", "kind", "strict"], 6)


def _expected() -> float:
    values = [1.0, 1.0, 0.75, 0.0, 1.0, 0.0]
    pairs = [(a - b) ** 2 for at, a in enumerate(values) for place, b in enumerate(values) if at != place]
    return sum(pairs) / (6 * 5)


def test_a_judge_without_an_account_is_told_and_the_others_decide() -> None:
    with JudgeServer(opinion, faults=broken) as server:
        agentunit.configure(judge={"url": server.url, "judges": ["plain", "broken", "strict"]})
        run = agentunit.score(CASES, [RubricMetric("dear jane")])
        assert [case.scores["rubric"].value for case in run] == [0.875, 0.0]
        (row,) = run.summary().metrics
        assert row.panel is not None
        assert [(each.judge, each.n_without_value) for each in row.panel.judges if each.reason] == [("broken", 2)]
        agentunit.configure(judge={"quorum": 3})
        (case, _) = agentunit.score(CASES, [RubricMetric("dear jane")])
        backend: Any = load_backend("judge")
        backend.close()
    assert case.scores["rubric"].status == "error"
    assert "3 are needed: broken gave no value: HTTP 403" in case.scores["rubric"].result.detail["reason"]


def test_verdicts_of_a_panel_are_on_the_scale_of_the_metric() -> None:
    record = {"case": {"id": "q", "query": "?", "context": ["It is red."]}, "outcome": "It is red."}
    with JudgeServer(decide) as server:
        agentunit.configure(judge={"url": server.url, "judges": ["a", "b"]})
        (case,) = agentunit.score([record], [HallucinationRateMetric("judge")])
        backend: Any = load_backend("judge")
        backend.close()
    result = case.scores["hallucination_rate"].result
    assert result.value == 0.0
    judged = judged_of(result.detail)
    assert judged is not None
    assert judged.by_judge == (("a", 0.0, None), ("b", 0.0, None))


def test_what_is_sent_where_names_every_judge_and_counts_every_call() -> None:
    elsewhere = {"model": "c", "url": "https://c.example/v1"}
    agentunit.configure(judge={"url": URL, "judges": ["a", "b", elsewhere], **PRICES, "model": "a"})
    sending = plan_sending([RubricMetric("tea")], CASES, n_cases=2, exact=True)
    assert sending is not None
    assert (sending.model, sending.place) == (f"a, b at {URL} and c", "https://c.example/v1")
    assert (sending.n_calls, sending.is_encrypted) == (6, True)
