"""How sure a judge is of its scores: asked for, read from tokens, kept, and left alone where tokens say nothing."""

from __future__ import annotations

import json
import re
from math import log
from pathlib import Path
from typing import Any

import pytest
from judge_decisions import decide
from judge_faults import Fault, failing
from judge_server import JudgeServer, Received

import agentunit
from agentunit.addons.judge._level_chances import level_chances
from agentunit.addons.judge.rubric_metric import RubricMetric
from agentunit.addons.judge.settings import configure_judge
from agentunit.backends.quality import load_backend

RECORD = {"case": {"id": "q1", "query": "Hi"}, "outcome": "dear jane"}


def torn(request: Received) -> Fault | None:
    """Replies with their tokens: at each score the one below is half as likely as the one that is written."""
    if not request.body.get("logprobs"):
        return None
    text = json.dumps(decide(request.body))
    content = []
    for token in re.findall(r"\d+|[^\d]+", text):
        is_score = token.isdigit() and '"score": ' in "".join(each["token"] for each in content[-1:])[-9:]
        likely = {token: 0.6, str(int(token) - 1): 0.3, "maybe": 0.1} if is_score else {token: 1.0}
        top = [{"token": each, "logprob": log(chance)} for each, chance in likely.items()]
        content.append({"token": token, "logprob": top[0]["logprob"], "top_logprobs": top})
    return Fault(message={"role": "assistant", "content": text}, choice={"logprobs": {"content": content}})


def scored(**settings: Any) -> Any:
    agentunit.configure(judge={"model": "m", "cache": None, "logprobs": True, **settings})
    try:
        (case,) = agentunit.score([RECORD], [RubricMetric(["dear jane", "dear friend"])])
        return case.scores["rubric"]
    finally:
        configure_judge()
        backend: Any = load_backend("judge")
        backend.close()


def test_the_expected_score_counts_and_the_written_one_is_kept(tmp_path: Path) -> None:
    with JudgeServer(decide, faults=torn) as server:
        first = scored(url=server.url, cache=str(tmp_path))
        again = scored(url=server.url, cache=str(tmp_path))
        assert server.n_calls == 1
        assert server.calls[0].body["top_logprobs"] == 10
    for score in (first, again):
        rows = score.result.detail["scores"]
        assert [(row["score"], row["value"]) for row in rows] == [
            (5.0, pytest.approx((2 / 3) * 1.0 + (1 / 3) * 0.75)),
            (3.0, pytest.approx((2 / 3) * 0.5 + (1 / 3) * 0.25)),
        ]
        assert rows[0]["level_chances"] == {"4": pytest.approx(1 / 3), "5": pytest.approx(2 / 3)}
        assert score.result.detail["values_by"] == "log-probabilities of 2 of 2 scores"


def test_a_server_that_tells_nothing_or_refuses_leaves_scores_as_written() -> None:
    def refuses(request: Received) -> Fault | None:
        return failing(400, "logprobs are not supported with this model") if "logprobs" in request.body else None

    with JudgeServer(decide) as silent, JudgeServer(decide, faults=refuses) as refusing:
        for server, n_calls in ((silent, 1), (refusing, 2)):
            score = scored(url=server.url)
            assert score.value == pytest.approx((1.0 + 0.5) / 2)
            assert "values_by" not in score.result.detail
            assert server.n_calls == n_calls


def test_nothing_is_asked_for_unless_it_was_set() -> None:
    with JudgeServer(decide, faults=torn) as server:
        assert scored(url=server.url, logprobs=False).value == pytest.approx(0.75)
        assert "logprobs" not in server.calls[0].body


@pytest.mark.parametrize(
    ("positions", "levels", "said", "told"),
    [
        ([('{"score": ', []), ("4", []), ("}", [])], "12345", "4", {"4": 1.0}),
        ([('{"score":', []), (" 4", [(" 4", 0.5), ("5", 0.25), (" five", 0.25)]), ("}", [])], "12345", "4", (4, 5)),
        ([('{"score": ', []), ("4", [("4", 0.2), ("x", 0.7)]), ("}", [])], "12345", "4", None),
        ([('{"score": ', []), ("1", [("1", 0.9)]), ("0}", [])], ["1", "10"], "1", None),
        ([('{"score": "', []), ("part", [("part", 0.5), ("no", 0.5)]), ('ly"}', [])], ["no", "partly"], "partly", 0.5),
        ([('{"score": ', []), ("4", [("4", 0.9)])], "12345", "4", None),
        ([('{"score": ', []), ("3", [("3", 0.9)]), ("}", [])], "12345", "4", None),
    ],
)
def test_only_what_can_mean_one_level_is_read(positions: Any, levels: Any, said: str, told: Any) -> None:
    text = "".join(token for token, _ in positions)
    text = text if text.endswith("}") else text + "}"
    (found,) = level_chances(text, positions, [list(levels)], [said])
    if isinstance(told, tuple):
        assert found == {"4": pytest.approx(2 / 3), "5": pytest.approx(1 / 3)}
    elif isinstance(told, float):
        assert found == {"no": told, "partly": told}
    else:
        assert found == told
