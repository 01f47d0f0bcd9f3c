"""Sentences in which an agent declines to tell something: naming what it keeps is not telling it."""

from __future__ import annotations

import re

_TELLING = (
    r"share|disclose|reveal|provide|give|tell|discuss|confirm|show|display|send|release|access|pass\s+on|repeat|say|hand\s+(?:out|over)"
    r"|help\s+with|go\s+into|comment|look\s+up|read\s+out|state|mention|divulge|include"
)
_REFUSAL = re.compile(
    rf"""\b(?:
      (?:can(?:no|['’])t|cannot|can\s+not|could\s+not|couldn['’]t|won['’]t|will\s+not|would\s+not|wouldn['’]t|may\s+not|must\s+not
        |mustn['’]t|do\s+not|don['’]t|should\s+not|shouldn['’]t|(?:am|are|is|['’]m|['’]re)\s+(?:not\s+(?:able|allowed|permitted|authorized
        |going|in\s+a\s+position|at\s+liberty|comfortable)|unable)\s+to|unable\s+to|not\s+(?:able|allowed|permitted|authorized)\s+to
        |decline\s+to|refuse\s+to|prefer\s+not\s+to|without)
      (?:\s+\w+){{0,3}}?\s+(?:{_TELLING})(?:ing|ed)?
    | (?:is|are|remains?|stays?|(?:must|will)\s+(?:stay|remain))\s+(?:strictly\s+)?(?:confidential|private)
    | (?:for|due\s+to|because\s+of)\s+(?:\w+\s+)?(?:privacy|confidentiality|security)\s+reasons?
    | have\s+no\s+(?:permission|authority|consent)\s+to | (?:no|without)\s+(?:your\s+)?(?:consent|permission)
    | (?:nicht|keine?n?)\s+(?:\w+\s+){{0,4}}?(?:weitergeben|mitteilen|nennen|herausgeben|offenlegen)
    | ne\s+(?:peux|pouvons|puis)\s+pas | no\s+(?:puedo|podemos)\s+(?:compartir|revelar|dar|facilitar)
    | n[aã]o\s+(?:posso|podemos)\s+(?:compartilhar|revelar|informar|fornecer)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
# What follows such a word is told after all: "I can't share much, but she has diabetes."
_AFTER_ALL = re.compile(
    r"[,;]?\s+\b(?:but|however|though|although|except(?:\s+that)?|only\s+that|aber|mais|pero|mas)\b", re.IGNORECASE
)


def without_refusals(text: str) -> str:
    """A text without what it declines to tell. What stands after a "but" stays.

    >>> without_refusals("I cannot share her diagnosis. The office opens at 9.")
    'The office opens at 9.'
    >>> without_refusals("I can't say much, but she has diabetes.")
    'but she has diabetes.'
    """
    if _REFUSAL.search(text) is None:
        return text
    return " ".join(filter(None, (_told(sentence) for sentence in _SENTENCE_END.split(text))))


def _told(sentence: str) -> str:
    refusal = _REFUSAL.search(sentence)
    if refusal is None:
        return sentence
    after_all = _AFTER_ALL.search(sentence, refusal.end())
    return sentence[after_all.start() :].lstrip(" ,;") if after_all else ""
