"""Replies to the prompts of AgentUnit's judge that are decided from the texts in them: words and numbers they share.

``JudgeServer(decide)`` is then a judge with an opinion: other passages or another answer get other verdicts.
"""

from __future__ import annotations

import re
from typing import Any

_FENCED = re.compile(
    r"\[BEGIN (?P<name>[^\]\n#]+) #(?P<mark>[0-9a-f]{12})\]\n(?P<text>.*?)\n\[END (?P=name) #(?P=mark)\]", re.S
)
_MARK = re.compile(r"^The mark of this message is #([0-9a-f]{12})\.\n", re.M)
_SENTENCE = re.compile(r"[^.!?\n]+(?:\.\d[^.!?\n]*)*[.!?]*")
_PLAIN_WORDS = "a an the is are was were be been in of on at to and or it its that this for by with as has have had"
_PLAIN = set(_PLAIN_WORDS.split())
_NO_CLAIM = re.compile(r"don't know|do not know|cannot|can't|sorry|hello|\?\s*$", re.I)
_ENOUGH = 0.7


def texts_of(body: dict[str, Any]) -> dict[str, str]:
    """The fenced texts of a request by their names, found by the mark that the message states first."""
    user, mark = body["messages"][-1]["content"], mark_of(body)
    return {each["name"]: each["text"] for each in _FENCED.finditer(user) if each["mark"] == mark}


def mark_of(body: dict[str, Any]) -> str:
    """The mark that a message states first, which the reply has to carry."""
    mark = _MARK.search(body["messages"][-1]["content"])
    assert mark, f"no mark in {body['messages'][-1]['content']!r:.80}"
    return mark[1]


def decide(body: dict[str, Any]) -> dict[str, Any]:
    """The reply to one of our prompts."""
    return {"mark": mark_of(body), **_decided(body)}


def _decided(body: dict[str, Any]) -> dict[str, Any]:
    system, texts = body["messages"][0]["content"], texts_of(body)
    if system.startswith("You split an answer into claims"):
        return {"claims": claims_of(texts["answer"])}
    if system.startswith("You check claims"):
        return {"verdicts": verdicts_on(_numbered(texts, "claim"), _numbered(texts, "passage"))}
    if system.startswith("You judge retrieved passages"):
        answers = [text for name, text in texts.items() if name.startswith(("answer", "acceptable answer"))]
        return {"passages": usefulness_of(_numbered(texts, "passage"), answers)}
    if system.startswith("You compare two answers"):
        return {"choices": [{"pair": 1, "reason": "it has more of the words", "better": better_of(texts)}]}
    assert system.startswith(("You score an answer by criteria", "You score a conversation")), system
    messages = [text for name, text in texts.items() if name.startswith("message ") and "assistant" in name]
    steps = [text for name, text in texts.items() if name.startswith("step ")]
    return {"scores": scores_of(system, "\n".join([texts.get("answer", ""), *messages, *steps]))}


def _numbered(texts: dict[str, str], kind: str) -> list[str]:
    return [texts[f"{kind} {number}"] for number in range(1, 1000) if f"{kind} {number}" in texts]


def words_of(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if word not in _PLAIN}


def numbers_of(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:[.,]\d+)*", text))


def sentences_of(text: str) -> list[str]:
    return [each.strip() for each in _SENTENCE.findall(text) if words_of(each)]


def claims_of(answer: str) -> list[dict[str, str]]:
    return [{"claim": each, "quote": each} for each in sentences_of(answer) if not _NO_CLAIM.search(each)]


def verdicts_on(claims: list[str], passages: list[str]) -> list[dict[str, Any]]:
    return [{"claim": number, **_verdict_on(claim, passages)} for number, claim in enumerate(claims, 1)]


def _verdict_on(claim: str, passages: list[str]) -> dict[str, Any]:
    candidates = [(number, sentence) for number, text in enumerate(passages, 1) for sentence in sentences_of(text)]
    wanted = words_of(claim) - numbers_of(claim)

    def shared(candidate: tuple[int, str]) -> tuple[float, int]:
        words = words_of(candidate[1])
        return len(wanted & words) / len(wanted) if wanted else 0.0, len(numbers_of(claim) & numbers_of(candidate[1]))

    best = max(candidates, key=shared, default=None)
    if best is None or shared(best)[0] < _ENOUGH:
        return {"passage": None, "quote": None, "verdict": "not_in_passages"}
    stated = numbers_of(claim) <= numbers_of(best[1])
    return {"passage": best[0], "quote": best[1], "verdict": "supported" if stated else "contradicted"}


def usefulness_of(passages: list[str], answers: list[str]) -> list[dict[str, Any]]:
    shares = [
        max(len(words_of(each) & words_of(text)) / len(words_of(each) or {""}) for each in answers) for text in passages
    ]
    return [
        {"passage": number, "reason": f"shares {share:.2f}", "useful": share >= 0.5}
        for number, share in enumerate(shares, 1)
    ]


def scores_of(system: str, answer: str) -> list[dict[str, Any]]:
    """Per criterion, the share of its words that the answer has, on the scale that the prompt states."""
    listed = re.search(r"Criteria:\n(.*?)\n\n(?:People scored|Reply with JSON)", system, re.S)
    assert listed
    criteria = re.findall(r"^\d+\. (.*(?:\n   .*)*)$", listed[1], re.M)
    scores: list[dict[str, Any]] = []
    for number, criterion in enumerate(criteria, 1):
        text, _, below = criterion.partition("\n")
        share = len(words_of(text) & words_of(answer)) / len(words_of(text) or {""})
        said = f"{share:.2f} of its words"
        scores.append({"criterion": number, "reason": said, "score": _on_scale(share, below or system)})
    return scores


def _on_scale(share: float, stated: str) -> int | str:
    numeric = re.search(r"whole number from (-?\d+) .*? to (-?\d+)", stated)
    if numeric:
        low, high = int(numeric[1]), int(numeric[2])
        return low + round(share * (high - low))
    labels = re.search(r"from worst to best: (.*)\.$", stated, re.M)
    assert labels
    names = labels[1].split(", ")
    return names[round(share * (len(names) - 1))]


def better_of(texts: dict[str, str]) -> str:
    """The answer that has more words of question, passages and expected answers; a tie when both have as many."""
    wanted = words_of("\n".join(text for name, text in texts.items() if not name.startswith("answer ")))
    shared = [len(wanted & words_of(texts[f"answer {which}"])) for which in "AB"]
    return "tie" if shared[0] == shared[1] else "A" if shared[0] > shared[1] else "B"
