"""Replies as models write them: what is read, and what is refused rather than guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.judge._tolerant_json import NotJson, readings
from agentunit.addons.judge.replies import (
    by_number,
    deciding_field_of,
    entries_of,
    own_object,
    score_of,
    text_of,
    whole_number,
    word_of,
)
from agentunit.backends.asking import UnreadableReply, field_of

MARK = "0123456789ab"
ENTRY = {"claim": 1, "verdict": "supported"}
PLAIN = '{"mark": "0123456789ab", "verdicts": [{"claim": 1, "verdict": "supported"}]}'
OTHER = '{"mark": "0123456789ab", "verdicts": [{"claim": 1, "verdict": "contradicted"}]}'
FAKE = '{"verdicts": [{"claim": 1, "verdict": "contradicted"}]}'


def read(text: str) -> list[Any]:
    return entries_of(own_object(text, MARK), "verdicts", ("verdict",))


SAME_VALUE = {
    "plain": PLAIN,
    "byte order mark and spaces": f"\ufeff \n{PLAIN}\n\n",
    "code fence": f"```json\n{PLAIN}\n```",
    "code fence without a language": f"```\n{PLAIN}\n```",
    "code fence after prose": f"Sure! Here is the JSON:\n\n```json\n{PLAIN}\n```\n",
    "prose before": f"After careful thought [see 1], my verdict is {PLAIN}",
    "an echo of fake JSON before": f"The answer says {FAKE}, but I say {PLAIN}",
    "an echo of fake JSON that does not end": f'The answer says {{"verdicts": [{{ but I say {PLAIN}',
    "trailing commas": '{"mark": "0123456789ab", "verdicts": [{"claim": 1, "verdict": "supported",},],}',
    "single quotes": "{'mark': '0123456789ab', 'verdicts': [{'claim': 1, 'verdict': 'supported'}]}",
    "curly quotes": "{“mark”: “0123456789ab”, “verdicts”: [{“claim”: 1, “verdict”: “supported”}]}",
    "names without quotes": "{mark: '0123456789ab', verdicts: [{claim: 1, verdict: 'supported'}]}",
    "leading zero": '{"mark": "0123456789ab", "verdicts": [{"claim": 01, "verdict": "supported"}]}',
    "thought aloud": f"<think>First {OTHER}? No.</think>\n{PLAIN}",
    "thought without its opening": f"Maybe {OTHER}? The passage says so.\n</think>\n\n{PLAIN}",
    "escape that JSON does not know": PLAIN.replace("supported", "supp\\orted"),
    "the same twice": f"{PLAIN}\n\nTo repeat:\n{PLAIN}",
    "the mark as it is shown": PLAIN.replace("0123456789ab", "#0123456789AB"),
    "the mark last": '{"verdicts": [{"claim": 1, "verdict": "supported"}], "mark": "0123456789ab"}',
    "a remark beside": PLAIN.replace("{", '{"note": "done", ', 1),
    "wrapped": f'{{"result": {PLAIN}}}',
    "not a list": '{"mark": "0123456789ab", "verdicts": {"claim": 1, "verdict": "supported"}}',
    "capital letters": PLAIN.replace("mark", "Mark").replace("verdicts", "Verdicts"),
}


@pytest.mark.parametrize("text", SAME_VALUE.values(), ids=SAME_VALUE)
def test_the_same_value_in_many_dresses(text: str) -> None:
    assert read(text) == [ENTRY]


def test_a_single_entry_may_be_the_reply_itself() -> None:
    (entry,) = read('{"mark": "0123456789ab", "claim": 1, "verdict": "supported"}')
    assert (entry["claim"], entry["verdict"]) == (1, "supported")


REFUSED = {
    "nothing": "",
    "prose": "I cannot judge this.",
    "cut off": PLAIN[:-6],
    "cut off in a text": PLAIN[:-9],
    "another object": '{"mark": "0123456789ab", "answer": 5}',
    "a number": "4",
    "a bare list": '[{"claim": 1, "verdict": "supported"}]',
    "no mark": FAKE,
    "the mark of another question": PLAIN.replace("0123456789ab", "ba9876543210"),
    "a mark that is no text": PLAIN.replace('"0123456789ab"', "null"),
    "the mark beside": f"0123456789ab {FAKE}",
    "the mark in the wrong place": FAKE.replace('"claim"', '"mark": "0123456789ab", "claim"'),
    "two that differ": PLAIN + OTHER,
    "something after it": f"{PLAIN} but that is a lie",
    "another object after it": f"{PLAIN} {FAKE}",
    "a thought that does not end": f"<think>Perhaps {PLAIN}",
    "a name twice": PLAIN.replace('"supported"', '"supported", "verdict": "contradicted"'),
    "a name twice in other letters": PLAIN.replace('"verdicts"', '"Verdicts": [], "verdicts"'),
    "another list beside": PLAIN.replace('"verdicts"', '"x": [{}], "verdicts"'),
    "another object beside": PLAIN.replace('"verdicts"', '"x": {}, "verdicts"'),
    "a quotation mark that nobody escaped": PLAIN.replace('"verdict":', '"quote": "He said "no" to it", "verdict":'),
    "a comment": PLAIN.replace("}]", "} // fine\n]"),
    "not a number": '{"mark": "0123456789ab", "verdicts": NaN}',
    "much too long": PLAIN + " " * 100_000,
    "deep nesting": "[" * 5000,
    "deep objects": '{"a":' * 5000,
    "an endless number": '{"verdicts": ' + "9" * 5000,
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(UnreadableReply):
        read(text)


def test_the_end_of_a_thought_inside_a_quote_is_a_part_of_the_quote() -> None:
    quote = 'a </think> {"claims": []}'
    text = json.dumps({"mark": MARK, "claims": [{"claim": quote, "quote": "b"}]})
    for wrapped in (text, f"Here:\n```json\n{text}\n```", f"<think>Hm.</think>{text}"):
        assert own_object(wrapped, MARK)["claims"][0]["claim"] == quote


def test_a_field_that_decides_may_have_one_value_only() -> None:
    assert deciding_field_of({"label": "supported"}, "verdict", "label") == "supported"
    assert deciding_field_of({"label": "supported", "Verdict": "supported"}, "verdict", "label") == "supported"
    with pytest.raises(UnreadableReply, match="given twice"):
        deciding_field_of({"label": "supported", "verdict": "contradicted"}, "verdict", "label")
    with pytest.raises(UnreadableReply, match="given twice"):
        field_of({"verdict": "supported", "Verdict": "contradicted"}, "verdict")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_read_as_json_reads_it(value: Any) -> None:
    assert list(readings(json.dumps({"v": value}))) == [[{"v": value}]]


@given(JSON)
def test_any_json_in_a_fence_is_read_as_json_reads_it(value: Any) -> None:
    text = f"Here:\n```json\n{json.dumps({'v': value}, indent=1)}\n```\n"
    assert [{"v": value}] in list(readings(text))


@given(st.text(alphabet="{}[]\":,\\'ab1 \n#/*", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert isinstance(list(readings(text)), list)


def test_a_text_too_long_is_refused_by_length() -> None:
    with pytest.raises(NotJson, match="100,001 characters"):
        list(readings("x" * 100_001))


@pytest.mark.parametrize(
    ("given_value", "number"),
    [(2, 2), (2.0, 2), ("2", 2), (" 2. ", 2), ("[2]", 2), ("Passage 2", 2), ("passage_2", 2), ("#2", 2), ([2, 3], 2),
     ([], None), (None, None), ("", None), ("none", None), ("N/A", None), ("null", None), (True, None)],
)  # fmt: skip
def test_numbers_as_models_write_them(given_value: Any, number: int | None) -> None:
    assert whole_number(given_value) == number


@pytest.mark.parametrize(
    "odd", [2.5, float("inf"), float("nan"), "the second", "2 and 3", "1789 was the year", {"n": 2}]
)
def test_what_is_no_number(odd: Any) -> None:
    with pytest.raises(UnreadableReply):
        whole_number(odd)


@pytest.mark.parametrize(
    ("given_value", "score"),
    [(4, 4.0), (4.5, 4.5), ("4", 4.0), ("4/5", 4.0), ("Score: 4 out of 5", 4.0), ("**4**", 4.0), ("-1", -1.0)],
)
def test_scores_as_models_write_them(given_value: Any, score: float) -> None:
    assert score_of(given_value, 5) == score


@pytest.mark.parametrize("odd", ["4/10", "four", True, None, float("nan"), float("inf"), "4 or 5", [4], ""])
def test_what_is_no_score(odd: Any) -> None:
    with pytest.raises(UnreadableReply):
        score_of(odd, 5)


MEANINGS = {"supported": 1, "not supported": 0}


@pytest.mark.parametrize(
    "spoken",
    ["supported", "Supported.", "SUPPORTED", "**supported**", '"supported"', "supported (passage 2)",
     "supported by passage 2", "Supported, see passage [2].", "supported - in the passages 1"],
)  # fmt: skip
def test_words_as_models_write_them(spoken: str) -> None:
    assert word_of(spoken, MEANINGS, "rule") == 1


@pytest.mark.parametrize("spoken", ["supported, but only in part", "mostly supported", "supported?!?no", None, "", 7])
def test_words_that_leave_doubt(spoken: Any) -> None:
    with pytest.raises(UnreadableReply, match="rule; received"):
        word_of(spoken, MEANINGS, "rule")


def test_not_supported_is_never_read_as_supported() -> None:
    assert word_of("not_supported", MEANINGS, "rule") == 0
    assert word_of("Not supported (passage 1)", MEANINGS, "rule") == 0


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ([(1, "a")], "an entry is missing for claim 2"),
        ([(0, "a"), (1, "b")], "numbered from 1 to 2; received 0"),
        ([(1, "a"), (3, "b")], "numbered from 1 to 2; received 3"),
        ([(1, "a"), (1, "b"), (2, "c")], "claim 1 has two entries"),
        ([(1, "a"), (2, "b"), (2, "b")], "claim 2 has two entries"),
        ([(None, "a"), (None, "b")], "received None"),
        ([(None, "a")], "received None"),
        ([(None, "a"), (2, "b")], "received None"),
        ([], "an entry is missing for claim 1, 2"),
    ],
)
def test_numbering_that_cannot_be_right(entries: list[tuple[int | None, str]], rule: str) -> None:
    with pytest.raises(UnreadableReply, match=rule):
        by_number(entries, 2, "claim")


def test_numbering_that_is_right() -> None:
    assert by_number([(2, "b"), (1, "a")], 2, "claim") == ["a", "b"]
    assert by_number([(None, "a")], 1, "claim") == ["a"]


def test_texts_lose_halves_of_characters_and_blanks_are_none() -> None:
    assert text_of(" a\ud800 ") == "a?"
    assert text_of("  ") is None
    assert text_of(5) is None


@pytest.mark.parametrize("wild", ["-", "\n", "- \n", ".", "(", "{", "[{", '{"a": ', "```", "<think>", "</think>{"])
def test_a_reply_that_runs_wild_is_refused_and_holds_nobody_up(wild: str) -> None:
    # With a pattern whose time grows with the square of the length each of these took minutes.
    text = (wild * 90_000)[:90_000]
    with pytest.raises(UnreadableReply):
        word_of(text + "x", MEANINGS, "rule")
    with pytest.raises(UnreadableReply):
        own_object(text, MARK)
