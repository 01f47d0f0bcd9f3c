"""Triage, and the whole desk: one question in, one answer out."""

from __future__ import annotations

import re

from .advice import advice
from .orders import orders
from .reading import Reply, email_address, order_numbers
from .returns import returns
from .session import Session

SPECIALISTS = {"orders": orders, "returns": returns, "advice": advice}
# Words that point to an agent, by how strongly they do.
_SIGNAL_WORDS = {
    "orders": {
        1: "order pay warehouse",
        2: "where stuff parcel package tracking arrives arives delivered address adress shipped paid",
        3: "wheres",
    },
    "returns": {
        2: "back broken smashed snapped",
        3: "return returned money exchange",
        4: "refund refunded swap",
    },
    "advice": {
        1: "how what which do can",
        2: "size card cards ship shipping",
        3: "wash clean match rent",
        6: "warranty",
    },
}
SIGNALS = {
    agent: {word: weight for weight, words in groups.items() for word in words.split()}
    for agent, groups in _SIGNAL_WORDS.items()
}
NAMED_ORDER_BONUS = 3
GENERAL_QUESTION_BONUS = 3


def answer(session: Session, question: str) -> Reply:
    """Work through one question and leave the whole story in the session."""
    session.record("message", role="user", content=question)
    session.start("triage", question)
    parts = split(question)
    replies = []
    for part in parts:
        agent = _assign(session, part, delegated=len(parts) > 1)
        session.start(agent, part)
        reply = SPECIALISTS[agent](session, part)
        session.write(agent, reply.text)
        session.end(agent)
        session.tell(agent, "triage", "response", "report", reply.text)
        if not reply.settled:
            _escalate(session, part)
        replies.append(reply)
    text = " ".join(reply.text for reply in replies)
    if len(replies) > 1:
        session.write("triage", text)
    session.end("triage")
    session.record("message", role="assistant", content=text)
    for agent in dict.fromkeys(handoff["to_agent"] for handoff in session.handoffs if handoff["success"]):
        session.tell("triage", agent, "notification", "task_closed", "The customer has our answer.")
    return Reply(text, all(reply.settled for reply in replies))


def split(question: str) -> list[str]:
    """Cut a question into the parts that different agents should answer.

    >>> split("Where is A-1054? Also, how do I wash a down jacket?")
    ['Where is A-1054?', 'Also, how do I wash a down jacket?']
    >>> split("Where is A-1004? I need it on Friday.")
    ['Where is A-1004? I need it on Friday.']
    """
    parts: list[str] = []
    for piece in re.split(r"(?<=\?)\s+", question):
        if parts and ("?" not in piece or ranking(piece)[0] == ranking(parts[-1])[0]):
            parts[-1] = f"{parts[-1]} {piece}"
        else:
            parts.append(piece)
    return parts


def ranking(part: str) -> list[str]:
    """The specialists, the best suited first."""
    words = re.findall(r"[a-z]+", part.lower().replace("'", ""))
    scores = {agent: sum(signals.get(word, 0) for word in words) for agent, signals in SIGNALS.items()}
    if order_numbers(part) or email_address(part):
        scores["orders"] += NAMED_ORDER_BONUS
        scores["returns"] += NAMED_ORDER_BONUS
    else:
        scores["advice"] += GENERAL_QUESTION_BONUS
    return sorted(scores, key=lambda agent: -scores[agent])


def _assign(session: Session, part: str, delegated: bool) -> str:
    """Hand a part to the best suited agent that does not decline it."""
    first, second, _ = ranking(part)
    session.write("triage", f"route to {first}: {part}")
    reason = "one part of the question" if delegated else "best match by topic"
    if first != "returns" or not re.search(r"\bad+ress\b", part.lower()):
        session.hand_over("triage", first, part, reason)
        return first
    since_s = session.now()
    session.hand_over("triage", first, part, reason, accepted=False)
    refusal = session.tell(
        "returns", "triage", "negotiation", "report", "This is about an address, not about a return."
    )
    session.write("triage", f"route to {second}: {part}")
    session.answered(refusal)
    session.hand_over("triage", second, part, "declined by returns")
    session.conflict(
        ["triage", "returns"], "ownership", True, since_s, "triage and returns disagreed whose task this is"
    )
    return second


def _escalate(session: Session, part: str) -> None:
    session.hand_over("triage", "supervisor", part, "nobody could settle it")
    request = session.tell("triage", "supervisor", "request", "callback_request", "Please write to the customer.")
    session.start("supervisor", part)
    session.write("supervisor", "Noted, a colleague will write to the customer.")
    session.end("supervisor")
    session.answered(request)
    session.tell("supervisor", "triage", "response", "callback_accepted", "Noted.")
