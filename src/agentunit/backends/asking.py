"""What add-ons need to ask a model through the judge: texts marked as data, replies that are read, and how it fails.

The judge itself comes by a door; what is here costs nothing and knows nothing of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import unicodedata
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

_REPLY_RULE = 'Reply with the JSON alone. It begins with {{"mark": "{mark}", '
_QUOTE_MARKS = re.compile("[\"'“”‘’„«»`´′]")
_DASHES = re.compile("[‐‑‒–—−]")

MARK = "mark"
"""The field of a reply that says which question it answers. Its value is not in schemas, which servers compile."""


class Fenced(NamedTuple):
    """Named texts between fences. ``mark`` stands in none of them, so only a reply to this message can carry it.

    ``judged`` is the texts without their fences.
    """

    text: str
    mark: str
    judged: str

    @property
    def message(self) -> str:
        """What is sent: the texts, and how the reply begins."""
        return f"{self.text}\n\n{_REPLY_RULE.format(mark=self.mark)}"


def fenced(parts: Sequence[tuple[str, str]], task: str = "") -> Fenced:
    """Named texts, each between lines that none of them can contain.

    The mark comes from the task and the texts: the same question gives the same prompt, which a cache can know again.

    >>> print(fenced([("answer", "Paris")]).text)
    The mark of this message is #226d45b3e03e.
    <BLANKLINE>
    [BEGIN answer #226d45b3e03e]
    Paris
    [END answer #226d45b3e03e]
    """
    readable = [(name, readable_text(text)) for name, text in parts]
    mark = _mark([readable_text(task), *(each for part in readable for each in part)])
    blocks = [f"[BEGIN {name} #{mark}]\n{text}\n[END {name} #{mark}]" for name, text in readable]
    text = "\n\n".join([f"The mark of this message is #{mark}.", *blocks])
    return Fenced(text, mark, "\n".join(text for _, text in readable))


def readable_text(text: str) -> str:
    """The text as it can be sent: halves of characters do not exist in UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _mark(texts: Iterable[str]) -> str:
    whole = "\x00".join(texts).casefold()
    attempt = 0
    while True:
        mark = hashlib.sha256(f"{attempt}\x00{whole}".encode()).hexdigest()[:12]
        if mark not in whole:
            return mark
        attempt += 1


class Asking(Protocol):
    """The questions of one judgment; the judge makes one."""

    async def read(
        self,
        purpose: str,
        task: str,
        data: Fenced,
        schema: dict[str, Any],
        reader: Callable[[dict[str, Any]], T],
        *,
        max_tokens: int = 1024,
    ) -> T:
        """What ``reader`` makes of the reply. It raises ``UnreadableReply`` to have it asked for once more."""
        ...


class JudgeService(Protocol):
    """What the backend ``judge`` offers to add-ons that ask it something else than for a verdict on an answer."""

    def ask(self, question: Callable[[Asking], Coroutine[Any, Any, T]]) -> T:
        """What comes of the question; ``JudgeFailed`` where there is no usable reply."""
        ...

    def estimate(self, **asked: Any) -> Any:
        """What asking would send (``engine.scoring.judging.Sending``), before it is sent."""
        ...


class JudgeFailed(RuntimeError):
    """The judge gave no usable reply; ``raw`` is what it said, if anything."""

    def __init__(self, message: str, raw: str | None = None) -> None:
        super().__init__(message)
        self.raw = raw


class UnreadableReply(ValueError):
    """A reply that says nothing usable; the message is the rule it broke."""


async def all_of(asked: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of questions asked at once. Even if one fails all are waited for: what they took must be counted."""
    results = await asyncio.gather(*asked, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]  # exceptions were raised above


def check_nothing_beside(reply: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse a reply that holds another list or object: one of them may come from a quote that nobody escaped."""
    known = {one_spelling(name) for name in names}
    for name, value in reply.items():
        if isinstance(value, (list, dict)) and one_spelling(str(name)) not in known:
            raise UnreadableReply(f"the reply must hold nothing but what was asked for; it holds {name!r:.40}")


def field_of(entry: Any, *names: str) -> Any:
    """The value under the first of these names that an object has, whatever the case of its letters."""
    if not isinstance(entry, dict):
        return None
    plain: dict[str, Any] = {}
    for name, value in entry.items():
        if plain.setdefault(_plain_name(str(name)), value) != value:
            raise UnreadableReply(f"{name!r:.40} is given twice, with different values")
    return next((plain[name] for name in map(_plain_name, names) if plain.get(name) is not None), None)


def _plain_name(name: str) -> str:
    # Nearly every name is plain already.
    return name if name.isalpha() and name.islower() and name.isascii() else one_spelling(name)


def one_spelling(text: str) -> str:
    """A name or word of a reply in one spelling.

    >>> one_spelling(" Not_supported ")
    'not supported'
    """
    return re.sub(r"[\s_-]+", " ", text).strip().casefold()


def plain_words(text: str) -> str:
    """A text as quotes are compared: letters of one case, one kind of dash, no quotation marks, single spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_DASHES.sub("-", _QUOTE_MARKS.sub("", folded)).split())
