from __future__ import annotations

import pytest

from agentunit.addons.viewer._case_detail import answer_marks
from agentunit.core.results import MetricResult, Score

ANSWER = "It costs nine euros."


@pytest.mark.parametrize(
    ("status", "detail", "why"),
    [
        ("ok", {}, None),
        ("informational", {"informational": "the text is in 'de'"}, "the text is in 'de'"),
        ("informational", {}, "scored by local"),
    ],
)
def test_a_mark_says_why_its_score_is_informational(status, detail, why):
    claim = {"text": ANSWER, "probability": 0.1, "doubtful": [{"start": 9, "end": 13, "probability": 0.8}]}
    score = Score(MetricResult("faithfulness", 0.1, {"claims": [claim], **detail}), status, "local", "1")
    marks = answer_marks(ANSWER, {"faithfulness": score}, ["It costs two euros."], {})
    assert [(mark["kind"], mark["informational"]) for mark in marks] == [("unsupported", why), ("doubtful", why)]
