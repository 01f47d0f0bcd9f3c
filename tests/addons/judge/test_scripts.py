"""Every script of what servers and judges do: nothing is lost, nothing is scored silently, and docs tell the same."""

from __future__ import annotations

import pytest
from judge_scripts import BEGIN, DOCS, END, KEY, N_QUESTIONS, Script, play, scripts, table

SCRIPTS = list(scripts())


@pytest.mark.parametrize("script", SCRIPTS, ids=[f"{each.endpoint}: {each.what}" for each in SCRIPTS])
def test_what_became_of_the_verdicts(script: Script) -> None:
    played = play(script)
    assert len(played.verdicts) == N_QUESTIONS
    assert played.n_wrong == 0
    for verdict in played.verdicts:
        assert (verdict.value is None) == ("error" in verdict.detail)
        assert KEY not in str(verdict)
    said = sorted(played.outcomes)
    expected = {"right"} if script.outcome == "right" else {script.outcome}
    rest = [each for each in said if not any(part in each for part in expected)]
    # One reply that a filter holds back is one verdict that is lost; the others are as they should be.
    assert rest in ([], ["right"] if "filter" in script.what else []), said
    assert any(script.outcome in each for each in said), said
    assert played.n_calls == script.n_calls


def test_there_are_enough_of_them_and_the_docs_show_them() -> None:
    assert len(SCRIPTS) >= 120
    shown = DOCS.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == table(), "run: python tests/support/judge_scripts.py"
