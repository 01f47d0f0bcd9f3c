"""The claims of an answer: its sentences, with what a reader needs to understand each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentunit_local.grounding.remarks import declines, is_remark, without_lead_in, without_marker
from agentunit_local.grounding.segments import Sentence, is_content, split_sentences, words_of

_SHORT_WORDS = 6
_ITEM_WORDS = 8
_END_MARKS = ".!?…。！？"
_AROUND = " \t*_"
_CLOSING = _AROUND + "\"'”’)]」』）"
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_ANNOUNCED = re.compile(r"(?:here(?:'s|’s| is| are)|below (?:is|are)|the following (?:is|are))?\s*", re.IGNORECASE)

_NUMBER = re.compile(r"\(?(\d{1,3})[.)]")

NO_CLAIM = "the answer holds no claim"
DECLINED = "the answer declines to answer, so it claims nothing"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the answer, where it stands, and the text that is compared with the context.

    ``asked`` ends as ``text`` does: before it may stand the question of a bare answer or the heading of a list.
    """

    text: str
    start: int
    end: int
    asked: str

    @property
    def text_for_model(self) -> str:
        """``asked`` with an end mark, so that one that is missing changes nothing.

        >>> [Claim(each, 0, 0, each).text_for_model for each in ("It is 5 %", "It is (in part) so.)", "他在北京出生")]
        ['It is 5 %.', 'It is (in part) so.)', '他在北京出生。']
        """
        last = self.asked.rstrip(_CLOSING)[-1:]
        if last in _END_MARKS:
            return self.asked
        return self.asked + ("。" if _CJK.match(last) else ".")


def claims_of(answer: str, question: str | None = None) -> list[Claim]:
    """The claims of an answer, without numbering, announcements and courtesies.

    A bare answer ("In 1969") says something only together with its question, a bare item of a list only with its
    heading. What a claim is depends on nothing that follows it: a longer answer has the claims of a shorter one that it
    begins with.

    >>> [claim.asked for claim in claims_of("In 1969", "When was it?")]
    ['When was it? In 1969']
    >>> [claim.asked for claim in claims_of("Sure! The shop sells:\\n1. Bread\\n2. Fresh milk\\nI hope this helps!")]
    ['The shop sells: Bread', 'The shop sells: Fresh milk']
    """
    found: list[Claim] = []
    heading = ""
    is_item = False
    n_items = 0
    for sentence in split_sentences(answer):
        start = without_marker(answer, sentence.start)
        is_item = is_item or start > sentence.start
        number = _NUMBER.match(answer, sentence.start, start)
        if start >= sentence.end and (number is None or int(number[1]) in (0, 1, n_items + 1)):
            # The splitter parts "1." from its item. Any other number is an answer of its own: "42."
            n_items = n_items if number is None else int(number[1])
            continue
        if start >= sentence.end:
            start, is_item = sentence.start, False
        elif number is not None:
            n_items = int(number[1])
        claim = _behind_lead_in(answer, start, sentence.end)
        if is_remark(claim.text) or declines(claim.text):
            is_item = False
            continue
        if claim.text.rstrip(_AROUND).endswith((":", "：")):
            heading = _heading(claim.text)
            is_item = False
            continue
        bare = len(words_of(claim.text)) <= _SHORT_WORDS
        asked = claim.text
        if heading and (is_item or bare) and _is_fragment(claim.text):
            asked = f"{heading}: {claim.text}"
        elif question and bare and not found and question.rstrip().endswith("?"):
            asked = f"{question} {claim.text}"
        if not is_item:
            heading = ""
        is_item = False
        found.append(Claim(claim.text, claim.start, claim.end, asked))
    return found


def why_no_claims(answer: str) -> str:
    """Why an answer has no claims: it declines to answer, or says nothing about the subject."""
    return DECLINED if any(declines(each.text) for each in split_sentences(answer)) else NO_CLAIM


def only_declines(answer: str) -> bool:
    """Whether an answer declines to answer and says nothing else.

    >>> only_declines("Sorry, the documents do not say when. I hope this helps!"), only_declines("Unknown. In 1969?")
    (True, False)
    """
    return why_no_claims(answer) == DECLINED and not claims_of(answer)


def _behind_lead_in(answer: str, start: int, end: int) -> Sentence:
    text = answer[start:end]
    start += without_lead_in(text)
    return Sentence(answer[start:end], start, end)


def _heading(text: str) -> str:
    """A heading as it stands before its items; empty where it only announces them."""
    bare = text.rstrip(_AROUND).rstrip(":：")
    bare = bare[_ANNOUNCED.match(bare).end() :]  # type: ignore[union-attr]
    return bare if any(is_content(word) for word in words_of(bare)) else ""


def _is_fragment(text: str) -> bool:
    bare = text.rstrip(_AROUND)
    return bare[-1:] not in _END_MARKS or len([word for word in words_of(bare) if is_content(word)]) <= _ITEM_WORDS // 2
